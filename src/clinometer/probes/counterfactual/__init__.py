"""Sentiment of generated text when only the person, place or occupation changes."""

from clinometer.probes.counterfactual.probe import PROBE

__all__ = ["PROBE"]
