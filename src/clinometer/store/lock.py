"""One process at a time on a run folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from clinometer.errors import RunLockedError, StoreError
from clinometer.store.atomic import explain_os_errors


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock file until the block ends; raise RunLockedError with the pid of who holds it already.

    The kernel drops the lock when its process ends, however it ends: a file left behind never blocks. The file
    stays, because removing it would let two processes lock two files of the same name.
    """
    with explain_os_errors(f"the lock {path}", folder=path.parent, run=path.parent):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise StoreError(
                    f"cannot lock {path}: {error.strerror}; put the run on a file system that can lock files"
                ) from error
            raise RunLockedError(
                f"{path.parent} is in use by process {_holder(path)}; wait until it ends, or stop it"
            ) from None
        # Ten bytes: on a full disk this may fail, and then the lock still holds, only without a name.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _holder(path: Path) -> str:
    """Return the pid in a lock file; it is written just after the lock is taken, so wait for it a little."""
    for _ in range(20):
        if pid := path.read_text(errors="replace").strip():
            return pid
        time.sleep(0.01)
    return "(of unknown id)"
