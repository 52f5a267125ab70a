"""A run folder holds plain files and folders, and nothing is opened, written or removed through a link in it.

People send each other run folders. A link in one that comes from a stranger could lead anywhere: to a file that
would be overwritten, or to one that would be copied into a report. The folder itself may be reached by a link,
because then it is the user who chose it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from clinometer.errors import StoreError
from clinometer.limits import TEXT

_SHOWN = 5  # how many of them an error names
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


def read_plain(path: Path, *, most: int = TEXT) -> bytes:
    """Return the bytes of a plain file; raise OSError for a link, and for a pipe or device without waiting.

    Raises OSError, too, for a file of more than `most` bytes: one with holes takes no room on disk.
    """
    if path.is_symlink():  # Windows has no O_NOFOLLOW
        raise OSError(errno.ELOOP, "it is a link")
    descriptor = os.open(path, os.O_RDONLY | _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file")
        if status.st_size > most:
            raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def plain_files(root: Path, *, below: str = "") -> Iterator[str]:
    """Yield every plain file in a folder of the run by its path, such as `findings/stigma/index.json`."""
    for path, entry in _entries(root, below):
        if entry.is_file(follow_symlinks=False):
            yield path


def require_plain(root: Path) -> None:
    """Raise StoreError that names what is neither a plain file nor a folder, anywhere in a run folder."""
    found: list[str] = []
    links = False
    for path, entry in _entries(root, ""):
        if entry.is_symlink() or not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
            found.append(path)
            links = links or entry.is_symlink()
    if found:
        named = ", ".join(sorted(found)[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if found[_SHOWN:] else "")
        what = ("links" if len(found) > 1 else "a link") if links else "not a plain file"
        raise StoreError(
            f"{root}: {named}: {what}; a run holds plain files and folders only, and nothing was touched: put the "
            "file itself there, or remove it"
        )


def require_single(path: Path) -> None:
    """Raise StoreError unless a file that is written in place is absent, or a plain file without a second name."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise StoreError(f"{path} is a link, or not a plain file; nothing was touched: remove it and try again")


def _entries(root: Path, below: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield what is in a folder and the folders in it, each with its path; links are not followed."""
    waiting = [below]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    yield path, entry
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
        except FileNotFoundError:
            continue  # a file that somebody else has just removed; a folder that is not there yet
        except OSError as error:
            raise StoreError(f"{root / folder} cannot be read: {error.strerror}; make it readable") from error
