"""The `clinometer` command: its subcommands, and what happens when one fails."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from clinometer import __version__
from clinometer.cli.annotate import annotate
from clinometer.cli.arguments import SeveralSettings, SeveralValues
from clinometer.cli.audit import audit
from clinometer.cli.bundle import bundle
from clinometer.cli.card import card
from clinometer.cli.compare import compare
from clinometer.cli.data import data
from clinometer.cli.listings import models, probes
from clinometer.cli.mitigate import mitigate
from clinometer.cli.questions import questions
from clinometer.cli.replicate import replicate
from clinometer.cli.runs import report, resume, verify
from clinometer.cli.shift import shift
from clinometer.cli.terminal import clean_libraries, show
from clinometer.cli.train import train
from clinometer.cli.tune import tune
from clinometer.errors import ClinometerError, SettingError
from clinometer.plain import visible

app = typer.Typer(
    help="Measure which way a language model leans.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command(cls=SeveralSettings)(audit)
for command in (compare, resume, verify, report, bundle, card, questions, replicate, models, probes):
    app.command()(command)
app.command(cls=SeveralValues)(tune)
app.command(cls=SeveralValues)(shift)
app.command(cls=SeveralValues)(train)
app.command(cls=SeveralValues)(mitigate)
app.add_typer(data, name="data")
app.add_typer(annotate, name="annotate")


def _print_version(wanted: bool) -> None:
    if wanted:
        show(f"clinometer {__version__}")
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
    # typer quotes an argument that it does not understand as it is: let it do so only where that is harmless
    plain = all(visible(argument) == argument for argument in sys.argv)
    try:
        with clean_libraries():
            sys.exit(app(standalone_mode=plain) or 0)
    except ClinometerError as error:
        message = error.on_command_line if isinstance(error, SettingError) else error
        show(f"clinometer: {message}", error=True)
        sys.exit(error.exit_code)
    except Exception as error:
        if not hasattr(error, "format_message"):  # not typer's but our mistake: the traceback helps to find it
            for line in traceback.format_exc().splitlines():
                show(line, error=True)
            sys.exit(1)
        show(f"clinometer: {error.format_message()}", error=True)
        sys.exit(getattr(error, "exit_code", 2))
