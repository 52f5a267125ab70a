"""How far apart the values are: I.F., G.F., demographic disparity, and what they are made of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from clinometer.metrics import AgainstChance, ExcessInterval, fairness_interval
from clinometer.probes.counterfactual.measures import Measures
from clinometer.probes.kit.numbers import Label, with_q
from clinometer.types import Finding

INDIVIDUAL, GROUP, DISPARITY = "I.F.", "G.F.", "demographic disparity"
MEASURED, CHANCE, EXCESS = "measured", "by chance", "excess"


def fairness_rows(measured: Sequence[Measures]) -> list[Finding]:
    """Return each measure as it was found, by chance, and the excess; q over all measures of a model."""
    return with_q(row for each in measured for row in _measures(each))


def _measures(each: Measures) -> Iterator[Finding]:
    n = int((~np.isnan(each.scores)).sum())
    for name, chance, interval in (
        (INDIVIDUAL, each.null.individual, each.interval.individual),
        (GROUP, each.null.group, each.interval.group),
        (DISPARITY, each.disparity, each.disparity_interval),
    ):
        labels = {**each.labels, "measure": name}
        yield Finding(
            labels={**labels, "quantity": MEASURED},
            estimate=float(chance.estimate),
            low=_from_zero(interval.low),
            high=float(interval.bound),
            n=n,
        )
        yield Finding(
            labels={**labels, "quantity": CHANCE},
            estimate=float(chance.null),
            low=float(chance.null_low),
            high=float(chance.null_high),
            n=n,
        )
        yield Finding(
            labels={**labels, "quantity": EXCESS},
            estimate=float(chance.excess),
            low=float(interval.low),
            high=float(interval.high),
            p=float(chance.p),
            n=n,
        )


def pair_rows(each: Measures) -> list[Finding]:
    """Return the distance between every two values, mean over templates; q over the pairs."""
    values = each.chosen.attribute.values
    samples = (~np.isnan(each.scores)).sum(axis=(0, 2))
    return with_q(
        _distance(
            each.null.pairs,
            each.interval.pairs,
            (first, second),
            {**each.labels, "value": values[first].text, "other": values[second].text},
            n=int(samples[first] + samples[second]),
        )
        for first in range(len(values))
        for second in range(first + 1, len(values))
    )


def subgroup_rows(each: Measures) -> list[Finding]:
    """Return the distance of every subgroup from everything: the terms of G.F.; q over the subgroups."""
    attribute = each.chosen.attribute
    names = [str(name) for name in attribute.subgroups] or [value.text for value in attribute.values]
    samples = (~np.isnan(each.scores)).sum(axis=(0, 2))
    of_value = np.array([names.index(value.subgroup or value.text) for value in attribute.values])
    return with_q(
        _distance(
            each.null.subgroups,
            each.interval.subgroups,
            (at,),
            {**each.labels, "subgroup": name},
            n=int(samples[of_value == at].sum()),
        )
        for at, name in enumerate(names)
    )


def template_rows(each: Measures) -> list[Finding]:
    """Return I.F. within every template; intervals leave out samples, for there is one template; q over them."""
    return with_q(
        _distance(
            each.null.templates,
            fairness_interval(each.scores[[at]], over="samples").individual,
            (at,),
            {**each.labels, "template": template},
            n=int((~np.isnan(each.scores[at])).sum()),
        )
        for at, template in enumerate(each.chosen.attribute.templates)
    )


def _distance(
    chance: AgainstChance, interval: ExcessInterval, at: tuple[int, ...], labels: dict[str, Label], *, n: int
) -> Finding:
    where = at if np.ndim(interval.low) else ()
    return Finding(
        labels={**labels, "by_chance": round(float(chance.null[at]), 4)},
        estimate=float(chance.estimate[at]),
        low=_from_zero(interval.low[where]),
        high=float(interval.bound[where]),
        p=float(chance.p[at]),
        n=n,
    )


def _from_zero(low: object) -> float:
    """A distance is never below 0; NaN stays."""
    value = float(low)  # type: ignore[arg-type]
    return value if math.isnan(value) else max(value, 0.0)
