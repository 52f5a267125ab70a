"""The columns of a record, derived from the dataclasses of requests and answers.

`str` becomes string, `int` int64, `float` float64, `bool` bool, `tuple[str, ...]` list<string>,
`tuple[float, ...]` list<float32> (log-probabilities and vectors: 7 digits are more than a bf16 model has), and a
tuple of dataclasses list<struct>. Text must be valid Unicode: a lone surrogate is refused, never replaced, because
a record must be exactly what was asked and answered.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from clinometer.errors import RecordsError
from clinometer.models.protocols import ANSWERS
from clinometer.store.names import column_name
from clinometer.store.tags import TAGS, TAGS_BYTES, digest_of_tags
from clinometer.types import Answer, Item

KEY_BYTES = 16
_SCALARS = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


@dataclass(frozen=True, slots=True)
class Row:
    """One answered request: its place in the stage, its key, the question and the answer.

    `source` is what an endpoint said of itself with the answer, what it counted, and how often it was asked.
    """

    index: int
    key: bytes  # 16 bytes
    item: Item
    answer: Answer
    source: Mapping[str, str | int] = field(default_factory=dict)


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    """Turn rows of one kind of request into columns; raise RecordsError if a value cannot be stored exactly."""
    requests = [row.item.request for row in rows]
    answers = [row.answer for row in rows]
    columns = {
        "index": _column("index", [row.index for row in rows], pa.int64()),
        "key": _column("key", [row.key for row in rows], pa.binary(KEY_BYTES)),
    }
    tags = [row.item.tags for row in rows]
    columns[TAGS] = _column(TAGS, list(map(digest_of_tags, tags)), pa.binary(TAGS_BYTES))
    for name in dict.fromkeys(itertools.chain.from_iterable(tags)):
        values = [tag.get(name) for tag in tags]
        columns[f"tag_{column_name(name, what='tag')}"] = _column(f"tag_{name}", values, _tag_type(name, values))
    kind = _only_type(requests)
    columns["ask_kind"] = pa.repeat(pa.scalar(kind.__name__, pa.string()), len(rows))
    columns |= _fields("ask", kind, requests) | _fields("got", _only_type(answers), answers)
    sources = [row.source for row in rows]
    for name in dict.fromkeys(itertools.chain.from_iterable(sources)):
        values = [source.get(name) for source in sources]
        columns[f"from_{column_name(name, what='source')}"] = _column(
            f"from_{name}", values, _tag_type(name, values)
        )
    return pa.RecordBatch.from_pydict(columns)


def _fields(prefix: str, kind: type, values: Sequence[Any]) -> dict[str, pa.Array]:
    """Turn the fields of dataclass instances into columns."""
    return {
        f"{prefix}_{name}": _column(f"{prefix}_{name}", list(map(attrgetter(name), values)), arrow_type(hint))
        for name, hint in _hints(kind).items()
    }


def _only_type(values: Sequence[Any]) -> type:
    """Return the class of all values; one table cannot hold the fields of several."""
    kinds = set(map(type, values))
    if len(kinds) != 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise RecordsError(
            f"one stage was given {names}; use one kind of request and one kind of answer per stage"
        )
    return kinds.pop()


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    """Return the resolved type of every field of a dataclass, in order."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@functools.cache
def later_columns() -> pa.Schema:
    """Return the columns of answers that a later release added: records made before it lack them.

    >>> later_columns().field("got_covered").type
    DataType(double)
    """
    added = {
        f"got_{field.name}": arrow_type(_hints(kind)[field.name])
        for kind in dict.fromkeys(ANSWERS.values())
        for field in dataclasses.fields(kind)
        if field.default is not dataclasses.MISSING
    }
    return pa.schema(list(added.items()))


@functools.cache
def arrow_type(hint: Any) -> pa.DataType:
    """Return the column type for a field's type.

    >>> arrow_type(tuple[float, ...])
    ListType(list<item: float>)
    """
    if isinstance(hint, type) and hint in _SCALARS:
        return _SCALARS[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return _SCALARS[type(arguments[0])]
    if origin is tuple and arguments[1:] == (...,):
        return pa.list_(pa.float32() if arguments[0] is float else arrow_type(arguments[0]))
    if dataclasses.is_dataclass(hint):
        return pa.struct([(name, arrow_type(inner)) for name, inner in _hints(typing.cast(type, hint)).items()])
    raise TypeError(f"records have no column type for {hint}")


def _tag_type(name: str, values: Sequence[Any]) -> pa.DataType:
    """Return the column type for a tag's values; int and float together are float, bool is 0 or 1."""
    kinds = set(map(type, values)) - {types.NoneType}
    if all(issubclass(kind, str) for kind in kinds):
        return pa.string()
    if all(issubclass(kind, int | np.integer) for kind in kinds):
        return pa.int64()
    if all(issubclass(kind, int | float | np.number) for kind in kinds):
        return pa.float64()
    found = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise RecordsError(f"tag {name!r} has values of type {found}; a tag is text in all items, or a number in all")


def _column(name: str, values: list[Any], kind: pa.DataType) -> pa.Array:
    """Build one column; the error names it when a value does not fit."""
    build: Callable[[list[Any], pa.DataType], pa.Array] = _array if _is_wide(kind) else pa.array
    if pa.types.is_integer(kind) and bool in set(map(type, values)):
        values = [int(value) if isinstance(value, bool) else value for value in values]
    try:
        return build(values, kind)
    except UnicodeEncodeError as error:
        raise RecordsError(
            f"column {name} has text that is not valid Unicode ({error.object[error.start : error.end]!r} "
            f"in {error.object[:80]!r}): clean it before it is asked, or where the answer is made"
        ) from error
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise RecordsError(f"column {name} cannot hold what it was given, as {kind}: {error}") from error


def _is_wide(kind: pa.DataType) -> bool:
    """Tell whether values are texts or lists, which take longer to convert than to compare."""
    return bool(pa.types.is_string(kind) or pa.types.is_list(kind))


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Convert texts or lists; an object shared by many rows (a context, a word list) is converted once."""
    identities = list(map(id, values))
    distinct = dict(zip(identities, values, strict=True))
    if 2 * len(distinct) > len(values):
        return _nested(values, kind)
    places = dict(zip(distinct, range(len(distinct)), strict=True))
    return _nested(list(distinct.values()), kind).take(
        pa.array(list(map(places.__getitem__, identities)), pa.int32())
    )


def _nested(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Convert texts or lists one by one."""
    if not pa.types.is_list(kind):
        return pa.array(values, kind)
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(value) for value in values], out=offsets[1:])
    flat = itertools.chain.from_iterable(values)
    if pa.types.is_float32(kind.value_type):  # twice as fast through numpy
        inner = pa.array(np.fromiter(flat, np.float32, count=int(offsets[-1])))
    elif pa.types.is_struct(kind.value_type):
        whole = list(flat)
        parts = [pa.array(list(map(attrgetter(field.name), whole)), field.type) for field in kind.value_type]
        inner = pa.StructArray.from_arrays(parts, fields=list(kind.value_type))
    else:
        inner = pa.array(list(flat), kind.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets), inner)
