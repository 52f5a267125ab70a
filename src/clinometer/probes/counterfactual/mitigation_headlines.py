"""What a mitigation did: a sentence for each checkpoint."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from clinometer.probes.counterfactual.mitigation_overview import overview
from clinometer.probes.counterfactual.tables.change import Compared
from clinometer.probes.counterfactual.told import UNKNOWN, Told, limits
from clinometer.probes.counterfactual.tunings import BEFORE, CONTROL
from clinometer.probes.kit.verdicts import is_found
from clinometer.types import Finding

NO_CHANGE = "no measurable change"
_FEW = 3  # checkpoints of which there is room to tell at length: a control and two methods


def mitigation_headlines(told: Sequence[Told]) -> Iterator[str]:
    """Tell of every checkpoint; of many of one model in short, and before that which did more than the control."""
    groups: dict[tuple[int, str], list[Told]] = {}
    for each in told:
        groups.setdefault((each.tuned.base, each.chosen.name), []).append(each)
    for group in groups.values():
        if len(group) > _FEW:
            yield overview(group)
        yield from (_briefly(each) if len(group) > _FEW else _fully(each) for each in group)


def _fully(told: Told) -> str:
    """Say how I.F. changed by every scorer, against before and against the control, and what that cost.

    The control tells what the method did from what training did, and so do the costs beside it: training alone
    may hide them.
    """
    tested = told.tested(BEFORE)
    parts = [f"by {each.scorer} {_changed(each, tested[each.scorer])}" for each in told.before]
    said = f"{told.name} ({told.model}), {told.chosen.name}: I.F. {'; '.join([*parts, *told.cost(BEFORE)])}."
    if verdicts := told.verdicts(CONTROL):
        parts = [f"I.F. {_by_verdict(verdicts)}", *told.cost(CONTROL)]
        said += f" Beside the same training without the regulariser: {'; '.join(parts)}."
    return said


def _briefly(told: Told) -> str:
    """Say what percentage is gone, and what it costs beside the control; beside before where there is none."""
    tested = told.tested(BEFORE)
    parts = [f"{_share(each, tested[each.scorer])} according to {each.scorer}" for each in told.before]
    said = f"{told.name} ({told.model}), {told.chosen.name}: excess of I.F. {', '.join(parts)}"
    if verdicts := told.verdicts(CONTROL):
        return f"{said}. Beside the control I.F. {'; '.join([_by_verdict(verdicts), *told.cost(CONTROL)])}."
    return f"{'; '.join([said, *told.cost(BEFORE)])}."


def _changed(each: Compared, test: Finding) -> str:
    """Say what became of I.F.: reduced or increased where q is small and the interval leaves out 0."""
    found = each.change
    excess = found.individual_excess
    values = f"{_number(found.individual.before)} to {_number(found.individual.after)}"
    if math.isnan(excess.low):
        return f"{values}, without an interval"
    verb, share, low, high = _percent(each, test)
    if math.isnan(share):  # what there was before may be nothing
        sure = f"95 % interval of the change of its excess {limits(excess.low, excess.high, places=3)}"
        return f"{verb or NO_CHANGE}, {values} ({sure}{_tested(test.q)})"
    sure = f"95 % interval {limits(low, high)} %"
    if verb:
        return f"{verb} by {share:.0f} % of its excess ({sure}{_tested(test.q)}), {values}"
    return f"{NO_CHANGE}, {values} ({sure} of its excess taken away{_tested(test.q)})"


def _share(each: Compared, test: Finding) -> str:
    """Say it in short: the percentage of the excess and its 95 % interval."""
    excess = each.change.individual_excess
    if math.isnan(excess.low):
        return UNKNOWN
    verb, share, low, high = _percent(each, test)
    if math.isnan(share):
        return f"{verb or NO_CHANGE} (95 % interval of the change {limits(excess.low, excess.high, places=3)})"
    sure = f"95 % interval {limits(low, high)} %"
    return f"{verb} by {share:.0f} % ({sure})" if verb else f"{NO_CHANGE} ({sure} taken away)"


def _percent(each: Compared, test: Finding) -> tuple[str, float, float, float]:
    """Return "reduced", "increased" or, where nothing is measurable, ""; and by how much, with its interval."""
    found = each.change.individual_reduction
    share, low, high = (100 * number for number in (found.share, found.low, found.high))
    if not is_found(test):
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


def _number(value: float) -> str:
    return f"{value:z.3f}".replace("-", "−")
