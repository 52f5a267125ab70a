"""Intervals for shares of items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from clinometer.stats._clusters import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareInterval:
    """The limits of a share; each field has the shape of the shares."""

    low: FloatArray
    high: FloatArray


def share_interval(share: ArrayLike, n: ArrayLike, *, level: float = 0.95) -> ShareInterval:
    r"""Give shares of n independent items Wilson's interval.

        (s + z²/2n ± z √(s(1−s)/n + z²/4n²)) / (1 + z²/n)

    Unlike a bootstrap it also shows how little is known about a share of 0: none of 20 is "0 to 16 %". NaN if n is
    0. Wilson (1927).

    Args:
        share: of any shape.
        n: the number of items behind each; broadcasts to the shares.
        level: share of intervals that should contain the truth.

    >>> found = share_interval([0.0, 0.5], 20)
    >>> found.low.round(3).tolist(), found.high.round(3).tolist()
    ([0.0, 0.299], [0.161, 0.701])
    """
    s, count = np.broadcast_arrays(np.asarray(share, dtype=np.float64), np.asarray(n, dtype=np.float64))
    size = np.where(count > 0, count, np.nan)
    z = float(special.ndtri((1 + level) / 2))
    centre = (s + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z * np.sqrt(s * (1 - s) / size + z**2 / (4 * size**2)) / (1 + z**2 / size)
    return ShareInterval(low=np.maximum(centre - half, 0.0), high=np.minimum(centre + half, 1.0))


def share_p(hits: int, n: int, *, expected: float = 0.5) -> float:
    """Return the exact two-sided p-value of `hits` in n independent trials, where a share of `expected` is usual.

    >>> round(share_p(9, 10), 4)  # (1 + 10 + 10 + 1) / 1024
    0.0215
    """
    return float(stats.binomtest(hits, n, expected).pvalue)


def paired_share_interval(
    first: ArrayLike, second: ArrayLike, n: ArrayLike, *, level: float = 0.95
) -> ShareInterval:
    """Give the difference of two shares of the same n items an interval, from the items that have only one.

        d ± z √((a + b − d²) / (n + 2)),   a = (f₁ + 1)/(n + 2),   b = (f₂ + 1)/(n + 2),   d = a − b

    The two added counts keep it valid for few items and for differences of 0 or 1. NaN if n is 0. Bonett &
    Price, Adjusted Wald Confidence Interval for a Difference of Binomial Proportions Based on Paired Data (2012).

    Args:
        first: how many items have only the first property, of any shape.
        second: how many have only the second.
        n: how many items there are.
        level: share of intervals that should contain the truth.

    With 14 and 4 of 50: a = 15/52, b = 5/52, d = 10/52.

    >>> found = paired_share_interval(14, 4, 50)
    >>> round(float(found.low), 3), round(float(found.high), 3)
    (0.032, 0.353)
    """
    only_first, only_second, count = (np.asarray(each, dtype=np.float64) for each in (first, second, n))
    size = np.where(count > 0, count, np.nan) + 2
    a, b = (only_first + 1) / size, (only_second + 1) / size
    half = float(special.ndtri((1 + level) / 2)) * np.sqrt((a + b - (a - b) ** 2) / size)
    return ShareInterval(low=np.maximum(a - b - half, -1.0), high=np.minimum(a - b + half, 1.0))
