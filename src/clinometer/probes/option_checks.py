"""Checks that the options of several audits share."""

from __future__ import annotations

from clinometer.errors import SpecError


def is_whole(value: object, *, low: int, high: float = float("inf")) -> bool:
    """Tell whether a value is a whole number from `low` to `high`.

    >>> is_whole(3, low=1), is_whole(True, low=0), is_whole(3.0, low=0)
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def wrong_option(probe: str, option: str, value: object, hint: str) -> SpecError:
    """Return the error to raise for an option that cannot be used; `hint` says what was expected."""
    return SpecError(f"{probe}: {option} = {value!r} is not valid; {hint}")
