"""Turns a `Figure` and its table into a chart: for the page, for paper, or for a notebook."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import altair as alt

from clinometer.errors import InputError, nearest
from clinometer.plain import visible
from clinometer.report.alt_text import alt_text, told_labels
from clinometer.report.chart_style import PAPER, Colours
from clinometer.report.drawing import NUMBERED_CELLS, Drawing, Menu, opening_of
from clinometer.report.plot_data import ESTIMATE, LabelValue, PlotData, plot_data
from clinometer.report.rounding import json_number, label_text
from clinometer.types import Figure, Finding, FindingTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart ready to embed. It draws the data set "rows", which `whole` or the page's script fills in."""

    spec: dict[str, Any]  # without rows; empty when there is nothing to draw
    data: PlotData
    filters: dict[str, str | int | float]
    menus: tuple[Menu, ...]
    across: str  # the label whose values are names along x, or "" …
    down: str  # … and along y
    drawn: int
    sure: bool  # rows without an interval are not drawn
    told: tuple[str, ...]  # the labels that tell its points apart, for readers who do not see it …
    alt: str  # … and what they are told when it opens
    columns: int  # panels side by side; 0: a single one
    gutter: int  # the pixels that the labels of the vertical axis need …
    legend_entry: int  # … and that the longest name in the legend needs

    def whole(self) -> dict[str, Any]:
        """Return the specification with its rows, for use outside the page.

        Control characters in labels and titles are written out: what draws PNG and SVG cannot hold them.
        """
        datasets = {**self.spec.get("datasets", {}), "rows": self.data.records()}
        whole: dict[str, Any] = _visible({**self.spec, "datasets": datasets})
        return whole

    def for_page(self, table: str) -> dict[str, Any]:
        """Return what `assets/charts.js` reads; it takes the rows from the table with that id.

        How charts look is the same for all of them, and once on the page.
        """
        place = {name: i for i, name in enumerate(self.data.labels)}
        return {
            "spec": {name: part for name, part in self.spec.items() if name != "config"},
            "table": table,
            "labels": self.data.labels,
            "rulers": [place[name] for name in self.data.labels if name in self.data.number_lines],
            "filters": [
                [place[name], json_number(value) if isinstance(value, float) else value]
                for name, value in self.filters.items()
            ],
            "menus": [
                {"title": menu.title, "label": menu.label, "options": menu.options, "opens": menu.opens}
                for menu in self.menus
            ],
            "across": place.get(self.across, -1),
            "down": place.get(self.down, -1),
            "columns": self.columns,
            "gutter": self.gutter,
            "legend_entry": self.legend_entry,
            "numbered": NUMBERED_CELLS,
            "sure": self.sure,
            "told": [place[name] for name in self.told],
        }


def chart(figure: Figure, table: FindingTable, *, colours: Colours, width: int | None = None) -> Chart:
    """Draw the figure from its table; without a width the chart fills its element."""
    data = plot_data(figure, table)
    figure, only = _without_lone_row(figure, data)
    drawing = Drawing(
        figure=figure,
        only=only,
        data=data,
        measure=table.title,
        colours=colours,
        width=width,
        at_once={name: _most_at_once(name, figure, data) for name in (figure.x, figure.y)},
        crowded=_is_crowded(figure, data),
        holes=_panels(figure, data) < _possible_panels(figure, data),
    )
    names = {name: "" if name in data.number_lines else name for name in (figure.x, figure.y)}
    return Chart(
        spec=drawing.spec() if data.rows else {},
        data=data,
        filters=dict(figure.filters),
        menus=drawing.menus(),
        across=names[figure.x],
        down=names[figure.y],
        drawn=len(data.rows),
        sure=figure.sure,
        told=told_labels(figure, data),
        alt=alt_text(figure, data),
        columns=_columns(figure, data, holes=drawing.holes),
        gutter=drawing.gutter(),
        legend_entry=drawing.legend_entry(),
    )


def opened_at(figure: Figure, table: FindingTable, settings: Mapping[str, LabelValue]) -> Figure:
    """Return the figure with menus that open together where there is something to draw, nearest to `settings`.

    What the figure itself says comes first; `settings` are those of the row that the headline rests on.
    """
    data = plot_data(figure, table)
    if not figure.menus or not data.rows:
        return figure

    def fits(row: Finding) -> tuple[int, ...]:
        wanted = (figure.opens, settings)
        return tuple(sum(row.labels[menu] == each.get(menu, ...) for menu in figure.menus) for each in wanted)

    best = max(data.rows, key=fits)  # the first of several
    return replace(figure, opens={menu: best.labels[menu] for menu in figure.menus})


def altair_chart(
    figure: Figure, table: FindingTable, *, choices: Mapping[str, LabelValue] | None = None, width: int = 600
) -> Any:
    """Return the figure as an Altair chart with its rows.

    `choices` choose where the page has menus; a menu without a choice shows the value at which it opens.
    """
    values = plot_data(figure, table).values
    for menu, value in (choices or {}).items():
        if menu not in figure.menus:
            raise InputError(f"figure {figure.name!r} has no choice of {menu!r}; {nearest(menu, figure.menus)}")
        if value not in values.get(menu, ()):
            known = ", ".join(map(repr, values.get(menu, ())))
            raise InputError(f"figure {figure.name!r} has no {menu} = {value!r}; it has {known or 'no rows'}")
    first = {menu: values[menu][opening_of(figure, menu, values)] for menu in figure.menus if values.get(menu)}
    chosen = replace(figure, filters={**figure.filters, **first, **(choices or {})}, menus=())
    drawn = chart(chosen, table, colours=PAPER, width=width)
    if not drawn.drawn:
        raise InputError(
            f"figure {figure.name!r} has nothing to draw: no row of table {table.name!r} has an estimate"
        )
    return alt.Chart.from_dict(drawn.whole())


def _visible(value: Any) -> Any:
    """Write out the control characters of every text in a specification."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _visible(inner) for key, inner in value.items()}
    return [_visible(inner) for inner in value] if isinstance(value, list | tuple) else value


def _without_lone_row(figure: Figure, data: PlotData) -> tuple[Figure, str]:
    """Drop a row of panels that has only one value, and return that value if the panels do not show it."""
    if not figure.row or not data.rows or len(data.values[figure.row]) > 1:
        return figure, ""
    only = label_text(data.values[figure.row][0]) if figure.column else ""
    return replace(figure, row="", column=figure.column or figure.row), only


def _most_at_once(name: str, figure: Figure, data: PlotData) -> int:
    """Return how many values of a label are shown at once, at most; 0 for an axis of numbers."""
    if name in data.number_lines:
        return 0
    seen: dict[tuple[LabelValue, ...], set[LabelValue]] = defaultdict(set)
    for row in data.rows:
        seen[tuple(row.labels[menu] for menu in figure.menus)].add(row.labels[name])
    return max((len(values) for values in seen.values()), default=0)


def _panels(figure: Figure, data: PlotData) -> int:
    """Return how many panels have something to draw, in rows and columns of them."""
    if not (figure.row and figure.column):
        return 0
    return len({(row.labels[figure.row], row.labels[figure.column]) for row in data.rows})


def _possible_panels(figure: Figure, data: PlotData) -> int:
    if not (figure.row and figure.column) or not data.rows:
        return 0
    drawn = [{row.labels[name] for row in data.rows} for name in (figure.row, figure.column)]
    return len(drawn[0]) * len(drawn[1])


def _columns(figure: Figure, data: PlotData, *, holes: bool) -> int:
    """Return how many panels are side by side; 0: a single one."""
    if holes:
        return _panels(figure, data)
    return len(data.values[figure.column]) if figure.column and data.rows else int(bool(figure.row))


def _is_crowded(figure: Figure, data: PlotData) -> bool:
    """Tell whether some name along the axis has more than one colour, so that they are drawn side by side."""
    category = figure.x if figure.y == ESTIMATE else figure.y
    if figure.color in ("", ESTIMATE, category) or category in data.number_lines:
        return False
    place = [name for name in (category, figure.row, figure.column, *figure.menus) if name]
    colour: dict[tuple[LabelValue, ...], LabelValue] = {}
    return any(
        colour.setdefault(tuple(row.labels[name] for name in place), row.labels[figure.color])
        != row.labels[figure.color]
        for row in data.rows
    )
