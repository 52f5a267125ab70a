"""Working on a run that is on shared storage: a folder here, a thread that sends what is finished, a lease."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import final

from clinometer.errors import ClinometerError, InputError, RunLockedError
from clinometer.folders import cache_folder
from clinometer.store.atomic import make_folder
from clinometer.store.documents import PROVENANCE
from clinometer.store.lease import EXPIRES, RENEWED, Lease
from clinometer.store.remote import Mirror, Remote, address_of

SENT_SECONDS = 2.0  # between two looks at what is finished


@contextlib.contextmanager
def working_folder(place: str | PurePath, *, new: bool = False) -> Iterator[Path]:
    """Yield the folder in which a run is worked on: the place itself, or a mirror of one on shared storage.

    A mirrored run is leased until the block ends, and what is written to it is sent. `new` refuses a place that
    has a run already.
    """
    address = address_of(place)
    if not address:
        yield Path(place)
        return
    remote, folder = Remote(address), mirror_of(address)
    lease = Lease(remote)
    lease.take()
    try:
        if new and PROVENANCE in remote.files():
            raise InputError(
                f"{address} already holds a run; continue it with `clinometer resume {address}`, or name a new "
                "folder"
            )
        mirror = Mirror(remote, folder)
        mirror.fetch()
        with _Sending(mirror, lease):
            yield folder
    finally:
        lease.give_back()


def fetched(place: str | PurePath) -> Path:
    """Return the folder of a run that is only read: the place itself, or a fresh copy of one on shared storage."""
    address = address_of(place)
    if not address:
        return Path(place)
    folder = mirror_of(address)
    Mirror(Remote(address), folder).fetch()
    return folder


def mirror_of(address: str) -> Path:
    """Return where a run on shared storage is worked on here."""
    folder = cache_folder() / "runs" / hashlib.sha256(address.encode()).hexdigest()[:20]
    make_folder(folder.parent, run=folder)
    return folder


@final
class _Sending:
    """Sends what is finished, and renews the lease, until the work ends; then sends all that is left."""

    def __init__(self, mirror: Mirror, lease: Lease) -> None:
        self._mirror = mirror
        self._lease = lease
        self._over = threading.Event()
        self._problem: ClinometerError | None = None
        self._thread = threading.Thread(target=self._run, name="clinometer-mirror", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._problem is not None:
            raise self._problem
        self._lease.renew()
        if self._mirror.folder.is_dir():
            self._mirror.send()

    def _run(self) -> None:
        """Work until the end, or until somebody else has the run: then nothing more is sent."""
        renewed = sent = time.monotonic()
        while not self._over.wait(SENT_SECONDS):
            try:
                if time.monotonic() - renewed >= RENEWED:
                    self._lease.renew()
                    renewed = time.monotonic()
                if self._mirror.folder.is_dir():
                    self._mirror.send()
                sent = time.monotonic()
            except ClinometerError as error:
                # a network that is away for a while is no reason to stop; a lease that is lost is
                if isinstance(error, RunLockedError) or time.monotonic() - max(renewed, sent) > EXPIRES / 2:
                    self._problem = error
                    return
