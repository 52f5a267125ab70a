"""The files of a run folder: written whole or not at all, and JSON documents read back."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from clinometer.errors import DiskFullError, StoreError
from clinometer.store.inside import read_plain

T = TypeVar("T")

TEMPORARY = ".tmp-"  # starts the name of an unfinished file; readers skip it
_LEFTOVER = re.compile(re.escape(TEMPORARY) + "[0-9a-f]+")
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_atomically(path: Path, data: bytes, *, run: Path) -> None:
    """Write a file so that a kill or a full disk leaves the old one or none, never part of the new one.

    `run` is the run folder; errors name it, so that the user knows what to resume.
    """
    write_together(path.parent, {path.name: data}, run=run)


def write_together(folder: Path, files: Mapping[str, bytes], *, run: Path) -> None:
    """Write several files into a folder, in order, and only once there is room for all of them."""
    temporaries = {name: folder / (TEMPORARY + secrets.token_hex(8)) for name in files}
    try:
        for name, data in files.items():
            with (
                explain_os_errors(f"{folder / name} ({len(data):,} bytes)", folder=folder, run=run),
                open(temporaries[name], "xb") as file,
            ):
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        with explain_os_errors(str(folder), folder=folder, run=run):
            for name, temporary in temporaries.items():
                os.replace(temporary, folder / name)
            _sync_folder(folder)
    except BaseException:
        for temporary in temporaries.values():
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        raise


def make_folder(path: Path, *, run: Path) -> None:
    """Create a folder and its missing parents so that they survive a power cut."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    with explain_os_errors(f"the folder {path}", folder=path, run=run):
        path.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            _sync_folder(folder.parent)


def rename_durably(source: Path, target: Path, *, run: Path) -> None:
    """Rename a file within its folder so that the new name survives a power cut."""
    with explain_os_errors(f"{target} (renamed from {source.name})", folder=source.parent, run=run):
        os.rename(source, target)
        _sync_folder(source.parent)


def remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files that a killed process left in a folder. Hold the run's lock."""
    for leftover in folder.glob(TEMPORARY + "*"):
        if _LEFTOVER.fullmatch(leftover.name) and leftover.is_file() and not leftover.is_symlink():
            leftover.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make renames within a folder durable. Windows cannot open a folder, and has no need to."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def explain_os_errors(what: str, *, folder: Path, run: Path) -> Iterator[None]:
    """Turn an operating-system error into one that says what was being written and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise DiskFullError(
                f"no space left while writing {what}: {error.strerror}, {_free_bytes(folder)} bytes free; nothing "
                f"written earlier was damaged: make room, then run `clinometer resume {run}`"
            ) from error
        raise StoreError(
            f"cannot write {what}: {error.strerror or error}; nothing written earlier was damaged: "
            f"fix that, then run `clinometer resume {run}`"
        ) from error


def _free_bytes(folder: Path) -> str:
    """Return how many bytes can still be written where the folder is, or would be."""
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    try:
        return f"{shutil.disk_usage(existing).free:,}"
    except OSError:
        return "unknown"


def to_json(value: object) -> bytes:
    """Return a value as JSON: the same bytes for equal values. NaN stays NaN, which Python can read back."""
    return (json.dumps(_plain(value), indent=1) + "\n").encode("ascii")


def read_json(path: Path, build: Callable[[Any], T]) -> T:
    """Read a JSON document and build a value from it; raise StoreError that names a broken file."""
    try:
        return build(json.loads(read_plain(path)))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StoreError(
            f"{path} is damaged ({error or type(error).__name__}); put back the file that was there"
        ) from error


def _plain(value: object) -> object:
    """Replace dataclasses, mappings, tuples and numpy scalars with what JSON has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
