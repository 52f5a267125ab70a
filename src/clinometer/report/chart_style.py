"""How charts look: colours and fonts, and how names that are too long are shortened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LETTER = 7  # pixels per letter of a title
LONGEST_LABEL = 240  # pixels of a name at an axis …
LONGEST_ENTRY = 200  # … in the legend …
_LONGEST_HEADER = 260  # … and above a panel
_WIDE_LETTER = 8.4  # in a wide font; names are cut by it before Vega cuts off their end

_NAMES = ("model", "base")  # long values of these labels differ at either end, so the middle is cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Colours:
    """The colours of a chart; `palette` is easy to tell apart for readers who see colours differently."""

    paper: str
    ink: str
    faint: str
    grid: str
    palette: tuple[str, ...]


# On the page a colour is a CSS variable, so that charts follow dark mode and print without being drawn again.
PAGE = Colours(
    paper="transparent",
    ink="var(--ink)",
    faint="var(--faint)",
    grid="var(--grid)",
    palette=tuple(f"var(--series-{i})" for i in range(8)),
)

# The colours of Okabe and Ito (2008), with grey for black and a darker yellow that is visible on white.
PAPER = Colours(
    paper="#ffffff",
    ink="#1c1f24",
    faint="#5c6470",
    grid="#e4e6ea",
    palette=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#7b4ea3", "#6b7280"),
)

# What tells names apart that share a colour: the first for names 1 to 8, the second for 9 to 16, …
DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3])
SHAPES = ("circle", "square", "triangle-up", "diamond")

# A scale with a middle ("no lean") and one without; both keep their order in grey.
DIVERGING = ("#2c5f9e", "#6f9fd0", "#b9d2ea", "#f4f1ea", "#f3c795", "#dd8f3e", "#a85a10")
SEQUENTIAL = ("#f3f6e8", "#c6e0c8", "#86c2bd", "#4a9bb3", "#2c6f9f", "#264478")


def shortened(label: str, place: str) -> dict[str, Any]:
    """Return Vega settings that cut the middle out of long model names, so that Vega does not cut off their end.

    `assets/charts.js` adjusts how many letters are kept, and shortens the words of other long names along an axis.
    """
    if label not in _NAMES:
        return {}
    return {"labelExpr": _without_middle("datum.label", place), "labelLimit": 0}


def two_lines() -> dict[str, Any]:
    """Return Vega settings for the name of a panel that is two names, with a line break between them."""
    lines = (_without_middle(f"split(datum.label, '\\n')[{line}]", "header") for line in (0, 1))
    return {"labelExpr": f"[{', '.join(lines)}]", "labelLimit": 0}


def _without_middle(name: str, place: str) -> str:
    most = f"{place}_letters"
    ends = f"slice({name}, 0, floor({most} / 3)) + '…' + slice({name}, floor({most} / 3) + 1 - {most})"
    return f"(length({name}) > {most} ? {ends} : {name})"


def letters(panel_width: int) -> list[dict[str, Any]]:
    """Return how many letters of a name are kept in each place, as parameters of a Vega-Lite specification."""
    room = {"axis": LONGEST_LABEL, "legend": LONGEST_ENTRY, "header": min(panel_width, _LONGEST_HEADER)}
    return [{"name": f"{place}_letters", "value": int(pixels // _WIDE_LETTER)} for place, pixels in room.items()]


def config(colours: Colours) -> dict[str, Any]:
    """Return the configuration of a Vega-Lite specification."""
    words = {"labelColor": colours.ink, "titleColor": colours.ink, "titleFontWeight": 600}
    return {
        "background": colours.paper,
        "aria": False,  # Vega-Lite would write titles, which are untrusted text, into expressions
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
        "axis": {
            **words,
            "gridColor": colours.grid,
            "domainColor": colours.faint,
            "tickColor": colours.faint,
            "labelFontSize": 11.5,
            "titleFontSize": 12,
            "labelLimit": LONGEST_LABEL,
            "maxExtent": 300,  # more than the limit of labels, or the title covers them
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
            "labelLimit": _LONGEST_HEADER,
            "titlePadding": 2,
        },
        "view": {"stroke": None},
        "scale": {"bandPaddingInner": 0.25},
    }
