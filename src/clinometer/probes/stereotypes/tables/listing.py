"""Words in a cell of a table."""

from __future__ import annotations

from collections.abc import Sequence

LISTED = 12


def listed(words: Sequence[str]) -> str:
    """Return the first words, and how many more there are.

    >>> listed(["sad", "old"]), listed(["so"] * 14).endswith(", so … and 2 more")
    ('sad, old', True)
    """
    more = len(words) - LISTED
    return ", ".join(words[:LISTED]) + (f" … and {more} more" if more > 0 else "")
