"""Parts: the files that records are kept in, one for each flush, each with its checksum in its own name.

No list of parts exists that could go out of step with them. A part is intact when its bytes hash to its name, and
ours when the run, the probe, the model and the stage in its metadata are those of the folder in which it lies.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from clinometer.errors import StoreError
from clinometer.store.names import PartName, StageKey

# The metadata key of run_id, probe, model and stage; as JSON, because a path may hold what UTF-8 cannot.
_OWNER = b"clinometer"


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedPart:
    """A part that must not be read, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path} ({self.reason})"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntactPart:
    """A part whose bytes are those that were written, by this run, for this stage."""

    path: Path
    stage: StageKey
    data: bytes

    def column_names(self) -> list[str]:
        """Return the names of all its columns."""
        return list(self.schema())

    def first_index(self) -> int:
        """Return the lowest index that it holds, without reading the column."""
        groups = pq.read_metadata(pa.BufferReader(self.data))
        statistics = (groups.row_group(number).column(0).statistics for number in range(groups.num_row_groups))
        return min(int(group.min) for group in statistics)

    def schema(self) -> pl.Schema:
        """Return the types of all its columns."""
        return pl.Schema(pl.read_parquet_schema(io.BytesIO(self.data)))

    def read(self, columns: list[str], *, indices: pl.Series | None = None) -> pl.DataFrame:
        """Decode some of its columns; with `indices`, only the rows that have one of them."""
        if indices is None:
            return pl.read_parquet(io.BytesIO(self.data), columns=columns)
        found = pl.read_parquet(io.BytesIO(self.data), columns=["index"])["index"].is_in(indices.implode())
        rows = found.arg_true()
        # most parts hold nothing that is wanted: the long columns are read up to the last row that is
        return pl.read_parquet(
            io.BytesIO(self.data), columns=columns, n_rows=int(rows[-1]) + 1 if len(rows) else 0
        )[rows]


@dataclass(frozen=True, slots=True)
class _Checked:
    """What hashing a file found, for as long as the file does not look changed."""

    size: int
    modified: int
    verdict: StageKey | str  # whose it is, or why it must not be read


class PartReader:
    """Reads the parts of one run, and hashes each at most once."""

    def __init__(self, records: Path, *, run_id: str) -> None:
        self._records = records
        self._run_id = run_id
        self._checked: dict[Path, _Checked] = {}

    def folders(self) -> list[Path]:
        """Return the folders of all stages that have any."""
        return sorted(path for path in self._records.glob("*/*/*") if path.is_dir())

    def parts(self, folder: Path) -> Iterator[IntactPart | DamagedPart]:
        """Yield the parts of a stage's folder in the order in which they were written."""
        for path in sorted(folder.glob("*.parquet"), key=_turn):
            yield self.load(path)

    def forget(self) -> None:
        """Hash every part again when it is next read."""
        self._checked.clear()

    def load(self, path: Path) -> IntactPart | DamagedPart:
        """Read one part, and hash it unless it looks as it did when it was hashed."""
        try:
            status = path.stat()
            data = path.read_bytes()
        except OSError as error:
            return DamagedPart(path=path, reason=f"it cannot be read: {error.strerror}")
        known = self._checked.get(path)
        if known is None or (known.size, known.modified) != (len(data), status.st_mtime_ns):
            known = _Checked(len(data), status.st_mtime_ns, self._verdict(path, data))
            self._checked[path] = known
        if isinstance(known.verdict, str):
            return DamagedPart(path=path, reason=known.verdict)
        return IntactPart(path=path, stage=known.verdict, data=data)

    def _verdict(self, path: Path, data: bytes) -> StageKey | str:
        """Return the stage to which a part belongs, or why it must not be read."""
        name = PartName.parse(path.name)
        if name is None:
            return "its name carries no checksum"
        if PartName.of(data, sequence=name.sequence) != name:
            return "its bytes are not those that were written: the checksum differs"
        try:
            owner = json.loads((pq.read_metadata(pa.BufferReader(data)).metadata or {})[_OWNER])
            run_id, stage = owner.pop("run_id"), StageKey(**owner)
        except (pa.ArrowException, OSError, KeyError, ValueError, TypeError, AttributeError):
            return "it does not say to which run it belongs"
        if run_id != self._run_id:
            return "it belongs to another run"
        try:
            at_home = self._records / stage.folder == path.parent
        except StoreError:  # a name that we never write
            at_home = False
        return stage if at_home else f"it belongs to another stage: {stage}"


def encode_part(batches: list[pa.RecordBatch], *, run_id: str, stage: StageKey) -> bytes:
    """Return the bytes of a part."""
    table = pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive")
    leaves = [leaf for field in table.schema for leaf in _leaves(field.name, field.type)]
    # numbers in long lists rarely repeat: split by byte they shrink better, and in half the time
    split = {leaf for leaf, kind in leaves if pa.types.is_float32(kind)}
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        use_dictionary=[leaf for leaf, _ in leaves if leaf not in split | {"index", "key"}],
        column_encoding=dict.fromkeys(split, "BYTE_STREAM_SPLIT") or None,
        write_statistics=["index"],
        store_schema=False,  # polars, pandas, DuckDB and R read the Parquet types themselves
    ) as writer:
        writer.write_table(table)
        owner = {"run_id": run_id, **dataclasses.asdict(stage)}
        writer.add_key_value_metadata({_OWNER: json.dumps(owner)})
    return bytes(sink.getvalue())


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the Parquet path and the type of every leaf of a column."""
    if pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield path, kind


def _turn(path: Path) -> tuple[int, str]:
    """Order parts by when they were written."""
    name = PartName.parse(path.name)
    return (name.sequence if name else -1, path.name)
