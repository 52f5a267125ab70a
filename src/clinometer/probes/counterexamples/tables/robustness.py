"""What knowledge leaves as it was, and how small a change would have been seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from clinometer.data import Kind
from clinometer.metrics.gendered import Floats
from clinometer.probes.counterexamples.dominances import ALL, FEWEST, NAMES, join
from clinometer.probes.counterexamples.view import View
from clinometer.probes.kit.numbers import Numbers
from clinometer.stats import minimum_detectable_effect
from clinometer.types import Finding


def robustness_rows(view: View, changed: Sequence[Finding]) -> Iterator[Finding]:
    """Yield, for each kind, the share that keeps its gender, the margin's change and the least change detectable.

    `changed` are the rows of the table of changes.
    """
    dominance = view.dominances[0]  # all, or the one there is
    margin_change = {
        (row.labels["k"], row.labels["kind"]): row
        for row in changed
        if (row.labels["measure"], row.labels["dominance"]) == ("margin", dominance)
    }
    kept_gender = _kept_gender(view)
    kept = {kind.name: _share(view, kept_gender, kind) for kind in view.knowledge}
    least = {kind.name: _least_detectable(view, kind) for kind in view.knowledge}
    for i, k in enumerate(view.ks):
        for kind in view.knowledge:
            yield kept[kind.name].finding((i,), view.labels(k, kind, measure="dominant gender kept"))
            change = margin_change[k, kind.name]
            yield replace(change, labels=view.labels(k, kind, measure="change of the margin"))
            yield least[kind.name].finding(
                (i,), view.labels(k, kind, measure="minimum detectable change of the margin")
            )


def _kept_gender(view: View) -> Floats:
    """Return 1 where a prompt prefers the same gender as its base prompt, else 0; NaN where base prefers none."""
    gap, base_gap = view.measures.gap, view.measures.gap[view.answers.base]
    kept: Floats = (np.sign(gap) == np.sign(base_gap)).astype(np.float64)
    kept[(base_gap == 0) | np.isnan(base_gap) | np.isnan(gap)] = np.nan
    return kept


def _share(view: View, kept: Floats, kind: Kind) -> Numbers:
    rows = view.rows_of(kind)
    return view.interval(kept[rows], rows).as_share()


def _least_detectable(view: View, kind: Kind) -> Numbers:
    """Return what a test finds; for both dominances, errors and so detectable changes add up by their squares."""
    change = view.per_occupation(view.change(view.measures.margin), kind)
    least = {}
    for code, name in NAMES.items():
        of_dominance = change[view.dominance == code]
        if len(of_dominance):
            n = (~np.isnan(of_dominance)).sum(axis=0)
            effect = np.where(n < FEWEST, np.nan, minimum_detectable_effect(of_dominance))
            least[name] = Numbers(estimate=effect, n=n)
    if ALL not in view.dominances:
        return least[view.dominances[0]]
    squares = [replace(each, estimate=each.estimate**2) for each in least.values()]
    return join(*squares).transformed(lambda mean: np.sqrt(mean / 2))  # √(a² + b²) / 2
