"""The writer of one stage's records."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from clinometer.errors import RecordsError, StoreError
from clinometer.store.atomic import write_atomically
from clinometer.store.columns import Columns, Converter, Recorded, joined
from clinometer.store.names import DAMAGED, PartName, StageKey
from clinometer.store.parts import encode_part
from clinometer.store.schema import Row

FLUSH_SECONDS = 2.0
RELABELLED = "relabelled"  # by whom a part was written that holds answers of earlier parts
MAX_ROWS = 20_000
MAX_BYTES = 128_000_000  # in memory: a part must stay far below the limits of its readers


class RecordWriter:
    """Appends batches of answered requests to a stage, and writes them out as parts.

    A part is written when `flush_seconds` have passed since the last one, when `max_rows` are waiting, and at the
    end of the `with` block, even after an exception: what was appended is finished work. `by` says who computed a
    part; it is asked when the part is written.
    """

    def __init__(
        self,
        folder: Path,
        *,
        stage: StageKey,
        run: Path,
        run_id: str,
        by: Callable[[], Mapping[str, Any]] | None = None,
        flush_seconds: float = FLUSH_SECONDS,
        max_rows: int = MAX_ROWS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._stage = stage
        self._run = run
        self._run_id = run_id
        self._by = by
        self._flush_seconds = flush_seconds
        self._max_rows = max_rows
        self._clock = clock
        self._converter = Converter()
        self._batches: list[Columns] = []
        self._waiting = self._bytes = 0
        self._schema: pa.Schema | None = None
        self._kind: type | None = None
        self._sequence = _next_sequence(folder)
        self._last_flush = clock()

    def append(self, rows: Sequence[Row] | Recorded) -> None:
        """Take one finished batch: all of it or, if a value cannot be stored, none of it."""
        recorded = rows if isinstance(rows, Recorded) else Recorded.of(rows) if rows else None
        if recorded is None:
            return
        if recorded.indices.min() < 0:
            raise RecordsError(f"{self._stage}: an index is negative; it is an item's place in its stage, from 0")
        columns = self._converter.columns(recorded)
        kind = recorded.items.requests.kind
        self._schema = self._agreed({name: column.values.type for name, column in columns.items()}, kind)
        self._kind = kind
        self._batches.append(columns)
        self._waiting += len(recorded.indices)
        self._bytes += sum(column.bytes_of() for column in columns.values())
        full = self._waiting >= self._max_rows or self._bytes >= MAX_BYTES
        if full or self._clock() - self._last_flush >= self._flush_seconds:
            self.flush()

    def relabel(self, rows: Sequence[Row]) -> None:
        """Write answers of earlier parts once more, under other tags, as a part that says so."""
        self.flush()
        self.append(rows)
        self.flush(relabelled=True)

    def flush(self, *, relabelled: bool = False) -> None:
        """Write what is waiting. Once this returns, it survives a kill or a power cut."""
        if self._batches:
            by = self._by() if self._by else None
            by = {**by, RELABELLED: True} if by and relabelled else by
            names = dict.fromkeys(name for columns in self._batches for name in columns)
            assert self._schema is not None, "every batch has one"
            batch = joined(self._batches, pa.schema([self._schema.field(name) for name in names]))
            data = encode_part([batch], run_id=self._run_id, stage=self._stage, by=by)
            name = PartName.of(data, sequence=self._sequence).file_name
            write_atomically(self._folder / name, data, run=self._run)
            self._sequence += 1
            self._batches.clear()
            self._waiting = self._bytes = 0
        self._last_flush = self._clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # after a failed write, another attempt would only hide the first error
        if not isinstance(error, StoreError):
            self.flush()

    def _agreed(self, types: Mapping[str, pa.DataType], kind: type) -> pa.Schema:
        """Return the schema of all batches so far; raise if this one does not fit into the same table."""
        schema = pa.schema(list(types.items()))
        if self._schema is None or self._kind is None:
            return schema
        if kind is not self._kind:
            raise RecordsError(
                f"{self._stage} was given {kind.__name__} after {self._kind.__name__}; "
                "ask one kind of request per stage"
            )
        if schema.equals(self._schema):
            return schema
        try:
            return pa.unify_schemas([self._schema, schema], promote_options="permissive")
        except pa.ArrowException as error:
            raise RecordsError(
                f"{self._stage}: a tag is text in some items and a number in others ({error})"
            ) from error


def _next_sequence(folder: Path) -> int:
    """Return the number of the next part, after every part that is or was there, damaged or not."""
    names = (
        PartName.parse(path.name) for pattern in ("*.parquet", f"*{DAMAGED}*") for path in folder.glob(pattern)
    )
    return max((name.sequence for name in names if name), default=0) + 1
