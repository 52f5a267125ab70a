"""Parts: the files that hold records, one per flush, each with its checksum in its name.

There is no list of parts that could go out of step with them. A part is intact when its bytes hash to its name,
and ours when the run, probe, model and stage in its metadata match the folder it is in.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from clinometer.errors import StoreError
from clinometer.store.inside import read_plain
from clinometer.store.names import NAMED_DIGITS, PartName, StageKey
from clinometer.store.part_checks import require_near, require_records
from clinometer.store.schema import KEY_BYTES
from clinometer.store.tags import TAGS, TAGS_BYTES

# The metadata key of run_id, probe, model and stage; as JSON, because a path may not be valid UTF-8.
_OWNER = b"clinometer"
BATCH_ROWS = 65_536  # a table is given out once this many rows are waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedPart:
    """A part that must not be read, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path} ({self.reason})"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntactPart:
    """A part with the bytes that this run wrote for this stage."""

    path: Path
    stage: StageKey
    data: bytes
    sha256: str
    by: Mapping[str, Any] | None = None  # who computed it

    def column_names(self) -> list[str]:
        """Return the names of all its columns."""
        return list(self.schema())

    def first_index(self) -> int:
        """Return its lowest index, without reading the column."""
        groups = pq.read_metadata(pa.BufferReader(self.data))
        statistics = (groups.row_group(number).column(0).statistics for number in range(groups.num_row_groups))
        return min(int(group.min) for group in statistics)

    def schema(self) -> pl.Schema:
        """Return the types of all its columns."""
        return pl.Schema(pl.read_parquet_schema(io.BytesIO(self.data)))

    def read(self, columns: list[str], *, indices: pl.Series | None = None) -> pl.DataFrame:
        """Decode some of its columns; with `indices`, only those rows."""
        if indices is None:
            return pl.read_parquet(io.BytesIO(self.data), columns=columns)
        found = pl.read_parquet(io.BytesIO(self.data), columns=["index"])["index"].is_in(indices.implode())
        rows = found.arg_true()
        # most parts hold no wanted row: read the long columns only up to the last one
        return pl.read_parquet(
            io.BytesIO(self.data), columns=columns, n_rows=int(rows[-1]) + 1 if len(rows) else 0
        )[rows]


@dataclass(frozen=True, slots=True)
class _Checked:
    """What hashing a file found; valid until the file looks changed."""

    size: int
    modified: int
    sha256: str
    verdict: StageKey | str  # its stage, or why it must not be read
    by: Mapping[str, Any] | None = None


class PartReader:
    """Reads the parts of one run, and hashes each at most once."""

    def __init__(self, records: Path, *, run_id: str) -> None:
        self._records = records
        self._run_id = run_id
        self._checked: dict[Path, _Checked] = {}

    def folders(self) -> list[Path]:
        """Return the folders of all stages."""
        return sorted(path for path in self._records.glob("*/*/*") if path.is_dir() and not path.is_symlink())

    def parts(self, folder: Path) -> Iterator[IntactPart | DamagedPart]:
        """Yield the parts in a stage's folder in the order they were written."""
        for path in sorted(folder.glob("*.parquet"), key=_by_sequence):
            yield self.load(path)

    def forget(self) -> None:
        """Hash every part again the next time it is read."""
        self._checked.clear()

    def load(self, path: Path) -> IntactPart | DamagedPart:
        """Read one part; hash it unless it was hashed before and looks unchanged."""
        try:
            status = path.lstat()
            data = read_plain(path)
        except OSError as error:
            return DamagedPart(path=path, reason=f"it cannot be read: {error.strerror}")
        known = self._checked.get(path)
        if known is None or (known.size, known.modified) != (len(data), status.st_mtime_ns):
            sha256 = hashlib.sha256(data).hexdigest()
            known = _Checked(len(data), status.st_mtime_ns, sha256, *self._verdict(path, data, sha256))
            self._checked[path] = known
        if isinstance(known.verdict, str):
            return DamagedPart(path=path, reason=known.verdict)
        return IntactPart(path=path, stage=known.verdict, data=data, sha256=known.sha256, by=known.by)

    def computed_by(self) -> Iterator[tuple[Path, Mapping[str, Any] | None]]:
        """Yield every intact part that was read so far, and who computed it."""
        for path, known in sorted(self._checked.items()):
            if not isinstance(known.verdict, str):
                yield path, known.by

    def checksum(self, path: Path) -> str | None:
        """Return the SHA-256 of a part if it was hashed and looks unchanged."""
        known = self._checked.get(path)
        if known is None:
            return None
        status = path.lstat()
        return known.sha256 if (known.size, known.modified) == (status.st_size, status.st_mtime_ns) else None

    def _verdict(
        self, path: Path, data: bytes, sha256: str
    ) -> tuple[StageKey | str] | tuple[StageKey, Mapping[str, Any] | None]:
        """Return the stage that a part belongs to and who computed it, or why it must not be read."""
        name = PartName.parse(path.name)
        if name is None:
            return ("its name carries no checksum",)
        if name.checksum != sha256[:NAMED_DIGITS]:
            return ("its bytes are not those that were written: the checksum differs",)
        try:
            metadata = pq.read_metadata(pa.BufferReader(data))
            owner = json.loads((metadata.metadata or {})[_OWNER])
            run_id, by = owner.pop("run_id"), owner.pop("by", None)
            stage = StageKey(**owner)
        except (pa.ArrowException, OSError, KeyError, ValueError, TypeError, AttributeError, RecursionError):
            return ("it does not say which run it belongs to",)
        try:
            require_records(metadata)
        except (OSError, ValueError) as error:
            return (f"its records cannot be read: {getattr(error, 'strerror', None) or error}",)
        if run_id != self._run_id:
            return ("it belongs to another run",)
        try:
            at_home = self._records / stage.folder == path.parent
        except StoreError:  # a name we never write
            at_home = False
        return (stage, by) if at_home else (f"it belongs to another stage: {stage}",)


class Done:
    """The indices of a stage whose answers are recorded and intact, each with the key of its request and its tags.

    Takes 25 bytes for each index up to the highest; a digest of zeros is one that was not recorded.
    """

    def __init__(self, parts: Iterable[IntactPart | DamagedPart]) -> None:
        damaged: list[DamagedPart] = []
        indices: list[npt.NDArray[np.int64]] = []
        keys: list[npt.NDArray[np.uint8]] = []
        tags: list[npt.NDArray[np.uint8] | None] = []
        for part in parts:
            if isinstance(part, DamagedPart):
                damaged.append(part)
                continue
            tagged = TAGS in part.column_names()  # those of format 1 and 2 are not
            columns = ["index", "key", *([TAGS] if tagged else [])]
            table = pq.read_table(pa.BufferReader(part.data), columns=columns)
            indices.append(table["index"].to_numpy())
            keys.append(_bytes_of(table["key"], KEY_BYTES))
            tags.append(_bytes_of(table[TAGS], TAGS_BYTES) if tagged else None)
        self.damaged: tuple[DamagedPart, ...] = tuple(damaged)
        size = max((int(index.max()) + 1 for index in indices if index.size), default=0)
        require_near(size, records=sum(map(len, indices)))
        recorded = np.zeros(size, np.bool_)
        by_index = np.zeros((size, KEY_BYTES), np.uint8)
        tags_by_index = np.zeros((size, TAGS_BYTES), np.uint8)
        for index, key, tag in zip(indices, keys, tags, strict=True):
            recorded[index] = True
            by_index[index] = key  # a later part wins
            tags_by_index[index] = 0 if tag is None else tag
        self._count = int(recorded.sum())
        self.size = size  # the highest index that is recorded, and one
        self._recorded = recorded
        self._keys = by_index
        self._tags = tags_by_index

    def __len__(self) -> int:
        return self._count

    def matches(self, index: int, key: bytes) -> bool:
        """Tell whether this request is recorded at this index."""
        return index >= 0 and bool(self.matching(index, [key])[0])

    def matching(self, first: int, keys: Sequence[bytes]) -> npt.NDArray[np.bool_]:
        """Tell of each of these requests, which are asked one after the other, whether it is recorded there."""
        there = self._keys[first : first + len(keys)]
        found = np.zeros(len(keys), np.bool_)
        given = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY_BYTES)[: len(there)]
        found[: len(there)] = (there == given).all(axis=1) & self._recorded[first : first + len(keys)]
        return found

    def tagged(self, index: int, digest: bytes) -> bool:
        """Tell whether the answer at this index is recorded under these tags, as far as it is known."""
        return bool(self.tagged_as(index, [digest])[0])

    def tagged_as(self, first: int, digests: Sequence[bytes]) -> npt.NDArray[np.bool_]:
        """Tell of each of these items, one after the other, whether it is recorded under these tags, if known."""
        there = self._tags[first : first + len(digests)]
        found = np.zeros(len(digests), np.bool_)
        given = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, TAGS_BYTES)[: len(there)]
        found[: len(there)] = (there == given).all(axis=1) | ~there.any(axis=1)
        return found


def _bytes_of(column: pa.ChunkedArray, size: int) -> npt.NDArray[np.uint8]:
    """Return a column of values of one size as a matrix of their bytes."""
    values = column.combine_chunks().cast(pa.binary(size))
    start = values.offset * size
    flat = np.frombuffer(values.buffers()[1], np.uint8, count=len(values) * size, offset=start)
    return flat.reshape(-1, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where a part is, and its lowest index."""

    path: Path
    first: int


def by_index(
    spans: Sequence[Span], *, columns: list[str], empty: pl.DataFrame, load: Callable[[Path], IntactPart]
) -> Iterator[pl.DataFrame]:
    """Yield the rows of parts by index, each once; parts come in the order they were written.

    A run fills its stage from the front, so parts overlap only within a window of the engine: once an index lies
    below all parts still to be read, every record of it is known. `empty` has the columns' types.
    """
    turns = sorted(range(len(spans)), key=lambda turn: spans[turn].first)
    waiting: dict[int, pl.DataFrame] = {}
    for place, turn in enumerate(turns):
        part = load(spans[turn].path)
        present = set(part.column_names())
        waiting[turn] = part.read([name for name in columns if name in present])
        last = place + 1 == len(turns)
        if not last and sum(map(len, waiting.values())) < BATCH_ROWS:
            continue
        complete = pl.lit(True) if last else pl.col("index") < spans[turns[place + 1]].first
        table = latest([empty, *(waiting[turn].filter(complete) for turn in sorted(waiting))])
        waiting = {turn: rest for turn, frame in waiting.items() if len(rest := frame.filter(~complete))}
        if len(table):
            yield table


def latest(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Join tables, in the order they were written, and sort by index; of two records the later counts."""
    table = pl.concat(frames, how="diagonal_relaxed").sort("index", maintain_order=True)
    last = table["index"] != table["index"].shift(-1, fill_value=-1)
    return table if last.all() else table.filter(last)


def encode_part(
    batches: list[pa.RecordBatch], *, run_id: str, stage: StageKey, by: Mapping[str, Any] | None = None
) -> bytes:
    """Return the bytes of a part; `by` says who computed it."""
    table = pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive")
    leaves = [leaf for field in table.schema for leaf in _leaves(field.name, field.type)]
    # numbers in long lists rarely repeat: split by byte they compress better, in half the time
    split = {leaf for leaf, kind in leaves if pa.types.is_float32(kind)}
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        use_dictionary=[leaf for leaf, _ in leaves if leaf not in split | {"index", "key", TAGS}],
        column_encoding=dict.fromkeys(split, "BYTE_STREAM_SPLIT") or None,
        write_statistics=["index"],
        store_schema=False,  # polars, pandas, DuckDB and R read the Parquet types themselves
    ) as writer:
        writer.write_table(table)
        owner = {"run_id": run_id, **dataclasses.asdict(stage), **({"by": dict(by)} if by else {})}
        writer.add_key_value_metadata({_OWNER: json.dumps(owner)})
    return bytes(sink.getvalue())


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the Parquet path and type of every leaf of a column."""
    if pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_dictionary(kind):
        yield path, kind.value_type
    else:
        yield path, kind


def _by_sequence(path: Path) -> tuple[int, str]:
    """Order parts by when they were written."""
    name = PartName.parse(path.name)
    return (name.sequence if name else -1, path.name)
