"""One process at a time on a run folder."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import filelock

from clinometer.errors import RunLockedError
from clinometer.store.atomic import explain_os_errors
from clinometer.store.inside import require_single


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock file until the block ends; raise RunLockedError with the pid of another process that holds it.

    The system drops the lock when its process ends, however it ends, so a file left behind never blocks. The file
    stays: removing it would let two processes lock two files of the same name. It is written in place, so it must
    not be a link.
    """
    require_single(path)
    lock = filelock.FileLock(path, mode=0o666, thread_local=False)
    with explain_os_errors(f"the lock {path}", folder=path.parent, run=path.parent):
        try:
            lock.acquire(blocking=False)
        except filelock.Timeout:
            raise RunLockedError(
                f"{path.parent} is in use by process {_holder(path)}; wait until it ends, or stop it"
            ) from None
    try:
        # On a full disk even these few bytes may fail. The lock still holds, only without a name.
        with contextlib.suppress(OSError):
            if not isinstance(lock, filelock.SoftFileLock):  # it writes its own text there
                path.write_text(f"{os.getpid()}\n", encoding="ascii")
        yield
    finally:
        with contextlib.suppress(OSError):  # a lock that nobody holds names nobody
            if not isinstance(lock, filelock.SoftFileLock):
                os.truncate(path, 0)
        lock.release()


def _holder(path: Path) -> str:
    """Return the pid in a lock file; it is written just after the lock is taken, so wait a little for it."""
    for _ in range(20):
        with contextlib.suppress(OSError):  # on Windows nobody else can read a locked file
            if pid := path.read_text(errors="replace").strip():
                return pid
        time.sleep(0.01)
    return "(of unknown id)"
