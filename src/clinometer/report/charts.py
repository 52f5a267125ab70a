"""Draws the chart that a `Figure` describes, as a Vega-Lite specification built with Altair."""

from __future__ import annotations

import math
import textwrap
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import altair as alt

from clinometer.report.colours import DIVERGING, SEQUENTIAL, Colours
from clinometer.report.plot_data import ESTIMATE, LabelValue, PlotData, plot_data
from clinometer.report.rounding import MISSING, json_number, label_text
from clinometer.types import Figure, FindingTable

TALL = 40  # from so many rows on, the axis stands at the top, where the reader starts
NUMBERED_CELLS = 600  # a heat map that shows no more cells than these has the numbers in them, if they are wide
NUMBERED_ACROSS = 12  # … which on paper they are when no more than these lie side by side
BEADS = 400  # a line with more points than these is drawn without them
FACET = 220  # pixels of a panel, before the page fits it to its width
LONGEST_LABEL, LONGEST_ENTRY, LONGEST_HEADER = (
    240,
    200,
    260,
)  # pixels of a name at an axis, in the legend, above a panel
LONGEST_TITLE = 70  # a table title longer than this is no title of an axis
LETTER = 7  # pixels that a letter of a title takes
WIDE_LETTER = 8.4  # … and one in a wide font, by which names are cut before Vega cuts off their end
NAMES = ("model", "base")  # labels whose long values differ at either end: where room is short, the middle goes
STEP = {"heatmap": 24, "bars": 20, "intervals": 19, "lines": 20, "scatter": 20}  # pixels for each row of names


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """A label by whose value the reader chooses the rows that are drawn."""

    title: str
    label: int  # which label of the table it is
    options: tuple[str, ...]


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
            "menus": [{"title": menu.title, "label": menu.label, "options": menu.options} for menu in self.menus],
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
class _Painter:
    figure: Figure
    only: str  # to which value of a label all panels belong
    data: PlotData
    measure: str  # what the estimate is, in words
    colours: Colours
    width: int | None
    at_once: dict[str, int]  # how many names an axis shows at most
    crowded: bool  # colours stand side by side

    # ---- the whole ---------------------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        whole = alt.layer(*self.layers()).properties(**self.size())
        facets = {
            name: channel(
                f"{self.data.field(label)}:N",
                title=self.title(label) + (f" ({self.only})" if self.only else ""),
                sort=self.order(label),
                header=alt.Header(**header, **_shortened(label, "header")),
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
        room = {"axis": LONGEST_LABEL, "legend": LONGEST_ENTRY}
        room["header"] = min(self.panel_width or FACET, LONGEST_HEADER)
        spec["params"] = [
            {"name": f"{place}_letters", "value": int(pixels // WIDE_LETTER)} for place, pixels in room.items()
        ]
        spec["config"] = _config(self.colours)
        if self.width:
            spec["config"]["legend"]["columns"] = max(1, self.width // self.legend_entry())
        return spec

    def menus(self) -> tuple[Menu, ...]:
        return tuple(
            Menu(
                title=self.title(name),
                label=self.data.labels.index(name),
                options=tuple(label_text(value) for value in self.data.values[name]),
            )
            for name in self.figure.menus
            if name in self.data.values  # a table without rows has no labels
        )

    def size(self) -> dict[str, Any]:
        faceted = bool(self.figure.row or self.figure.column)
        # the page fits panels to its width
        width: int | str = self.panel_width or (FACET if faceted else "container")
        if self.figure.y in self.data.number_lines:
            return {"width": width, "height": self.ruler_height}
        return {"width": width, "height": alt.Step(self.step, **{"for": "position"})}

    @property
    def step(self) -> int:
        """The pixels for each name down the chart."""
        side_by_side = len(self.data.values[self.figure.color]) if "yOffset" in self.offset() else 1
        return max(15 if self.tall else STEP[self.figure.mark], 9 * side_by_side + 6)

    @property
    def panel_width(self) -> int:
        """The pixels of one panel on paper; 0 on the page, which knows them when it draws."""
        if not self.width or not self.figure.column:
            return self.width or 0
        return max(120, self.width // len(self.data.values[self.figure.column]))

    @property
    def ruler_height(self) -> int:
        if not (self.figure.row or self.figure.column):
            return 300
        return 240 if self.figure.mark == "scatter" else 180

    def gutter(self) -> int:
        if self.figure.y in self.data.number_lines or not self.data.rows:
            return 40
        return 20 + LETTER * max(len(label_text(value)) for value in self.data.values[self.figure.y])

    def legend_entry(self) -> int:
        names = self.data.values.get(self.figure.color, ())
        return 35 + min(LONGEST_ENTRY, LETTER * max((len(label_text(name)) for name in names), default=0))

    @property
    def tall(self) -> bool:
        return self.at_once[self.figure.y] > TALL

    @property
    def upright(self) -> bool:
        """Whether the estimate goes up the page rather than along it."""
        return self.figure.y == ESTIMATE

    # ---- layers ------------------------------------------------------------------------------------------

    def layers(self) -> list[alt.Chart]:
        base = alt.Chart().encode(x=self.axis(alt.X, self.figure.x), y=self.axis(alt.Y, self.figure.y))
        match self.figure.mark:
            case "bars":
                return [*self.bars(base), *self.reference_line()]
            case "intervals":
                points = base.mark_point(tooltip=_ROW, filled=True, size=64, opacity=1)
                points = points.encode(color=self.colour(), **self.offset())
                return [*self.error_bars(base, self.colour()), points, *self.reference_line()]
            case "lines":
                return [*self.lines(base), *self.reference_line()]
            case "scatter":
                points = base.mark_point(tooltip=_ROW, filled=True, size=48, opacity=0.8)
                points = points.encode(color=self.colour(), **self.offset())
                measured = ESTIMATE in (self.figure.x, self.figure.y)
                behind = self.error_bars(base, self.colour(), opacity=0.35) if measured else []
                return [
                    *behind,
                    *self.joining_lines(base),
                    points,
                    *self.point_texts(base),
                    *self.reference_line(),
                ]
            case "heatmap":
                cells = base.mark_rect(tooltip=_ROW, stroke=self.colours.grid, strokeWidth=0.5)
                return [cells.encode(color=self.colour()), *self.cell_numbers(base)]

    def bars(self, base: alt.Chart) -> list[alt.Chart]:
        bars = base.mark_bar(tooltip=_ROW, opacity=0.85, cornerRadiusEnd=2).encode(
            color=self.colour(), **self.offset()
        )
        if self.figure.reference is not None:  # a bar shows the way from "no lean"
            bars = bars.encode(**{"y2" if self.upright else "x2": alt.datum(self.figure.reference)})
        return [bars, *self.error_bars(base, alt.value(self.colours.ink))]

    def lines(self, base: alt.Chart) -> list[alt.Chart]:
        along = self.figure.x if self.upright else self.figure.y
        ruler = along in self.data.number_lines
        opacity = 1 if len(self.data.rows) <= BEADS else 0  # unseen points still answer to the pointer
        order = alt.Order(f"{self.data.field(along) if ruler else self.data.order_field(along)}:Q")
        return [
            *(self.band(base) if ruler else self.error_bars(base, self.colour(), aside=False)),
            base.mark_line(strokeWidth=2).encode(color=self.colour(), order=order),
            base.mark_point(tooltip=_ROW, filled=True, size=36, opacity=opacity).encode(color=self.colour()),
        ]

    def joining_lines(self, base: alt.Chart) -> list[alt.Chart]:
        if not self.figure.joined:
            return []
        order = alt.Order(f"{self.data.order_field(self.figure.joined)}:Q")
        return [base.mark_line(strokeWidth=1.4, opacity=0.6).encode(color=self.colour(), order=order)]

    def point_texts(self, base: alt.Chart) -> list[alt.Chart]:
        """Return what is written at the points; a label that is missing there is not."""
        if not self.figure.text:
            return []
        field = self.data.field(self.figure.text)
        known = base.transform_filter(f"datum.{field} != '{MISSING}'")
        if self.figure.color in ("", ESTIMATE):
            return [self.texts(known, field, dy=-6)]
        # of two colours one has its texts above the points and one below: points of both may lie together
        turn = f"datum.{self.data.order_field(self.figure.color)} % 2"
        return [self.texts(known.transform_filter(f"{turn} == {i}"), field, dy=dy) for i, dy in ((0, 13), (1, -6))]

    def texts(self, base: alt.Chart, field: str, *, dy: int) -> alt.Chart:
        text = base.mark_text(fontSize=10.5, align="left", dx=6, dy=dy, color=self.colours.ink, tooltip=_ROW)
        return text.encode(text=f"{field}:N")

    def from_low_to_high(self, base: alt.Chart) -> list[alt.Chart]:
        """Return what reaches over the intervals; nothing where no row has one: an axis without a number warns."""
        if not any(math.isfinite(row.low) and math.isfinite(row.high) for row in self.data.rows):
            return []
        whole = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        if self.upright:
            return [whole.encode(y=self.axis(alt.Y, ESTIMATE, field="low"), y2="high:Q")]
        return [whole.encode(x=self.axis(alt.X, ESTIMATE, field="low"), x2="high:Q")]

    def error_bars(
        self, base: alt.Chart, colour: alt.Color | dict[str, Any], *, opacity: float = 0.9, aside: bool = True
    ) -> list[alt.Chart]:
        return [
            bars.mark_rule(strokeWidth=1.6, opacity=opacity).encode(
                color=colour, **(self.offset() if aside else {})
            )
            for bars in self.from_low_to_high(base)
        ]

    def band(self, base: alt.Chart) -> list[alt.Chart]:
        return [area.mark_area(opacity=0.18).encode(color=self.colour()) for area in self.from_low_to_high(base)]

    def reference_line(self) -> list[alt.Chart]:
        if self.figure.reference is None or ESTIMATE not in (self.figure.x, self.figure.y):
            return []
        where = {"y" if self.upright else "x": alt.datum(self.figure.reference)}
        once = alt.Chart(alt.InlineData(values=[{}]))  # one line, not one for each row
        return [once.mark_rule(strokeDash=[5, 4], strokeWidth=1.2, color=self.colours.faint).encode(**where)]

    def cell_numbers(self, base: alt.Chart) -> list[alt.Chart]:
        """Return the numbers in the cells of a heat map; the page's script drops them where they are tight."""
        tight = len(self.data.rows) > NUMBERED_CELLS or self.at_once[self.figure.x] > NUMBERED_ACROSS
        if self.width and tight:
            return []
        low, high = self.colour_range()
        dark = f"datum.{ESTIMATE} > {low + 0.6 * (high - low)!r}"
        if self.figure.reference is not None:
            dark = f"abs(datum.{ESTIMATE} - {low + 0.5 * (high - low)!r}) > {0.36 * (high - low)!r}"
        numbers = base.transform_calculate(shown=_TWO_DECIMALS if high - low >= 0.2 else _THREE_DIGITS)
        ink = alt.condition(dark, alt.value("#ffffff"), alt.value("#1c1f24"))
        return [numbers.mark_text(fontSize=10.5, tooltip=_ROW).encode(text="shown:N", color=ink)]

    # ---- encodings ---------------------------------------------------------------------------------------

    def title(self, name: str) -> str:
        if name == ESTIMATE:
            measure = self.figure.measure or self.measure
            return measure if len(measure) <= LONGEST_TITLE else ESTIMATE
        return name.replace("_", " ")

    def order(self, name: str) -> alt.EncodingSortField:
        return alt.EncodingSortField(field=self.data.order_field(name), op="min", order="ascending")

    def axis(self, channel: type[alt.X | alt.Y], name: str, *, field: str = "") -> alt.X | alt.Y:
        across = channel is alt.X
        side = {"orient": "top"} if across and self.tall else {}
        if name in self.data.number_lines:
            from_zero = self.figure.mark == "bars" and self.figure.reference is None
            turned = {"reverse": True} if name == self.figure.reversed else {}
            title, length = self.title(name), self.panel_width if across else self.ruler_height
            return channel(
                f"{field or self.data.field(name)}:Q",
                title=textwrap.wrap(title, length // LETTER) if length else title,
                scale=alt.Scale(zero=from_zero, **turned),
                axis=alt.Axis(tickCount=min(7, length // 50) if across and length else 7, **side),
            )
        # of rows of panels that are too low for it, the titles would run into each other
        low = not across and bool(self.figure.row) and self.at_once[name] * self.step < LETTER * len(name)
        return channel(
            f"{self.data.field(name)}:N",
            title=None if low else self.title(name),
            sort=self.order(name),
            scale=alt.Scale(padding=0) if self.figure.mark == "heatmap" else alt.Scale(),
            axis=alt.Axis(
                labelAngle=-40 if across and self.at_once[name] > 4 else 0,
                **side,
                **_shortened(name, "axis"),
            ),
        )

    def offset(self) -> dict[str, alt.XOffset | alt.YOffset]:
        """Return what puts the colours of one category side by side."""
        if not self.crowded:
            return {}
        name = self.figure.color
        channel = alt.XOffset if self.upright else alt.YOffset
        side = channel(f"{self.data.field(name)}:N", sort=self.order(name))
        return {"xOffset" if self.upright else "yOffset": side}

    def colour(self) -> alt.Color | dict[str, Any]:
        name = self.figure.color
        if self.figure.mark == "heatmap" or name == ESTIMATE:
            return self.colour_by_estimate()
        if not name:
            return alt.value(self.colours.palette[0])
        names = [label_text(value) for value in self.data.values[name]]
        place = {value: i for i, value in enumerate(dict.fromkeys((*self.figure.colors, *names)))}
        palette = self.colours.palette
        return alt.Color(
            f"{self.data.field(name)}:N",
            title=self.title(name),
            sort=self.order(name),
            legend=alt.Legend(**_shortened(name, "legend")),
            # the domain is named, so that a colour keeps its meaning when a menu changes the rows
            scale=alt.Scale(domain=names, range=[palette[place[value] % len(palette)] for value in names]),
        )

    def colour_by_estimate(self) -> alt.Color:
        low, high = self.colour_range()
        hues = SEQUENTIAL if self.figure.reference is None else DIVERGING
        return alt.Color(
            f"{ESTIMATE}:Q",
            title=self.title(ESTIMATE),
            scale=alt.Scale(domain=[low, high], range=list(hues), interpolate="rgb"),
            legend=alt.Legend(gradientLength=220, gradientThickness=10),
        )

    def colour_range(self) -> tuple[float, float]:
        """Return the ends of the colour scale; where "no lean" is known it lies in the middle."""
        estimates = [row.estimate for row in self.data.rows]
        if self.figure.reference is None:
            low, high = min(estimates), max(estimates)
            return (low, high) if low < high else (low - 0.5, high + 0.5)
        reach = max(abs(value - self.figure.reference) for value in estimates) or 1.0
        return self.figure.reference - reach, self.figure.reference + reach


_ROW = alt.TooltipContent("data")  # the page's own script shows the whole row

# Numbers in cells, as expressions, so that they are no part of the data; the second as `rounding.estimate_text`.
_TWO_DECIMALS = f"format(datum.{ESTIMATE}, '.2f')"
_THREE_DIGITS = (
    f"datum.{ESTIMATE} == 0 ? '0' : abs(datum.{ESTIMATE}) >= 100 ? format(datum.{ESTIMATE}, '.0f') : "
    f"abs(datum.{ESTIMATE}) < 0.001 ? replace(format(datum.{ESTIMATE}, '.2e'), 'e-', 'e−') : "
    f"format(datum.{ESTIMATE}, '.3r')"
)


def _shortened(label: str, place: str) -> dict[str, Any]:
    """Return what cuts the middle out of long names of models, so that Vega need not cut off their end.

    `assets/charts.js` fits how many letters stay.
    """
    if label not in NAMES:
        return {}
    most, name = f"{place}_letters", "datum.label"
    ends = f"slice({name}, 0, floor({most} / 3)) + '…' + slice({name}, floor({most} / 3) + 1 - {most})"
    return {"labelExpr": f"length({name}) > {most} ? {ends} : {name}", "labelLimit": 0}


def _config(colours: Colours) -> dict[str, Any]:
    words = {"labelColor": colours.ink, "titleColor": colours.ink, "titleFontWeight": 600}
    return {
        "background": colours.paper,
        "aria": False,  # Vega-Lite would write titles, which are foreign text, into expressions
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
        "axis": {
            **words,
            "gridColor": colours.grid,
            "domainColor": colours.faint,
            "tickColor": colours.faint,
            "labelFontSize": 11.5,
            "titleFontSize": 12,
            "labelLimit": LONGEST_LABEL,
            "maxExtent": 300,  # above the limit of labels, or the title is written over them
            "titlePadding": 8,
        },
        "axisBand": {"grid": False, "domain": False, "ticks": False, "labelPadding": 6},
        "legend": {
            **words,
            "orient": "top",
            "labelFontSize": 11.5,
            "labelLimit": LONGEST_ENTRY,
            "titleLimit": 480,
            "symbolSize": 90,
            "symbolOpacity": 1,
        },
        "header": {
            **words,
            "labelFontSize": 12,
            "labelFontWeight": 600,
            "labelLimit": LONGEST_HEADER,
            "titlePadding": 2,
        },
        "view": {"stroke": None},
        "scale": {"bandPaddingInner": 0.25},
    }
