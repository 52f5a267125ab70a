"""What a mitigation did, in one sentence for each checkpoint."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

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

    `changes` and `costs` are the rows of those tables about this checkpoint.
    """
    tests = select(changes, attribute=chosen.name, against=BEFORE, measure=INDIVIDUAL, quantity=EXCESS)
    q = {row.labels["scorer"]: row.q for row in tests}
    mine = [each for each in compared if each.chosen == chosen]
    before = [each for each in mine if each.against == BEFORE]
    control = [each for each in mine if each.against == CONTROL]
    parts = ["I.F. " + "; ".join(f"by {each.scorer} {_changed(each, q[each.scorer])}" for each in before)]
    if control:
        parts.append(_beside_control(control))
    parts += _costs(select(costs, against=BEFORE), chosen.name)
    return f"{_name(tuned)} ({before[0].model}), {chosen.name}: {'; '.join(parts)}."


def _name(tuned: Tuned) -> str:
    strength = f"{tuned.strength:g}" if isinstance(tuned.strength, float) else str(tuned.strength)
    return f"{tuned.method}, λ = {strength}" if tuned.attribute else tuned.method


def _changed(each: Compared, q: float) -> str:
    """Say what became of I.F.: reduced or increased where the interval of the change leaves out 0."""
    found = each.change
    excess, reduction = found.individual_excess, found.individual_reduction
    values = f"{_number(found.individual.before)} to {_number(found.individual.after)}"
    if math.isnan(excess.low):
        return f"{values}, without an interval"
    grew = excess.low > 0
    verb = "increased" if grew else "reduced" if excess.high < 0 else ""
    if math.isnan(reduction.share):  # what there was before may be nothing
        limits = f"95 % interval of the change of its excess {_limits(excess.low, excess.high, places=3)}"
        return f"{verb or NO_CHANGE}, {values} ({limits}{_tested(q)})"
    share, low, high = reduction.share, reduction.low, reduction.high
    if grew:
        share, low, high = -share, -high, -low
    limits = f"95 % interval {_limits(100 * low, 100 * high)} %"
    if verb:
        return f"{verb} by {100 * share:.0f} % of its excess ({limits}{_tested(q)}), {values}"
    return f"{NO_CHANGE}, {values} ({limits} of its excess taken away)"


def _tested(q: float) -> str:
    return "" if math.isnan(q) else ", q < 0.001" if q < 0.001 else f", q = {q:.3f}"


def _beside_control(control: Sequence[Compared]) -> str:
    """Name the scorers by which the checkpoint lies below its control, above it, or neither."""
    said: dict[str, list[str]] = {}
    for each in control:
        excess = each.change.individual_excess
        verdict = "lower" if excess.high < 0 else "higher" if excess.low > 0 else "not measurably different"
        said.setdefault(verdict, []).append(each.scorer)
    parts = ", ".join(f"{verdict} by {' and '.join(scorers)}" for verdict, scorers in said.items())
    return f"than after the same training without the regulariser: {parts}"


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
