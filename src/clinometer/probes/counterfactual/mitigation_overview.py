"""Which of many checkpoints did more than training alone, in a few words."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from clinometer.probes.counterfactual.told import HIGHER, LOWER, UNKNOWN, Told
from clinometer.probes.counterfactual.tunings import BEFORE, CONTROL

_BESIDE_CONTROL = {
    "every": "Lower than the control's by every scorer",
    "some": "Lower than the control's by some scorers only",
    "higher": "Higher than the control's by some scorer",
    "alike": "Not measurably different from the control's",
    "unknown": "Could not be compared with the control",
    "": "Without a control",
}


def overview(told: Sequence[Told]) -> str:
    """Count the checkpoints with less I.F. than before, and name those with less than their control."""
    controls = [each for each in told if each.tuned.method == CONTROL]
    mitigated = [each for each in told if each.tuned.method != CONTROL and each.tuned.attribute]
    others = mitigated or [each for each in told if each.tuned.method != CONTROL]
    counts = [f"{_count(some)} {name}" for name, some in (("checkpoints", others), ("controls", controls)) if some]
    said = f"{told[0].base}, {told[0].chosen.name}: I.F. is measurably lower than before by every scorer in "
    said += " and in ".join(counts)
    for how, words in _BESIDE_CONTROL.items() if controls else ():
        if some := [each for each in mitigated if _beside(each, CONTROL) == how]:
            said += f". {words}: {_together(some)}"
    return f"{said}."


def _count(made: Sequence[Told]) -> str:
    lower = [_beside(each, BEFORE) for each in made].count("every")
    return f"{lower} of {len(made)}"


def _beside(told: Told, against: str) -> str:
    """Tell how I.F. lies beside the other model's by all scorers; "" where there is no such model."""
    verdicts = list(told.verdicts(against).values())
    if not verdicts:
        return ""
    if LOWER in verdicts:
        return "every" if set(verdicts) == {LOWER} else "some"
    if HIGHER in verdicts:
        return "higher"
    return "unknown" if set(verdicts) == {UNKNOWN} else "alike"


def _together(told: Sequence[Told]) -> str:
    """Name checkpoints by method and strengths; where that fits several of them, by their names."""
    if len({each.name for each in told}) < len(told):
        return "; ".join(each.model for each in told)
    by_method = itertools.groupby(told, key=lambda each: each.tuned.method)
    return "; ".join(f"{method}, λ = {', '.join(each.strength for each in some)}" for method, some in by_method)
