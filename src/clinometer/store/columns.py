"""Answered requests as columns, on their way into a part.

What many rows share (a context, a word list, a tag) is converted once, however many batches it comes in, and goes
into the file as a dictionary and one number for each row. Converting is also how a value is found that cannot be
stored; so it happens when a batch is taken, and joining the batches of a part, later, cannot fail.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from clinometer.errors import RecordsError
from clinometer.questions import ABSENT, Coded, Items, Requests, WordAnswers
from clinometer.store.names import column_name
from clinometer.store.schema import KEY_BYTES, Row, arrow_type, convert, hints_of, tag_type
from clinometer.store.tags import TAGS, TAGS_BYTES, digests_of_tags
from clinometer.types import Answer, WordAnswer

_KEPT_BYTES = 32_000_000  # of values that are known as columns
_KEPT_TAGS = 64


@dataclass(frozen=True, slots=True)
class Recorded:
    """Answered requests: their places in the stage, keys, questions, digests of tags, and answers, row by row.

    `sources` are what an endpoint said of itself with each answer.
    """

    indices: npt.NDArray[np.int64]
    keys: Sequence[bytes]
    items: Items
    digests: Sequence[bytes]
    answers: Sequence[Answer]
    sources: Sequence[Mapping[str, str | int]] = ()

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Recorded:
        """Return single rows as columns."""
        only_type([row.item.request for row in rows])
        items = Items.of([row.item for row in rows])
        indices = np.fromiter((row.index for row in rows), np.int64, len(rows))
        digests = digests_of_tags(items.tags, len(rows))
        answers, sources = [row.answer for row in rows], [row.source for row in rows]
        return cls(indices, [row.key for row in rows], items, digests, answers, sources)


@dataclass(frozen=True, slots=True)
class Column:
    """Values, converted, and which of them each row has; None: each its own."""

    values: pa.Array
    codes: npt.NDArray[np.int32] | None = None
    sizes: npt.NDArray[np.int64] | None = None  # of the values, in bytes, where they are texts

    def bytes_of(self) -> int:
        """Return how much memory the rows take once they are read, roughly."""
        if self.codes is None:
            return int(self.values.nbytes)
        if self.sizes is not None and len(self.sizes) > 1:
            return int(self.sizes[self.codes].sum())
        return int(self.values.nbytes) * len(self.codes) // max(1, len(self.values))


Columns = Mapping[str, Column]


class Converter:
    """Converts rows; remembers values, by the object they are, that many batches share."""

    def __init__(self) -> None:
        # with what it was made of, so that no other object can be taken for it
        self._known: OrderedDict[tuple[int, pa.DataType], tuple[Any, Column]] = OrderedDict()
        self._bytes = 0
        self._tags: OrderedDict[int, tuple[Any, tuple[Any, ...], pa.DataType]] = OrderedDict()

    def columns(self, recorded: Recorded) -> Columns:
        """Return the columns of a record; raise RecordsError if a value cannot be stored exactly."""
        rows = len(recorded.items)
        requests = recorded.items.requests
        columns = {
            "index": Column(pa.array(recorded.indices)),
            "key": Column(_fixed("key", recorded.keys, KEY_BYTES)),
            TAGS: Column(_fixed(TAGS, recorded.digests, TAGS_BYTES)),
        }
        for name, tag in recorded.items.tags.items():
            columns[f"tag_{column_name(name, what='tag')}"] = self._tagged(name, tag)
        columns["ask_kind"] = self._shared("ask_kind", Coded.same(requests.kind.__name__, rows), pa.string())
        for name, hint in hints_of(requests.kind).items():
            columns[f"ask_{name}"] = self._shared(f"ask_{name}", requests.columns[name], arrow_type(hint))
        columns |= self._answers(recorded.answers)
        for name in dict.fromkeys(itertools.chain.from_iterable(recorded.sources)):
            told = Coded.of([source.get(name) for source in recorded.sources])
            column = f"from_{column_name(name, what='source')}"
            columns[column] = _own(column, told, tag_type(name, told.values))
        return columns

    def _answers(self, answers: Sequence[Answer]) -> Iterator[tuple[str, Column]]:
        kind = WordAnswer if isinstance(answers, WordAnswers) else only_type(answers)
        for name, hint in hints_of(kind).items():
            column, arrow = f"got_{name}", arrow_type(hint)
            if not isinstance(answers, WordAnswers):
                yield column, _own(column, Coded.of(list(map(attrgetter(name), answers))), arrow)
            elif name == "logprobs":
                offsets = np.arange(len(answers) + 1, dtype=np.int32) * answers.logprobs.shape[1]
                flat = pa.array(np.ascontiguousarray(answers.logprobs, np.float32).reshape(-1))
                yield column, Column(pa.ListArray.from_arrays(pa.array(offsets), flat))
            else:
                same = answers.words if name == "words" else _DEFAULTS[name]
                yield column, self._shared(column, Coded.same(same, len(answers)), arrow)

    def _tagged(self, name: str, tag: Coded) -> Column:
        known = self._tags.get(id(tag.values))
        if known is None:
            absent = any(value is ABSENT for value in tag.values)
            values = tuple(None if value is ABSENT else value for value in tag.values) if absent else tag.values
            try:
                kind = tag_type(name, values)
            except RecordsError:  # what other batches have does not concern this one
                used = Coded(values, tag.codes).used()
                return _own(f"tag_{name}", used, tag_type(name, used.values))
            known = self._tags[id(tag.values)] = tag.values, values, kind
            if len(self._tags) > _KEPT_TAGS:
                self._tags.popitem(last=False)
        return self._shared(f"tag_{name}", Coded(known[1], tag.codes), known[2])

    def _shared(self, name: str, column: Coded, kind: pa.DataType) -> Column:
        """Convert values that other batches may have, too."""
        one = len(column.values) == 1
        known = (id(column.values[0] if one else column.values), kind)
        if (found := self._known.get(known)) is None:
            found = self._known[known] = column.values, _sized(convert(name, list(column.values), kind))
            self._bytes += found[1].values.nbytes
            while self._bytes > _KEPT_BYTES and len(self._known) > 1:
                _, (_, forgotten) = self._known.popitem(last=False)
                self._bytes -= forgotten.values.nbytes
        return Column(found[1].values, column.codes, found[1].sizes)


def _own(name: str, column: Coded, kind: pa.DataType) -> Column:
    """Convert values that no other batch has."""
    alone = len(column.values) == len(column.codes)
    values = convert(name, column.each() if alone else list(column.values), kind)
    return Column(values) if alone else _sized(values, column.codes)


def _sized(values: pa.Array, codes: npt.NDArray[np.int32] | None = None) -> Column:
    if not pa.types.is_string(values.type):
        return Column(values, codes)
    return Column(values, codes, 4 + pc.fill_null(pc.binary_length(values), 0).to_numpy().astype(np.int64))


def joined(waiting: Sequence[Columns], schema: pa.Schema) -> pa.RecordBatch:
    """Return several batches as one; a column that a batch does not have is null there."""
    rows = [len(columns["index"].values) for columns in waiting]
    arrays = {}
    for field in schema:
        parts = [
            columns.get(field.name) or Column(pa.nulls(1, field.type), np.zeros(count, np.int32))
            for columns, count in zip(waiting, rows, strict=True)
        ]
        arrays[field.name] = _joined(parts, field.type)
    return pa.RecordBatch.from_pydict(arrays)


def _joined(parts: Sequence[Column], kind: pa.DataType) -> pa.Array:
    if all(part.codes is None for part in parts):
        return _concatenated([part.values for part in parts], kind)
    starts: dict[int, int] = {}
    values: list[pa.Array] = []
    codes: list[npt.NDArray[np.int32]] = []
    for part in parts:
        if id(part.values) not in starts:
            starts[id(part.values)] = sum(map(len, values))
            values.append(part.values)
        own = np.arange(len(part.values), dtype=np.int32) if part.codes is None else part.codes
        codes.append(own + starts[id(part.values)])
    return _expanded(_concatenated(values, kind), np.concatenate(codes))


def _expanded(values: pa.Array, codes: npt.NDArray[np.int32]) -> pa.Array:
    """Return the value of each row: texts as a dictionary, if it is shorter than the rows."""
    has = np.zeros(len(values), np.bool_)
    has[codes] = True
    if not has.all():
        values, codes = values.filter(pa.array(has)), (np.cumsum(has, dtype=np.int32) - 1)[codes]
    rows = pa.array(codes)
    if 2 * len(values) > len(codes) or values.null_count == len(values):
        return values.take(rows)
    if pa.types.is_string(values.type):
        encoded = values.dictionary_encode()  # no text twice: Parquet relies on it
        return pa.DictionaryArray.from_arrays(encoded.indices.take(rows), encoded.dictionary)
    if pa.types.is_list(values.type) and pa.types.is_string(values.type.value_type):
        values = pa.ListArray.from_arrays(values.offsets, values.values.dictionary_encode())
    return values.take(rows)


def _concatenated(arrays: Iterable[pa.Array], kind: pa.DataType) -> pa.Array:
    cast = [array if array.type.equals(kind) else array.cast(kind) for array in arrays]
    return cast[0] if len(cast) == 1 else pa.concat_arrays(cast)


def _fixed(name: str, values: Sequence[bytes], size: int) -> pa.Array:
    if set(map(len, values)) - {size}:
        raise RecordsError(f"column {name} cannot hold what it was given: each value must have {size} bytes")
    return pa.Array.from_buffers(pa.binary(size), len(values), [None, pa.py_buffer(b"".join(values))])


def only_type(values: Sequence[Any]) -> type:
    """Return the class of all values; one table cannot hold the fields of several."""
    if isinstance(values, Requests):
        return values.kind
    kinds = set(map(type, values))
    if len(kinds) != 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise RecordsError(
            f"one stage was given {names}; use one kind of request and one kind of answer per stage"
        )
    return kinds.pop()


_DEFAULTS = {field.name: field.default for field in dataclasses.fields(WordAnswer)}
