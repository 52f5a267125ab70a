"""Intervals for correlations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """A correlation with its interval and its p-value."""

    estimate: float
    low: float
    high: float
    p: float
    n: int  # items that have both measures


def pearson_interval(x: ArrayLike, y: ArrayLike, *, level: float = 0.95) -> Correlation:
    """Correlate two measures over the same items, with Fisher's interval.

        tanh(artanh r ± z_{(1+level)/2} / √(n − 3))

    `p` is two-sided, of no correlation. Items with a NaN are left out and not counted in `n`. NaN if one measure
    never varies; with fewer than 4 items there is no interval. Fisher (1921).

    Args:
        x: (items,).
        y: (items,), in the same order.
        level: share of intervals that should contain the truth.

    >>> found = pearson_interval([1, 2, 3, 4, 5], [1, 3, 2, 5, 4])
    >>> round(found.estimate, 3), round(found.low, 3), round(found.high, 3), found.n
    (0.8, -0.28, 0.986, 5)
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"found shapes {first.shape} and {second.shape}; give two measures of the same items")
    both = ~np.isnan(first) & ~np.isnan(second)
    first, second, n = first[both], second[both], int(both.sum())
    if n < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Correlation(estimate=math.nan, low=math.nan, high=math.nan, p=math.nan, n=n)
    found = stats.pearsonr(first, second)
    low, high = found.confidence_interval(level) if n > 3 else (math.nan, math.nan)
    return Correlation(
        estimate=float(found.statistic), low=float(low), high=float(high), p=float(found.pvalue), n=n
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JackknifeInterval:
    """The limits of an estimate."""

    low: float
    high: float


def jackknife_correlation(estimate: float, left_out: ArrayLike, *, level: float = 0.95) -> JackknifeInterval:
    """Give a correlation an interval, from its values with each item left out in turn.

        tanh(z ± t_{n−1} s),   z = artanh r,   s² = (n−1)/n · Σ_i (z_(i) − mean z_(·))²

    For statistics that compare items in pairs, where resampling with replacement would compare an item with its
    own copy. NaN with fewer than 4 items; values that never differ give an interval of length 0. Efron &
    Tibshirani, An Introduction to the Bootstrap (1993), §11.

    Args:
        estimate: the correlation over all items.
        left_out: (items,), the correlation without each; NaN is missing.
        level: share of intervals that should contain the truth.

    >>> found = jackknife_correlation(0.5, [0.4, 0.5, 0.6, 0.5, 0.45])
    >>> round(found.low, 3), round(found.high, 3)
    (0.051, 0.781)
    """
    values = np.asarray(left_out, dtype=np.float64)
    values = values[~np.isnan(values)]
    n = len(values)
    if n < 4 or np.isnan(estimate):
        return JackknifeInterval(low=np.nan, high=np.nan)
    if np.ptp(values) <= 1e-12:
        return JackknifeInterval(low=float(estimate), high=float(estimate))
    limit = 1 - 1e-12  # artanh 1 is infinite
    z = np.arctanh(np.clip(values, -limit, limit))
    error = np.sqrt((n - 1) / n * ((z - z.mean()) ** 2).sum())
    half = float(stats.t.ppf((1 + level) / 2, n - 1) * error)
    centre = float(np.arctanh(np.clip(estimate, -limit, limit)))
    return JackknifeInterval(low=float(np.tanh(centre - half)), high=float(np.tanh(centre + half)))


def rank_correlation(first: ArrayLike, second: ArrayLike, *, fewest: int = 5) -> float:
    """Return Spearman's ρ of the items that both have; NaN for few items, or where one does not vary.

    >>> rank_correlation([1.0, 2.0, 3.0, 4.0, 9.0], [2.0, 4.0, 5.0, 6.0, 7.0])
    1.0
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    known = ~np.isnan(one) & ~np.isnan(other)
    if known.sum() < fewest or not np.ptp(one[known]) or not np.ptp(other[known]):
        return float("nan")
    return float(np.round(stats.spearmanr(one[known], other[known]).statistic, 12))
