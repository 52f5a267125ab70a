"""The seal of a complete run: the checksum of every file in it, in one list that has one digest.

`run.sha256` is written last and has the format of `sha256sum`, which can check it where there is no Clinometer:
`sha256sum -c run.sha256`. The SHA-256 of the list itself is the digest of the run, the number that people
exchange. The page is not in the list, because it shows the digest; it is rebuilt and compared instead. Nor is the
lock.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from clinometer.errors import StoreError
from clinometer.store.atomic import write_atomically
from clinometer.store.documents import COMPARISON, INPUTS, LOCK, PLACES, REPORT
from clinometer.store.inside import plain_files, read_plain

SEAL = "run.sha256"
RECORDS, FINDINGS = "records", "findings"
_OURS = (f"{RECORDS}/", f"{FINDINGS}/", f"{INPUTS}/")  # folders in which every file belongs to the run
_LINE = re.compile(r"([0-9a-f]{64})  ([^\\\n]+)\n")
_PROCESS = re.compile(rb"\d*\s*")  # what a lock holds: who works on the run, or nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """What the seal tells about the files of a run: a sentence for each by its path, and files beside them."""

    wrong: Mapping[str, str]
    missing: Mapping[str, str]
    others: tuple[str, ...]  # beside the run's own files; nobody vouches for them


def write_seal(run: Path, checksums: Mapping[str, str]) -> str:
    """Write the list and return its digest."""
    data = _written(checksums)
    write_atomically(run / SEAL, data, run=run)
    return hashlib.sha256(data).hexdigest()


def digest_of(run: Path) -> str:
    """Return the digest of a run; "" while it is not complete."""
    try:
        return hashlib.sha256(read_plain(run / SEAL)).hexdigest()
    except OSError:
        return ""


def check_seal(run: Path, *, documents: Collection[str], known: Callable[[str], str | None]) -> Sealed:
    """Hash every file of a sealed run; `known` may tell the checksum of a file that was hashed already."""
    wrong: dict[str, str] = {}
    missing: dict[str, str] = {}
    listed = _read(run, wrong)
    found = list(plain_files(run))
    for path in sorted(listed.keys() - set(found)):
        missing[path] = f"{run / path} is missing"
    for path in found:
        if path in listed:
            if (known(path) or _sha256(run / path)) != listed[path]:
                wrong[path] = f"{run / path} is not as it was written: {SEAL} has another checksum"
        elif path in documents or path.startswith(_OURS):
            wrong[path] = f"{run / path} is not a file of this run: {SEAL} does not list it"
    if LOCK in found and not _PROCESS.fullmatch(read_plain(run / LOCK)):
        wrong[LOCK] = f"{run / LOCK} holds something else than the number of a process; empty it"
    ours = {*listed, *wrong, LOCK, REPORT, COMPARISON, SEAL, PLACES}
    others = tuple(path for path in found if path not in ours and not path.startswith(".tmp-"))
    return Sealed(wrong=wrong, missing=missing, others=others)


def sealed_files(run: Path) -> dict[str, str]:
    """Return the checksum of every file of a complete run; raise StoreError if the list was changed."""
    wrong: dict[str, str] = {}
    listed = _read(run, wrong)
    if wrong:
        raise StoreError(wrong[SEAL])
    return listed


def _read(run: Path, wrong: dict[str, str]) -> dict[str, str]:
    """Return the checksums of the list; say so if it is not as it was written."""
    data = read_plain(run / SEAL)
    listed = {path: checksum for checksum, path in _LINE.findall(data.decode("utf-8", "replace"))}
    if _written(listed) != data:
        wrong[SEAL] = f"{run / SEAL} is not as it was written; put back the file that was there"
    return listed


def _written(checksums: Mapping[str, str]) -> bytes:
    return "".join(f"{checksums[path]}  {path}\n" for path in sorted(checksums)).encode()


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_plain(path)).hexdigest()
