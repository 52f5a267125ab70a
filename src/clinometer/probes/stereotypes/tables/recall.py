"""How many of the human stereotypes a model recalls (the paper's Figure 1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clinometer.probes.kit.numbers import Floats, Label, Numbers
from clinometer.probes.stereotypes.recall import RANKING_NAMES, RANKINGS, Gold
from clinometer.probes.stereotypes.view import ALL, View
from clinometer.stats import ShareInterval, cluster_bootstrap, share_interval
from clinometer.types import Finding

FEWEST = 5  # groups with human stereotypes that an interval needs


def gold_categories(gold: Gold) -> tuple[str, ...]:
    """Return the categories that have human stereotypes, after "all"."""
    present = tuple(dict.fromkeys(gold.category.tolist()))
    return (ALL, *present) if len(present) > 1 else present


def recall_rows(view: View, gold: Gold, ranks: Floats) -> Iterator[Finding]:
    """Yield recall@k by category, with the lists re-ranked and as they were."""
    ks = range(1, view.options.top_k + 1)
    found = (ranks[:, :, None] <= np.array(ks)).astype(np.float64)  # (attributes, rankings, ks)
    for category in gold_categories(gold):
        chosen = gold.members(category)
        values = found[chosen]
        alike = share_interval(values.mean(axis=0), len(values))
        numbers = share_by_groups(view, values, gold.group[chosen], alike=alike)
        for r, ranking in enumerate(RANKINGS):
            for i, k in enumerate(ks):
                labels: dict[str, Label] = {
                    "model": view.model,
                    "category": category,
                    "ranking": RANKING_NAMES[ranking],
                    "k": k,
                }
                yield numbers.as_share().finding((r, i), labels)


def share_by_groups(
    view: View,
    values: Floats,
    groups: np.ndarray[tuple[int, ...], np.dtype[np.str_]],
    *,
    alike: ShareInterval,
) -> Numbers:
    """Return means over attributes, (attributes, ...) -> (...), with intervals that resample groups.

    Where all values are alike, so are all draws: none found of 150 would be "0 to 0 %". There the limits
    `alike` stand.
    """
    n = np.full(values.shape[1:], len(values))
    if len(np.unique(groups)) < FEWEST:
        return Numbers(estimate=values.mean(axis=0), n=n)
    interval = cluster_bootstrap(values, groups, rng=view.rng, draws=view.options.draws)
    same = values.min(axis=0) == values.max(axis=0)
    low, high = np.where(same, alike.low, interval.low), np.where(same, alike.high, interval.high)
    return Numbers(estimate=interval.estimate, low=low, high=high, n=n)
