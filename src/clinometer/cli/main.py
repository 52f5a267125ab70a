"""The `clinometer` command: its subcommands, and what happens when one fails."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from clinometer import __version__
from clinometer.cli.annotate import annotate
from clinometer.cli.arguments import SeveralSettings, SeveralValues
from clinometer.cli.audit import audit
from clinometer.cli.data import data
from clinometer.cli.listings import models, probes
from clinometer.cli.mitigate import mitigate
from clinometer.cli.questions import questions
from clinometer.cli.runs import report, resume, verify
from clinometer.cli.shift import shift
from clinometer.cli.train import train
from clinometer.cli.tune import tune
from clinometer.errors import ClinometerError, SettingError

app = typer.Typer(
    help="Measure which way a language model leans.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command(cls=SeveralSettings)(audit)
for command in (resume, verify, report, questions, models, probes):
    app.command()(command)
app.command(cls=SeveralValues)(tune)
app.command(cls=SeveralValues)(shift)
app.command(cls=SeveralValues)(train)
app.command(cls=SeveralValues)(mitigate)
app.add_typer(data, name="data")
app.add_typer(annotate, name="annotate")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"clinometer {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; our own errors are one line and an exit code, not a traceback."""
    try:
        app()
    except ClinometerError as error:
        message = error.on_command_line if isinstance(error, SettingError) else error
        print(f"clinometer: {message}", file=sys.stderr)
        sys.exit(error.exit_code)
