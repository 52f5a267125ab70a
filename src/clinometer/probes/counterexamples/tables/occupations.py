"""Each occupation's base prompt, beside the share of women in the occupation."""

from __future__ import annotations

from collections.abc import Iterator

from clinometer.probes.counterexamples.dominances import NAMES
from clinometer.probes.counterexamples.view import View
from clinometer.probes.kit.numbers import with_q
from clinometer.stats import pearson_interval
from clinometer.types import Finding


def occupation_rows(view: View) -> Iterator[Finding]:
    """Yield the gap of every occupation's base prompt."""
    for i, k in enumerate(view.ks):
        for row in view.rows_of(view.kinds[0]):
            yield Finding(
                labels={
                    "model": view.model,
                    "k": k,
                    "occupation": str(view.answers.occupation[row]),
                    "dominance": NAMES[int(view.answers.dominance[row])],
                    "percent_of_women": float(view.answers.percent[row]),
                    "margin": float(view.measures.margin[row, i]),
                },
                estimate=float(view.measures.gap[row, i]),
                n=1,
            )


def correlation_rows(view: View) -> list[Finding]:
    """Return the correlation of that gap with the share of women."""
    base = view.rows_of(view.kinds[0])
    found = [pearson_interval(view.answers.percent[base], view.measures.gap[base, i]) for i in range(len(view.ks))]
    return with_q(
        Finding(labels={"model": view.model, "k": k}, estimate=r.estimate, low=r.low, high=r.high, p=r.p, n=r.n)
        for k, r in zip(view.ks, found, strict=True)
    )
