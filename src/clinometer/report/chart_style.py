"""How words look in every chart: fonts and colours, and what becomes of names that are too long."""

from __future__ import annotations

from typing import Any

from clinometer.report.colours import Colours

LETTER = 7  # pixels that a letter of a title takes
LONGEST_LABEL = 240  # pixels of a name at an axis …
LONGEST_ENTRY = 200  # … in the legend …
_LONGEST_HEADER = 260  # … and above a panel
_WIDE_LETTER = 8.4  # of a wide font, by which names are cut before Vega cuts off their end
_NAMES = ("model", "base")  # labels whose long values differ at either end: where room is short, the middle goes


def shortened(label: str, place: str) -> dict[str, Any]:
    """Return what cuts the middle out of long names of models, so that Vega need not cut off their end.

    `assets/charts.js` fits how many letters stay.
    """
    if label not in _NAMES:
        return {}
    most, name = f"{place}_letters", "datum.label"
    ends = f"slice({name}, 0, floor({most} / 3)) + '…' + slice({name}, floor({most} / 3) + 1 - {most})"
    return {"labelExpr": f"length({name}) > {most} ? {ends} : {name}", "labelLimit": 0}


def letters(panel_width: int) -> list[dict[str, Any]]:
    """Return how many letters of a name stay in each place, as parameters of a Vega-Lite specification."""
    room = {"axis": LONGEST_LABEL, "legend": LONGEST_ENTRY, "header": min(panel_width, _LONGEST_HEADER)}
    return [{"name": f"{place}_letters", "value": int(pixels // _WIDE_LETTER)} for place, pixels in room.items()]


def config(colours: Colours) -> dict[str, Any]:
    """Return the configuration of a Vega-Lite specification."""
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
            "labelLimit": _LONGEST_HEADER,
            "titlePadding": 2,
        },
        "view": {"stroke": None},
        "scale": {"bandPaddingInner": 0.25},
    }
