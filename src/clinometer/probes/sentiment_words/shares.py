"""Shares of a number of words or reviews, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping

from clinometer.probes.numbers import Label
from clinometer.types import Finding

_Z = 1.959963984540054  # of the normal distribution, 95 % two-sided


def share_finding(count: int, n: int, labels: Mapping[str, Label], *, p: float = math.nan) -> Finding:
    r"""Return count/n with the interval of Wilson (1927), which holds for shares near 0 and 1 too.

    .. math:: \frac{s + z^2/2n \pm z\sqrt{s(1-s)/n + z^2/4n^2}}{1 + z^2/n}

    A share of nothing (n = 0) is missing.

    >>> found = share_finding(5, 10, {})
    >>> found.estimate, round(found.low, 3), round(found.high, 3)
    (0.5, 0.237, 0.763)
    """
    if n == 0:
        return Finding(labels=labels, estimate=math.nan, n=0)
    share = count / n
    centre = share + _Z**2 / (2 * n)
    half = _Z * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n * n))
    scale = 1 + _Z**2 / n
    low = (centre - half) / scale if count else 0.0  # without rounding
    high = (centre + half) / scale if count < n else 1.0
    return Finding(labels=labels, estimate=share, low=low, high=high, p=p, n=n)
