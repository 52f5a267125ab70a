"""`clinometer verify`: is the run whole, and do its findings follow from its records?"""

from __future__ import annotations

import typer

from clinometer.cli.arguments import RunArgument


def verify(run: RunArgument) -> None:
    """Check a run's checksums and recompute its findings from its records; needs no model."""
    from clinometer.store import RunFolder
    from clinometer.workflows import VerifyRequest, run_verify

    result = run_verify(VerifyRequest(run=RunFolder.open(run)))
    for note in result.notes:
        print(f"note: {note}")
    for problem in result.problems:
        print(problem)
    if result.problems:
        raise typer.Exit(1)
    audits = f"{result.findings} audit{'s' if result.findings > 1 else ''}"
    print(f"{run}: {result.records:,} records intact, findings of {audits} recomputed and equal")
