"""Files that are either whole or not there: the one way in which a run folder is written."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from clinometer.errors import DiskFullError, StoreError

TEMPORARY = ".tmp-"  # how the name of an unfinished file begins; readers pass it over
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_atomically(path: Path, data: bytes, *, run: Path) -> None:
    """Write a file so that a kill or a full disk leaves the old one, or none, but never a part of the new one.

    `run` is the run folder, named in the error so that the user knows what to resume.
    """
    write_together(path.parent, {path.name: data}, run=run)


def write_together(folder: Path, files: Mapping[str, bytes], *, run: Path) -> None:
    """Write several files of a folder, in order, none of them before there is room for all."""
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
    """Create a folder and its missing parents, and see that they survive a power cut."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    with explain_os_errors(f"the folder {path}", folder=path, run=run):
        path.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            _sync_folder(folder.parent)


def rename_durably(source: Path, target: Path, *, run: Path) -> None:
    """Rename a file within its folder, and see that the new name survives a power cut."""
    with explain_os_errors(f"{target} (renamed from {source.name})", folder=source.parent, run=run):
        os.rename(source, target)
        _sync_folder(source.parent)


def remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files that a killed process left in a folder; only for who holds the run's lock."""
    for leftover in folder.glob(TEMPORARY + "*"):
        leftover.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make renames within a folder durable; Windows has no such thing to do, and cannot open a folder."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def explain_os_errors(what: str, *, folder: Path, run: Path) -> Iterator[None]:
    """Turn an error of the operating system into one that says what was being written and what to do."""
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
            f"mend that, then run `clinometer resume {run}`"
        ) from error


def _free_bytes(folder: Path) -> str:
    """Return how many bytes this user may still write where the folder is, or would be."""
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    try:
        return f"{shutil.disk_usage(existing).free:,}"
    except OSError:
        return "unknown"
