"""What a mitigation did, in one sentence for each checkpoint."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

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


def mitigation_headline(
    tuned: Tuned,
    chosen: Chosen,
    compared: Sequence[Compared],
    *,
    changes: Sequence[Finding],
    costs: Sequence[Finding],
) -> str:
    """Say how I.F. changed by every scorer, against before and against the control, and what that cost.

    `changes` and `costs` are the rows of those tables about this checkpoint. The control tells what the method did
    from what training did, and so do the costs beside it: training alone may hide them.
    """
    tests = select(changes, attribute=chosen.name, measure=INDIVIDUAL, quantity=EXCESS)
    before = [each for each in compared if each.chosen == chosen and each.against == BEFORE]
    tested = {row.labels["scorer"]: row for row in select(tests, against=BEFORE)}
    parts = [f"by {each.scorer} {_changed(each, tested[each.scorer])}" for each in before]
    parts += _costs(select(costs, against=BEFORE), chosen.name)
    said = f"{_name(tuned)} ({before[0].model}), {chosen.name}: I.F. {'; '.join(parts)}."
    if control := select(tests, against=CONTROL):
        parts = [_beside_control(control), *_costs(select(costs, against=CONTROL), chosen.name)]
        said += f" Beside the same training without the regulariser: {'; '.join(parts)}."
    return said


def _name(tuned: Tuned) -> str:
    strength = f"{tuned.strength:g}" if isinstance(tuned.strength, float) else str(tuned.strength)
    return f"{tuned.method}, λ = {strength}" if tuned.attribute else tuned.method


def _changed(each: Compared, test: Finding) -> str:
    """Say what became of I.F.: reduced or increased where q is small and the interval leaves out 0."""
    found = each.change
    excess, reduction = found.individual_excess, found.individual_reduction
    values = f"{_number(found.individual.before)} to {_number(found.individual.after)}"
    if math.isnan(excess.low):
        return f"{values}, without an interval"
    verb = "" if not is_measurable(test) else "increased" if excess.low > 0 else "reduced"
    if math.isnan(reduction.share):  # what there was before may be nothing
        limits = f"95 % interval of the change of its excess {_limits(excess.low, excess.high, places=3)}"
        return f"{verb or NO_CHANGE}, {values} ({limits}{_tested(test.q)})"
    share, low, high = reduction.share, reduction.low, reduction.high
    if verb == "increased":
        share, low, high = -share, -high, -low
    limits = f"95 % interval {_limits(100 * low, 100 * high)} %"
    if verb:
        return f"{verb} by {100 * share:.0f} % of its excess ({limits}{_tested(test.q)}), {values}"
    return f"{NO_CHANGE}, {values} ({limits} of its excess taken away{_tested(test.q)})"


def _tested(q: float) -> str:
    return "" if math.isnan(q) else ", q < 0.001" if q < 0.001 else f", q = {q:.3f}"


def _beside_control(tests: Sequence[Finding]) -> str:
    """Name the scorers by which the checkpoint lies below its control, above it, or neither."""
    said: dict[str, list[str]] = {}
    for test in tests:
        said.setdefault(_verdict(test), []).append(str(test.labels["scorer"]))
    parts = (f"{verdict} according to {' and '.join(scorers)}" for verdict, scorers in said.items())
    return f"I.F. {', '.join(parts)}"


def _verdict(test: Finding) -> str:
    if math.isnan(test.low):
        return "could not be compared"
    if not is_measurable(test):
        return "is not measurably different"
    return "is lower" if test.high < 0 else "is higher"


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
