"""What a command leaves for other programs: verdicts as JSON and Markdown, and an exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from clinometer.cli.terminal import show
from clinometer.errors import InputError, SpecError, nearest
from clinometer.types import EVERY_MEASURE

if TYPE_CHECKING:
    from clinometer.report.verdict_files import FailOn, Judgement, Limits
    from clinometer.results import Comparison, Run

MOST_REASONS = 20  # that a terminal shows

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
        help="lean: exit code 3 if a lean was found; 4 if none was, but something cannot be told.",
        show_default=False,
    ),
]
LimitsOption = Annotated[
    Path | None,
    typer.Option(
        help="A TOML file of the largest effect accepted for each audit and measure: beyond it, exit code 3.",
        show_default=False,
    ),
]
AllowOption = Annotated[
    bool,
    typer.Option(
        "--allow-cannot-tell", help="With --fail-on or --limits: no exit code 4 for what cannot be told."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the user wants of the verdicts."""

    json: Path | None = None
    markdown: Path | None = None
    fail_on: str = ""
    allow_cannot_tell: bool = False
    limits_file: Path | None = None
    known: tuple[str, ...] = ("lean",)  # what --fail-on may say to this command
    limits: Limits | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Refuse what would only be noticed after hours of work."""
        if self.fail_on not in ("", *self.known):
            written = " or ".join(f"--fail-on {name}" for name in self.known)
            raise SpecError(f"--fail-on {self.fail_on!r} is not known; write {written}")
        if self.allow_cannot_tell and not self.fail_on and self.limits_file is None:
            raise SpecError("--allow-cannot-tell is about the exit code of --fail-on or --limits; add one of them")
        for path in (self.json, self.markdown):
            if path == Path("-"):
                raise InputError("verdicts are written to a file, not to the terminal; name one")
            if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
                why = "it is a folder" if path.is_dir() else "its folder does not exist"
                raise InputError(f"verdicts cannot be written to {path}: {why}")
        if self.limits_file is not None:
            object.__setattr__(self, "limits", read_limits(self.limits_file))


def read_limits(path: Path) -> Limits:
    """Read limits: a table for each audit, whose keys are its aspects or measures, or "*" for all others."""
    from clinometer.limits import parse_toml, read_limited
    from clinometer.probes import PROBES

    try:
        values = parse_toml(read_limited(path).decode("utf-8"))
    except OSError as error:
        raise SpecError(f"cannot read the limits {path}: {error.strerror}") from None
    except ValueError as error:
        raise SpecError(f"the limits {path} are not valid TOML: {error}") from None
    if not values:
        raise SpecError(f'the limits {path} name no audit; write [stigma] and below it "*" = 0.05')
    limits: dict[str, dict[str, float]] = {}
    for audit, of_audit in values.items():
        if audit not in PROBES:
            raise SpecError(f"{path}: no audit {audit!r}; {nearest(audit, PROBES)}")
        if not isinstance(of_audit, dict) or not of_audit:
            raise SpecError(f'{path}: [{audit}] has no limit; write below it "*" = 0.05')
        for name, limit in of_audit.items():
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit < float("inf"):
                raise SpecError(f"{path}: {audit}: {name} = {limit!r}; expected a number from 0 up")
            limits.setdefault(audit, {})[name] = float(limit)
    return limits


def check_limits(run: Run, outcome: Outcome) -> None:
    """Refuse limits of what a run did not measure, before anything is written."""
    _check_names(outcome, ((each.audit, each.aspect) for each in run.verdicts))


def settle(run: Run, outcome: Outcome) -> None:
    """Write the files that are wanted, then exit with the code that follows from the verdicts, if it is not 0."""
    from clinometer.report.verdict_files import judged, verdicts_json, verdicts_markdown

    verdicts, name = run.verdicts, run.path.name
    check_limits(run, outcome)
    judgement = judged(
        verdicts,
        fail_on=cast("FailOn", outcome.fail_on),
        allow_cannot_tell=outcome.allow_cannot_tell,
        limits=outcome.limits,
    )
    _write(outcome.json, lambda: verdicts_json(name, verdicts, run.changes, judgement))
    _write(outcome.markdown, lambda: verdicts_markdown(name, verdicts, judgement))
    _end(judgement)


def settle_comparison(compared: Comparison, outcome: Outcome) -> None:
    """Do the same for a comparison; with --fail-on lean, the leans of the models that come after decide."""
    from clinometer.report.verdict_files import (
        UNKNOWN,
        Judgement,
        changes_json,
        changes_markdown,
        judged,
        judged_changes,
    )

    if not compared.pairs and (outcome.fail_on == "worse" or (outcome.limits and not outcome.fail_on)):
        asked = "--fail-on worse" if outcome.fail_on else "--limits"
        raise SpecError(f"{asked}: nothing says which of these models is before; name one with --base")
    name = ", ".join(compared.sources)
    leans = [each for model in compared.after or compared.leans for each in compared.leans[model]]
    if outcome.fail_on == "lean":
        _check_names(outcome, ((each.audit, each.aspect) for each in leans))
    else:
        named = (each for each in compared.verdicts if each.measure != EVERY_MEASURE)
        _check_names(outcome, ((each.audit, each.measure) for each in named))
    fail_on, allow = cast("FailOn", outcome.fail_on), outcome.allow_cannot_tell
    if fail_on == "lean":
        found = judged(leans, fail_on=fail_on, allow_cannot_tell=allow, limits=outcome.limits)
    else:
        found = judged_changes(compared.verdicts, fail_on=fail_on, allow_cannot_tell=allow, limits=outcome.limits)
    if not found.code and (fail_on or outcome.limits) and compared.left_out and not allow:
        found = Judgement(code=UNKNOWN, reasons=("a run that could not be opened has not passed",))
    _write(outcome.json, lambda: changes_json(name, compared.verdicts, compared.leans, compared.notes, found))
    _write(outcome.markdown, lambda: changes_markdown(name, compared.verdicts, compared.notes, found))
    _end(found)


def _end(judgement: Judgement) -> None:
    """Say what is not accepted, and end with the exit code that follows."""
    from clinometer.report.verdict_files import BROKEN

    if not judgement.code:
        return
    title = "not accepted" if judgement.code == BROKEN else "could not be told"
    for reason in judgement.reasons[:MOST_REASONS]:
        show(f"{title}: {reason}")
    if len(judgement.reasons) > MOST_REASONS:
        show(f"… and {len(judgement.reasons) - MOST_REASONS} more")
    raise typer.Exit(judgement.code)


def _check_names(outcome: Outcome, asked: Iterable[tuple[str, str]]) -> None:
    """Refuse a limit of something that nobody measured: it would hold for ever."""
    known: dict[str, list[str]] = {}
    for audit, name in asked:
        known.setdefault(audit, []).append(name)
    for audit, of_audit in (outcome.limits or {}).items():
        for name in of_audit:
            if name != "*" and audit in known and name not in known[audit]:
                hint = nearest(name, known[audit])
                raise SpecError(f"{outcome.limits_file}: {audit} has nothing called {name!r}; {hint}")


def _write(path: Path | None, written: Callable[[], str]) -> None:
    if path is not None:
        try:
            path.write_text(written(), encoding="utf-8")
        except OSError as error:
            raise InputError(f"verdicts cannot be written to {path}: {error.strerror}") from error
