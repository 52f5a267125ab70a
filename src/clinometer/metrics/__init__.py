"""The papers' equations as pure functions on numpy arrays."""

from clinometer.metrics.gendered import (
    GenderedMass,
    gender_gap,
    gendered_mass,
    log_relative_probability,
    stereotypical_margin,
)

__all__ = [
    "GenderedMass",
    "gender_gap",
    "gendered_mass",
    "log_relative_probability",
    "stereotypical_margin",
]
