"""Resampling of clusters, then of items within them, for many columns at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clinometer.stats._clusters import FloatArray, Grouping, IntArray

_BATCH = 4_000_000  # numbers held at a time (draws × clusters), so that memory stays flat


@dataclass(frozen=True, slots=True)
class Draws:
    """What the draws came to: the mean of every column, and the error of the first ones' means."""

    means: FloatArray  # (draws, columns)
    errors: FloatArray  # (draws, studentized columns): 0 where a draw has no spread between its clusters


def resample(
    columns: FloatArray, grouping: Grouping, *, studentized: int, rng: np.random.Generator, draws: int
) -> Draws:
    """Draw clusters, then items within each cluster drawn; a cluster drawn twice draws its items twice."""
    batch = max(1, _BATCH // len(grouping.sizes))
    parts = [
        _resample_batch(columns, grouping, studentized=studentized, rng=rng, draws=min(batch, draws - done))
        for done in range(0, draws, batch)
    ]
    return Draws(np.concatenate([part.means for part in parts]), np.concatenate([part.errors for part in parts]))


def _resample_batch(
    columns: FloatArray, grouping: Grouping, *, studentized: int, rng: np.random.Generator, draws: int
) -> Draws:
    groups = len(grouping.sizes)
    times = _uniform_counts(groups, rows=draws, rng=rng)  # (draws, clusters): how often each was drawn
    # With S the sum and m the size of a cluster drawn, over the clusters of a draw:
    total = np.zeros((draws, columns.shape[1]))  # Σ S
    squares = np.zeros((draws, studentized))  # Σ S²
    crossed = np.zeros((draws, studentized))  # Σ m S

    single = grouping.sizes == 1
    if single.any():  # nothing to draw within these: one product serves them all
        rows = columns[grouping.order[grouping.starts[single]]]
        weights = times[:, single].astype(np.float64)
        total += weights @ rows
        squares += weights @ rows[:, :studentized] ** 2
        crossed += total[:, :studentized]
    for cluster in np.flatnonzero(~single):
        start, size = grouping.starts[cluster], grouping.sizes[cluster]
        drawn = np.flatnonzero(times[:, cluster])
        copies = times[drawn, cluster]
        weights = _uniform_counts(int(size), rows=int(copies.sum()), rng=rng).astype(np.float64)
        sums = weights @ columns[grouping.order[start : start + size]]
        firsts = np.cumsum(copies) - copies
        of_draw = np.add.reduceat(sums, firsts, axis=0)
        total[drawn] += of_draw
        squares[drawn] += np.add.reduceat(sums[:, :studentized] ** 2, firsts, axis=0)
        crossed[drawn] += size * of_draw[:, :studentized]

    items = (times @ grouping.sizes)[:, None]
    means = total / items
    centre = means[:, :studentized]
    # Σ (S − m · mean)², the spread between the clusters of a draw
    spread = squares - 2 * centre * crossed + centre**2 * (times @ grouping.sizes**2)[:, None]
    spread[spread <= 1e-10 * squares] = 0.0  # what is left of a difference of equal numbers is rounding
    factor = groups / max(groups - 1, 1)
    return Draws(means, np.sqrt(factor * spread) / items)


def _uniform_counts(n: int, *, rows: int, rng: np.random.Generator) -> IntArray:
    """Draw n out of n with replacement, `rows` times: how often each was drawn, (rows, n)."""
    picks = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
    return np.bincount(picks.ravel(), minlength=rows * n).reshape(rows, n)
