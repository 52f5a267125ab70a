"""Which models of a run are before and after: a checkpoint, and the model that it was tuned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clinometer.probes.numbers import Label
from clinometer.probes.stereotypes.view import View
from clinometer.types import ModelInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """A base model and a checkpoint of it, by their numbers among the models of the run."""

    base: int
    tuned: int
    corpus: str
    amount: Label  # a number where all amounts of the run are numbers

    def labels(self, views: Sequence[View]) -> dict[str, Label]:
        """Return the labels that the tables of shifts begin with."""
        return {
            "base": views[self.base].model,
            "model": views[self.tuned].model,
            "corpus": self.corpus,
            "amount": self.amount,
        }


def tunings_of(models: Sequence[ModelInfo]) -> tuple[Tuning, ...]:
    """Return every checkpoint whose base is among the models, by base, corpus and amount."""
    number = {model.weights: i for i, model in enumerate(models)}
    pairs = [
        (number[base], i) for i, model in enumerate(models) if (base := model.tuning.get("base", "")) in number
    ]
    amounts = [_number(models[tuned].tuning.get("amount", "")) for _, tuned in pairs]
    known = all(amount is not None for amount in amounts)
    found = [
        Tuning(
            base=base,
            tuned=tuned,
            corpus=models[tuned].tuning.get("data", ""),
            amount=amount if known and amount is not None else models[tuned].tuning.get("amount", ""),
        )
        for (base, tuned), amount in zip(pairs, amounts, strict=True)
    ]
    return tuple(sorted(found, key=lambda each: (each.base, each.corpus, each.amount, each.tuned)))


def orphans_of(models: Sequence[ModelInfo]) -> tuple[str, ...]:
    """Return the checkpoints whose base is not among the models."""
    weights = {model.weights for model in models}
    return tuple(model.name for model in models if model.tuning.get("base", "") not in ("", *weights))


def _number(amount: str) -> float | None:
    """Read an amount of data.

    >>> _number("0.25"), _number("25 %"), _number("1 epoch")
    (0.25, 0.25, None)
    """
    text = amount.strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None
