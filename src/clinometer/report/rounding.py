"""How numbers are written in the report, the only place where they are rounded.

`assets/rounding.js` writes the same numbers in the browser; a test compares the two.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

MISSING = "–"

_THREE_DIGITS = Context(prec=3, rounding=ROUND_HALF_UP)  # as JavaScript's toPrecision rounds


def estimate_text(value: float) -> str:
    """Write a number with three significant digits, or more if they are before the decimal point.

    >>> [estimate_text(x) for x in (0.12, -2.125, 1234.5, 0.00012345, math.nan)]
    ['0.120', '−2.13', '1235', '1.23e−4', '–']
    """
    if not math.isfinite(value):
        return _not_finite(value)
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return _minus(str(Decimal(value).quantize(Decimal(1), rounding=ROUND_HALF_UP)))
    rounded = _THREE_DIGITS.create_decimal(Decimal(value))
    if abs(value) < 0.001:
        digits, exponent = f"{rounded:.2e}".split("e")
        return _minus(f"{digits}e{int(exponent)}")
    places = max(0, 2 - rounded.adjusted())
    return _minus(f"{rounded:.{places}f}")


def interval_text(low: float, high: float) -> str:
    """Write an interval, or a dash if neither end was computed.

    >>> interval_text(-0.1, 0.25), interval_text(math.nan, math.nan)
    ('[−0.100, 0.250]', '–')
    """
    if math.isnan(low) and math.isnan(high):
        return MISSING
    return f"[{estimate_text(low)}, {estimate_text(high)}]"


def probability_text(value: float) -> str:
    """Write a p- or q-value with three decimals, or as "<0.001".

    >>> probability_text(0.0004), probability_text(0.0405), probability_text(math.nan)
    ('<0.001', '0.041', '–')
    """
    if not math.isfinite(value):
        return _not_finite(value)
    if value < 0.001:
        return "<0.001"
    return str(Decimal(value).quantize(Decimal("0.001"), rounding=ROUND_HALF_UP))


def count_text(value: int) -> str:
    """Write a count with commas between the thousands.

    >>> count_text(3886)
    '3,886'
    """
    return f"{value:,}"


def label_text(value: str | int | float) -> str:
    """Write a label: text as it is, numbers as short as possible.

    >>> label_text("nurse"), label_text(5), label_text(2.0), label_text(0.1)
    ('nurse', '5', '2', '0.1')
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            return _not_finite(value)
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else str(value)
    return str(value)


def size_text(parameters: int) -> str:
    """Write a number of parameters the way people say it.

    >>> size_text(134_515_008), size_text(1_700_000_000), size_text(950), size_text(0)
    ('135 M', '1.70 B', '950', '–')
    """
    if parameters <= 0:
        return MISSING
    for unit, size in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if parameters >= size:
            return f"{estimate_text(parameters / size)} {unit}"
    return str(parameters)


def json_number(value: float) -> float | str | None:
    """Return a number for JSON, which has no NaN (None here) and no infinity (text here)."""
    if math.isfinite(value):
        return value
    return None if math.isnan(value) else _not_finite(value)


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return MISSING
    return "∞" if value > 0 else "−∞"


def _minus(text: str) -> str:
    return text.replace("-", "−")
