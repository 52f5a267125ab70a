"""Which models of a run are before and after: a checkpoint, and the model that it was tuned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clinometer.probes.kit.before_after import amount_number, is_mitigated, pairs_of
from clinometer.probes.kit.numbers import Label
from clinometer.probes.stereotypes.view import View
from clinometer.types import ModelInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """A base model and a checkpoint of it, by their numbers among the models of the run."""

    base: int
    tuned: int
    method: str
    attribute: str  # whose values a mitigated model was trained to treat alike; "": tuned on a corpus
    corpus: str
    amount: Label  # a number where all amounts of the run are parts of corpora
    beside_mitigated: bool  # the run has a mitigated model, this one or another

    def labels(self, views: Sequence[View]) -> dict[str, Label]:
        """Return the labels that the tables of shifts begin with; how it was mitigated, where any model was."""
        how: Mapping[str, Label] = {"method": self.method, "attribute": self.attribute}
        return {
            "base": views[self.base].model,
            "model": views[self.tuned].model,
            **(how if self.beside_mitigated else {}),
            "corpus": self.corpus,
            "amount": self.amount,
        }


def tunings_of(models: Sequence[ModelInfo]) -> tuple[Tuning, ...]:
    """Return every checkpoint whose base is among the models, by base, corpus and amount."""
    pairs = pairs_of(models)
    tuned = [models[pair.after] for pair in pairs]
    mitigated = any(is_mitigated(model) for model in tuned)
    amounts = [amount_number(model.tuning.get("amount", "")) for model in tuned]
    numbers = not mitigated and all(amount is not None for amount in amounts)
    found = [
        Tuning(
            base=pair.before,
            tuned=pair.after,
            method=model.tuning.get("method", ""),
            attribute=model.tuning.get("attribute", ""),
            corpus=model.tuning.get("data", ""),
            amount=amount if numbers and amount is not None else _amount_text(model),
            beside_mitigated=mitigated,
        )
        for pair, model, amount in zip(pairs, tuned, amounts, strict=True)
    ]
    return tuple(sorted(found, key=lambda each: (each.base, each.corpus)))  # the pairs come by amount


def _amount_text(model: ModelInfo) -> str:
    """Return the amount of a corpus, or the strength of a mitigation, as it is read."""
    amount = model.tuning.get("amount", "")
    return f"λ = {amount}" if is_mitigated(model) else amount
