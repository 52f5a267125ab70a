"""Which models of a run are before and after: a checkpoint, the model it began with, and its control."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from clinometer.probes.counterfactual.specification import Chosen
from clinometer.probes.kit.before_after import Pair, amount_number, is_mitigated, pairs_of
from clinometer.probes.kit.numbers import Label
from clinometer.types import ModelInfo

AS_GIVEN, CONTROL = "as given", "control"
BEFORE = "before"
ABSENT = "–"

METHODS = (AS_GIVEN, CONTROL, "embedding", "sentiment")  # the order in which tables and charts name them


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """A checkpoint, by the numbers of the models among those of the run."""

    model: int
    base: int
    control: int | None  # the same training without the fairness loss; of a control itself: None
    method: str
    strength: Label  # λ: a number where all strengths of the run are numbers
    attribute: str  # of which the dependence was to be reduced; "": tuned for something else

    @property
    def against(self) -> dict[str, int]:
        """The models that it is set against."""
        return {BEFORE: self.base} | ({} if self.control is None else {CONTROL: self.control})

    def shown_for(self, attributes: Sequence[Chosen]) -> tuple[Chosen, ...]:
        """Return the attributes that its results are about: its own, or all where that was not asked about."""
        own = tuple(chosen for chosen in attributes if chosen.name == self.attribute)
        return own or tuple(attributes)


def tuned_models(models: Sequence[ModelInfo]) -> tuple[Tuned, ...]:
    """Return every checkpoint whose base is among the models, by base, attribute, method and strength."""
    pairs = pairs_of(models)
    amounts = {pair.after: amount_number(models[pair.after].tuning.get("amount", "")) for pair in pairs}
    numbered = None not in amounts.values()
    found = []
    for pair in pairs:  # they come by strength
        tuning, amount = models[pair.after].tuning, amounts[pair.after]
        found.append(
            Tuned(
                model=pair.after,
                base=pair.before,
                control=_control(pair, models, pairs),
                method=tuning.get("method", "") or "tuned",
                strength=amount if numbered and amount is not None else tuning.get("amount", "") or ABSENT,
                attribute=tuning.get("attribute", ""),
            )
        )
    return tuple(sorted(found, key=lambda each: (each.base, each.attribute, _method_place(each.method))))


def _method_place(method: str) -> tuple[int, str]:
    """Return where a method stands among others."""
    return (METHODS.index(method) if method in METHODS else len(METHODS), method)


def no_strength(tuned: Sequence[Tuned]) -> Label:
    """Return what stands for the strength of a model that was not tuned, of the type that the others have."""
    return math.nan if all(isinstance(each.strength, float) for each in tuned) else ABSENT


def _control(pair: Pair, models: Sequence[ModelInfo], pairs: Sequence[Pair]) -> int | None:
    """The control of a checkpoint: of the same base and attribute, and best of the same data and seed."""
    own = models[pair.after].tuning
    if own.get("method") == CONTROL or not is_mitigated(models[pair.after]):
        return None
    controls = [
        other.after
        for other in pairs
        if other.before == pair.before
        and models[other.after].tuning.get("method") == CONTROL
        and models[other.after].tuning.get("attribute") == own["attribute"]
    ]
    return min(
        controls,
        key=lambda at: sum(models[at].tuning.get(name) != own.get(name) for name in ("data", "seed")),
        default=None,
    )
