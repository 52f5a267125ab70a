"""`clinometer resume`: complete a run that was stopped."""

from __future__ import annotations

from clinometer.cli.arguments import (
    BatchTokensOption,
    CacheOption,
    DeviceOption,
    ExecutorOption,
    QuietOption,
    RunArgument,
)


def resume(
    run: RunArgument,
    device: DeviceOption = "auto",
    batch_tokens: BatchTokensOption = 0,
    cache: CacheOption = None,
    executor: ExecutorOption = "local",
    quiet: QuietOption = False,
) -> None:
    """Complete a run that was stopped; what is recorded is kept."""
    from clinometer.cli.finish import finish_run
    from clinometer.store import RunFolder
    from clinometer.workflows import Execution, ResumeRequest, run_resume

    execution = Execution(device=device, batch_tokens=batch_tokens, cache=cache, executor=executor)
    request = ResumeRequest(run=RunFolder.open(run), execution=execution)
    finish_run(run, lambda progress: run_resume(request, progress=progress), quiet=quiet)
