"""What a command leaves for other programs: verdicts as JSON and Markdown, and an exit code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from clinometer.errors import InputError, SpecError

if TYPE_CHECKING:
    from clinometer.report.verdict_files import FailOn
    from clinometer.results import Run

JsonOption = Annotated[
    Path | None, typer.Option("--json", help="Also write the verdicts to this JSON file.", show_default=False)
]
MarkdownOption = Annotated[
    Path | None,
    typer.Option(help="Also write the verdicts to this Markdown file, for a pull request.", show_default=False),
]
FailOnOption = Annotated[
    str,
    typer.Option(
        help="lean: exit code 3 if a lean was found, 4 if only something could not be told.", show_default=False
    ),
]
AllowOption = Annotated[
    bool, typer.Option("--allow-cannot-tell", help="With --fail-on: what cannot be told is exit code 0.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the user wants of the verdicts."""

    json: Path | None = None
    markdown: Path | None = None
    fail_on: str = ""
    allow_cannot_tell: bool = False

    def __post_init__(self) -> None:
        """Refuse what would only be noticed after hours of work."""
        if self.fail_on not in ("", "lean"):
            raise SpecError(f"--fail-on {self.fail_on!r} is not known; write --fail-on lean")
        for path in (self.json, self.markdown):
            if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
                why = "it is a folder" if path.is_dir() else "its folder does not exist"
                raise InputError(f"verdicts cannot be written to {path}: {why}")


def settle(run: Run, outcome: Outcome) -> None:
    """Write the files that are wanted, then exit with the code that follows from the verdicts, if it is not 0."""
    from clinometer.report.verdict_files import exit_code, verdicts_json, verdicts_markdown

    verdicts = run.verdicts
    for path, written in ((outcome.json, verdicts_json), (outcome.markdown, verdicts_markdown)):
        if path is not None:
            try:
                path.write_text(written(run.path.name, verdicts), encoding="utf-8")
            except OSError as error:
                raise InputError(f"verdicts cannot be written to {path}: {error.strerror}") from error
    code = exit_code(
        verdicts, fail_on=cast("FailOn", outcome.fail_on), allow_cannot_tell=outcome.allow_cannot_tell
    )
    if code:
        raise typer.Exit(code)
