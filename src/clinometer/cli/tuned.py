"""What `tune`, `shift` and `mitigate` share: a folder of checkpoints with the audit of before and after."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from clinometer.cli.progress import finish_run, show_progress
from clinometer.cli.spec_options import spec_from_options
from clinometer.engine import Progress
from clinometer.train.processes import is_main_process
from clinometer.types import AuditSpec
from clinometer.workflows import Execution
from clinometer.workflows.checkpoints import AUDIT, audit_beside, check_audit, short_name
from clinometer.workflows.checkpoints import working_in as working_beside

__all__ = ["audit_spec", "audit_together", "check_audit", "short_name", "training", "working_in"]


@contextlib.contextmanager
def working_in(out: Path, *, lock: str) -> Iterator[None]:
    """Hold the folder; of several processes that train together, the first one does this for all."""
    with working_beside(out, lock=lock) if is_main_process() else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def training(*, quiet: bool) -> Iterator[Progress]:
    """Show a training; on Ctrl-C say how to go on."""
    try:
        with show_progress(quiet=quiet) as progress:
            yield progress
    except KeyboardInterrupt:
        print("\nclinometer: stopped; the same command goes on where it was", file=sys.stderr)
        raise typer.Exit(130) from None


def audit_spec(
    model: str,
    folders: Sequence[Path],
    *,
    probes: Sequence[str],
    profile: str,
    seed: int,
    settings: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    roles: Mapping[str, Sequence[str] | None] | None = None,
    label_maps: Sequence[str] = (),
) -> AuditSpec:
    """Return the audit of a model and its checkpoints, which need not be there yet."""
    return spec_from_options(
        models=[model, *(str(folder.resolve()) for folder in folders)],
        probes=probes,
        profile=profile,
        seed=seed,
        dtype="auto",
        settings=settings,
        shortcuts=options,
        roles=roles or {},
        label_maps=label_maps,
        trusted=[],
    )


def audit_together(spec: AuditSpec, out: Path, *, device: str, quiet: bool) -> None:
    """Audit the models of before and after in one run with one report, or complete that run."""
    execution = Execution(device=device)
    finish_run(
        out / AUDIT,
        lambda progress: audit_beside(spec, out, execution=execution, progress=progress),
        quiet=quiet,
    )
