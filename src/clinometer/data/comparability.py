"""Which ways of asking may be compared: one row for each audit and pair of ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clinometer.data.files import check_keys, packaged, read_toml
from clinometer.errors import DataError

HOWS = ("values", "ranks", "not")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two ways of asking in one audit: whether their values, only their ranks, or nothing may be compared."""

    audit: str
    first: str
    second: str
    how: str  # one of `HOWS`
    why: str


def load_comparisons(ways: Sequence[str]) -> tuple[Comparison, ...]:
    """Return the packaged rows; `ways` are the names that a row may have."""
    file = packaged("asking", "comparable.toml")
    rows = []
    for entry in read_toml(file, keys=("pairs",))["pairs"]:
        check_keys(f"'{file}': pairs", entry, keys=("audit", "first", "second", "how", "why"))
        row = Comparison(**entry)
        if row.how not in HOWS or row.first not in ways or row.second not in ways or row.first == row.second:
            raise DataError(f"'{file}': {entry}; expected two different ways of asking, and one of {HOWS}")
        rows.append(row)
    pairs = [(row.audit, frozenset((row.first, row.second))) for row in rows]
    if len(set(pairs)) < len(pairs):
        raise DataError(f"'{file}': a pair is listed twice; expected each once")
    return tuple(rows)
