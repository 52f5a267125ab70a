"""`clinometer resume`: complete a run that was stopped."""

from __future__ import annotations

from clinometer.cli.arguments import BatchTokensOption, CacheOption, DeviceOption, QuietOption, RunArgument


def resume(
    run: RunArgument,
    device: DeviceOption = "auto",
    batch_tokens: BatchTokensOption = 0,
    cache: CacheOption = None,
    quiet: QuietOption = False,
) -> None:
    """Complete a run that was stopped; what is recorded is kept."""
    from clinometer.cli.finish import finish_run
    from clinometer.front import open_run
    from clinometer.workflows import Execution, resume_audit

    folder = open_run(run)
    execution = Execution(device=device, batch_tokens=batch_tokens, cache=cache)
    finish_run(run, lambda progress: resume_audit(folder, execution=execution, progress=progress), quiet=quiet)
