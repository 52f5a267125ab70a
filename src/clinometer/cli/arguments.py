"""Options that several commands share, and options with several values: `--fraction 0.1 0.25 0.5`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from clinometer.engine import ClusterSettings

_SETTING = re.compile(r"[a-z_]+\.[a-z_]+=")

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.", show_default=False)]
RunOrBundle = Annotated[
    Path, typer.Argument(metavar="RUN", help="The run folder, or a bundle of it.", show_default=False)
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, gpu, cuda or cuda:N.")]
BatchTokensOption = Annotated[
    int, typer.Option(min=0, help="Padded tokens in one batch; 0 chooses by device. Only changes speed.")
]
CacheOption = Annotated[
    Path | None, typer.Option(help="A folder of answers shared between runs.", show_default=False)
]
ExecutorOption = Annotated[
    str, typer.Option(help="What runs the batches: local, ray, or an executor of an installed package.")
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(
        help="--executor ray: a running cluster, such as auto. Default: start one here.", show_default=False
    ),
]
WorkersOption = Annotated[
    int, typer.Option(min=0, help="--executor ray: how many workers; 0: as many as there is room for.")
]
WorkerResourcesOption = Annotated[
    list[str] | None,
    typer.Option(
        help="--executor ray: what each worker has, such as gpu=1 or cpu=4,gpu=2. Default: cpu=1.",
        metavar="NAME=NUMBER",
        show_default=False,
    ),
]
RayLogsOption = Annotated[bool, typer.Option("--ray-logs", help="--executor ray: show what Ray logs.")]
ConcurrencyOption = Annotated[
    int, typer.Option(min=1, max=1024, help="Calls to an endpoint at a time; fewer while it says it is busy.")
]
MaxRequestsOption = Annotated[
    int, typer.Option(min=0, help="Requests that this command may send to endpoints at most; 0: no limit.")
]
MaxTokensOption = Annotated[
    int, typer.Option(min=0, help="Tokens that this command may use at endpoints at most; 0: no limit.")
]
MaxCostOption = Annotated[
    float, typer.Option(min=0, help="What this command may cost at most, by --price; 0: no limit.")
]
AcceptMissingOption = Annotated[
    bool, typer.Option("--accept-missing", help="answers:FILE: conclude even if answers are missing.")
]
SeedOption = Annotated[int, typer.Option(help="Seed of every random choice.")]
SeedsOption = Annotated[
    list[str] | None,
    typer.Option(
        help="How many trainings of each kind, or their seeds (13 21 42). Intervals include what differs between "
        "them.",
        show_default="3; 1 with --profile quick or --no-audit",
        metavar="N|SEED…",
    ),
]
LearningRateOption = Annotated[float, typer.Option(help="Highest learning rate; it falls to 0.")]
AuditOption = Annotated[bool, typer.Option("--audit/--no-audit", help="Audit the model before and after.")]
ProfileOption = Annotated[str, typer.Option(help="Size of the audit: quick, standard or paper.")]
SettingsOption = Annotated[
    list[str] | None, typer.Option("--set", help="An option of the audit: PROBE.OPTION=VALUE.", show_default=False)
]
DtypeOption = Annotated[
    Literal["auto", "float32", "bfloat16"],
    typer.Option(help="The numbers to compute in; bfloat16 is mixed precision. auto: bfloat16 on a GPU."),
]
TrustOption = Annotated[
    list[str] | None, typer.Option(help="A model whose own code may run; repeatable.", show_default=False)
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")]


class SeveralValues(TyperCommand):
    """A command whose repeatable options may also be given once with all their values.

    The values end at the next option, so arguments of the command, such as MODEL, come first or after `--`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the flags, then parse as usual."""
        flags = {flag for param in self.params if getattr(param, "multiple", False) for flag in param.opts}
        return super().parse_args(ctx, spread(args, flags))


class SeveralSettings(TyperCommand):
    """A command whose `--set` takes several settings at once: `--set stigma.draws=500 stigma.top_k=20`.

    Nothing else is taken for a setting, so that models may be named anywhere.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat `--set` before each further setting, then parse as usual."""
        result: list[str] = []
        setting = False
        for arg in args:
            if setting and _SETTING.match(arg) and result[-1] != "--set":
                result.append("--set")
            elif not (setting and result[-1] == "--set"):
                setting = arg == "--set"
            result.append(arg)
        return super().parse_args(ctx, result)


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
        elif current and result[-1] != current:  # another value: repeat the flag
            result.append(current)
        result.append(arg)
    return result


def cluster_of(
    executor: str, address: str | None, workers: int, resources: list[str] | None, logs: bool
) -> ClusterSettings:
    """Return the cluster that the options describe; SpecError where they need --executor ray."""
    from clinometer.engine import ClusterSettings
    from clinometer.engine.cluster.settings import read_resources
    from clinometer.errors import SpecError

    given = {"--ray-address": address, "--workers": workers, "--worker-resources": resources, "--ray-logs": logs}
    if executor != "ray" and any(given.values()):
        named = ", ".join(name for name, value in given.items() if value)
        raise SpecError(f"{named}: only --executor ray has workers; add it, or leave that out")
    return ClusterSettings(
        address=address or "", workers=workers, resources=read_resources(resources or []), logs=logs
    )


def comma_separated(values: Sequence[str]) -> list[str]:
    """Split values that are written with commas.

    >>> comma_separated(["13,21", "42"])
    ['13', '21', '42']
    """
    return [part.strip() for value in values for part in value.split(",") if part.strip()]
