"""`clinometer card`: what a run found, for the card of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinometer.cli.arguments import RunOrBundle
from clinometer.cli.terminal import show
from clinometer.errors import InputError


def card(
    run: RunOrBundle,
    model: Annotated[
        str, typer.Option(help="Whose card it is, if the run has several models.", show_default=False)
    ] = "",
    write: Annotated[
        Path | None,
        typer.Option(help="A README.md to write it into; all else in it stays.", show_default=False),
    ] = None,
) -> None:
    """Print a section and the metadata for a model card, or write them into a README; needs no model."""
    from clinometer.workflows.card import CardRequest, run_card

    written = run_card(CardRequest(run=run, model=model, readme=write))
    if write is None:
        for line in written.splitlines():
            show(line)
        return
    try:
        write.write_bytes(written.encode())
    except OSError as error:
        raise InputError(f"{write} cannot be written: {error.strerror}") from error
    show(write)
