"""What things are called in a run folder: stages, models, parts."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from clinometer.errors import StoreError

_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_PART = re.compile(r"part-(\d{6,})-([0-9a-f]{32})\.parquet")
NAMED_DIGITS = 32  # of the checksum, in the name of a part
DAMAGED = ".damaged"  # added to the name of a part that is set aside


@dataclass(frozen=True, slots=True, kw_only=True)
class StageKey:
    """One stage of one probe with one model under audit; `model` is that model's label."""

    probe: str
    model: str
    stage: str

    @property
    def folder(self) -> Path:
        """Where the stage's parts are, below `records/`."""
        return Path(
            safe_name(self.probe, what="probe"), model_slug(self.model), safe_name(self.stage, what="stage")
        )

    def __str__(self) -> str:
        return f"{self.probe}, stage {self.stage}, model {self.model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartName:
    """The name of a part: its sequence number, and the start of the SHA-256 of its bytes.

    >>> PartName.of(b"", sequence=7).file_name
    'part-000007-e3b0c44298fc1c149afbf4c8996fb924.parquet'
    """

    sequence: int
    checksum: str

    @classmethod
    def of(cls, data: bytes, *, sequence: int) -> PartName:
        """Name the bytes of a part."""
        return cls(sequence=sequence, checksum=hashlib.sha256(data).hexdigest()[:NAMED_DIGITS])

    @classmethod
    def parse(cls, file_name: str) -> PartName | None:
        """Read a file name, damaged or not; None if it is not the name of a part."""
        match = _PART.fullmatch(file_name.partition(DAMAGED)[0])
        return cls(sequence=int(match[1]), checksum=match[2]) if match else None

    @property
    def file_name(self) -> str:
        """The name on disk."""
        return f"part-{self.sequence:06d}-{self.checksum}.parquet"


def safe_name(name: str, *, what: str) -> str:
    """Return the name of a probe, stage or table if it can be a file name; raise StoreError otherwise."""
    if not _SAFE.fullmatch(name):
        raise StoreError(
            f"{what} {name!r} cannot be a file name: use at most 100 ASCII letters, digits, '_', '-' and '.', "
            "beginning with a letter, a digit or '_'"
        )
    return name


def column_name(name: str, *, what: str) -> str:
    """Return the name of a tag or label if every Parquet reader can take it; raise StoreError otherwise."""
    if not name or not name.isprintable():
        raise StoreError(f"{what} {name!r} cannot be a column: its name must be printable")
    return name


def model_slug(label: str) -> str:
    """Return a folder name for a model's label: readable, safe, and unique.

    >>> model_slug("org/name")
    'org-name-7e624f0637'
    """
    readable = re.sub(r"[^A-Za-z0-9._]+", "-", label).strip("-.")[-60:].lstrip("-.")
    # the hash separates 'a/b' from 'a-b'; a path may hold bytes that are not text, hence surrogatepass
    distinct = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{readable or 'model'}-{distinct}"
