"""Which models of a run are before and after, which is the control, and how a change between them is told.

A checkpoint that Clinometer made names the weights it began with in `ModelInfo.tuning["base"]`. It is mitigated,
and not just tuned on a corpus, when it also names the attribute whose values it was trained to treat alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clinometer.probes.kit.numbers import ABSENT, Label, info, q_value, signed, warning
from clinometer.probes.kit.verdicts import is_found
from clinometer.types import Finding, ModelInfo, Notice

WORSE = 1.05  # times the perplexity before, by the lower limit of its interval: a cost that a reader is warned of
AS_GIVEN, CONTROL, BEFORE = "as given", "control", "before"
METHODS = (AS_GIVEN, CONTROL, "embedding", "sentiment")  # the order in which tables and charts name them


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A model and a checkpoint that began with it, by their numbers among the models of the run."""

    before: int
    after: int


def pairs_of(models: Sequence[ModelInfo]) -> tuple[Pair, ...]:
    """Return every checkpoint whose base is among the models, by base, then strength (or amount), then method.

    A base that was loaded twice, in two precisions, is paired with the checkpoint of its own precision.
    """
    found = []
    for after, model in enumerate(models):
        base = model.tuning.get("base", "")
        bases = [i for i, other in enumerate(models) if i != after and base and other.weights == base]
        if bases:
            found.append(Pair(before=min(bases, key=lambda i: models[i].dtype != model.dtype), after=after))
    return tuple(sorted(found, key=lambda pair: (pair.before, *_order(models[pair.after]), pair.after)))


def _order(model: ModelInfo) -> tuple[float, str]:
    amount = amount_number(model.tuning.get("amount", ""))
    return math.inf if amount is None else amount, model.tuning.get("method", "")


def amount_number(amount: str) -> float | None:
    """Read an amount of data, or a strength.

    >>> amount_number("0.25"), amount_number("25 %"), amount_number("1 epoch")
    (0.25, 0.25, None)
    """
    text = amount.strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


def is_mitigated(model: ModelInfo) -> bool:
    """Tell whether a model was trained to treat the values of an attribute alike, or as the control of one."""
    return "attribute" in model.tuning


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint of a model of the run; `model`, `base` and `control` are numbers among the models."""

    name: str
    base_name: str
    model: int
    base: int
    control: int | None  # the same training without the fairness loss; of a control itself: None
    method: str
    strength: Label  # λ: a number where all strengths of the run are numbers
    attribute: str  # whose influence was to be reduced; "": tuned for something else

    @property
    def labels(self) -> dict[str, Label]:
        """Which checkpoint a row is about."""
        return {"model": self.name, "method": self.method, "strength": self.strength}

    @property
    def against(self) -> dict[str, int]:
        """The models that it is compared with."""
        return {BEFORE: self.base} | ({} if self.control is None else {CONTROL: self.control})


def checkpoints_of(models: Sequence[ModelInfo]) -> tuple[Checkpoint, ...]:
    """Return every checkpoint whose base is among the models, by base, attribute, method and strength."""
    pairs = pairs_of(models)
    amounts = {pair.after: amount_number(models[pair.after].tuning.get("amount", "")) for pair in pairs}
    numbered = None not in amounts.values()
    found = []
    for pair in pairs:  # they come by strength
        tuning, amount = models[pair.after].tuning, amounts[pair.after]
        found.append(
            Checkpoint(
                name=models[pair.after].name,
                base_name=models[pair.before].name,
                model=pair.after,
                base=pair.before,
                control=_control(pair, models, pairs),
                method=tuning.get("method", "") or "tuned",
                strength=amount if numbered and amount is not None else tuning.get("amount", "") or ABSENT,
                attribute=tuning.get("attribute", ""),
            )
        )

    def place(each: Checkpoint) -> tuple[int, str, int, str]:
        known = METHODS.index(each.method) if each.method in METHODS else len(METHODS)
        return each.base, each.attribute, known, each.method

    return tuple(sorted(found, key=place))


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


def training_of(model: ModelInfo) -> str:
    """Return in a few words what was done to a model since its base: "embedding on occupation, λ = 10"."""
    tuning = model.tuning
    if not tuning:
        return AS_GIVEN
    method = tuning.get("method", "") or "tuned"
    if is_mitigated(model):
        return f"{method} on {tuning['attribute']}, λ = {tuning.get('amount', '')}"
    return ", ".join(part for part in (method, tuning.get("data", ""), tuning.get("amount", "")) if part)


def missing_base_notice(models: Sequence[ModelInfo]) -> Notice | None:
    """Return a notice that names the checkpoints whose base is not among the models."""
    weights = {model.weights for model in models}
    orphans = [model.name for model in models if model.tuning.get("base", "") not in ("", *weights)]
    if not orphans:
        return None
    return info(
        f"Tuned from a model that is not in this run: {', '.join(orphans)}; audit it together with its base "
        "to see what changed."
    )


def tuned_notices(models: Sequence[ModelInfo]) -> Iterator[Notice]:
    """Yield what a reader must know of tuned masked models: a base that is missing, and what they cost."""
    if orphans := missing_base_notice(models):
        yield orphans
    for model in models:
        if cost := model.tuning.get("quality"):
            text = f"What it cost, {model.name} ({training_of(model)}): {cost}."
            if (amount_number(model.tuning.get("quality_ratio", "")) or 0.0) > WORSE:
                text += " It has become worse at its own task, and what it no longer says may be a part of that."
                yield warning(text)
            else:
                yield info(text)


def change_in_words(change: Finding, *, before: float, after: float) -> str:
    """Return what became of a number that is best at 0, with the interval and the q of its paired change."""
    if math.isnan(change.estimate):
        return "change unknown (no answers)"
    if math.isnan(change.low) or math.isnan(change.high):
        return f"a change of {signed(change.estimate)} without an interval (too few to tell)"
    sure = f"95 % interval of the change {signed(change.low)} to {signed(change.high)}, {q_value(change.q)}"
    if not is_found(change):
        return f"no measurable change ({signed(change.estimate)}; {sure})"
    if before * after < 0 and signed(after) != signed(0.0):
        return f"turned round, by {signed(change.estimate)} ({sure})"
    verb = "reduced" if abs(after) < abs(before) else "increased"
    size = f"{abs(change.estimate):.3f}" if signed(change.estimate) != signed(0.0) else "less than 0.001"
    return f"{verb} by {size} ({sure})"
