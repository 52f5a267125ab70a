"""How many of the human stereotypes a model recalls (the paper's Figure 1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clinometer.probes.numbers import Floats, Label, Numbers
from clinometer.probes.stereotypes.recall import RANKING_NAMES, RANKINGS, Gold
from clinometer.probes.stereotypes.view import ALL, View
from clinometer.stats import cluster_bootstrap
from clinometer.types import Finding

FEWEST = 5  # groups with human stereotypes that an interval needs


def shown_ks(top_k: int) -> tuple[int, ...]:
    """Return the k whose recall is shown: each to 20, then every fifth, and the last.

    >>> shown_ks(32)
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 25, 30, 32)
    """
    return tuple(k for k in range(1, top_k + 1) if k <= 20 or k % 5 == 0 or k == top_k)


def gold_categories(gold: Gold) -> tuple[str, ...]:
    """Return the categories that have human stereotypes, after "all"."""
    present = tuple(dict.fromkeys(gold.category.tolist()))
    return (ALL, *present) if len(present) > 1 else present


def recall_rows(view: View, gold: Gold, ranks: Floats) -> Iterator[Finding]:
    """Yield recall@k by category, with the lists re-ranked and as they were."""
    ks = shown_ks(view.options.top_k)
    found = (ranks[:, :, None] <= np.array(ks)).astype(np.float64)  # (attributes, rankings, ks)
    for category in gold_categories(gold):
        chosen = gold.members(category)
        numbers = share_by_groups(view, found[chosen], gold.group[chosen])
        for r, ranking in enumerate(RANKINGS):
            for i, k in enumerate(ks):
                labels: dict[str, Label] = {
                    "model": view.model,
                    "category": category,
                    "ranking": RANKING_NAMES[ranking],
                    "k": k,
                }
                yield numbers.as_share().finding((r, i), labels)


def share_by_groups(view: View, values: Floats, groups: np.ndarray[tuple[int, ...], np.dtype[np.str_]]) -> Numbers:
    """Return means over attributes, (attributes, ...) -> (...), with intervals that resample groups."""
    n = np.full(values.shape[1:], len(values))
    if len(np.unique(groups)) < FEWEST:
        return Numbers(estimate=values.mean(axis=0), n=n)
    interval = cluster_bootstrap(values, groups, rng=view.rng, draws=view.options.draws)
    return Numbers(estimate=interval.estimate, low=interval.low, high=interval.high, n=n)
