"""Bootstrap draws of clusters and of the items within them, and the intervals read off studentized draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from clinometer.stats._clusters import FloatArray, Grouping, IntArray, one_row_each

Statistic = Callable[[FloatArray], FloatArray]

STEP = 1e-4  # of the way from the mean to an item: the derivative's step
_BATCH = 4_000_000  # numbers held at a time (draws × clusters), to limit memory


@dataclass(frozen=True, slots=True)
class Draws:
    """The results of the draws: the mean of every column, and the standard error of the first columns' means."""

    means: FloatArray  # (draws, columns)
    errors: FloatArray  # (draws, studentized columns): 0 if a draw has no spread between its clusters


def resample(
    columns: FloatArray, grouping: Grouping, *, studentized: int, rng: np.random.Generator, draws: int
) -> Draws:
    """Draw clusters, then items within each drawn cluster; a cluster drawn twice draws its items twice."""
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
    if single.any():  # nothing to draw within these: one product is enough
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
    spread[spread <= 1e-10 * squares] = 0.0  # the rest of a difference of equal numbers is rounding
    factor = groups / max(groups - 1, 1)
    return Draws(means, np.sqrt(factor * spread) / items)


def _uniform_counts(n: int, *, rows: int, rng: np.random.Generator) -> IntArray:
    """Draw n out of n with replacement, `rows` times: how often each was drawn, (rows, n)."""
    picks = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
    return np.bincount(picks.ravel(), minlength=rows * n).reshape(rows, n)


def check_draws(draws: int, level: float) -> None:
    """Raise ValueError if these draws cannot give an interval of this level."""
    if not 0 < level < 1 or (draws + 1) * (1 - level) < 2:
        raise ValueError(f"found draws={draws}, level={level}; give 0 < level < 1 and draws ≥ 2 / (1 − level) − 1")


def deviations_from(centre: FloatArray, columns: FloatArray) -> FloatArray:
    """Return the columns minus their means; a constant column becomes exactly 0, whatever the rounding."""
    deviations: FloatArray = columns - centre
    deviations[np.abs(deviations) <= 1e-13 * np.abs(columns).max(axis=0)] = 0.0
    return deviations


def function_of_means(statistic: Statistic | None, shape: tuple[int, ...], *, missing: bool) -> Statistic:
    """Return the statistic as a function of the means of a matrix's columns.

    With missing values the matrix has a second half, 1 where a value is present: the mean of the present values is
    the ratio of two means over all items.
    """

    def function(means: FloatArray) -> FloatArray:
        if missing:
            half = means.shape[1] // 2
            share = means[:, half:]
            # a draw without any present item has a share of 0, except for rounding, and no mean
            means = means[:, :half] / np.where(share > 1e-12, share, np.nan)
        means = means.reshape(len(means), *shape)
        return means if statistic is None else one_row_each(statistic(means), len(means), of="means")

    return function


@dataclass(frozen=True, slots=True)
class Limits:
    """The two ends of an interval, and the p-value that agrees with them."""

    low: FloatArray
    high: FloatArray
    p: FloatArray


def limits(
    estimate: FloatArray, error: FloatArray, moved: Draws, *, null: float, alpha: float, symmetric: bool = False
) -> Limits:
    """Return the interval and the p-value given by the draws; `moved.means` are θ* − θ.

    Each tail of t* has its own quantile; `symmetric` uses one quantile of |t*| for both.
    """
    draws = len(moved.means)
    with np.errstate(invalid="ignore", divide="ignore"):
        pivots = moved.means / moved.errors
        # a draw whose items do not differ, and that is where the estimate is but for rounding, has not moved
        farthest = np.where(np.isfinite(moved.means), np.abs(moved.means), 0.0).max(axis=0)
        pivots[(np.abs(moved.means) <= 1e-9 * farthest) & (moved.errors == 0)] = 0.0
        pivots[:, np.isnan(error)] = 0.0  # the limits are NaN there, because the error is
        observed = (estimate - null) / error
        if symmetric:
            # a draw for which the statistic is undefined could be anywhere: assume the worst
            distances = np.where(np.isnan(pivots), np.inf, np.abs(pivots))
            tails, p = _symmetric_tails(distances, alpha), _as_far(distances, observed)
        else:
            tails, p = _tails(pivots, alpha), _two_sided(pivots, observed)
        low, high = estimate - tails.high * error, estimate - tails.low * error

    flat = (moved.errors == 0).sum(axis=0)
    # 1 − 0.95 is a little more than 0.05: without the slack, an infinite draw could be exactly at the quantile
    in_tail = (draws + 1) * (alpha if symmetric else alpha / 2)
    percentile = (flat + 1 >= in_tail - 1e-9) & ~np.isnan(error)
    if percentile.any():
        # These draws have many ties, some exactly at the null: rounding must not decide on which side they are.
        centred = moved.means[:, percentile] + (estimate[percentile] - null)
        centred[np.abs(centred) <= 1e-12 * np.abs(moved.means[:, percentile]).max(axis=0)] = 0.0
        tails = _tails(centred, alpha)
        low[percentile], high[percentile] = null + tails.low, null + tails.high
        p[percentile] = _two_sided(centred, np.zeros(centred.shape[1]))
    return Limits(low, high, np.where(np.isnan(low), np.nan, p))


@dataclass(frozen=True, slots=True)
class _Tails:
    low: FloatArray
    high: FloatArray


def _tails(draws: FloatArray, alpha: float) -> _Tails:
    """Return the α/2 and 1 − α/2 quantiles of each column; draws without an observation (NaN) are ignored."""
    quantile = np.nanquantile if np.isnan(draws).any() else np.quantile
    low, high = quantile(draws, [alpha / 2, 1 - alpha / 2], axis=0, method="weibull")
    return _Tails(low, high)


def _symmetric_tails(distances: FloatArray, alpha: float) -> _Tails:
    """Return ∓ the 1 − α quantile of |t*| of each column; NaN, for no interval, if that is infinite."""
    far = np.quantile(distances, 1 - alpha, axis=0, method="weibull")
    far = np.where(np.isfinite(far), far, np.nan)
    return _Tails(-far, far)


def _as_far(distances: FloatArray, observed: FloatArray) -> FloatArray:
    p: FloatArray = ((distances >= np.abs(observed)).sum(axis=0) + 1) / (len(distances) + 1)
    return p


def _two_sided(draws: FloatArray, observed: FloatArray) -> FloatArray:
    tail = np.minimum((draws >= observed).sum(axis=0), (draws <= observed).sum(axis=0))
    p: FloatArray = np.minimum(1.0, 2 * (tail + 1) / (len(draws) + 1))
    return p
