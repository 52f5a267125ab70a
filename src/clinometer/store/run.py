"""A run on disk: one folder with all that was asked, answered and concluded.

spec.toml         what the user wanted to know
provenance.json   format, versions, seed, machine, the run's id, and the checksums of the documents below; written
                  last: it makes the folder a run
models.json       the models: which are audited, which assist, and in which role
inputs/           copies of the user's files that the spec names
records/<probe>/<model>/<stage>/part-<number>-<checksum>.parquet
findings/<probe>/…
run.sha256        the checksum of every file above; written when the run is complete
report.html
run.lock          who is working on it
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import itertools
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from clinometer.errors import InputError, RecordsError, StoreError, nearest
from clinometer.store.atomic import (
    TEMPORARY,
    make_folder,
    read_json,
    remove_leftovers,
    rename_durably,
    to_json,
    write_atomically,
)
from clinometer.store.compacting import FEW, compact
from clinometer.store.creation import explain_creation, refuse_occupied
from clinometer.store.documents import (
    CHECKSUMS,
    FORMAT,
    INPUTS,
    LOCK,
    MODELS,
    PLACES,
    PROVENANCE,
    REPORT,
    SESSIONS,
    SPEC,
    changed_documents,
    input_place,
    read_provenance,
    to_bytes,
    with_checksums,
    with_session,
)
from clinometer.store.findings import INDEX, finding_files, read_findings, write_findings
from clinometer.store.inside import plain_files, read_plain, require_plain
from clinometer.store.lock import hold_lock
from clinometer.store.names import DAMAGED, PartName, StageKey, safe_name
from clinometer.store.parts import DamagedPart, Done, IntactPart, PartReader, Span, by_index, latest
from clinometer.store.schema import later_columns
from clinometer.store.seal import FINDINGS, RECORDS, SEAL, Sealed, check_seal, digest_of, write_seal
from clinometer.store.shapes import all_built, built
from clinometer.store.tags import TAGS
from clinometer.store.writer import FLUSH_SECONDS, MAX_ROWS, RELABELLED, RecordWriter
from clinometer.types import Findings, ModelInfo

_ONLY_READ = "{} is a bundle, which is only read; unzip it, and give its folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunModels:
    """The models of a run: which are audited, which only assist, and which plays which role."""

    audited: tuple[ModelInfo, ...]
    assistants: tuple[ModelInfo, ...] = ()
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # role -> names of models


class RunFolder:
    """One run. Reading never changes anything; hold `lock()` to write."""

    def __init__(self, path: Path, *, spec: str, provenance: dict[str, Any], models: RunModels) -> None:
        self.path = path
        self.spec = spec
        self.provenance = provenance
        self.models = models.audited
        self.assistants = models.assistants
        self.roles = models.roles
        self.run_id: str = provenance["run_id"]
        self.format: int = provenance.get("format", 1)
        self.key_version: int = provenance.get("key_version", 1)  # of the keys in its records
        self.origin: Path | None = None  # the bundle that it was read from, if any
        self._parts = PartReader(path / RECORDS, run_id=self.run_id)

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        spec: str,
        provenance: Mapping[str, Any],
        models: RunModels | Sequence[ModelInfo],
        inputs: Mapping[str, bytes] | None = None,
        places: Mapping[str, str] | None = None,
    ) -> RunFolder:
        """Start a run in a new or empty folder; raise InputError for any other, and leave it alone.

        `inputs` are files by name; the spec refers to them as `inputs/<name>`. `places` are the folders of models
        on this machine: kept beside the run, and no part of it.
        """
        path = Path(path)
        if not isinstance(models, RunModels):
            models = RunModels(audited=tuple(models))
        refuse_occupied(path)
        with explain_creation(path):
            make_folder(path, run=path)
        require_plain(path)
        kept = {f"{INPUTS}/{name}": data for name, data in (inputs or {}).items()}
        with hold_lock(path / LOCK), explain_creation(path):
            refuse_occupied(path)  # nobody else can be creating it now
            if others := set(plain_files(path, below=INPUTS)) - kept.keys():
                raise InputError(
                    f"{path} is not empty (it has {min(others)}); give the name of a new folder for the run"
                )
            remove_leftovers(path)
            created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            identified = {"format": FORMAT, **provenance, "run_id": secrets.token_hex(16), "created": created}
            if kept:
                make_folder(path / INPUTS, run=path)
            documents = {SPEC: spec.encode(), **kept, MODELS: to_json(models)}
            for name, data in documents.items():
                write_atomically(path / name, data, run=path)
            if places:
                write_atomically(path / PLACES, to_json(places), run=path)
            write_atomically(path / PROVENANCE, to_bytes(with_checksums(identified, documents)), run=path)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Open a run; raise InputError if it is not one, StoreError if its documents are broken or it has links.

        A document that can be read, but is not the one that was written, is told by `changed_documents`.
        """
        path = Path(path)
        if not path.is_dir():
            found = "is not a folder" if path.exists() else "does not exist"
            if path.suffix == ".zip" and path.is_file():
                raise InputError(_ONLY_READ.format(path))
            raise InputError(f"{path} {found}; give the folder of a run, as `clinometer audit` prints it")
        require_plain(path)
        missing = [name for name in (SPEC, PROVENANCE, MODELS) if not (path / name).is_file()]
        if missing:
            raise InputError(
                f"{path} is not a run folder: it has no {', no '.join(missing)}; "
                "give the folder of a run, as `clinometer audit` prints it"
            )
        return cls(
            path,
            spec=_read_text(path / SPEC),
            provenance=read_json(path / PROVENANCE, read_provenance),
            models=read_json(path / MODELS, _models),
        )

    @property
    def report_path(self) -> Path:
        """Where the report is, or will be."""
        return self.path / REPORT

    def lock(self) -> AbstractContextManager[None]:
        """Keep other processes from writing; raise RunLockedError with the pid of one that already does.

        Raises StoreError if there is a link in the folder: what is written next could end up somewhere else.
        """
        self.refuse_bundle()
        require_plain(self.path)
        return hold_lock(self.path / LOCK)

    def refuse_bundle(self) -> None:
        """Raise InputError for the run of a bundle: what is written into it would be lost."""
        if self.origin is not None:
            raise InputError(_ONLY_READ.format(self.origin))

    def clear_leftovers(self) -> None:
        """Remove unfinished files that a killed process left, unless another one is working on the run."""
        folders = [self.path, *(self.path / "findings").glob("*"), *self._parts.folders()]
        leftovers = [folder for folder in folders if any(folder.glob(TEMPORARY + "*"))]
        # nothing is written into a run without any; where the folder may not be written, they stay
        with contextlib.suppress(StoreError, OSError):
            if leftovers:
                with self.lock():
                    for folder in leftovers:
                        remove_leftovers(folder)

    # -- documents

    def changed_documents(self) -> dict[str, str]:
        """Return a sentence for every document that is not as it was written; format 1 and 2 cannot tell."""
        return changed_documents(self.path, self.provenance)

    def require_documents(self) -> None:
        """Raise StoreError that names a document that is not as it was written."""
        if problems := self.changed_documents():
            raise StoreError("; ".join(problems.values()))

    def input_place(self, file: str) -> Path:
        """Return where a file is that the spec names; raise SpecError if it is not one of the run's inputs."""
        return input_place(self.path, self.provenance, file)

    def read_report(self) -> bytes:
        """Return the page as it is on disk."""
        try:
            return read_plain(self.report_path)
        except OSError as error:
            raise StoreError(f"{self.report_path} cannot be read: {error.strerror}") from error

    def add_session(self, session: Mapping[str, Any]) -> None:
        """Record who computes from now on. Hold the lock."""
        document = with_session(self.provenance, session)
        data = to_bytes(document) if self.format > 2 else to_json(document)
        write_atomically(self.path / PROVENANCE, data, run=self.path)
        self.provenance = read_json(self.path / PROVENANCE, read_provenance)

    @property
    def sessions(self) -> tuple[Mapping[str, Any], ...]:
        """Who computed the records, in the order of time; none for runs that did not record it."""
        return tuple(self.provenance.get(SESSIONS, ()))

    def strangers(self) -> tuple[str, ...]:
        """Name the parts that were computed by nobody whom `sessions` knows, once `check` has read them.

        Runs of format 1 and 2 cannot tell.
        """
        if self.format < 3:
            return ()
        # a session adds when it was recorded, a part whether its answers are those of earlier ones
        known = [_without(each, "recorded") for each in self.sessions]
        return tuple(
            str(path) for path, by in self._parts.computed_by() if by and _without(by, RELABELLED) not in known
        )

    # -- the seal

    @property
    def digest(self) -> str:
        """The SHA-256 of the whole run, the page apart; "" while it is not complete, and for formats 1 and 2."""
        return digest_of(self.path) if self.format > 2 else ""

    def unseal(self) -> None:
        """Take the seal away before anything changes. Hold the lock."""
        if (self.path / SEAL).is_file():
            (self.path / SEAL).unlink(missing_ok=True)

    def seal(self, *, probes: Iterable[str], stages: Iterable[StageKey]) -> None:
        """Write the checksums of all that belongs to a complete run of these audits. Hold the lock."""
        if self.format < 3:
            return
        files = self._documents()
        for key in stages:
            folder = Path(RECORDS, key.folder).as_posix()
            files += (path for path in plain_files(self.path, below=folder) if PartName.parse(Path(path).name))
        for probe in probes:
            folder = f"{FINDINGS}/{safe_name(probe, what='probe')}"
            files += (f"{folder}/{name}" for name in finding_files(self.path / folder))
        checksums = {path: self._checksum(path) for path in files}
        write_seal(self.path, checksums)

    def check_seal(self) -> Sealed:
        """Hash every file that the seal lists; changes nothing."""
        return check_seal(
            self.path,
            documents=self._documents(),
            known=lambda path: self._parts.checksum(self.path / path),
        )

    def _documents(self) -> list[str]:
        return [PROVENANCE, *self.provenance[CHECKSUMS]]

    def _checksum(self, path: str) -> str:
        try:
            known = self._parts.checksum(self.path / path)
            return known or hashlib.sha256(read_plain(self.path / path)).hexdigest()
        except OSError as error:
            raise StoreError(f"{self.path / path} cannot be read: {error.strerror}") from error

    # -- records

    def stages(self) -> tuple[StageKey, ...]:
        """Return the stages that have intact records."""
        firsts = (
            next((part.stage for part in self._parts.parts(folder) if isinstance(part, IntactPart)), None)
            for folder in self._parts.folders()
        )
        return tuple(stage for stage in firsts if stage is not None)

    def done(self, key: StageKey) -> Done:
        """Return which items of a stage are recorded; damaged parts are skipped and listed."""
        return Done(self._parts.parts(self._folder(key)))

    def is_empty(self, key: StageKey) -> bool:
        """Tell whether a stage has no part at all, damaged ones included."""
        return not any(self._folder(key).glob("*.parquet"))

    def writer(
        self,
        key: StageKey,
        *,
        by: Callable[[], Mapping[str, Any]] | None = None,
        flush_seconds: float = FLUSH_SECONDS,
        max_rows: int = MAX_ROWS,
    ) -> RecordWriter:
        """Remove unfinished files, set damaged parts aside and open a stage for appending. Hold the lock."""
        folder = self._folder(key)
        make_folder(folder, run=self.path)
        remove_leftovers(folder)
        self._set_aside([folder])
        return RecordWriter(
            folder,
            stage=key,
            run=self.path,
            run_id=self.run_id,
            by=by,
            flush_seconds=flush_seconds,
            max_rows=max_rows,
        )

    def compact(self, key: StageKey) -> None:
        """Join the parts of a stage that is finished, if there are many. Hold the lock."""
        folder = self._folder(key)
        if sum(1 for _ in itertools.islice(folder.glob("*.parquet"), FEW + 1)) > FEW:
            compact(self._intact(key), stage=key, run=self.path, run_id=self.run_id)
            self._parts.forget()

    def stage_folder(self, key: StageKey) -> Path:
        """Return where the records of a stage are, or will be."""
        return self._folder(key)

    def column_names(self, key: StageKey) -> list[str]:
        """Return the columns of a stage's records in the order of `table`; raises as `table` does."""
        return _ordered(dict.fromkeys(name for part in self._intact(key) for name in part.column_names()))

    def table(
        self, key: StageKey, *, columns: Sequence[str] | None = None, indices: Iterable[int] | None = None
    ) -> pl.DataFrame:
        """Return the records of a stage by index: `index`, `key`, `tag_*`, `ask_*`, `got_*`, `from_*`, or some.

        With `indices`, only those rows are kept in memory; an index that is not recorded has no row. A missing tag
        is null. If an index was recorded twice, the later record counts. Raises RecordsError when a part is
        damaged, nothing is recorded, or a column does not exist.
        """
        older = _not_in_older(columns)
        frames = [older] if older.width else []
        names: dict[str, None] = dict.fromkeys(older.columns)
        chosen = None if indices is None else pl.Series(sorted(set(indices)), dtype=pl.Int64)
        for part in self._intact(key):
            present = part.column_names()
            names |= dict.fromkeys(present)
            wanted = present if columns is None else [name for name in present if name in {"index", *columns}]
            frames.append(part.read(wanted, indices=chosen))
        _require_columns(key, columns or (), names)
        return latest(frames).select(columns if columns is not None else _ordered(names))

    def batches(self, key: StageKey, *, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """Yield the rows of `table`, in its order and with its columns, tens of thousands at a time.

        Raises as `table` does, when the first batch is asked for.
        """
        spans: list[Span] = []
        schemas: dict[tuple[tuple[str, pl.DataType], ...], None] = {}
        for part in self._intact(key):
            spans.append(Span(path=part.path, first=part.first_index()))
            schemas[tuple(part.schema().items())] = None
        # where a column's type differs between parts (int here, float there), take the wider one, as `table` does
        parts = [pl.DataFrame(schema=dict(schema)) for schema in schemas]
        older = _not_in_older(columns)
        empty = pl.concat([*parts, *([older] if older.width else [])], how="diagonal_relaxed")
        _require_columns(key, columns or (), empty.columns)
        chosen = list(columns) if columns is not None else _ordered(empty.columns)
        wanted = [name for name in empty.columns if name in {"index", *chosen}]
        for table in by_index(spans, columns=wanted, empty=empty.select(wanted), load=self._load_intact):
            yield table.select(chosen)

    def check(self) -> tuple[DamagedPart, ...]:
        """Hash every part again and return the damaged ones; changes nothing."""
        self._parts.forget()
        return self._damaged(self._parts.folders())

    def set_aside_damaged(self) -> tuple[DamagedPart, ...]:
        """Rename every damaged part to `….damaged`: kept as evidence, never read again. Hold the lock."""
        return self._set_aside(self._parts.folders())

    # -- findings

    def write_findings(self, findings: Findings) -> None:
        """Keep what one probe concluded, replacing what it concluded before."""
        folder = self.path / FINDINGS / safe_name(findings.probe, what="probe")
        write_findings(folder, findings, run=self.path)

    def concluded(self) -> tuple[str, ...]:
        """Return the audits that have findings, by the names of their folders."""
        return tuple(sorted({Path(path).parts[1] for path in plain_files(self.path, below=FINDINGS)}))

    def read_findings(self) -> tuple[Findings, ...]:
        """Return what all probes concluded, by name."""
        return tuple(read_findings(index.parent) for index in sorted((self.path / FINDINGS).glob(f"*/{INDEX}")))

    def _folder(self, key: StageKey) -> Path:
        return self.path / RECORDS / key.folder

    def _intact(self, key: StageKey) -> Iterator[IntactPart]:
        """Yield the parts of a stage; raise RecordsError for a damaged one, or if there are none."""
        empty = True
        for part in self._parts.parts(self._folder(key)):
            empty = False
            yield self._require_intact(part)
        if empty:
            raise RecordsError(f"no records for {key} in {self.path}; run `clinometer resume {self.path}`")

    def _load_intact(self, path: Path) -> IntactPart:
        return self._require_intact(self._parts.load(path))

    def _require_intact(self, part: IntactPart | DamagedPart) -> IntactPart:
        if isinstance(part, DamagedPart):
            raise RecordsError(
                f"damaged record {part}; run `clinometer resume {self.path}` to ask again what it held"
            )
        return part

    def _damaged(self, folders: Iterable[Path]) -> tuple[DamagedPart, ...]:
        parts = (part for folder in folders for part in self._parts.parts(folder))
        return tuple(part for part in parts if isinstance(part, DamagedPart))

    def _set_aside(self, folders: Iterable[Path]) -> tuple[DamagedPart, ...]:
        damaged = self._damaged(folders)
        for part in damaged:
            aside = part.path.with_name(part.path.name + DAMAGED)
            while aside.exists():  # someone put a damaged part back
                aside = aside.with_name(aside.name + DAMAGED)
            rename_durably(part.path, aside, run=self.path)
        return damaged


def _not_in_older(columns: Sequence[str] | None) -> pl.DataFrame:
    """Return an empty table of those columns that records of an older release lack: there they are null."""
    later = later_columns()
    return pl.DataFrame(
        pa.schema([later.field(name) for name in columns or () if name in later.names]).empty_table()
    )


def _require_columns(key: StageKey, columns: Iterable[str], known: Iterable[str]) -> None:
    """Raise RecordsError for a column that no part has."""
    names = list(known)
    for name in columns:
        if name not in names:
            raise RecordsError(f"the records for {key} have no column {name!r}; {nearest(name, names)}")


def _without(values: Mapping[str, Any], left_out: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != left_out}


def _ordered(names: Iterable[str]) -> list[str]:
    """Sort columns: place, tags, question, answer, who gave it."""
    groups = ("index", "key", TAGS, "tag_", "ask_", "got_", "from_")
    return sorted(names, key=lambda name: next(i for i, group in enumerate(groups) if name.startswith(group)))


def _read_text(path: Path) -> str:
    try:
        return read_plain(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{path} is damaged ({error}); put back the file that was there") from error


def _models(document: dict[str, Any]) -> RunModels:
    return RunModels(
        audited=all_built(ModelInfo, document["audited"]),
        assistants=all_built(ModelInfo, document["beside" if "beside" in document else "assistants"]),
        roles=built(dict[str, tuple[str, ...]], document.get("roles", {})),
    )
