"""What `tune`, `shift`, `mitigate` and `train` share: read their options, show a training, print what it made."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import typer

from clinometer.cli.arguments import comma_separated
from clinometer.cli.progress import print_run, show_progress
from clinometer.cli.spec_options import parse_label_maps, parse_settings
from clinometer.cli.terminal import show
from clinometer.engine import Progress
from clinometer.errors import InputError
from clinometer.train import Checkpoint
from clinometer.train.processes import is_main_process
from clinometer.types import ModelSpec
from clinometer.workflows.checkpoints import CheckpointAudit, Tuned


def checkpoint_audit(
    *,
    profile: str,
    settings: Sequence[str] | None,
    roles: Mapping[str, Sequence[str] | None] | None = None,
    label_maps: Sequence[str] | None = None,
) -> CheckpointAudit:
    """Return the audit that the options describe."""
    players = {role: list(names) for role, names in (roles or {}).items() if names}
    if label_maps and not players:
        raise InputError("--label-map says what the labels of a scorer mean; name the scorer with --scorer")
    maps = parse_label_maps(label_maps or [], [name for names in players.values() for name in names])
    described: dict[str, Any] = {
        role: tuple(ModelSpec(name=name, label_map=maps[name]) if name in maps else name for name in names)
        for role, names in players.items()
    }
    return CheckpointAudit(
        profile=profile,  # type: ignore[arg-type]  # what it may be is checked with the audit
        options=parse_settings(settings or [], {}),
        roles=described,
    )


def numbers(flag: str, given: Sequence[str], *, such_as: str) -> tuple[float, ...]:
    """Read numbers, with or without commas between them."""
    found = []
    for part in comma_separated(given):
        try:
            found.append(float(part))
        except ValueError:
            raise InputError(f"{flag} {part!r} is not a number; expected numbers such as {such_as}") from None
    return tuple(found)


def seeds(given: Sequence[str] | None) -> int | tuple[int, ...] | None:
    """Read how many trainings of each kind are wanted (one number), or their seeds (several)."""
    if given is None:
        return None
    parts = comma_separated(given)
    wrong = [part for part in parts if not part.isdecimal()]
    if wrong or not parts:
        raise InputError(
            f"--seeds {', '.join(wrong) or 'nothing'}: expected whole numbers, such as 3, or 13 21 42"
        )
    return int(parts[0]) if len(parts) == 1 else tuple(dict.fromkeys(map(int, parts)))


@contextlib.contextmanager
def training(*, quiet: bool) -> Iterator[Progress]:
    """Show a training; on Ctrl-C say how to resume. Of several processes, the first one alone shows it."""
    try:
        with show_progress(quiet=quiet or not is_main_process()) as progress:
            yield progress
    except KeyboardInterrupt:
        show(error=True)
        show("clinometer: stopped; the same command resumes where it was", error=True)
        raise typer.Exit(130) from None


def tune_and_print(
    work: Callable[[Progress], Tuned], print_checkpoint: Callable[[Tuned, Checkpoint], None], *, quiet: bool
) -> None:
    """Train and audit, then print the checkpoints and what the audit found."""
    with training(quiet=quiet) as progress:
        tuned = work(progress)
    if not is_main_process():
        return
    for checkpoint in tuned.checkpoints:
        print_checkpoint(tuned, checkpoint)
    if tuned.run is not None:
        print_run(tuned.run)
