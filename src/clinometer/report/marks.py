"""What is drawn of a figure: its marks, layer by layer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import altair as alt

from clinometer.report.encodings import Encodings
from clinometer.report.plot_data import ESTIMATE
from clinometer.report.rounding import MISSING

NUMBERED_CELLS = 600  # a heat map that shows no more cells than these has the numbers in them, if they are wide
_NUMBERED_ACROSS = 12  # … which on paper they are when no more than these lie side by side
_BEADS = 400  # a line with more points than these is drawn without them

_ROW = alt.TooltipContent("data")  # the page's own script shows the whole row

# Numbers in cells, as expressions, so that they are no part of the data; the second as `rounding.estimate_text`.
_TWO_DECIMALS = f"format(datum.{ESTIMATE}, '.2f')"
_THREE_DIGITS = (
    f"datum.{ESTIMATE} == 0 ? '0' : abs(datum.{ESTIMATE}) >= 100 ? format(datum.{ESTIMATE}, '.0f') : "
    f"abs(datum.{ESTIMATE}) < 0.001 ? replace(format(datum.{ESTIMATE}, '.2e'), 'e-', 'e−') : "
    f"format(datum.{ESTIMATE}, '.3r')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks(Encodings):
    """The layers of one figure."""

    def layers(self) -> list[alt.Chart]:
        """Return all that is drawn, what lies behind first."""
        base = alt.Chart().encode(x=self.axis(alt.X, self.figure.x), y=self.axis(alt.Y, self.figure.y))
        match self.figure.mark:
            case "bars":
                return [*self._bars(base), *self._reference_line()]
            case "intervals":
                points = base.mark_point(tooltip=_ROW, filled=True, size=64, opacity=1)
                points = points.encode(color=self.colour(), **self.offset())
                return [*self._error_bars(base, self.colour()), points, *self._reference_line()]
            case "lines":
                return [*self._lines(base), *self._reference_line()]
            case "scatter":
                points = base.mark_point(tooltip=_ROW, filled=True, size=48, opacity=0.8)
                points = points.encode(color=self.colour(), **self.offset())
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
                cells = base.mark_rect(tooltip=_ROW, stroke=self.colours.grid, strokeWidth=0.5)
                return [cells.encode(color=self.colour()), *self._cell_numbers(base)]

    def _bars(self, base: alt.Chart) -> list[alt.Chart]:
        bars = base.mark_bar(tooltip=_ROW, opacity=0.85, cornerRadiusEnd=2).encode(
            color=self.colour(), **self.offset()
        )
        if self.figure.reference is not None:  # a bar shows the way from "no lean"
            bars = bars.encode(**{"y2" if self.upright else "x2": alt.datum(self.figure.reference)})
        return [bars, *self._error_bars(base, alt.value(self.colours.ink))]

    def _lines(self, base: alt.Chart) -> list[alt.Chart]:
        along = self.figure.x if self.upright else self.figure.y
        ruler = along in self.data.number_lines
        opacity = 1 if len(self.data.rows) <= _BEADS else 0  # unseen points still answer to the pointer
        order = alt.Order(f"{self.data.field(along) if ruler else self.data.order_field(along)}:Q")
        return [
            *(self._band(base) if ruler else self._error_bars(base, self.colour(), aside=False)),
            base.mark_line(strokeWidth=2).encode(color=self.colour(), order=order),
            base.mark_point(tooltip=_ROW, filled=True, size=36, opacity=opacity).encode(color=self.colour()),
        ]

    def _joining_lines(self, base: alt.Chart) -> list[alt.Chart]:
        if not self.figure.joined:
            return []
        order = alt.Order(f"{self.data.order_field(self.figure.joined)}:Q")
        return [base.mark_line(strokeWidth=1.4, opacity=0.6).encode(color=self.colour(), order=order)]

    def _point_texts(self, base: alt.Chart) -> list[alt.Chart]:
        """Return what is written at the points; a label that is missing there is not."""
        if not self.figure.text:
            return []
        field = self.data.field(self.figure.text)
        known = base.transform_filter(f"datum.{field} != '{MISSING}'")
        if self.figure.color in ("", ESTIMATE):
            return [self._texts(known, field, dy=-6)]
        # of two colours one has its texts above the points and one below: points of both may lie together
        turn = f"datum.{self.data.order_field(self.figure.color)} % 2"
        return [
            self._texts(known.transform_filter(f"{turn} == {i}"), field, dy=dy) for i, dy in ((0, 13), (1, -6))
        ]

    def _texts(self, base: alt.Chart, field: str, *, dy: int) -> alt.Chart:
        text = base.mark_text(fontSize=10.5, align="left", dx=6, dy=dy, color=self.colours.ink, tooltip=_ROW)
        return text.encode(text=f"{field}:N")

    def _from_low_to_high(self, base: alt.Chart) -> list[alt.Chart]:
        """Return what reaches over the intervals; nothing where no row has one: an axis without a number warns."""
        if not any(math.isfinite(row.low) and math.isfinite(row.high) for row in self.data.rows):
            return []
        whole = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        if self.upright:
            return [whole.encode(y=self.axis(alt.Y, ESTIMATE, field="low"), y2="high:Q")]
        return [whole.encode(x=self.axis(alt.X, ESTIMATE, field="low"), x2="high:Q")]

    def _error_bars(
        self, base: alt.Chart, colour: alt.Color | dict[str, Any], *, opacity: float = 0.9, aside: bool = True
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
        where = {"y" if self.upright else "x": alt.datum(self.figure.reference)}
        once = alt.Chart(alt.InlineData(values=[{}]))  # one line, not one for each row
        return [once.mark_rule(strokeDash=[5, 4], strokeWidth=1.2, color=self.colours.faint).encode(**where)]

    def _cell_numbers(self, base: alt.Chart) -> list[alt.Chart]:
        """Return the numbers in the cells of a heat map; the page's script drops them where they are tight."""
        tight = len(self.data.rows) > NUMBERED_CELLS or self.at_once[self.figure.x] > _NUMBERED_ACROSS
        if self.width and tight:
            return []
        low, high = self.colour_range()
        dark = f"datum.{ESTIMATE} > {low + 0.6 * (high - low)!r}"
        if self.figure.reference is not None:
            dark = f"abs(datum.{ESTIMATE} - {low + 0.5 * (high - low)!r}) > {0.36 * (high - low)!r}"
        numbers = base.transform_calculate(shown=_TWO_DECIMALS if high - low >= 0.2 else _THREE_DIGITS)
        ink = alt.condition(dark, alt.value("#ffffff"), alt.value("#1c1f24"))
        return [numbers.mark_text(fontSize=10.5, tooltip=_ROW).encode(text="shown:N", color=ink)]
