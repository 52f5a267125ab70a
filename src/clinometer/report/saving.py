"""Saves the figures of a run as pictures for a paper."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import vl_convert

from clinometer.errors import InputError
from clinometer.report.charts import chart
from clinometer.report.colours import PAPER
from clinometer.report.plot_data import plot_data
from clinometer.report.rendering import find_table
from clinometer.report.rounding import label_text
from clinometer.store import RunFolder
from clinometer.types import Figure, FindingTable

WIDTH = 640  # in pixels, 72 to the inch
SCALE = 3.0  # how many times more pixels a PNG has
LONGEST_NAME = 60  # characters of one part of a file name

Format = Literal["png", "svg"]


def save_figures(
    run: RunFolder, folder: str | Path, *, formats: Sequence[Format] = ("png", "svg")
) -> tuple[Path, ...]:
    """Save every figure of a run for a paper, one file for each choice of its menus, and return the files."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from error
    saved = []
    taken: Counter[str] = Counter()  # two long labels may be cut to one file name
    for findings in run.read_findings():
        for figure in findings.figures:
            table = find_table(figure, findings)
            for chosen in _menu_choices(figure, table):
                drawn = chart(chosen, table, colours=PAPER, width=WIDTH)
                if not drawn.drawn:
                    continue
                name = _file_name(findings.probe, figure, chosen)
                taken[name] += 1
                name += f"-{taken[name]}" if taken[name] > 1 else ""
                for form in formats:
                    path = folder / f"{name}.{form}"
                    picture = _picture(drawn.whole(), form)
                    try:
                        path.write_bytes(picture)
                    except OSError as error:
                        raise _not_writable(path, error) from error
                    saved.append(path)
    return tuple(saved)


def _not_writable(path: Path, error: OSError) -> InputError:
    why = "it is a file" if isinstance(error, FileExistsError) else error.strerror
    return InputError(f"figures cannot be saved to {path}: {why}; give a folder that can be written")


def _menu_choices(figure: Figure, table: FindingTable) -> Iterator[Figure]:
    """Yield the figure once for every choice of its menus: paper has none."""
    values = plot_data(figure, table).values
    for choice in itertools.product(*(values.get(menu, ()) for menu in figure.menus)):
        chosen = dict(zip(figure.menus, choice, strict=True))
        yield replace(figure, filters={**figure.filters, **chosen}, menus=())


def _file_name(probe: str, figure: Figure, chosen: Figure) -> str:
    parts = [probe, figure.name, *(f"{menu}={label_text(chosen.filters[menu])}" for menu in figure.menus)]
    return "-".join(re.sub(r"[^\w=.]+", "_", part)[:LONGEST_NAME] for part in parts)


def _picture(spec: dict[str, Any], form: Format) -> bytes:
    if form == "svg":
        return str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])).encode()
    return bytes(vl_convert.vegalite_to_png(spec, scale=SCALE, allowed_base_urls=[]))
