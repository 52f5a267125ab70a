"""The emotion profile of each group, and of each category on average (the paper's Figure 2)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from clinometer.probes.kit.numbers import Numbers
from clinometer.probes.stereotypes.tables.listing import listed
from clinometer.probes.stereotypes.view import View
from clinometer.stats import cluster_bootstrap, share_interval
from clinometer.types import Finding

FEWEST = 5  # groups that an interval needs


def emotion_rows(view: View) -> Iterator[Finding]:
    """Yield the share of each group's attributes that has each emotion, with the most typical of these."""
    names = view.options.emotion_names
    n = np.broadcast_to(view.covered[:, None], view.vectors.shape)
    limits = share_interval(view.vectors, n)
    numbers = Numbers(estimate=view.vectors, low=limits.low, high=limits.high, n=n)
    ranked = dict(view.lists.group_by("group", maintain_order=True).agg(pl.col("word")).iter_rows())
    for g, group in enumerate(view.groups):
        of_profile = set(view.profile_words[g])
        known = [word for word in ranked.get(g, ()) if word in of_profile and word in view.lexicon.words]
        for e, emotion in enumerate(names):
            behind = [word for word in known if emotion in view.lexicon.words[word]]
            yield numbers.finding(
                (g, e),
                {
                    "model": view.model,
                    "category": group.category,
                    "group": group.name,
                    "emotion": emotion,
                    "attributes": listed(behind),
                },
            )


def category_rows(view: View) -> Iterator[Finding]:
    """Yield the mean profile of the groups of each category."""
    for category in view.categories:
        vectors = view.vectors[view.members(category)]
        vectors = vectors[~np.isnan(vectors).any(axis=1)]
        n = np.full(vectors.shape[1], len(vectors))
        if not len(vectors):
            numbers = Numbers(estimate=np.full(vectors.shape[1], np.nan), n=n)
        elif len(vectors) < FEWEST:
            numbers = Numbers(estimate=vectors.mean(axis=0), n=n)
        else:
            found = cluster_bootstrap(vectors, rng=view.rng, draws=view.options.draws)
            numbers = Numbers(estimate=found.estimate, low=found.low, high=found.high, n=n)
        for e, emotion in enumerate(view.options.emotion_names):
            labels = {"model": view.model, "category": category, "emotion": emotion}
            yield numbers.as_share().finding((e,), labels)
