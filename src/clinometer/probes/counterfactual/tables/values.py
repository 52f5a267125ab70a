"""Each value against the whole, and the verdict at ε."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clinometer.probes.counterfactual.measures import Measures
from clinometer.types import Finding

ALL_TEMPLATES = "all templates"


def value_rows(each: Measures) -> Iterator[Finding]:
    """Yield the mean score of each value minus that of all values, lowest first, over templates and in each."""
    attribute, found = each.chosen.attribute, each.values
    samples = (~np.isnan(each.scores)).sum(axis=2)
    counts = np.concatenate([samples.sum(axis=0)[None], samples])
    order = np.argsort(found.difference[0], kind="stable")
    for at, template in enumerate((ALL_TEMPLATES, *attribute.templates)):
        tested = {} if at else {"p": found.p, "q": found.q}
        for v in order.tolist():
            value = attribute.values[v]
            yield Finding(
                labels={
                    **each.labels,
                    "template": template,
                    "value": value.text,
                    "subgroup": value.subgroup or value.text,
                },
                estimate=float(found.difference[at, v]),
                low=float(found.low[at, v]),
                high=float(found.high[at, v]),
                n=int(counts[at, v]),
                **{name: float(numbers[v]) for name, numbers in tested.items()},
            )


def verdict_rows(each: Measures, *, epsilon: float) -> Iterator[Finding]:
    """Yield Equation 2: the worst pair of all templates, and how many pairs are not below ε."""
    found = each.verdict
    said = ("below ε" if found.fair else "not below ε") if found.compared else "not measured"
    labels = {**each.labels, "epsilon": epsilon, "verdict": said}
    for measure, estimate, by_chance, p in (
        ("worst pair in a template", found.worst, found.worst_null, found.worst_p),
        ("share of pairs not below ε", found.share, found.share_null, float("nan")),
    ):
        yield Finding(
            labels={**labels, "measure": measure, "by_chance": round(by_chance, 4)},
            estimate=estimate,
            p=p,
            n=found.compared,
        )
