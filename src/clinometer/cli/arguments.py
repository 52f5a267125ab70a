"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.", show_default=False)]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
BatchTokensOption = Annotated[
    int, typer.Option(min=0, help="Padded tokens in one batch; 0 chooses by device. Changes speed only.")
]
CacheOption = Annotated[
    Path | None, typer.Option(help="A folder of answers shared between runs.", show_default=False)
]
ExecutorOption = Annotated[str, typer.Option(help="Who runs the batches: local, or what a package registers.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")]
