"""Numbers in sentences: signs, intervals, q-values and percentages."""

from __future__ import annotations

import math
from collections.abc import Callable

from clinometer.types import Finding

NO_INTERVAL = "no interval"
NOT_TESTED = "not tested"


def signed(value: float, places: int = 3) -> str:
    """Write a number with its sign, but no sign for what rounds to nothing.

    >>> signed(0.1234), signed(-0.1234), signed(-0.0001)
    ('+0.123', '−0.123', '0.000')
    """
    text = f"{value:+.{places}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def written(value: float, places: int = 2) -> str:
    """Write a number with a sign only where it is below 0.

    >>> written(0.126), written(-0.126), written(-0.001)
    ('0.13', '−0.13', '0.00')
    """
    return signed(value, places).removeprefix("+")


def q_value(q: float) -> str:
    """Write a corrected p-value.

    >>> q_value(0.0213), q_value(0.0002), q_value(math.nan)
    ('q = 0.021', 'q < 0.001', 'not tested')
    """
    if math.isnan(q):
        return NOT_TESTED
    return "q < 0.001" if q < 0.001 else f"q = {q:.3f}"


def interval(row: Finding, *, write: Callable[[float], str] = signed) -> str:
    """Write the 95 % interval of a finding, or that it has none.

    >>> interval(Finding(labels={}, estimate=0.2, low=0.1, high=0.3))
    '95 % interval +0.100 to +0.300'
    """
    if math.isnan(row.low) or math.isnan(row.high):
        return NO_INTERVAL
    return f"95 % interval {write(row.low)} to {write(row.high)}"


def certainty(row: Finding, *, write: Callable[[float], str] = signed) -> str:
    """Write the interval and the q-value of a finding.

    >>> certainty(Finding(labels={}, estimate=0.2, low=0.1, high=0.3, q=0.0004))
    '95 % interval +0.100 to +0.300, q < 0.001'
    """
    return f"{interval(row, write=write)}, {q_value(row.q)}"


def percent(share: float, places: int = 1) -> str:
    """Write a share in percent.

    >>> percent(0.1234)
    '12.3 %'
    """
    return f"{100 * share:.{places}f} %"


def percent_interval(row: Finding, places: int = 1) -> str:
    """Write a share with its interval, in percent.

    >>> percent_interval(Finding(labels={}, estimate=0.123, low=0.1, high=0.15))
    '12.3 % (95 % interval 10.0 % to 15.0 %)'
    """
    return f"{percent(row.estimate, places)} ({interval(row, write=lambda share: percent(share, places))})"
