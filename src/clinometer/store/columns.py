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

_KEPT = 512  # sets of values that are known as columns


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
        self._known: OrderedDict[tuple[int, pa.DataType], tuple[Any, Column]] = OrderedDict()
        self._tag_types: OrderedDict[int, tuple[Any, pa.DataType]] = OrderedDict()

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
            columns[f"tag_{column_name(name, what='tag')}"] = self._tagged(f"tag_{name}", name, tag)
        columns["ask_kind"] = self._coded("ask_kind", Coded.same(requests.kind.__name__, rows), pa.string())
        for name, hint in hints_of(requests.kind).items():
            columns[f"ask_{name}"] = self._coded(f"ask_{name}", requests.columns[name], arrow_type(hint))
        columns |= self._answers(recorded.answers)
        for name in dict.fromkeys(itertools.chain.from_iterable(recorded.sources)):
            told = Coded.of([source.get(name) for source in recorded.sources])
            columns[f"from_{column_name(name, what='source')}"] = self._tagged(f"from_{name}", name, told)
        return columns

    def _answers(self, answers: Sequence[Answer]) -> Iterator[tuple[str, Column]]:
        kind = WordAnswer if isinstance(answers, WordAnswers) else only_type(answers)
        for name, hint in hints_of(kind).items():
            column, arrow = f"got_{name}", arrow_type(hint)
            if not isinstance(answers, WordAnswers):
                yield column, self._coded(column, Coded.of(list(map(attrgetter(name), answers))), arrow)
            elif name == "logprobs":
                offsets = np.arange(len(answers) + 1, dtype=np.int32) * answers.logprobs.shape[1]
                flat = pa.array(np.ascontiguousarray(answers.logprobs, np.float32).reshape(-1))
                yield column, Column(pa.ListArray.from_arrays(pa.array(offsets), flat))
            else:
                same = answers.words if name == "words" else _DEFAULTS[name]
                yield column, self._coded(column, Coded.same(same, len(answers)), arrow)

    def _tagged(self, column: str, name: str, tag: Coded) -> Column:
        known = self._tag_types.get(id(tag.values))
        if known is None:
            used = tag.used()  # a window's values need not all be in these rows, nor of one type
            values = tuple(None if value is ABSENT else value for value in used.values)
            known = tag.values, tag_type(name, values)
            if len(values) < len(tag.values) or any(value is ABSENT for value in tag.values):
                return self._coded(column, Coded(values, used.codes), known[1])
            _keep(self._tag_types, id(tag.values), known)
        return self._coded(column, tag, known[1])

    def _coded(self, name: str, column: Coded, kind: pa.DataType) -> Column:
        one = len(column.values) == 1
        known = (id(column.values[0] if one else column.values), kind)
        if (found := self._known.get(known)) is None:
            if not one and 2 * len(column.values) > len(column.codes):
                column = column.used()
                if len(column.values) == len(column.codes):  # every row has its own
                    return Column(convert(name, column.each(), kind))
                return _sized(convert(name, list(column.values), kind), column.codes)
            found = column.values, _sized(convert(name, list(column.values), kind))
            _keep(self._known, known, found)
        return Column(found[1].values, column.codes, found[1].sizes)


def _keep(known: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    """Remember something, and forget what was learnt first."""
    known[key] = value
    if len(known) > _KEPT:
        known.popitem(last=False)


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
    if pa.types.is_string(values.type):
        if 2 * len(values) > len(codes):
            return values.take(pa.array(codes))
        has = np.zeros(len(values), np.bool_)
        has[codes] = True
        places = np.cumsum(has) - 1
        encoded = values.filter(pa.array(has)).dictionary_encode()  # no text twice: Parquet relies on it
        indices = encoded.indices.take(pa.array(places[codes]))
        return pa.DictionaryArray.from_arrays(indices, encoded.dictionary)
    if pa.types.is_list(values.type) and pa.types.is_string(values.type.value_type) and not values.null_count:
        values = pa.ListArray.from_arrays(values.offsets, values.values.dictionary_encode())
    return values.take(pa.array(codes))


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
