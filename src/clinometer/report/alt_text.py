"""What a chart shows, in words and numbers, for readers who do not see it.

`assets/charts.js` writes the same when the reader chooses other rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from clinometer.report.plot_data import ESTIMATE, PlotData
from clinometer.report.rounding import estimate_text, interval_text, label_text
from clinometer.types import Figure, Finding

MOST_POINTS = 12  # that are read out one by one


def alt_text(figure: Figure, data: PlotData) -> str:
    """Return the title of a chart and the numbers with which it opens: all of few, the range of many."""
    choice = {menu: figure.opens[menu] for menu in figure.menus if menu in figure.opens}
    rows = [row for row in data.rows if all(row.labels[menu] == value for menu, value in choice.items())]
    chosen = ", ".join(f"{menu.replace('_', ' ')} {label_text(value)}" for menu, value in choice.items())
    return f"{figure.title}{f' ({chosen})' if chosen else ''}. {_told(rows, told_labels(figure, data))}"


def told_labels(figure: Figure, data: PlotData) -> tuple[str, ...]:
    """Return the labels that tell the points of a chart apart."""
    drawn = (figure.row, figure.column, figure.y, figure.x, figure.color, figure.text)
    return tuple(dict.fromkeys(name for name in drawn if name and name != ESTIMATE and name in data.labels))


def _told(rows: Sequence[Finding], names: Sequence[str]) -> str:
    if not rows:
        return "Nothing to draw."
    if len(rows) <= MOST_POINTS:
        return "; ".join(_point(row, names) for row in rows) + "."
    ordered = sorted(rows, key=lambda row: row.estimate)
    return (
        f"{len(rows)} points, from {_point(ordered[0], names)} to {_point(ordered[-1], names)}; "
        f"half of them are below {estimate_text(ordered[len(rows) // 2].estimate)}."
    )


def _point(row: Finding, names: Sequence[str]) -> str:
    reach = interval_text(row.low, row.high)
    of = ", ".join(label_text(row.labels[name]) for name in names)
    return f"{of}: {estimate_text(row.estimate)}{f' {reach}' if reach != '–' else ''}"
