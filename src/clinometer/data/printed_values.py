"""The numbers that the papers print, to which an audit's own can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from clinometer.data.files import packaged, read_csv
from clinometer.errors import DataError


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


def in_print(audit: str, measure: str, model: str = "", *, percent: bool = False) -> str:
    """Return what the paper prints of one measure, with its digits; of every model that has it, or of one.

    >>> in_print("counterfactual", "S.S. name", "WMT-19 baseline")
    '0.143'
    >>> in_print("sentiment_words", "share of positive words that both tests share", percent=True)
    '100 %'
    """
    found = [each for each in load_printed_values(audit) if each.measure == measure and model in ("", each.model)]
    if not found:
        raise DataError(f"published/{audit}.csv has no {measure!r} of {model or 'any model'!r}")
    values = [f"{Decimal(each.printed).scaleb(2):f} %" if percent else each.printed for each in found]
    if len(values) == 1:
        return values[0]
    return ", ".join(f"{value} ({each.model})" for value, each in zip(values, found, strict=True))
