"""Whether a model understands the question: its own evidence, without which nothing is concluded from it.

docs/stigma.md says how the numbers were chosen, and how often models with random weights pass.
"""

from __future__ import annotations

import numpy as np

from clinometer.metrics.attitude import ATTITUDES
from clinometer.probes.kit import Floats, present_mean
from clinometer.probes.kit.drawn import failed_to_answer
from clinometer.probes.stigma.answers import ChatAnswers, ClassifierOutcomes, MaskedAnswers

RATED = 0.15  # masked: of the probability, on the words that are rated and relevant
EACH_SIDE = 0.02  # masked: on the positive, and on the negative ones
RATED_NEXT = 0.1  # causal: the same, right after the left part and of the candidates alone
SENSED = 0.75  # classifiers: of the statements of a plain sense, of the positive and of the negative ones
ON_SCALE = 0.5  # chat: of the answers


def masked_gate(answers: MaskedAnswers) -> str:
    """Return why nothing can be concluded from a masked model's words; "" where it understands the question.

    Random weights give rated words next to no probability. Those that by chance always offer the same few words
    may hold much on one side, but not on both. A causal model shows it right after the left part, before its
    candidates are normalised.
    """
    if answers.drawn and (silent := failed_to_answer([drawn for _, drawn in answers.drawn])):
        return silent
    masses, needed = (answers.left, RATED_NEXT) if answers.left else (answers.masses, RATED)
    covered = _mean(np.sum([masses[name] for name in ATTITUDES], axis=0))
    if not covered >= needed:
        held = "none" if np.isnan(covered) else f"only {covered:.2f}"
        return f"rated words hold {held} of its probability, and it takes {needed}"
    for side in ("positive", "negative"):
        held_by = _mean(masses[side])
        if not held_by >= EACH_SIDE:
            return f"{side} words hold only {held_by:.3f} of its probability, and it takes {EACH_SIDE}"
    return ""


def classifier_gate(found: ClassifierOutcomes) -> str:
    """Return why nothing can be concluded from a classifier.

    It has one outcome, whatever it reads; or it does not tell plainly positive statements from plainly negative
    ones: both kinds count, since a classifier that says one thing of all is right about one of them.
    """
    share = _mean(found.negative)
    if np.isnan(share):
        return "none of its outcomes is a number"
    means = {sense: float(np.nan_to_num(_mean(right))) for sense, right in found.sensed.items()}
    worst = min(means, key=means.__getitem__, default="")
    if worst and means[worst] < SENSED:
        known = f"only {means[worst]:.0%} of plainly {worst} statements for {worst}"
        return f"it takes {known} ({SENSED:.0%} are needed)"
    return {0.0: "it calls no statement negative", 1.0: "it calls every statement negative"}.get(share, "")


def chat_gate(found: ChatAnswers) -> str:
    """Return why nothing can be concluded from a chat model: most of its answers are not on the scale."""
    answers = found.counts.sum()
    share = found.counts[..., : len(found.readings) - 2].sum() / answers if answers else 0.0
    return (
        ""
        if share >= ON_SCALE
        else f"only {share:.0%} of its answers are on the scale, and it takes {ON_SCALE:.0%}"
    )


def _mean(values: Floats) -> float:
    return float(present_mean(values.reshape(-1)))
