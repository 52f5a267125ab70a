"""Where a run can be begun, and what is said where it cannot."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from clinometer.errors import DiskFullError, InputError, StoreError
from clinometer.store.atomic import TEMPORARY
from clinometer.store.documents import INPUTS, LOCK, MODELS, PLACES, PROVENANCE, SPEC


@contextlib.contextmanager
def explain_creation(path: Path) -> Iterator[None]:
    """Say of a run that cannot be begun what is wrong, and not that it could be resumed: there is nothing yet."""
    try:
        yield
    except StoreError as error:
        cause = error.__cause__
        if not isinstance(cause, OSError):
            raise
        kind = DiskFullError if isinstance(error, DiskFullError) else InputError
        raise kind(
            f"no run can be begun in {path}: {cause.strerror or cause}; fix that, or name another place with --out"
        ) from cause


def refuse_occupied(path: Path) -> None:
    """Raise InputError unless a run can be created here."""
    if not path.exists() and not path.is_symlink():
        return
    if not path.is_dir():
        raise InputError(f"{path} exists and is not a folder; give the name of a new folder for the run")
    names = {entry.name for entry in path.iterdir() if not entry.name.startswith(TEMPORARY)}
    if PROVENANCE in names:
        raise InputError(
            f"{path} already holds a run; continue it with `clinometer resume {path}`, or name a new folder"
        )
    # our lock but no provenance: creation was interrupted before anything was recorded
    if names and not (LOCK in names and names <= {LOCK, SPEC, MODELS, INPUTS, PLACES}):
        raise InputError(f"{path} is not empty (it has {min(names)}); give the name of a new folder for the run")
