"""The rows behind a chart, with column names that are safe in Vega.

Label names and values come from models and users, so a label is never a field name or part of an expression: its
column is called `c0`, `c1`, …, its order of first appearance `o0`, `o1`, …, and its name appears only as a title.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clinometer.errors import RecordsError, nearest
from clinometer.report.rounding import label_text
from clinometer.types import Figure, Finding, FindingTable

ESTIMATE = "estimate"
NUMBERS = (ESTIMATE, "low", "high")

LabelValue = str | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotData:
    """What a figure draws."""

    labels: tuple[str, ...]
    rows: tuple[Finding, ...]  # those that can be drawn
    missing: int  # rows without an estimate, or without a number or an interval that the chart needs
    values: dict[str, tuple[LabelValue, ...]]  # label -> its values, in order of first appearance
    number_lines: frozenset[str]  # what is drawn along an axis of numbers: the estimate, and some labels

    def field(self, name: str) -> str:
        """Return the column of a label, or of the estimate."""
        return ESTIMATE if name == ESTIMATE else f"c{self.labels.index(name)}"

    def order_field(self, name: str) -> str:
        """Return the column that orders a label's values by first appearance."""
        return f"o{self.labels.index(name)}"

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as Vega reads them; a label that is not on an axis of numbers is text.

        `assets/charts.js` does the same from the data of the page's tables.
        """
        places = {name: {value: i for i, value in enumerate(values)} for name, values in self.values.items()}
        records = []
        for row in self.rows:
            record: dict[str, Any] = {}
            for i, name in enumerate(self.labels):
                value = row.labels[name]
                record[f"c{i}"] = value if name in self.number_lines else label_text(value)
                record[f"o{i}"] = places[name][value]
            record.update((name, _finite(getattr(row, name))) for name in NUMBERS)
            records.append(record)
        return records


def plot_data(figure: Figure, table: FindingTable) -> PlotData:
    """Choose the rows that a figure draws; raise RecordsError if it names what the table does not have."""
    labels = tuple(table.rows[0].labels) if table.rows else ()
    if table.rows:  # a table without rows has no labels to compare with
        _check(figure, table, labels)
    rows = filtered(figure, table)
    number_lines = {name for name in (figure.x, figure.y) if _is_number_line(figure, name, rows)}
    along = number_lines - {ESTIMATE}
    drawable = tuple(
        row
        for row in rows
        if all(map(math.isfinite, (row.estimate, *((row.low, row.high) if figure.sure else ()))))
        and all(math.isfinite(float(row.labels[name])) for name in along)
    )
    return PlotData(
        labels=labels,
        rows=drawable,
        missing=len(rows) - len(drawable),
        values={name: first_seen(rows, name) for name in labels},
        number_lines=frozenset(number_lines),
    )


def filtered(figure: Figure, table: FindingTable) -> tuple[Finding, ...]:
    """Return the rows of the table that the figure's filters keep."""
    return tuple(
        row for row in table.rows if all(row.labels.get(name) == value for name, value in figure.filters.items())
    )


def first_seen(rows: Sequence[Finding], label: str) -> tuple[LabelValue, ...]:
    """Return the values of a label in order of first appearance."""
    return tuple(dict.fromkeys(row.labels[label] for row in rows))


def _check(figure: Figure, table: FindingTable, labels: tuple[str, ...]) -> None:
    axes = [figure.x, figure.y]
    drawn = [*axes, figure.color, figure.row, figure.column, figure.text, figure.joined, figure.chance]
    drawn.append(figure.repeated)
    for name in [*drawn, *figure.filters, *figure.menus]:
        if name and name != ESTIMATE and name not in labels:
            raise RecordsError(
                f"figure {figure.name!r} draws {name!r}, which is not a label of table {table.name!r}: "
                f"{nearest(name, [*labels, ESTIMATE])}"
            )
    if figure.mark in ("bars", "intervals", "lines") and axes.count(ESTIMATE) != 1:
        raise RecordsError(
            f"figure {figure.name!r} draws {figure.mark} with x={figure.x!r} and y={figure.y!r}; "
            f"one of the two must be {ESTIMATE!r}"
        )
    if figure.reversed not in ("", *axes):
        raise RecordsError(
            f"figure {figure.name!r} reverses {figure.reversed!r}, which is on neither of its axes: "
            f"{nearest(figure.reversed, axes)}"
        )
    if figure.mark == "heatmap" and ESTIMATE in axes:
        raise RecordsError(
            f"figure {figure.name!r} draws a heatmap with {ESTIMATE!r} on an axis; the colour shows the "
            "estimate, x and y must be labels"
        )


def _is_number_line(figure: Figure, name: str, rows: Sequence[Finding]) -> bool:
    """Tell whether a label is drawn along an axis of numbers; without lines or points, its values are names."""
    if name == ESTIMATE:
        return True
    if figure.mark not in ("lines", "scatter"):
        return False
    return bool(rows) and all(isinstance(row.labels[name], int | float) for row in rows)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
