"""`clinometer resume`, `verify` and `report`: the commands that take a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinometer.cli import arguments
from clinometer.cli.outcome import (
    AllowOption,
    FailOnOption,
    JsonOption,
    LimitsOption,
    MarkdownOption,
    Outcome,
    check_limits,
    settle,
)
from clinometer.cli.progress import finish_run
from clinometer.cli.terminal import show

if TYPE_CHECKING:
    from clinometer.store import RunFolder


def resume(
    run: arguments.RunArgument,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Where a model's folder or file is now, if it has moved; repeatable.",
            metavar="NAME=PLACE",
            show_default=False,
        ),
    ] = None,
    device: arguments.DeviceOption = "auto",
    batch_tokens: arguments.BatchTokensOption = 0,
    cache: arguments.CacheOption = None,
    executor: arguments.ExecutorOption = "local",
    ray_address: arguments.RayAddressOption = None,
    workers: arguments.WorkersOption = 0,
    worker_resources: arguments.WorkerResourcesOption = None,
    ray_logs: arguments.RayLogsOption = False,
    base_url: Annotated[
        str | None,
        typer.Option(
            help="The address of the run's endpoint. Give it again: your key goes to another machine only then.",
            show_default=False,
        ),
    ] = None,
    concurrency: arguments.ConcurrencyOption = 8,
    max_requests: arguments.MaxRequestsOption = 0,
    max_tokens: arguments.MaxTokensOption = 0,
    max_cost: arguments.MaxCostOption = 0.0,
    accept_missing: arguments.AcceptMissingOption = False,
    trust_remote_code: arguments.TrustOption = None,
    accept_code_change: Annotated[
        bool,
        typer.Option(
            "--accept-code-change",
            help="Go on although Clinometer's code for asking models changed; it is recorded.",
        ),
    ] = False,
    quiet: arguments.QuietOption = False,
) -> None:
    """Complete a run that was stopped; recorded answers are kept."""
    from clinometer.engine import Limits
    from clinometer.models.endpoint.address import trust
    from clinometer.store import working_folder
    from clinometer.workflows import Execution, ResumeRequest, run_resume

    if base_url is not None:
        trust(base_url)
    limits = Limits(requests=max_requests, tokens=max_tokens, cost=max_cost)
    execution = Execution(
        device=device,
        batch_tokens=batch_tokens,
        cache=cache,
        executor=executor,
        cluster=arguments.cluster_of(executor, ray_address, workers, worker_resources, ray_logs),
        concurrency=concurrency,
        limits=limits,
        accept_missing=accept_missing,
    )
    with working_folder(run) as folder:
        request = ResumeRequest(
            run=_opened(folder),
            execution=execution,
            trusted=tuple(trust_remote_code or ()),
            accept_code_change=accept_code_change,
            places=_places(model or []),
        )
        finish_run(run, lambda progress: run_resume(request, progress=progress), quiet=quiet)


def verify(run: arguments.RunOrBundle) -> None:
    """Check the checksums of a run or bundle and recompute its findings; needs no model."""
    from clinometer.store import fetched
    from clinometer.workflows import VerifyRequest, run_verify

    result = run_verify(VerifyRequest(run=_opened(fetched(run))))
    for note in result.notes:
        show(f"note: {note}")
    for problem in result.problems:
        show(problem)
    if result.problems:
        raise typer.Exit(1)
    audits = f"{result.findings} audit{'s' if result.findings > 1 else ''}"
    apart = ", apart from tables of an older estimator" if result.older else ""
    show(f"{run}: {result.records:,} records intact, findings of {audits} recomputed and equal{apart}")
    if result.digest:
        show(f"digest  {result.digest}")


def report(
    run: arguments.RunOrBundle,
    figures: Annotated[
        Path | None,
        typer.Option(help="Also save every figure as PNG and SVG into this folder.", show_default=False),
    ] = None,
    json: JsonOption = None,
    markdown: MarkdownOption = None,
    fail_on: FailOnOption = "",
    limits: LimitsOption = None,
    allow_cannot_tell: AllowOption = False,
) -> None:
    """Write the report of a run again; that of a bundle, next to its file. Needs no model."""
    outcome = Outcome(
        json=json, markdown=markdown, fail_on=fail_on, allow_cannot_tell=allow_cannot_tell, limits_file=limits
    )
    from clinometer.results import Run
    from clinometer.store import working_folder
    from clinometer.workflows import report_run

    with working_folder(run) as place:
        folder = _opened(place)
        check_limits(Run(folder), outcome)
        show(report_run(folder))
        if figures is not None:
            from clinometer.report import save_figures

            for path in save_figures(folder, figures):
                show(path)
        settle(Run(folder), outcome)


def _places(given: list[str]) -> dict[str, str]:
    from clinometer.errors import SpecError

    places = {}
    for each in given:
        label, equals, place = each.rpartition("=")
        if not equals or not label or not Path(place).exists():
            raise SpecError(f"--model {each!r}: expected NAME=FOLDER or NAME=FILE, with a model of the run")
        places[label] = place
    return places


def _opened(run: Path) -> RunFolder:
    """Open a run or bundle, and clear what a killed command left half-written in it."""
    from clinometer.store import open_any

    folder = open_any(run)
    folder.clear_leftovers()
    return folder
