"""A number with its noun, for sentences that a person reads."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """Return the number and the noun in the form that goes with it; without `many`, the plural is in -s.

    >>> counted(1, "group"), counted(1886, "group"), counted(0, "category", "categories")
    ('1 group', '1,886 groups', '0 categories')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
