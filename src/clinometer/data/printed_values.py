"""The numbers that the papers print, to which an audit's own can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from clinometer.data.files import packaged, read_csv


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedValue:
    """One number of a paper: what was measured, of which model, and where it is printed."""

    measure: str
    model: str
    value: float
    source: str
    printed: str = ""  # as the file has it, with its digits


@cache
def load_printed_values(audit: str) -> tuple[PrintedValue, ...]:
    """Return what the paper of an audit prints, from `published/<audit>.csv`.

    >>> found = load_printed_values("counterfactual")
    >>> next(each.value for each in found if each.measure == "S.S. name")
    0.143
    """
    rows = read_csv(packaged("published", f"{audit}.csv"), columns=("measure", "model", "value", "source"))
    return tuple(
        PrintedValue(
            measure=row.text("measure"),
            model=row.text("model"),
            value=row.number("value", low=float("-inf"), high=float("inf")),
            source=row.text("source"),
            printed=row.text("value"),
        )
        for row in rows
    )
