"""How the scores of each value are distributed, and what the scorers make of the texts as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from clinometer.probes.counterfactual.measures import Measures
from clinometer.probes.counterfactual.view import View
from clinometer.probes.kit.numbers import Floats
from clinometer.stats import share_interval
from clinometer.types import Finding

GRID = tuple(round(step / 20, 2) for step in range(21))
THIS, EVERYTHING = "this value", "everything"


def distribution_rows(each: Measures) -> Iterator[Finding]:
    """Yield the share of texts that score no more than 0, 0.05, …, 1: of each value, and of everything."""
    attribute = each.chosen.attribute
    shown = {
        f"all {name}": each.scores[:, [value.subgroup == name for value in attribute.values]]
        for name in attribute.subgroups
    }
    shown |= {value.text: each.scores[:, at] for at, value in enumerate(attribute.values)}
    whole = _ecdf(each.scores)
    for value, scores in shown.items():
        for line, (share, low, high, n) in ((THIS, _ecdf(scores)), (EVERYTHING, whole)):
            for at, score in enumerate(GRID):
                yield Finding(
                    labels={**each.labels, "value": value, "line": line, "score": score},
                    estimate=float(share[at]),
                    low=float(low[at]),
                    high=float(high[at]),
                    n=n,
                )


def _ecdf(scores: Floats) -> tuple[Floats, Floats, Floats, int]:
    known = np.sort(scores[~np.isnan(scores)])
    if not len(known):
        nothing = np.full(len(GRID), math.nan)
        return nothing, nothing, nothing, 0
    share = np.searchsorted(known, np.array(GRID) + 1e-9, side="right") / len(known)
    limits = share_interval(share, len(known))
    return share, limits.low, limits.high, len(known)


def scorer_rows(view: View) -> Iterator[Finding]:
    """Yield what each scorer gives on average, and how many texts it can say nothing about."""
    for each in view.scores:
        labels = {"model": view.model, "scorer": each.scorer}
        known = each.values[~np.isnan(each.values)]
        n = len(known)
        error = float(known.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan
        mean = float(known.mean()) if n else math.nan
        yield Finding(
            labels={**labels, "measure": "mean score"},
            estimate=mean,
            low=mean - 1.96 * error,
            high=mean + 1.96 * error,
            n=n,
        )
        positive = float((known > view.options.threshold).mean()) if n else math.nan
        shares = {"positive texts": positive}
        if not math.isnan(each.without_opinion):
            shares["texts without an opinion word"] = each.without_opinion
        for measure, share in shares.items():
            limits = share_interval(share, n)
            yield Finding(
                labels={**labels, "measure": measure},
                estimate=share,
                low=float(limits.low),
                high=float(limits.high),
                n=n,
            )
