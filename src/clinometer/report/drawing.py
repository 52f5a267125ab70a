"""Draws one figure with Altair: which label goes along which axis or into which colour, and with which marks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from clinometer.report.chart_style import (
    DASHES,
    DIVERGING,
    LETTER,
    LONGEST_ENTRY,
    SEQUENTIAL,
    SHAPES,
    Colours,
    config,
    letters,
    shortened,
    two_lines,
)
from clinometer.report.plot_data import ESTIMATE, LabelValue, PlotData
from clinometer.report.rounding import MISSING, label_text
from clinometer.types import Figure

_FACET = 220  # pixels of a panel, before the page fits it to its width
_TALL = 40  # with more rows than this, the axis is at the top, where the reader starts
_LONGEST_TITLE = 70  # a table title longer than this is not used as the title of an axis
_STEP = {"heatmap": 24, "bars": 20, "intervals": 19, "lines": 20, "scatter": 20}  # pixels per row of names
NUMBERED_CELLS = 600  # a heat map with at most this many cells shows numbers in them, if they are wide enough
_NUMBERED_ACROSS = 12  # … which on paper they are when at most this many are side by side
_BEADS = 400  # a line with more points than this is drawn without them

_ROW = alt.TooltipContent("data")  # the page's own script shows the whole row

# Numbers in cells, as expressions that need no extra data; the second rounds as `rounding.estimate_text` does.
_TWO_DECIMALS = f"format(datum.{ESTIMATE}, '.2f')"
_THREE_DIGITS = (
    f"datum.{ESTIMATE} == 0 ? '0' : abs(datum.{ESTIMATE}) >= 100 ? format(datum.{ESTIMATE}, '.0f') : "
    f"abs(datum.{ESTIMATE}) < 0.001 ? replace(format(datum.{ESTIMATE}, '.2e'), 'e-', 'e−') : "
    f"format(datum.{ESTIMATE}, '.3r')"
)


def opening_of(figure: Figure, menu: str, values: Mapping[str, Sequence[LabelValue]]) -> int:
    """Return the place of the value at which a menu opens: the figure's choice, or the first."""
    offered = list(values[menu])
    return offered.index(figure.opens[menu]) if figure.opens.get(menu) in offered else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """A label whose value the reader chooses, to see only its rows."""

    title: str
    label: int  # its position among the table's labels
    options: tuple[str, ...]
    opens: int = 0  # which option is chosen before the reader chooses


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Draws one figure: its sizes, axes, colours and marks."""

    figure: Figure
    only: str  # the value that all panels share, if they do not show it
    data: PlotData
    measure: str  # what the estimate is, in words
    colours: Colours
    width: int | None
    at_once: dict[str, int]  # how many names an axis shows at most
    crowded: bool  # several colours per name, side by side
    holes: bool = False  # rows and columns of panels of which some would be empty

    def spec(self) -> dict[str, Any]:
        """Return the Vega-Lite specification, without its rows."""
        whole = alt.layer(*self.layers()).properties(**self._size())
        facets = {
            name: channel(
                f"{self.data.field(label)}:N",
                title=" ".join(filter(None, (self.name_title(label), self.only))) or None,
                sort=self.order(label),
                header=alt.Header(**header, **shortened(label, "header")),
            )
            for name, label, channel, header in (
                # the name of a row has room above its panels; beside them it is cut off or covers the next one
                ("row", self.figure.row, alt.Row, {"labelOrient": "top", "labelAnchor": "start"}),
                ("column", self.figure.column, alt.Column, {}),
            )
            if label
        }
        if self.holes:  # one panel after the other, and none for what was not asked
            first, second = (self.data.field(name) for name in (self.figure.row, self.figure.column))
            places = (self.data.order_field(name) for name in (self.figure.row, self.figure.column))
            panel = alt.Column(
                "panel:N",
                title=None,
                sort=alt.EncodingSortField(field="place", op="min", order="ascending"),
                header=alt.Header(**two_lines()),
            )
            whole = whole.facet(data=alt.NamedData("rows"), column=panel).transform_calculate(
                panel=f"datum.{first} + '\\n' + datum.{second}",
                place="datum.{} * 1000 + datum.{}".format(*places),
            )
        elif facets:
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
        """Return the menus beside the chart."""
        return tuple(
            Menu(
                title=self.title(name),
                label=self.data.labels.index(name),
                options=tuple(label_text(value) for value in self.data.values[name]),
                opens=opening_of(self.figure, name, self.data.values),
            )
            for name in self.figure.menus
            if name in self.data.values  # a table without rows has no labels
        )

    def _size(self) -> dict[str, Any]:
        faceted = bool(self.figure.row or self.figure.column)
        width: int | str = self.panel_width or (_FACET if faceted else "container")  # the page adjusts panels
        if self.figure.y in self.data.number_lines:
            return {"width": width, "height": self.ruler_height}
        return {"width": width, "height": alt.Step(self.step, **{"for": "position"})}

    @property
    def step(self) -> int:
        """The pixels per name down the chart."""
        side_by_side = len(self.data.values[self.figure.color]) if "yOffset" in self.offset() else 1
        return max(15 if self.tall else _STEP[self.figure.mark], 9 * side_by_side + 6)

    @property
    def panel_width(self) -> int:
        """The pixels of one panel on paper; 0 on the page, which decides when it draws."""
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
        """Return the width in pixels that the labels of the vertical axis need."""
        if self.figure.y in self.data.number_lines or not self.data.rows:
            return 40
        return 20 + LETTER * max(len(label_text(value)) for value in self.data.values[self.figure.y])

    def legend_entry(self) -> int:
        """Return the width in pixels that the longest name in the legend needs."""
        names = self.data.values.get(self.figure.color, ())
        return 35 + min(LONGEST_ENTRY, LETTER * max((len(label_text(name)) for name in names), default=0))

    @property
    def tall(self) -> bool:
        """Whether the chart is so high that its axis must be at the top."""
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

    def name_title(self, name: str) -> str:
        """Return the title of an axis or of panels with names; "" where the names say it themselves.

        "builtin:masked" needs no "model" above it; 10 needs a "k".
        """
        return "" if all(isinstance(value, str) for value in self.data.values[name]) else self.title(name)

    def order(self, name: str) -> alt.EncodingSortField:
        """Return the order in which the table first names the values of a label."""
        return alt.EncodingSortField(field=self.data.order_field(name), op="min", order="ascending")

    def axis(self, channel: type[alt.X | alt.Y], name: str, *, field: str = "") -> alt.X | alt.Y:
        """Return an axis of numbers for the estimate and for labels that are numbers along it, else of names."""
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
        # in low panels below each other, the titles would overlap
        low = not across and bool(self.figure.row) and self.at_once[name] * self.step < LETTER * len(name)
        return channel(
            f"{self.data.field(name)}:N",
            title=None if low else self.name_title(name) or None,
            sort=self.order(name),
            scale=alt.Scale(padding=0) if self.figure.mark == "heatmap" else alt.Scale(),
            axis=alt.Axis(
                labelAngle=-40 if across and self.at_once[name] > 4 else 0,
                **side,
                **shortened(name, "axis"),
            ),
        )

    def offset(self) -> dict[str, alt.XOffset | alt.YOffset]:
        """Return the offset that puts the colours of one name side by side."""
        if not self.crowded:
            return {}
        name = self.figure.color
        channel = alt.XOffset if self.upright else alt.YOffset
        side = channel(f"{self.data.field(name)}:N", sort=self.order(name))
        return {"xOffset" if self.upright else "yOffset": side}

    def colour(self) -> alt.Color | alt.ColorValue:
        """Return the colour: by label, by estimate, or one for all."""
        name = self.figure.color
        if self.figure.mark == "heatmap" or name == ESTIMATE:
            return self._colour_by_estimate()
        if not name:
            # not alt.value: Altair looks through all of its classes for what a dictionary might be
            return alt.ColorValue(self.colours.palette[0])
        palette = self.colours.palette
        return self._by_name(alt.Color, [palette[place % len(palette)] for place in self._places()])

    def apart(self, channel: type[alt.StrokeDash | alt.Shape]) -> dict[str, alt.StrokeDash | alt.Shape]:
        """Return the dashes or shapes that tell names of one colour apart; nothing where each has its own."""
        rounds = [place // len(self.colours.palette) for place in self._places()]
        if not any(rounds):
            return {}
        kinds = DASHES if channel is alt.StrokeDash else SHAPES
        encoding = self._by_name(channel, [kinds[turn % len(kinds)] for turn in rounds])
        return {"strokeDash" if channel is alt.StrokeDash else "shape": encoding}

    def _places(self) -> list[int]:
        """Return the place of each coloured name, by which it gets its colour, dash and shape."""
        if self.figure.color in ("", ESTIMATE) or self.figure.mark == "heatmap":
            return []
        names = [label_text(value) for value in self.data.values[self.figure.color]]
        known = {value: place for place, value in enumerate(dict.fromkeys((*self.figure.colors, *names)))}
        return [known[name] for name in names]

    def _by_name(self, channel: type[Any], looks: Sequence[Any]) -> Any:
        """Return a channel that shows each coloured name by its own look; all such channels share one legend."""
        name = self.figure.color
        return channel(
            f"{self.data.field(name)}:N",
            title=self.title(name),
            sort=self.order(name),
            legend=alt.Legend(**shortened(name, "legend")),
            # a fixed domain, so that a look keeps its meaning when a menu changes the rows
            scale=alt.Scale(domain=[label_text(value) for value in self.data.values[name]], range=list(looks)),
        )

    @property
    def beyond_chance(self) -> bool:
        """Whether cells are coloured by what they have beyond chance, which must be known for that."""
        return bool(self.figure.chance) and any(map(math.isfinite, self._excesses()))

    def _excesses(self) -> list[float]:
        """Return the estimate minus what chance alone gives, for every row."""
        chances = [row.labels[self.figure.chance] for row in self.data.rows]
        return [
            row.estimate - chance if isinstance(chance, int | float) else math.nan
            for row, chance in zip(self.data.rows, chances, strict=True)
        ]

    def _colour_by_estimate(self) -> alt.Color:
        low, high = self.colour_range()
        field, title = ("beyond", "beyond chance") if self.beyond_chance else (ESTIMATE, self.title(ESTIMATE))
        has_middle = self.beyond_chance or self.figure.reference is not None
        hues = DIVERGING if has_middle else SEQUENTIAL
        return alt.Color(
            f"{field}:Q",
            title=title,
            scale=alt.Scale(domain=[low, high], range=list(hues), interpolate="rgb"),
            legend=alt.Legend(gradientLength=220, gradientThickness=10),
        )

    def colour_range(self) -> tuple[float, float]:
        """Return the ends of the colour scale; "no lean", or chance, if known, is in the middle."""
        if self.beyond_chance:
            most = max(abs(value) for value in self._excesses() if math.isfinite(value)) or 1.0
            return -most, most
        estimates = [row.estimate for row in self.data.rows]
        if self.figure.reference is None:
            low, high = min(estimates), max(estimates)
            return (low, high) if low < high else (low - 0.5, high + 0.5)
        reach = max(abs(value - self.figure.reference) for value in estimates) or 1.0
        return self.figure.reference - reach, self.figure.reference + reach

    def layers(self) -> list[alt.Chart]:
        """Return the layers, back to front."""
        base = alt.Chart().encode(x=self.axis(alt.X, self.figure.x), y=self.axis(alt.Y, self.figure.y))
        match self.figure.mark:
            case "bars":
                return [*self._bars(base), *self._reference_line()]
            case "intervals":
                points = base.mark_point(tooltip=_ROW, filled=True, size=64, opacity=1)
                points = points.encode(color=self.colour(), **self.apart(alt.Shape), **self.offset())
                return [*self._error_bars(base, self.colour()), points, *self._reference_line()]
            case "lines":
                return [*self._lines(base), *self._reference_line()]
            case "scatter":
                points = base.mark_point(tooltip=_ROW, filled=True, size=48, opacity=0.8)
                points = points.encode(color=self.colour(), **self.apart(alt.Shape), **self.offset())
                measured = ESTIMATE in (self.figure.x, self.figure.y)
                behind = self._error_bars(base, self.colour(), opacity=0.35) if measured else []
                return [
                    *behind,
                    *self._joining_lines(base),
                    points,
                    *self._point_texts(base),
                    *self._reference_line(),
                ]
            case "heatmap":
                if self.beyond_chance:  # a label is text; what is missing there has no colour
                    chance = f"toNumber(datum.{self.data.field(self.figure.chance)})"
                    base = base.transform_calculate(beyond=f"datum.{ESTIMATE} - {chance}")
                cells = base.mark_rect(tooltip=_ROW, stroke=self.colours.grid, strokeWidth=0.5)
                return [cells.encode(color=self.colour()), *self._cell_numbers(base)]

    def _bars(self, base: alt.Chart) -> list[alt.Chart]:
        bars = base.mark_bar(tooltip=_ROW, opacity=0.85, cornerRadiusEnd=2).encode(
            color=self.colour(), **self.offset()
        )
        if self.figure.reference is not None:  # a bar starts at "no lean"
            reference = self.figure.reference
            bars = (
                bars.encode(y2=alt.Y2Datum(reference)) if self.upright else bars.encode(x2=alt.X2Datum(reference))
            )
        return [bars, *self._error_bars(base, alt.ColorValue(self.colours.ink))]

    def _lines(self, base: alt.Chart) -> list[alt.Chart]:
        along = self.figure.x if self.upright else self.figure.y
        ruler = along in self.data.number_lines
        opacity = 1 if len(self.data.rows) <= _BEADS else 0  # invisible points still have tooltips
        order = alt.Order(f"{self.data.field(along) if ruler else self.data.order_field(along)}:Q")
        looks: dict[str, Any] = {"color": self.colour(), "order": order, **self.apart(alt.StrokeDash)}
        thick, thin = self._by_repetition(base)
        return [
            *(self._band(thick) if ruler else self._error_bars(thick, self.colour(), aside=False)),
            *(line.mark_line(strokeWidth=1, opacity=0.6).encode(**looks) for line in thin),
            thick.mark_line(strokeWidth=2).encode(**looks),
            base.mark_point(tooltip=_ROW, filled=True, size=36, opacity=opacity).encode(
                color=self.colour(), **self.apart(alt.Shape)
            ),
        ]

    def _by_repetition(self, base: alt.Chart) -> tuple[alt.Chart, list[alt.Chart]]:
        """Return the base of what counts several, and that of what counts one, if the chart has both."""
        name = self.figure.repeated
        if not name or {row.labels[name] == 1 for row in self.data.rows} != {True, False}:
            return base, []
        count = f"toNumber(datum.{self.data.field(name)})"
        return base.transform_filter(f"{count} > 1"), [base.transform_filter(f"{count} == 1")]

    def _joining_lines(self, base: alt.Chart) -> list[alt.Chart]:
        if not self.figure.joined:
            return []
        order = alt.Order(f"{self.data.order_field(self.figure.joined)}:Q")
        line = base.mark_line(strokeWidth=1.4, opacity=0.6)
        return [line.encode(color=self.colour(), order=order, **self.apart(alt.StrokeDash))]

    def _point_texts(self, base: alt.Chart) -> list[alt.Chart]:
        """Return the texts at the points that have one."""
        if not self.figure.text:
            return []
        field = self.data.field(self.figure.text)
        known = base.transform_filter(f"datum.{field} != '{MISSING}'")
        if self.figure.color in ("", ESTIMATE):
            return [self._texts(known, field, dy=-6)]
        # texts go below the points of one colour and above those of the next: the points may be close together
        turn = f"datum.{self.data.order_field(self.figure.color)} % 2"
        return [
            self._texts(known.transform_filter(f"{turn} == {i}"), field, dy=dy) for i, dy in ((0, 13), (1, -6))
        ]

    def _texts(self, base: alt.Chart, field: str, *, dy: int) -> alt.Chart:
        text = base.mark_text(fontSize=10.5, align="left", dx=6, dy=dy, color=self.colours.ink, tooltip=_ROW)
        return text.encode(text=f"{field}:N")

    def _from_low_to_high(self, base: alt.Chart) -> list[alt.Chart]:
        """Return a base that spans the intervals, or nothing if no row has one: an axis without numbers warns."""
        if not any(math.isfinite(row.low) and math.isfinite(row.high) for row in self.data.rows):
            return []
        whole = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        if self.upright:
            return [whole.encode(y=self.axis(alt.Y, ESTIMATE, field="low"), y2="high:Q")]
        return [whole.encode(x=self.axis(alt.X, ESTIMATE, field="low"), x2="high:Q")]

    def _error_bars(
        self, base: alt.Chart, colour: alt.Color | alt.ColorValue, *, opacity: float = 0.9, aside: bool = True
    ) -> list[alt.Chart]:
        return [
            bars.mark_rule(strokeWidth=1.6, opacity=opacity).encode(
                color=colour, **(self.offset() if aside else {})
            )
            for bars in self._from_low_to_high(base)
        ]

    def _band(self, base: alt.Chart) -> list[alt.Chart]:
        return [area.mark_area(opacity=0.18).encode(color=self.colour()) for area in self._from_low_to_high(base)]

    def _reference_line(self) -> list[alt.Chart]:
        if self.figure.reference is None or ESTIMATE not in (self.figure.x, self.figure.y):
            return []
        reference = self.figure.reference
        where = {"y": alt.YDatum(reference)} if self.upright else {"x": alt.XDatum(reference)}
        once = alt.Chart(alt.InlineData(values=[{}]))  # one line, not one for each row
        return [once.mark_rule(strokeDash=[5, 4], strokeWidth=1.2, color=self.colours.faint).encode(**where)]

    def _cell_numbers(self, base: alt.Chart) -> list[alt.Chart]:
        """Return the numbers in the cells of a heat map; the page's script drops them where they do not fit."""
        tight = len(self.data.rows) > NUMBERED_CELLS or self.at_once[self.figure.x] > _NUMBERED_ACROSS
        if self.width and tight:
            return []
        low, high = self.colour_range()
        dark = f"datum.{ESTIMATE} > {low + 0.6 * (high - low)!r}"
        if self.figure.reference is not None or self.beyond_chance:
            shade = "beyond" if self.beyond_chance else ESTIMATE
            dark = f"abs(datum.{shade} - {low + 0.5 * (high - low)!r}) > {0.36 * (high - low)!r}"
        numbers = base.transform_calculate(shown=_TWO_DECIMALS if high - low >= 0.2 else _THREE_DIGITS)
        ink = alt.condition(dark, alt.value("#ffffff"), alt.value("#1c1f24"))
        return [numbers.mark_text(fontSize=10.5, tooltip=_ROW).encode(text="shown:N", color=ink)]
