"""The documents of a run: what was asked for, of whom, with which files, and who computed it.

`provenance.json` has the checksum of every other document, and one of itself, so that a change to any of them
shows at any time, also while the run is not complete. It is the only one that changes: a resumed run adds to it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clinometer.errors import InputError, SpecError, nearest
from clinometer.store.atomic import to_json
from clinometer.store.inside import read_plain

SPEC, PROVENANCE, MODELS, LOCK, REPORT = "spec.toml", "provenance.json", "models.json", "run.lock", "report.html"
INPUTS = "inputs"
COMPARISON = "comparison.html"  # of a cohort: drawn from the findings, like the report, and not sealed
PLACES = "places.json"  # where models are on this machine: no part of the run, and not to be shared

# Format 1: models.json says "beside" and has no roles; findings and keys have no versions.
# Format 2: documents have no checksums.
FORMAT = 3

CHECKSUMS = "sha256"  # of the other documents, by name
SESSIONS = "sessions"  # who computed, in the order of time
_OWN = "checksum"
_TYPES: dict[str, type] = {SESSIONS: list, "questions": dict, "packages": dict, "key_version": int}  # what is read
_INPUT = re.compile(rf"{INPUTS}/[^/\\\0]+")
_PUT_BACK = "put back the file that was there"


def with_checksums(provenance: Mapping[str, Any], documents: Mapping[str, bytes]) -> dict[str, Any]:
    """Return provenance that knows the other documents, by their place in the run folder."""
    return {**provenance, CHECKSUMS: {name: _sha256(data) for name, data in documents.items()}}


def to_bytes(provenance: Mapping[str, Any]) -> bytes:
    """Return provenance as it is written: with a checksum of all the rest of it."""
    rest = {name: value for name, value in provenance.items() if name != _OWN}
    return to_json({**rest, _OWN: _sha256(to_json(rest))})


def with_session(provenance: Mapping[str, Any], session: Mapping[str, Any]) -> dict[str, Any]:
    """Return provenance with one more session of computing."""
    return {**provenance, SESSIONS: [*provenance.get(SESSIONS, ()), dict(session)]}


def read_provenance(document: object) -> dict[str, Any]:
    """Return provenance from JSON; raise ValueError if it is none of ours, InputError for a newer format."""
    if not isinstance(document, dict) or not isinstance(document.get("run_id"), str):
        raise ValueError("it has no run_id")
    found = document.get("format", 1)
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ValueError(f"its format is {found!r}")
    if found > FORMAT:
        raise InputError(
            f"{PROVENANCE}: this run has format {found}, made by a newer Clinometer; this one reads formats 1 to "
            f"{FORMAT}: update Clinometer to open it"
        )
    for name, kind in _TYPES.items():
        if not isinstance(document.get(name, kind()), kind):
            raise ValueError(f"its {name} is {type(document[name]).__name__}, not {kind.__name__}")
    if not all(isinstance(session, dict) for session in document.get(SESSIONS, ())):
        raise ValueError(f"its {SESSIONS} are not all dict")
    if found > 2:
        for name, checksum in document[CHECKSUMS].items():
            if not isinstance(checksum, str) or not (name in (SPEC, MODELS) or _INPUT.fullmatch(name)):
                raise ValueError(f"it names {name!r} among the documents")
    return document


def changed_documents(run: Path, provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return a sentence for every document that is not as it was written; runs of format 1 and 2 cannot tell."""
    problems: dict[str, str] = {}
    if provenance.get("format", 1) < 3 and not provenance.keys() & {CHECKSUMS, _OWN, "questions"}:
        return problems
    # one that says an older format and has what only this one has, has lost its format
    if provenance.get("format", 1) < 3 or read_plain(run / PROVENANCE) != to_bytes(provenance):
        problems[PROVENANCE] = f"{run / PROVENANCE} is not as it was written (the checksum differs); {_PUT_BACK}"
    known = provenance.get(CHECKSUMS, {})
    for name in dict.fromkeys([SPEC, MODELS, *known]):
        try:
            same = name in known and _sha256(read_plain(run / name)) == known[name]
        except OSError as error:
            problems[name] = f"{run / name} cannot be read: {error.strerror}; {_PUT_BACK}"
            continue
        if not same:
            problems[name] = f"{run / name} is not the one with which this run began; {_PUT_BACK}"
    return problems


def input_place(run: Path, provenance: Mapping[str, Any], file: str) -> Path:
    """Return where an input of the run is that its spec names; raise SpecError for any other file.

    A spec that came with a run may name any file of its reader, who would then find it in the report.
    """
    known = provenance.get(CHECKSUMS, {})
    if not _INPUT.fullmatch(file) or Path(file).name in ("..", "."):
        raise SpecError(
            f"{run / SPEC} names the file {file!r}; the files of a run are those in its folder {INPUTS}, and no "
            f"other is read: {_PUT_BACK}"
        )
    place = run / file
    if provenance.get("format", 1) < 3:
        # no checksum says that this is the file of the run: a second name of some other file will not do
        if not place.is_file() or place.is_symlink() or place.stat().st_nlink > 1:
            raise SpecError(f"{place} is not there, or a link; put the file itself there")
    elif file not in known:
        raise SpecError(f"{run / SPEC} names {file!r}, which is not a file of this run; {nearest(file, known)}")
    return place


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
