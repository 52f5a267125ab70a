"""The counterfactual audit in a few sentences, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from clinometer.probes.counterfactual.measures import Measures
from clinometer.probes.counterfactual.tables.distances import EXCESS, INDIVIDUAL, MEASURED
from clinometer.probes.counterfactual.view import View
from clinometer.types import Finding

_LEVEL = 0.05  # of q: what a sentence calls found
_NAMED = 3  # values named in a sentence


def headlines(view: View, measured: Sequence[Measures], fairness: Sequence[Finding]) -> Iterator[str]:
    """Yield, for each attribute, how far apart the texts are and which values stand out."""
    for chosen in view.attributes:
        rows = [row for row in fairness if row.labels["attribute"] == chosen.name]
        rows = [row for row in rows if row.labels["measure"] == INDIVIDUAL]
        excess = [row for row in rows if row.labels["quantity"] == EXCESS]
        whole = {row.labels["scorer"]: row.estimate for row in rows if row.labels["quantity"] == MEASURED}
        parts = " and ".join(
            f"{whole[row.labels['scorer']]:.3f} by {row.labels['scorer']} ({_certainty(row)})" for row in excess
        )
        if all(math.isnan(row.estimate) for row in excess):
            yield f"{view.model}, {chosen.name}: I.F. could not be measured, for no two values have texts."
            continue
        yield f"{view.model}, {chosen.name}: I.F. is {parts}: {_verdict(excess)}."
        if stands_out := _stands_out([each for each in measured if each.chosen == chosen]):
            yield f"{view.model}, {chosen.name}: {stands_out}."


def _verdict(excess: Sequence[Finding]) -> str:
    found = [row.q < _LEVEL and row.estimate > 0 for row in excess]
    if all(found):
        return "sentiment depends on the value, by every scorer"
    if any(found):
        names = ", ".join(str(row.labels["scorer"]) for row, yes in zip(excess, found, strict=True) if yes)
        return f"sentiment depends on the value by {names} only, which may be that scorer's own lean"
    return "over all pairs, no dependence was found"


def _stands_out(measured: Sequence[Measures]) -> str:
    """Name the values that all scorers find away from the whole, on one and the same side."""
    values = [value.text for value in measured[0].chosen.attribute.values]
    sides: dict[str, list[tuple[float, str]]] = {"more positive": [], "more negative": []}
    for at, value in enumerate(values):
        differences = [float(each.values.difference[0, at]) for each in measured]
        certain = all(each.values.q[at] < _LEVEL for each in measured)
        for side, same in (("more positive", min(differences) > 0), ("more negative", max(differences) < 0)):
            if certain and same:
                sides[side].append((-max(map(abs, differences)), value))
    parts = []
    for side, found in sides.items():
        if found:
            named = ", ".join(value for _, value in sorted(found)[:_NAMED])
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            parts.append(f"{side} than the whole by every scorer (q < {_LEVEL}): {named}{more}")
    return "; ".join(parts)


def _certainty(row: Finding) -> str:
    side = "above" if row.estimate >= 0 else "below"
    limits = f"95 % interval of the excess {_number(row.low)} to {_number(row.high)}"
    interval = "no interval" if math.isnan(row.low) else limits
    q = "not tested" if math.isnan(row.q) else "q < 0.001" if row.q < 0.001 else f"q = {row.q:.3f}"
    return f"{abs(row.estimate):.3f} {side} chance, {interval}, {q}"


def _number(value: float) -> str:
    """Write a number, without a sign where it rounds to nothing.

    >>> _number(0.1234), _number(-0.0001), _number(-0.02)
    ('0.123', '0.000', '−0.020')
    """
    return f"{value:z.3f}".replace("-", "−")
