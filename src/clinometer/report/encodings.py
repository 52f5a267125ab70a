"""What stands for what in a chart: along which axis, in which colour, how large."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import altair as alt

from clinometer.report.chart_style import LETTER, LONGEST_ENTRY, shortened
from clinometer.report.colours import DIVERGING, SEQUENTIAL, Colours
from clinometer.report.plot_data import ESTIMATE, PlotData
from clinometer.report.rounding import label_text
from clinometer.types import Figure

_TALL = 40  # from so many rows on, the axis stands at the top, where the reader starts
_LONGEST_TITLE = 70  # a table title longer than this is no title of an axis
_STEP = {"heatmap": 24, "bars": 20, "intervals": 19, "lines": 20, "scatter": 20}  # pixels for each row of names


@dataclass(frozen=True, slots=True, kw_only=True)
class Encodings:
    """The axes, colours and sizes of one figure."""

    figure: Figure
    only: str  # to which value of a label all panels belong
    data: PlotData
    measure: str  # what the estimate is, in words
    colours: Colours
    width: int | None
    at_once: dict[str, int]  # how many names an axis shows at most
    crowded: bool  # colours stand side by side

    @property
    def step(self) -> int:
        """The pixels for each name down the chart."""
        side_by_side = len(self.data.values[self.figure.color]) if "yOffset" in self.offset() else 1
        return max(15 if self.tall else _STEP[self.figure.mark], 9 * side_by_side + 6)

    @property
    def panel_width(self) -> int:
        """The pixels of one panel on paper; 0 on the page, which knows them when it draws."""
        if not self.width or not self.figure.column:
            return self.width or 0
        return max(120, self.width // len(self.data.values[self.figure.column]))

    @property
    def ruler_height(self) -> int:
        """The pixels of a vertical axis of numbers."""
        if not (self.figure.row or self.figure.column):
            return 300
        return 240 if self.figure.mark == "scatter" else 180

    def gutter(self) -> int:
        """Return the width in pixels that the labels of the vertical axis want."""
        if self.figure.y in self.data.number_lines or not self.data.rows:
            return 40
        return 20 + LETTER * max(len(label_text(value)) for value in self.data.values[self.figure.y])

    def legend_entry(self) -> int:
        """Return the width in pixels that the longest name in the legend wants."""
        names = self.data.values.get(self.figure.color, ())
        return 35 + min(LONGEST_ENTRY, LETTER * max((len(label_text(name)) for name in names), default=0))

    @property
    def tall(self) -> bool:
        """Whether the chart is so high that its axis must stand at the top."""
        return self.at_once[self.figure.y] > _TALL

    @property
    def upright(self) -> bool:
        """Whether the estimate goes up the page rather than along it."""
        return self.figure.y == ESTIMATE

    def title(self, name: str) -> str:
        """Return a label, or what the estimate is, as a title."""
        if name == ESTIMATE:
            measure = self.figure.measure or self.measure
            return measure if len(measure) <= _LONGEST_TITLE else ESTIMATE
        return name.replace("_", " ")

    def order(self, name: str) -> alt.EncodingSortField:
        """Return the order in which the table first names the values of a label."""
        return alt.EncodingSortField(field=self.data.order_field(name), op="min", order="ascending")

    def axis(self, channel: type[alt.X | alt.Y], name: str, *, field: str = "") -> alt.X | alt.Y:
        """Return an axis: of numbers where a label or the estimate is a ruler, else of names."""
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
                **shortened(name, "axis"),
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
        """Return what the colour stands for."""
        name = self.figure.color
        if self.figure.mark == "heatmap" or name == ESTIMATE:
            return self._colour_by_estimate()
        if not name:
            return alt.value(self.colours.palette[0])
        names = [label_text(value) for value in self.data.values[name]]
        place = {value: i for i, value in enumerate(dict.fromkeys((*self.figure.colors, *names)))}
        palette = self.colours.palette
        return alt.Color(
            f"{self.data.field(name)}:N",
            title=self.title(name),
            sort=self.order(name),
            legend=alt.Legend(**shortened(name, "legend")),
            # the domain is named, so that a colour keeps its meaning when a menu changes the rows
            scale=alt.Scale(domain=names, range=[palette[place[value] % len(palette)] for value in names]),
        )

    def _colour_by_estimate(self) -> alt.Color:
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
