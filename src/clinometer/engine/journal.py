"""The journal of a stage: replies from an endpoint, each on disk before it is believed.

One file per stage, one line per reply: a checksum, a tab, JSON. A kill can cut the last line, which is dropped. A
line that is damaged elsewhere is dropped, too, and counted: its call is sent again. When answers are written as a
part of records, the journal is replaced by one with what the part does not hold; so it stays short, and it is gone
when the stage is complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, final

from clinometer.models.protocols import Reply
from clinometer.store import explain_os_errors, make_folder, write_atomically

NAME = "replies.journal"
_CHECK_BYTES = 8
_SYNC_SECONDS = 1.0  # a kill loses nothing that was written; a power cut may lose this much


@dataclass(frozen=True, slots=True)
class Place:
    """Which call a reply is to: the key of its request, and the number of the call among those of the request."""

    key: bytes
    call: int


@final
class Journal:
    """Appends replies to a file. Hold the run's lock."""

    def __init__(self, folder: Path, *, run: Path) -> None:
        make_folder(folder, run=run)
        self._path = folder / NAME
        self._run = run
        self._file: BinaryIO | None = None
        self._synced = time.monotonic()
        self.size = 0  # bytes
        self.damaged = 0  # lines that were dropped when it was read

    def read(self) -> dict[Place, Reply]:
        """Return what an earlier process left, and drop what is damaged."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        found: dict[Place, Reply] = {}
        lines = data.split(b"\n")
        for line in lines[:-1]:  # after the last line break there is nothing, or a line that was cut
            entry = _decoded(line)
            if entry is None:
                self.damaged += 1
            elif entry[1] is None:
                found.pop(entry[0], None)
            else:
                found[entry[0]] = entry[1]
        self.replace(found)
        return found

    def append(self, place: Place, reply: Reply | None) -> None:
        """Write a reply; once this returns, it survives a kill. None: the one that was there does not count."""
        line = _encoded(place, reply)
        with explain_os_errors(f"{self._path} ({len(line):,} bytes)", folder=self._path.parent, run=self._run):
            if self._file is None:
                self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115 - closed in `close`
            _write_whole(self._file, line)
            self.size += len(line)
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()

    def replace(self, replies: Mapping[Place, Reply]) -> None:
        """Keep these replies and no others; without any, the file goes."""
        self.close()
        lines = b"".join(_encoded(place, reply) for place, reply in replies.items())
        if lines:
            write_atomically(self._path, lines, run=self._run)
        else:
            with explain_os_errors(str(self._path), folder=self._path.parent, run=self._run):
                self._path.unlink(missing_ok=True)
        self.size = len(lines)

    def close(self) -> None:
        """Make what was written durable and close the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.fsync(self._file.fileno())
            self._file.close()
            self._file = None


def _write_whole(file: BinaryIO, line: bytes) -> None:
    """Write a line at once, or, on a full disk, leave the file as it was: half a line would spoil the next one."""
    before = file.seek(0, os.SEEK_END)
    written = 0
    try:
        while written < len(line):
            written += file.write(line[written:])
    except OSError:
        with contextlib.suppress(OSError):
            file.truncate(before)
        raise


def _encoded(place: Place, reply: Reply | None) -> bytes:
    document: list[object] = [place.key.hex(), place.call]
    document += [None, None] if reply is None else [dict(reply.content), dict(reply.source)]
    text = json.dumps(document, separators=(",", ":")).encode("ascii")
    return _checksum(text) + b"\t" + text + b"\n"


def _decoded(line: bytes) -> tuple[Place, Reply | None] | None:
    checksum, tab, text = line.partition(b"\t")
    if not tab or _checksum(text) != checksum:
        return None
    key, call, content, source = json.loads(text)
    reply = None if content is None else Reply(content=content, source=source)
    return Place(bytes.fromhex(key), call), reply


def _checksum(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_CHECK_BYTES).hexdigest().encode("ascii")
