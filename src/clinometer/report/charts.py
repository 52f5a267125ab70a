"""Draws the chart that a `Figure` describes, as a Vega-Lite specification built with Altair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt

from clinometer.errors import InputError, nearest
from clinometer.report.chart_style import config, letters, shortened
from clinometer.report.colours import PAPER, Colours
from clinometer.report.marks import NUMBERED_CELLS, Marks
from clinometer.report.plot_data import ESTIMATE, LabelValue, PlotData, plot_data
from clinometer.report.rounding import json_number, label_text
from clinometer.types import Figure, FindingTable

_FACET = 220  # pixels of a panel, before the page fits it to its width


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """A label by whose value the reader chooses the rows that are drawn."""

    title: str
    label: int  # which label of the table it is
    options: tuple[str, ...]
    opens: int = 0  # which option is chosen before the reader chooses


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart ready to embed. It draws rows named "rows", which `whole` or the page's script put in."""

    spec: dict[str, Any]  # without rows; empty when there is nothing to draw
    data: PlotData
    filters: dict[str, str | int | float]
    menus: tuple[Menu, ...]
    across: str  # the label whose values are names along x, or "" …
    down: str  # … and along y
    drawn: int
    columns: int  # facets side by side; 0: a single panel
    gutter: int  # the width in pixels that the labels of the vertical axis want …
    legend_entry: int  # … and that the longest name in the legend wants

    def whole(self) -> dict[str, Any]:
        """Return the specification with its rows, for those who have no page around it."""
        return {**self.spec, "datasets": {**self.spec.get("datasets", {}), "rows": self.data.records()}}

    def for_page(self, table: str) -> dict[str, Any]:
        """Return what `assets/charts.js` reads; the rows are in the data of the table with that id."""
        place = {name: i for i, name in enumerate(self.data.labels)}
        return {
            "spec": self.spec,
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
        }


def chart(figure: Figure, table: FindingTable, *, colours: Colours, width: int | None = None) -> Chart:
    """Draw the figure from its table; without a width the chart takes that of the element it stands in."""
    data = plot_data(figure, table)
    figure, only = _without_lone_row(figure, data)
    painter = _Painter(
        figure=figure,
        only=only,
        data=data,
        measure=table.title,
        colours=colours,
        width=width,
        at_once={name: _most_at_once(name, figure, data) for name in (figure.x, figure.y)},
        crowded=_is_crowded(figure, data),
    )
    names = {name: "" if name in data.number_lines else name for name in (figure.x, figure.y)}
    return Chart(
        spec=painter.spec() if data.rows else {},
        data=data,
        filters=dict(figure.filters),
        menus=painter.menus(),
        across=names[figure.x],
        down=names[figure.y],
        drawn=len(data.rows),
        columns=len(data.values[figure.column]) if figure.column and data.rows else int(bool(figure.row)),
        gutter=painter.gutter(),
        legend_entry=painter.legend_entry(),
    )


def altair_chart(
    figure: Figure, table: FindingTable, *, choices: Mapping[str, LabelValue] | None = None, width: int = 600
) -> Any:
    """Return the figure as an Altair chart with its rows; `choices` choose where the page has menus.

    Without a choice a menu shows the value at which it opens.
    """
    values = plot_data(figure, table).values
    for menu, value in (choices or {}).items():
        if menu not in figure.menus:
            raise InputError(f"figure {figure.name!r} has no choice of {menu!r}; {nearest(menu, figure.menus)}")
        if value not in values.get(menu, ()):
            known = ", ".join(map(repr, values.get(menu, ())))
            raise InputError(f"figure {figure.name!r} has no {menu} = {value!r}; it has {known or 'no rows'}")
    first = {menu: values[menu][_opening(figure, menu, values)] for menu in figure.menus if values.get(menu)}
    chosen = replace(figure, filters={**figure.filters, **first, **(choices or {})}, menus=())
    drawn = chart(chosen, table, colours=PAPER, width=width)
    if not drawn.drawn:
        raise InputError(
            f"figure {figure.name!r} has nothing to draw: no row of table {table.name!r} has an estimate"
        )
    return alt.Chart.from_dict(drawn.whole())


def _opening(figure: Figure, menu: str, values: Mapping[str, Sequence[LabelValue]]) -> int:
    """Return the place of the value at which a menu opens: the figure's choice, or the first."""
    offered = list(values[menu])
    return offered.index(figure.opens[menu]) if figure.opens.get(menu) in offered else 0


def _without_lone_row(figure: Figure, data: PlotData) -> tuple[Figure, str]:
    """Make of a single row of panels no row, and return its name where the panels say nothing of it."""
    if not figure.row or not data.rows or len(data.values[figure.row]) > 1:
        return figure, ""
    only = label_text(data.values[figure.row][0]) if figure.column else ""
    return replace(figure, row="", column=figure.column or figure.row), only


def _most_at_once(name: str, figure: Figure, data: PlotData) -> int:
    """Return how many values of a label one choice of the menus shows at most; of a ruler: none."""
    if name in data.number_lines:
        return 0
    seen: dict[tuple[LabelValue, ...], set[LabelValue]] = defaultdict(set)
    for row in data.rows:
        seen[tuple(row.labels[menu] for menu in figure.menus)].add(row.labels[name])
    return max((len(values) for values in seen.values()), default=0)


def _is_crowded(figure: Figure, data: PlotData) -> bool:
    """Tell whether some place along the axis of names has more than one colour, so that they must stand aside."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Painter(Marks):
    """The whole of one figure."""

    def spec(self) -> dict[str, Any]:
        whole = alt.layer(*self.layers()).properties(**self.size())
        facets = {
            name: channel(
                f"{self.data.field(label)}:N",
                title=self.title(label) + (f" ({self.only})" if self.only else ""),
                sort=self.order(label),
                header=alt.Header(**header, **shortened(label, "header")),
            )
            for name, label, channel, header in (
                # above its panels the name of a row has room; beside them it is cut off or covers the next one
                ("row", self.figure.row, alt.Row, {"labelOrient": "top", "labelAnchor": "start"}),
                ("column", self.figure.column, alt.Column, {}),
            )
            if label
        }
        if facets:
            whole = whole.facet(data=alt.NamedData("rows"), **facets)
        else:
            whole.data = alt.NamedData("rows")
        spec: dict[str, Any] = whole.to_dict(validate=False)
        spec["description"] = self.figure.title
        spec["params"] = letters(self.panel_width or _FACET)
        spec["config"] = config(self.colours)
        if self.width:
            spec["config"]["legend"]["columns"] = max(1, self.width // self.legend_entry())
        return spec

    def menus(self) -> tuple[Menu, ...]:
        return tuple(
            Menu(
                title=self.title(name),
                label=self.data.labels.index(name),
                options=tuple(label_text(value) for value in self.data.values[name]),
                opens=_opening(self.figure, name, self.data.values),
            )
            for name in self.figure.menus
            if name in self.data.values  # a table without rows has no labels
        )

    def size(self) -> dict[str, Any]:
        faceted = bool(self.figure.row or self.figure.column)
        # the page fits panels to its width
        width: int | str = self.panel_width or (_FACET if faceted else "container")
        if self.figure.y in self.data.number_lines:
            return {"width": width, "height": self.ruler_height}
        return {"width": width, "height": alt.Step(self.step, **{"for": "position"})}
