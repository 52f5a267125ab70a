"""Correlation of two measures over the same items."""

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

    `p` is two-sided, of no correlation. Items with a NaN are left out and not counted in `n`. NaN when one measure
    never varies; with fewer than 4 items there is no interval. Fisher (1921).

    Args:
        x: (items,).
        y: (items,), in the same order.
        level: share of intervals that should hold the truth.

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
