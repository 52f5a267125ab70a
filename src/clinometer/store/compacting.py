"""Joins the parts of a finished stage: a run of a night leaves twenty thousand, and opening them takes as long.

A joined part has the sequence number of the last part in it, so that at any moment, also after a kill, the order
of what is there is the order in which it was written, and of two records the later counts. Parts by different
hands are not joined: each part says who computed it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clinometer.store.atomic import write_atomically
from clinometer.store.names import PartName, StageKey
from clinometer.store.parts import IntactPart, encode_part

FEW = 16  # parts that are left as they are
ROWS = 100_000  # of a joined part, at most …
BYTES = 128_000_000  # … and bytes of it in memory


def compact(parts: Iterable[IntactPart], *, stage: StageKey, run: Path, run_id: str) -> None:
    """Replace neighbouring parts, given in the order they were written, by joined ones. Hold the lock."""
    for by, group in itertools.groupby(parts, key=lambda part: part.by):
        for some, tables in _chunks(group):
            if len(some) == 1:
                continue
            last = PartName.parse(some[-1].name)
            assert last is not None, "an intact part has the name of one"
            data = encode_part(_latest(tables).to_batches(), run_id=run_id, stage=stage, by=by)
            name = PartName.of(data, sequence=last.sequence).file_name
            write_atomically(some[0].parent / name, data, run=run)
            for path in some:  # only now: what they hold is on disk twice
                if path.name != name:
                    path.unlink(missing_ok=True)


def _chunks(parts: Iterable[IntactPart]) -> Iterator[tuple[list[Path], list[pa.Table]]]:
    """Yield the paths and tables of as many parts as one joined part may hold."""
    paths: list[Path] = []
    tables: list[pa.Table] = []
    rows = size = 0
    for part in parts:
        table = _read(part.data)
        taken = sum(_bytes_of(chunk) for column in table.columns for chunk in column.chunks)
        rows, size = rows + len(table), size + taken
        if tables and (rows > ROWS or size > BYTES):
            yield paths, tables
            paths, tables, rows, size = [], [], len(table), taken
        paths.append(part.path)
        tables.append(table)
    if tables:
        yield paths, tables


def _read(data: bytes) -> pa.Table:
    """Read a part; texts stay as they are in the file, a dictionary and one number for each row."""
    schema = pq.read_metadata(pa.BufferReader(data)).schema
    leaves = [schema.column(number) for number in range(len(schema))]
    texts = [leaf.path for leaf in leaves if leaf.logical_type.type == "STRING" and _is_flat(leaf.path)]
    return pq.read_table(pa.BufferReader(data), read_dictionary=texts)


def _is_flat(path: str) -> bool:
    """Tell whether a leaf is a column of texts or of lists of texts; a tag's name may have a dot in it."""
    return path.startswith("tag_") or "." not in path.removesuffix(".list.element")


def _bytes_of(array: pa.Array) -> int:
    """Return how much memory an array takes once its texts are written out."""
    if pa.types.is_dictionary(array.type):
        lengths = pc.binary_length(array.dictionary).take(array.indices)
        return 4 * len(array) + (pc.sum(lengths).as_py() or 0)
    return _bytes_of(array.flatten()) + 4 * len(array) if pa.types.is_list(array.type) else int(array.nbytes)


def _latest(tables: list[pa.Table]) -> pa.Table:
    """Join tables by index; of two records the later counts."""
    joined = pa.concat_tables(tables, promote_options="permissive").combine_chunks()  # one dictionary for all
    index = joined["index"].to_numpy()
    order = np.argsort(index, kind="stable")
    last = np.append(index[order][1:] != index[order][:-1], True)
    return joined.take(pa.array(order[last]))
