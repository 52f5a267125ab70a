"""What a mitigation did, in one sentence for each checkpoint."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clinometer.probes.before_after import is_measurable
from clinometer.probes.counterfactual.specification import Chosen
from clinometer.probes.counterfactual.tables.change import Compared
from clinometer.probes.counterfactual.tables.costs import PERPLEXITY
from clinometer.probes.counterfactual.tables.distances import EXCESS, INDIVIDUAL
from clinometer.probes.counterfactual.tables.guards import MENTIONS, SIMILAR, WHOLE
from clinometer.probes.counterfactual.tunings import BEFORE, CONTROL, Tuned
from clinometer.probes.numbers import select
from clinometer.types import Finding

NO_CHANGE = "no measurable change"
LOWER = "is lower"
_FEW = 3  # checkpoints of which there is room to tell at length: a control and two methods


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is to be said of one checkpoint and one attribute; `costs` are the rows of that table about it."""

    tuned: Tuned
    chosen: Chosen
    before: Sequence[Compared]  # with the model it was made of, by each scorer
    tests: Sequence[Finding]  # of the excess of I.F.
    costs: Sequence[Finding]

    @classmethod
    def of(
        cls,
        tuned: Tuned,
        chosen: Chosen,
        compared: Sequence[Compared],
        *,
        changes: Sequence[Finding],
        costs: Sequence[Finding],
    ) -> Told:
        """Choose what is about the attribute from the rows about the checkpoint."""
        return cls(
            tuned=tuned,
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

    def verdicts(self, against: str) -> dict[str, str]:
        """Tell by each scorer whether I.F. is lower than the other model's."""
        return {str(test.labels["scorer"]): _verdict(test) for test in select(self.tests, against=against)}


def mitigation_headlines(told: Sequence[Told]) -> Iterator[str]:
    """Tell of checkpoints; of many of one model first how many of them did what, then of each in short."""

    def subject(each: Told) -> tuple[int, str]:
        return each.tuned.base, each.chosen.name

    for _, group in itertools.groupby(sorted(told, key=subject), key=subject):
        some = list(group)
        if len(some) > _FEW:
            yield _overview(some)
        yield from (_briefly(each) if len(some) > _FEW else _fully(each) for each in some)


def _fully(told: Told) -> str:
    """Say how I.F. changed by every scorer, against before and against the control, and what that cost.

    The control tells what the method did from what training did, and so do the costs beside it: training alone
    may hide them.
    """
    attribute = told.chosen.name
    tested = {row.labels["scorer"]: row for row in select(told.tests, against=BEFORE)}
    parts = [f"by {each.scorer} {_changed(each, tested[each.scorer])}" for each in told.before]
    parts += _costs(select(told.costs, against=BEFORE), attribute)
    said = f"{told.name} ({told.model}), {attribute}: I.F. {'; '.join(parts)}."
    if verdicts := told.verdicts(CONTROL):
        parts = [f"I.F. {_by_verdict(verdicts)}", *_costs(select(told.costs, against=CONTROL), attribute)]
        said += f" Beside the same training without the regulariser: {'; '.join(parts)}."
    return said


def _briefly(told: Told) -> str:
    """Say what percentage is gone by every scorer, whether the control has more, and what that cost."""
    parts = [
        f"{_share(each, test)} by {each.scorer}"
        for each, test in zip(told.before, select(told.tests, against=BEFORE), strict=True)
    ]
    said = [f"{told.model}, {told.chosen.name}: excess of I.F. {', '.join(parts)}"]
    if verdicts := told.verdicts(CONTROL):
        said.append(f"beside the control's it {_by_verdict(verdicts)}")
    return "; ".join([*said, *_costs(select(told.costs, against=BEFORE), told.chosen.name)]) + "."


def _overview(told: Sequence[Told]) -> str:
    """Count the checkpoints with less I.F. than before, and name those with less than their control."""
    lower = [_is_lower(each, BEFORE) for each in told].count("every")
    said = (
        f"{told[0].chosen.name}, {len(told)} checkpoints: I.F. is measurably lower than before by every scorer in "
        f"{'all' if lower == len(told) else lower or 'none'} of them."
    )
    for how, words in (
        ("every", "Lower than the control's by every scorer"),
        ("some", "Lower than the control's by some scorers only"),
        ("none", "Not measurably lower than the control's"),
    ):
        if some := [each for each in told if _is_lower(each, CONTROL) == how]:
            said += f" {words}: {_together(some)}."
    return said


def _is_lower(told: Told, against: str) -> str:
    """Tell by how many scorers I.F. is lower than the other model's: every, some, none; "" where there is none."""
    found = [verdict == LOWER for verdict in told.verdicts(against).values()]
    return "" if not found else "every" if all(found) else "some" if any(found) else "none"


def _together(told: Sequence[Told]) -> str:
    """Name checkpoints by method, each with its strengths."""
    by_method = itertools.groupby(told, key=lambda each: each.tuned.method)
    return "; ".join(f"{method}, λ = {', '.join(each.strength for each in some)}" for method, some in by_method)


def _changed(each: Compared, test: Finding) -> str:
    """Say what became of I.F.: reduced or increased where q is small and the interval leaves out 0."""
    found = each.change
    excess = found.individual_excess
    values = f"{_number(found.individual.before)} to {_number(found.individual.after)}"
    if math.isnan(excess.low):
        return f"{values}, without an interval"
    verb, share, low, high = _percent(each, test)
    if math.isnan(share):  # what there was before may be nothing
        limits = f"95 % interval of the change of its excess {_limits(excess.low, excess.high, places=3)}"
        return f"{verb or NO_CHANGE}, {values} ({limits}{_tested(test.q)})"
    limits = f"95 % interval {_limits(low, high)} %"
    if verb:
        return f"{verb} by {share:.0f} % of its excess ({limits}{_tested(test.q)}), {values}"
    return f"{NO_CHANGE}, {values} ({limits} of its excess taken away{_tested(test.q)})"


def _share(each: Compared, test: Finding) -> str:
    """Say it in short: the percentage of the excess and its 95 % interval."""
    verb, share, low, high = _percent(each, test)
    if math.isnan(share) or math.isnan(low):
        return verb or NO_CHANGE
    limits = f"{_limits(low, high)} %"
    return f"{verb} by {share:.0f} % ({limits})" if verb else f"{NO_CHANGE} ({limits} taken away)"


def _percent(each: Compared, test: Finding) -> tuple[str, float, float, float]:
    """Return "reduced", "increased" or, where nothing is measurable, ""; and by how much, with its interval."""
    found = each.change.individual_reduction
    share, low, high = (100 * number for number in (found.share, found.low, found.high))
    if not is_measurable(test):
        return "", share, low, high
    return ("reduced", share, low, high) if test.high < 0 else ("increased", -share, -high, -low)


def _tested(q: float) -> str:
    return "" if math.isnan(q) else ", q < 0.001" if q < 0.001 else f", q = {q:.3f}"


def _by_verdict(verdicts: Mapping[str, str]) -> str:
    """Name the scorers by which the checkpoint lies below its control, above it, or neither."""
    said: dict[str, list[str]] = {}
    for scorer, verdict in verdicts.items():
        said.setdefault(verdict, []).append(scorer)
    return ", ".join(f"{verdict} according to {' and '.join(scorers)}" for verdict, scorers in said.items())


def _verdict(test: Finding) -> str:
    if math.isnan(test.low):
        return "could not be compared"
    if not is_measurable(test):
        return "is not measurably different"
    return LOWER if test.high < 0 else "is higher"


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
    return f"{estimate} {unit} ({_limits(scaled(row.low), scaled(row.high), places=1)})"


def _limits(low: float, high: float, *, places: int = 0) -> str:
    return "no interval" if math.isnan(low) else f"{low:z.{places}f} to {high:z.{places}f}".replace("-", "−")


def _number(value: float) -> str:
    return f"{value:z.3f}".replace("-", "−")
