"""Shares of a number of words or reviews, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping

from clinometer.probes.kit.numbers import Label
from clinometer.stats import share_interval
from clinometer.types import Finding


def share_finding(count: int, n: int, labels: Mapping[str, Label], *, p: float = math.nan) -> Finding:
    """Return count/n with Wilson's interval, see `share_interval`. A share of nothing (n = 0) is missing.

    >>> found = share_finding(5, 10, {})
    >>> found.estimate, round(found.low, 3), round(found.high, 3)
    (0.5, 0.237, 0.763)
    """
    if n == 0:
        return Finding(labels=labels, estimate=math.nan, n=0)
    share = count / n
    limits = share_interval(share, n)
    return Finding(labels=labels, estimate=share, low=float(limits.low), high=float(limits.high), p=p, n=n)
