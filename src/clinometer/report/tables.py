"""Turns a finding table into what the page shows: columns, cells as text, and raw values for the browser.

The raw values are on the page once, column by column; its tables and charts read the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from clinometer.report.packing import Packable, packed
from clinometer.report.rounding import (
    count_text,
    estimate_text,
    interval_text,
    json_number,
    label_text,
    probability_text,
)
from clinometer.types import Finding, FindingTable

FOLDED = 12  # how many rows are shown before the reader asks for more …
UNSCRIPTED = 5  # … and without a script, unless a verdict rests on the table

Kind = Literal["label", "estimate", "interval", "probability", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table in the report; `assets/findings.js` reads the same kinds and fields."""

    title: str
    kind: Kind
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell: the text shown, and the raw value behind it."""

    text: str
    raw: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A finding table, ready for the page."""

    columns: tuple[Column, ...]
    first: tuple[tuple[Cell, ...], ...]
    data: dict[str, Any]  # for the browser: all values, unrounded
    total: int
    absent: tuple[str, ...]  # columns in which nothing was computed


def table_view(table: FindingTable, *, rows_shown: int = FOLDED) -> TableView:
    """Lay out the table; columns in which nothing was computed are named instead of shown.

    `rows_shown` are on the page as they are, the others only as data for the browser.
    """
    rows = table.rows
    optional = {
        Column(title="interval", kind="interval", field=""): any(
            not math.isnan(end) for row in rows for end in (row.low, row.high)
        ),
        Column(title="p", kind="probability", field="p"): any(not math.isnan(row.p) for row in rows),
        Column(title="q", kind="probability", field="q"): any(not math.isnan(row.q) for row in rows),
    }
    columns = (
        *(
            Column(title=name.replace("_", " "), kind="label", field=name)
            for name in (rows[0].labels if rows else ())
        ),
        Column(title="estimate", kind="estimate", field="estimate"),
        *(column for column, computed in optional.items() if computed),
        Column(title="n", kind="count", field="n"),
    )
    return TableView(
        columns=columns,
        first=tuple(tuple(_cell(row, column) for column in columns) for row in rows[:rows_shown]),
        data={
            "size": len(rows),
            "folded": FOLDED,
            "columns": [{"kind": column.kind, **_values(rows, column)} for column in columns],
        },
        total=len(rows),
        absent=tuple(column.title for column, computed in optional.items() if rows and not computed),
    )


def _cell(row: Finding, column: Column) -> Cell:
    kind = column.kind
    match kind:
        case "label":
            return Cell(text=label_text(row.labels[column.field]), raw="", kind=kind)
        case "estimate":
            return Cell(text=estimate_text(row.estimate), raw=_raw(row.estimate), kind=kind)
        case "interval":
            return Cell(text=interval_text(row.low, row.high), raw=f"{_raw(row.low)}, {_raw(row.high)}", kind=kind)
        case "probability":
            value: float = getattr(row, column.field)
            return Cell(text=probability_text(value), raw=_raw(value), kind=kind)
        case "count":
            return Cell(text=count_text(row.n), raw=str(row.n), kind=kind)


def _raw(value: float) -> str:
    return "not computed" if math.isnan(value) else repr(value)


def _values(rows: Sequence[Finding], column: Column) -> dict[str, Any]:
    if column.kind == "label":
        return {"label": packed([_json(row.labels[column.field]) for row in rows])}
    fields = ("low", "high") if column.kind == "interval" else (column.field,)
    return {field: packed([_json(getattr(row, field)) for row in rows]) for field in fields}


def _json(value: str | int | float) -> Packable:
    if not isinstance(value, float):
        return value
    return int(value) if value.is_integer() and abs(value) < 1e15 else json_number(value)
