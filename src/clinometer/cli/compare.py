"""`clinometer compare`: what changed from one model to another, and many models side by side."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from clinometer.cli.outcome import (
    AllowOption,
    JsonOption,
    LimitsOption,
    MarkdownOption,
    Outcome,
    settle_comparison,
)
from clinometer.cli.terminal import show
from clinometer.errors import InputError

PAGE = "comparison.html"
MOST_TOLD = 12  # changes that are told one by one


def compare(
    run: Annotated[
        list[str],
        typer.Argument(
            help="Run folders or bundles; of one run, its models are compared. RUN::MODEL is one model of a run.",
            metavar="RUN…",
            show_default=False,
        ),
    ],
    base: Annotated[
        str,
        typer.Option(
            help="What the others are compared with: one of the runs, or a model. Default: the first; of "
            "checkpoints, the model that each was made from.",
            show_default=False,
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(help=f"The folder for the page, {PAGE}.", show_default="this folder"),
    ] = None,
    json: JsonOption = None,
    markdown: MarkdownOption = None,
    fail_on: Annotated[
        str,
        typer.Option(
            help="worse: exit code 3 if a model became worse. lean: exit code 3 if a model other than the base "
            "leans. Otherwise, 4 if something cannot be told.",
            show_default=False,
        ),
    ] = "",
    limits: LimitsOption = None,
    allow_cannot_tell: AllowOption = False,
) -> None:
    """Compare models, of one run or several, on the questions they share; needs no model."""
    if out is not None and (out / "spec.toml").is_file():
        raise InputError(f"--out {out} is the folder of a run, whose page would look like its own; name another")
    outcome = Outcome(
        json=json,
        markdown=markdown,
        fail_on=fail_on,
        allow_cannot_tell=allow_cannot_tell,
        limits_file=limits,
        known=("worse", "lean"),
    )
    from clinometer.workflows.compare import CompareRequest, run_compare

    compared = run_compare(CompareRequest(sources=tuple(run), base=base))
    told = [each for each in compared.verdicts if each.state in ("worse", "better")]
    for each in told[:MOST_TOLD]:
        show(f"{each.state}: {each.sentence}")
    if len(told) > MOST_TOLD:
        show(f"… and {len(told) - MOST_TOLD} more")
    same = sum(each.state == "no change found" for each in compared.verdicts)
    if same:
        show(f"no change found: {_measures(same)}")
    reasons = Counter(each.reason for each in compared.verdicts if each.state == "cannot tell")
    for reason, number in reasons.most_common():
        show(f"cannot tell: {_measures(number)}: {reason}")
    if not compared.verdicts:
        many = f"{len(compared.models)} models side by side; with --base, name the one to compare the others with"
        show("nothing to compare" if compared.pairs else many)
    for note in compared.notes:
        show(f"note: {note}")
    show(compared.write_page((out or Path()) / PAGE))
    settle_comparison(compared, outcome)


def _measures(number: int) -> str:
    return f"{number} measure{'s' if number > 1 else ''}"
