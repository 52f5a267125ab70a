"""`clinometer report`: write the page again, and the figures for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinometer.cli.arguments import RunArgument


def report(
    run: RunArgument,
    figures: Annotated[
        Path | None,
        typer.Option(help="Also save every figure as PNG and SVG into this folder.", show_default=False),
    ] = None,
) -> None:
    """Write the report of a run again from its records and findings; needs no model."""
    from clinometer.store import RunFolder
    from clinometer.workflows import report_run

    folder = RunFolder.open(run)
    print(report_run(folder))
    if figures is not None:
        from clinometer.report import save_figures

        for path in save_figures(folder, figures):
            print(path)
