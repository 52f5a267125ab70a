"""What is said of a checkpoint: whether it lies below another model, and what it costs beside that one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from clinometer.probes.counterfactual.specification import Chosen
from clinometer.probes.counterfactual.tables.change import Compared
from clinometer.probes.counterfactual.tables.costs import PERPLEXITY
from clinometer.probes.counterfactual.tables.distances import EXCESS, INDIVIDUAL
from clinometer.probes.counterfactual.tables.guards import MENTIONS, SIMILAR, WHOLE
from clinometer.probes.counterfactual.tunings import BEFORE, Tuned
from clinometer.probes.kit.numbers import select
from clinometer.probes.kit.verdicts import is_found
from clinometer.types import Finding

LOWER, HIGHER, ALIKE, UNKNOWN = "is lower", "is higher", "is not measurably different", "could not be compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is to be said of one checkpoint and one attribute; `costs` are the rows of that table about it."""

    tuned: Tuned
    base: str  # the name of the model it was made of
    chosen: Chosen
    before: Sequence[Compared]  # with that model, by each scorer
    tests: Sequence[Finding]  # of the excess of I.F.
    costs: Sequence[Finding]

    @classmethod
    def of(
        cls,
        tuned: Tuned,
        chosen: Chosen,
        compared: Sequence[Compared],
        *,
        base: str,
        changes: Sequence[Finding],
        costs: Sequence[Finding],
    ) -> Told:
        """Choose what is about the attribute from the rows about the checkpoint."""
        return cls(
            tuned=tuned,
            base=base,
            chosen=chosen,
            before=[each for each in compared if each.chosen == chosen and each.against == BEFORE],
            tests=select(changes, attribute=chosen.name, measure=INDIVIDUAL, quantity=EXCESS),
            costs=costs,
        )

    @property
    def model(self) -> str:
        """The name of the checkpoint."""
        return self.before[0].model

    @property
    def strength(self) -> str:
        """λ as it is printed."""
        return f"{self.tuned.strength:g}" if isinstance(self.tuned.strength, float) else str(self.tuned.strength)

    @property
    def name(self) -> str:
        """The method, and its strength where the checkpoint was mitigated."""
        return f"{self.tuned.method}, λ = {self.strength}" if self.tuned.attribute else self.tuned.method

    def tested(self, against: str) -> dict[str, Finding]:
        """Return by each scorer whether the excess differs from the other model's."""
        return {str(test.labels["scorer"]): test for test in select(self.tests, against=against)}

    def verdicts(self, against: str) -> dict[str, str]:
        """Say by each scorer whether I.F. is lower than the other model's."""
        return {scorer: _verdict(test) for scorer, test in self.tested(against).items()}

    def cost(self, against: str) -> list[str]:
        """Say what it costs beside the other model."""
        return list(_costs(select(self.costs, against=against), self.chosen.name))


def _verdict(test: Finding) -> str:
    if math.isnan(test.low):
        return UNKNOWN
    if not is_found(test):
        return ALIKE
    return LOWER if test.high < 0 else HIGHER


def _costs(costs: Sequence[Finding], attribute: str) -> Iterator[str]:
    for row in select(costs, guard=PERPLEXITY, of=WHOLE):
        yield f"perplexity {_cost(row, lambda ratio: 100 * (ratio - 1), '%')}"
    for guard in (SIMILAR, MENTIONS):
        for row in select(costs, guard=guard, of=attribute)[:1]:  # of the first encoder
            yield f"{guard} {_cost(row, lambda share: 100 * share, 'points')}"


def _cost(row: Finding, scaled: Callable[[float], float], unit: str) -> str:
    if math.isnan(row.estimate):
        return "not measured"
    estimate = f"{scaled(row.estimate):+z.1f}".replace("-", "−").replace("+0.0", "±0.0")
    return f"{estimate} {unit} ({limits(scaled(row.low), scaled(row.high), places=1)})"


def limits(low: float, high: float, *, places: int = 0) -> str:
    """Write an interval."""
    return "no interval" if math.isnan(low) else f"{low:z.{places}f} to {high:z.{places}f}".replace("-", "−")
