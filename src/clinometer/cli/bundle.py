"""`clinometer bundle`: a complete run as one file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from clinometer.cli.arguments import RunArgument
from clinometer.cli.terminal import show


def bundle(
    run: RunArgument,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; by default RUN.zip.", show_default=False)
    ] = None,
) -> None:
    """Write a run as one file: spec, findings, records, report and checksums."""
    from clinometer.store import RunFolder, write_bundle

    folder = RunFolder.open(run)
    written = write_bundle(folder, out)
    show(written)
    with written.open("rb") as file:
        show(f"sha256  {hashlib.file_digest(file, 'sha256').hexdigest()}")
    show(f"digest  {folder.digest}")
