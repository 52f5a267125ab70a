"""Draws the chart that a `Figure` describes, as a Vega-Lite specification built with Altair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import altair as alt

from clinometer.report.colours import DIVERGING, SEQUENTIAL, Colours
from clinometer.report.plot_data import ESTIMATE, PlotData, plot_data
from clinometer.report.rounding import estimate_text, label_text
from clinometer.types import Figure, FindingTable

TALL = 40  # from so many rows on, the axis stands at the top, where the reader starts
NUMBERED_CELLS = 150  # a heat map with no more cells than these has the numbers in it
BEADS = 400  # a line with more points than these is drawn without them
LONGEST_TITLE = 70  # a table title longer than this is no title of an axis
STEP = {"heatmap": 24, "bars": 20, "intervals": 19, "lines": 20, "scatter": 20}  # pixels for each row of names


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """A label by whose value the reader chooses the rows that are drawn."""

    title: str
    order: str  # the field of a row that holds the place of its value among the options
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart ready to embed. Its rows are those of all choices; the page's script keeps the chosen ones."""

    spec: dict[str, Any]  # empty when there is nothing to draw
    menus: tuple[Menu, ...]
    labels: tuple[str, ...]  # the names of c0, c1, …
    drawn: int
    missing: int
    columns: int  # facets side by side; 0: a single panel
    gutter: int  # the width in pixels that the labels of the vertical axis want …
    legend_entry: int  # … and that the longest name in the legend wants


def chart(figure: Figure, table: FindingTable, *, colours: Colours, width: int | None = None) -> Chart:
    """Draw the figure from its table; without a width the chart takes that of the element it stands in."""
    data = plot_data(figure, table)
    painter = _Painter(figure=figure, data=data, measure=table.title, colours=colours, width=width)
    return Chart(
        spec=painter.spec() if data.rows else {},
        menus=painter.menus(),
        labels=data.labels,
        drawn=len(data.rows),
        missing=data.missing,
        columns=len(data.values[figure.column]) if figure.column and data.rows else int(bool(figure.row)),
        gutter=painter.gutter(),
        legend_entry=painter.legend_entry(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Painter:
    figure: Figure
    data: PlotData
    measure: str  # what the estimate is, in words
    colours: Colours
    width: int | None

    # ---- the whole ---------------------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        whole = alt.layer(*self.layers()).properties(**self.size())
        facets = {
            name: channel(f"{self.data.field(label)}:N", title=self.title(label), sort=self.order(label))
            for name, label, channel in (
                ("row", self.figure.row, alt.Row),
                ("column", self.figure.column, alt.Column),
            )
            if label
        }
        if facets:
            whole = whole.facet(data=alt.NamedData("rows"), **facets)
        else:
            whole.data = alt.NamedData("rows")
        spec: dict[str, Any] = whole.to_dict(validate=False)
        spec["description"] = self.figure.title
        spec["config"] = _config(self.colours)
        if self.width:
            spec["config"]["legend"]["columns"] = max(1, self.width // self.legend_entry())
        spec.setdefault("datasets", {})["rows"] = self.records()
        return spec

    def menus(self) -> tuple[Menu, ...]:
        return tuple(
            Menu(
                title=self.title(name),
                order=self.data.order_field(name),
                options=tuple(label_text(value) for value in self.data.values[name]),
            )
            for name in self.figure.menus
            if name in self.data.values  # a table without rows has no labels
        )

    def size(self) -> dict[str, Any]:
        faceted = bool(self.figure.row or self.figure.column)
        width: int | str = self.width or ("container" if not faceted else 220)  # the page fits facets to its width
        if self.width and self.figure.column:
            width = max(120, self.width // len(self.data.values[self.figure.column]))
        if self.figure.y in self.data.number_lines:
            return {"width": width, "height": 180 if faceted else 300}
        side_by_side = len(self.data.values[self.figure.color]) if "yOffset" in self.offset() else 1
        step = max(15 if self.tall else STEP[self.figure.mark], 9 * side_by_side + 6)
        return {"width": width, "height": alt.Step(step, **{"for": "position"})}

    def gutter(self) -> int:
        if self.figure.y in self.data.number_lines or not self.data.rows:
            return 40
        return 20 + 7 * max(len(label_text(value)) for value in self.data.values[self.figure.y])

    def legend_entry(self) -> int:
        names = self.data.values.get(self.figure.color, ())
        return 35 + min(200, 7 * max((len(label_text(name)) for name in names), default=0))

    @property
    def tall(self) -> bool:
        y = self.figure.y
        return y not in self.data.number_lines and len(self.data.values[y]) > TALL

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
                points = base.mark_point(tooltip=_ROW, filled=True, size=48, opacity=0.8).encode(
                    color=self.colour()
                )
                measured = ESTIMATE in (self.figure.x, self.figure.y)
                behind = self.error_bars(base, self.colour(), opacity=0.35) if measured else []
                return [*behind, points, *self.reference_line()]
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
            *(self.band(base) if ruler else self.error_bars(base, self.colour())),
            base.mark_line(strokeWidth=2).encode(color=self.colour(), order=order),
            base.mark_point(tooltip=_ROW, filled=True, size=36, opacity=opacity).encode(color=self.colour()),
        ]

    def from_low_to_high(self, base: alt.Chart) -> list[alt.Chart]:
        """Return what reaches over the intervals; nothing where no row has one: an axis without a number warns."""
        if not any(math.isfinite(row.low) and math.isfinite(row.high) for row in self.data.rows):
            return []
        whole = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        if self.upright:
            return [whole.encode(y=self.axis(alt.Y, ESTIMATE, field="low"), y2="high:Q")]
        return [whole.encode(x=self.axis(alt.X, ESTIMATE, field="low"), x2="high:Q")]

    def error_bars(
        self, base: alt.Chart, colour: alt.Color | dict[str, Any], *, opacity: float = 0.9
    ) -> list[alt.Chart]:
        return [
            bars.mark_rule(strokeWidth=1.6, opacity=opacity).encode(color=colour, **self.offset())
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
        if len(self.data.rows) > NUMBERED_CELLS or len(self.data.values[self.figure.x]) > 12:
            return []
        ink = alt.condition("datum.on_dark", alt.value("#ffffff"), alt.value("#1c1f24"))
        return [base.mark_text(fontSize=10.5, tooltip=_ROW).encode(text="shown:N", color=ink)]

    # ---- encodings ---------------------------------------------------------------------------------------

    def title(self, name: str) -> str:
        if name == ESTIMATE:
            return self.measure if len(self.measure) <= LONGEST_TITLE else ESTIMATE
        return name.replace("_", " ")

    def order(self, name: str) -> alt.EncodingSortField:
        return alt.EncodingSortField(field=self.data.order_field(name), op="min", order="ascending")

    def axis(self, channel: type[alt.X | alt.Y], name: str, *, field: str = "") -> alt.X | alt.Y:
        across = channel is alt.X
        side = {"orient": "top"} if across and self.tall else {}
        if name in self.data.number_lines:
            from_zero = self.figure.mark == "bars" and self.figure.reference is None
            return channel(
                f"{field or self.data.field(name)}:Q",
                title=self.title(name),
                scale=alt.Scale(zero=from_zero),
                axis=alt.Axis(tickCount=7, **side),
            )
        return channel(
            f"{self.data.field(name)}:N",
            title=self.title(name),
            sort=self.order(name),
            scale=alt.Scale(padding=0) if self.figure.mark == "heatmap" else alt.Scale(),
            axis=alt.Axis(labelAngle=-40 if across and len(self.data.values[name]) > 4 else 0, **side),
        )

    def offset(self) -> dict[str, alt.XOffset | alt.YOffset]:
        """Return what puts the colours of one category side by side."""
        name = self.figure.color
        category = self.figure.x if self.upright else self.figure.y
        if name in ("", ESTIMATE, category) or category in self.data.number_lines:
            return {}
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
        palette = self.colours.palette
        return alt.Color(
            f"{self.data.field(name)}:N",
            title=self.title(name),
            sort=self.order(name),
            # the domain is named, so that a colour keeps its meaning when a menu changes the rows
            scale=alt.Scale(domain=names, range=[palette[i % len(palette)] for i in range(len(names))]),
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

    def records(self) -> list[dict[str, Any]]:
        records = self.data.records()
        if self.figure.mark != "heatmap":
            return records
        low, high = self.colour_range()
        decimals_do = high - low >= 0.2
        for record in records:
            value = record[ESTIMATE]
            place = (value - low) / (high - low)
            record["shown"] = f"{value:z.2f}".replace("-", "−") if decimals_do else estimate_text(value)
            record["on_dark"] = place > 0.6 if self.figure.reference is None else abs(place - 0.5) > 0.36
        return records


_ROW = alt.TooltipContent("data")  # the page's own script shows the whole row


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
            "labelLimit": 240,
            "titlePadding": 8,
        },
        "axisBand": {"grid": False, "domain": False, "ticks": False, "labelPadding": 6},
        "legend": {
            **words,
            "orient": "top",
            "labelFontSize": 11.5,
            "labelLimit": 200,
            "symbolSize": 90,
            "symbolOpacity": 1,
        },
        "header": {**words, "labelFontSize": 12, "labelFontWeight": 600, "labelLimit": 200},
        "view": {"stroke": None},
        "scale": {"bandPaddingInner": 0.25},
    }
