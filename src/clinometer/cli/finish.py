"""What `audit` and `resume` share: show the work, print what was found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import typer

from clinometer.cli.progress import show_progress
from clinometer.engine import Progress
from clinometer.results import Run


def finish_run(place: Path, work: Callable[[Progress], Run], *, quiet: bool) -> None:
    """Do the work; on Ctrl-C say how to go on."""
    try:
        with show_progress(quiet=quiet) as progress:
            run = work(progress)
    except KeyboardInterrupt:
        again = f"continue with: clinometer resume {place}" if place.exists() else "nothing was written"
        print(f"\nclinometer: stopped; {again}", file=sys.stderr)
        raise typer.Exit(130) from None
    print_run(run)


def print_run(run: Run) -> None:
    """Print what was found, and where the run and its report are."""
    for found in run.findings:
        print(f"\n{found.probe}")
        for line in found.headlines:
            print(f"  {line}")
        for notice in found.notices:
            if notice.level == "warning":  # the rest is in the report
                print(f"  warning: {notice.text}")
    print(f"\nrun     {run.path}\nreport  {run.report_path}")
