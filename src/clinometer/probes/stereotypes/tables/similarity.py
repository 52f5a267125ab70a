"""The matrix of similarities between models (the paper's Figure 10)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clinometer.probes.stereotypes.similarity import Similarity, pairs_of
from clinometer.stats import benjamini_hochberg
from clinometer.types import Finding


def similarity_rows(models: Sequence[str], found: Sequence[Similarity]) -> list[Finding]:
    """Return every cell of the matrix of each category; the two halves mirror each other."""
    rows = []
    for each in found:
        upper = pairs_of(len(models))
        q = np.full(each.p.shape, np.nan)
        q[upper[:, 0], upper[:, 1]] = q[upper[:, 1], upper[:, 0]] = benjamini_hochberg(each.p[tuple(upper.T)])
        for a, model in enumerate(models):
            for b, other in enumerate(models):
                apart = a != b  # a model is like itself: nothing to estimate or to test
                rows.append(
                    Finding(
                        labels={
                            "category": each.category,
                            "model": model,
                            "other_model": other,
                            "by_chance": float(each.chance[a, b]) if apart else float("nan"),
                        },
                        estimate=float(each.mean[a, b]),
                        low=float(each.low[a, b]) if apart else float("nan"),
                        high=float(each.high[a, b]) if apart else float("nan"),
                        p=float(each.p[a, b]) if apart else float("nan"),
                        q=float(q[a, b]),
                        n=each.groups,
                    )
                )
    return rows
