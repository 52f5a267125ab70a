"""Options that several commands share, and options with several values: `--fraction 0.1 0.25 0.5`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

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


class SeveralValues(TyperCommand):
    """A command whose repeatable options may also be given once with all their values.

    The values of such an option end at the next option; so arguments of the command, such as MODEL, come first (or
    behind `--`).
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Spread the values, then parse as usual."""
        flags = {flag for param in self.params if getattr(param, "multiple", False) for flag in param.opts}
        return super().parse_args(ctx, spread(args, flags))


def spread(args: Sequence[str], flags: Collection[str]) -> list[str]:
    """Repeat a flag before each of its values.

    >>> spread(["bert", "--fraction", "0.1", "0.5", "-q"], {"--fraction"})
    ['bert', '--fraction', '0.1', '--fraction', '0.5', '-q']
    """
    result: list[str] = []
    current = ""
    for index, arg in enumerate(args):
        if arg == "--":
            return [*result, *args[index:]]
        if arg.startswith("-") and arg != "-":
            current = arg if arg in flags else ""
        elif current and result[-1] != current:  # a second value: the flag once more
            result.append(current)
        result.append(arg)
    return result


def comma_separated(values: Sequence[str]) -> list[str]:
    """Take values apart that are written with commas.

    >>> comma_separated(["13,21", "42"])
    ['13', '21', '42']
    """
    return [part.strip() for value in values for part in value.split(",") if part.strip()]
