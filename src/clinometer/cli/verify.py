"""`clinometer verify`: is the run whole, and do its findings follow from its records?"""

from __future__ import annotations

import typer

from clinometer.cli.arguments import RunArgument


def verify(run: RunArgument) -> None:
    """Check a run's checksums and recompute its findings from its records; needs no model."""
    from clinometer.front import open_run
    from clinometer.front import verify as verify_run

    result = verify_run(open_run(run))
    for problem in result.problems:
        print(problem)
    if result.problems:
        raise typer.Exit(1)
    audits = f"{result.findings} audit{'s' if result.findings > 1 else ''}"
    print(f"{run}: {result.records:,} records intact, findings of {audits} recomputed and equal")
