"""A run on shared storage: `s3://…`, `gs://…`, whatever Arrow can open by an address.

The run is worked on in a folder of this machine, as always, and mirrored: every finished file is sent to the store
within seconds. So no rule of the run folder has to be told twice. A part has its checksum in its name and is sent
whole or not at all; `provenance.json`, which makes a folder a run, comes after what it vouches for, and the seal
comes last. What the store has counts: whoever goes on elsewhere fetches that, and a driver that dies loses what it
had not sent yet, a few seconds of answers, which are asked again.

`lease.py` keeps two drivers apart.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any, TypeVar, final

import pyarrow as pa
from pyarrow import fs

from clinometer.errors import InputError, StoreError, reason
from clinometer.store.atomic import TEMPORARY, make_folder, write_atomically
from clinometer.store.documents import LOCK, PLACES, PROVENANCE, REPORT
from clinometer.store.inside import plain_files, read_plain
from clinometer.store.names import PartName
from clinometer.store.seal import RECORDS, SEAL

T = TypeVar("T")

LEASES = "leases"  # the folder in the store that says who works on the run
_SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs")
_ADDRESS = re.compile(rf"({'|'.join(_SCHEMES)}):/+(.+)")
_HERE_ONLY = (LOCK, PLACES)  # who works on it here, and where models are here
_WHOLE = ("s3", "gcs", "abfs")  # stores in which a file appears when it is complete
_LIMIT = 2**31
_PAUSES = (0.1, 0.5)  # seconds before a file is read again


def address_of(place: str | PurePath) -> str:
    """Return the address of a place on shared storage, "" for a folder here. A Path loses one of two slashes.

    >>> address_of("s3://bucket/run"), address_of(PurePath("s3://bucket/run")), address_of("runs/s3")
    ('s3://bucket/run', 's3://bucket/run', '')
    """
    found = _ADDRESS.fullmatch(str(place).rstrip("/"))
    return f"{found[1]}://{found[2]}" if found else ""


@final
class Remote:
    """A folder on shared storage."""

    def __init__(self, address: str) -> None:
        self.address = address
        try:
            self._fs, self._root = _opened(address)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(
                f"{address} cannot be opened ({reason(error)}); expected such as s3://bucket/run"
            ) from error

    def files(self, below: str = "") -> dict[str, Any]:
        """Return the files by their path in the folder, with what the store says of each."""
        root = f"{self._root}/{below}" if below else self._root
        chosen = fs.FileSelector(root, recursive=True, allow_not_found=True)
        found = self._try("list", lambda: self._fs.get_file_info(chosen))
        return {info.path[len(self._root) + 1 :]: info for info in found if info.type == fs.FileType.File}

    def read(self, path: str) -> bytes:
        """Return a file; raise FileNotFoundError where there is none."""

        def work() -> bytes:
            with self._fs.open_input_stream(self._place(path)) as stream:
                return bytes(stream.read())

        for again in _PAUSES:  # a file that is replaced while it is read makes a store fail in odd ways
            try:
                return self._try(f"read {path} of", work)
            except StoreError:
                time.sleep(again)
        return self._try(f"read {path} of", work)

    def write(self, path: str, data: bytes) -> None:
        """Write a file: once it is seen by others, it is whole."""
        place = self._place(path)
        whole = self._fs.type_name in _WHOLE
        folder = place.rpartition("/")[0]
        target = place if whole else f"{folder}/{TEMPORARY}{secrets.token_hex(8)}"

        def work() -> None:
            if not whole:
                self._fs.create_dir(folder, recursive=True)
            with self._fs.open_output_stream(target) as stream:
                stream.write(data)
            if not whole:
                self._fs.move(target, place)

        self._try(f"write {path} to", work)

    def remove(self, path: str) -> None:
        """Remove a file; one that is gone already is fine."""

        def work() -> None:
            with contextlib.suppress(FileNotFoundError):
                if self._fs.get_file_info(self._place(path)).type == fs.FileType.File:
                    self._fs.delete_file(self._place(path))

        self._try(f"remove {path} from", work)

    def _place(self, path: str) -> str:
        if path.startswith("/") or ".." in PurePath(path).parts:
            raise StoreError(f"{self.address} has a file {path!r} that would lead out of the run")
        return f"{self._root}/{path}"

    def _try(self, what: str, work: Callable[[], T]) -> T:
        try:
            return work()
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise StoreError(
                f"cannot {what} {self.address} ({reason(error)}); check the address, the network and your rights"
            ) from error


def _opened(address: str) -> tuple[Any, str]:
    scheme, _, rest = address.partition("://")
    if scheme == "s3" and (
        endpoint := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    ):
        # Arrow asks Amazon unless it is told otherwise; this is how every other client is told
        plain, _, host = endpoint.partition("://")
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        return fs.S3FileSystem(endpoint_override=host.rstrip("/"), scheme=plain, region=region), rest
    try:
        found, root = fs.FileSystem.from_uri(address)
    except pa.ArrowInvalid:  # an address that only fsspec knows
        found, root = fs.FileSystem.from_uri(f"fsspec+{address}")
    return found, root.rstrip("/")


@final
class Mirror:
    """Sends what changed in a folder of this machine to the store, and fetches what the store has."""

    def __init__(self, remote: Remote, folder: Path) -> None:
        self.remote = remote
        self.folder = folder
        self._sent: dict[str, tuple[int, int]] = {}  # path -> size and time of the file that the store has

    def fetch(self) -> None:
        """Make the folder what the store has; a part that is here under its checksum is not fetched again."""
        for _ in range(5):
            try:
                self._fetch()
                return
            except FileNotFoundError:  # parts were joined while they were read: look again
                continue
        raise StoreError(f"{self.remote.address} changes faster than it can be read; is another driver at work?")

    def _fetch(self) -> None:
        there = {path: info for path, info in self.remote.files().items() if _belongs(path)}
        for path in list(plain_files(self.folder)) if self.folder.is_dir() else []:
            if path not in there and path not in _HERE_ONLY:
                (self.folder / path).unlink(missing_ok=True)
        for path, info in there.items():
            place = self.folder / path
            named = PartName.parse(place.name) is not None and path.startswith(f"{RECORDS}/")
            if not (named and place.is_file() and place.stat().st_size == info.size):
                make_folder(place.parent, run=self.folder)
                write_atomically(place, self.remote.read(path), run=self.folder)
            self._sent[path] = _look(place)

    def send(self) -> int:
        """Send what is new or changed, and remove what is gone; return how many files were sent."""
        here = {path: _look(self.folder / path) for path in plain_files(self.folder) if _belongs(path)}
        gone = [path for path in self._sent if path not in here]
        if SEAL in gone:  # a run that changes is not complete
            self._remove(SEAL)
        changed = [path for path, look in here.items() if look and self._sent.get(path) != look]
        for path in sorted(changed, key=_turn):
            try:
                data = read_plain(self.folder / path, most=_LIMIT)
            except FileNotFoundError:  # joined or replaced a moment ago
                continue
            self.remote.write(path, data)
            self._sent[path] = here[path]
        for path in gone:
            if path in self._sent:  # only now: what they hold is there twice
                self._remove(path)
        return len(changed)

    def _remove(self, path: str) -> None:
        self.remote.remove(path)
        self._sent.pop(path, None)


def _belongs(path: str) -> bool:
    name = PurePath(path).name
    return path not in _HERE_ONLY and not name.startswith(TEMPORARY) and not path.startswith(f"{LEASES}/")


def _look(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return status.st_size, status.st_mtime_ns


def _turn(path: str) -> tuple[int, str]:
    """Order files so that each comes after what it vouches for."""
    last: Mapping[str, int] = {PROVENANCE: 1, REPORT: 2, SEAL: 3}
    return last.get(path, 0), path
