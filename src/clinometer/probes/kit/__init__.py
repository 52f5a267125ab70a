"""What all audits share: captions, the rule of a conclusion, numbers in words, means of what is present."""

from clinometer.metrics.means import group_means, present_mean
from clinometer.probes.kit.captions import Caption, tables_of
from clinometer.probes.kit.numbers import Floats, Ints, Label, Numbers, model_rng, select, share_finding, with_q
from clinometer.probes.kit.one_round import OneRound
from clinometer.probes.kit.verdicts import (
    CANNOT_TELL,
    LEAN,
    LEVEL,
    NONE_FOUND,
    RULE,
    Said,
    conclude,
    is_found,
    state_of,
)
from clinometer.probes.kit.words import certainty, interval, percent, percent_interval, q_value, signed, written

__all__ = [
    "CANNOT_TELL",
    "LEAN",
    "LEVEL",
    "NONE_FOUND",
    "RULE",
    "Caption",
    "Floats",
    "Ints",
    "Label",
    "Numbers",
    "OneRound",
    "Said",
    "certainty",
    "conclude",
    "group_means",
    "interval",
    "is_found",
    "model_rng",
    "percent",
    "percent_interval",
    "present_mean",
    "q_value",
    "select",
    "share_finding",
    "signed",
    "state_of",
    "tables_of",
    "with_q",
    "written",
]
