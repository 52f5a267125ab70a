"""The colours of charts: told apart by readers who see colours differently, on white, on black and on paper."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Colours:
    """What a chart is drawn with."""

    paper: str
    ink: str
    faint: str
    grid: str
    palette: tuple[str, ...]


# In the page a colour is the name of a CSS variable, so that charts follow dark mode and print without redrawing.
PAGE = Colours(
    paper="transparent",
    ink="var(--ink)",
    faint="var(--faint)",
    grid="var(--grid)",
    palette=tuple(f"var(--series-{i})" for i in range(8)),
)

# The colours of Okabe and Ito (2008), with grey for black and a darker yellow that shows on white.
PAPER = Colours(
    paper="#ffffff",
    ink="#1c1f24",
    faint="#5c6470",
    grid="#e4e6ea",
    palette=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#7b4ea3", "#6b7280"),
)

# A scale with a middle ("no lean") and one without; both keep their order in grey.
DIVERGING = ("#2c5f9e", "#6f9fd0", "#b9d2ea", "#f4f1ea", "#f3c795", "#dd8f3e", "#a85a10")
SEQUENTIAL = ("#f3f6e8", "#c6e0c8", "#86c2bd", "#4a9bb3", "#2c6f9f", "#264478")
