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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from clinometer.errors import RecordsError
from clinometer.models.protocols import ANSWERS
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


@functools.cache
def hints_of(kind: type) -> dict[str, Any]:
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
        f"got_{field.name}": arrow_type(hints_of(kind)[field.name])
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
        return pa.struct([(name, arrow_type(inner)) for name, inner in hints_of(typing.cast(type, hint)).items()])
    raise TypeError(f"records have no column type for {hint}")


def tag_type(name: str, values: Sequence[Any]) -> pa.DataType:
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


def convert(name: str, values: list[Any], kind: pa.DataType) -> pa.Array:
    """Build one column; the error names it when a value does not fit."""
    if pa.types.is_integer(kind) and bool in set(map(type, values)):
        values = [int(value) if isinstance(value, bool) else value for value in values]
    try:
        return _nested(values, kind)
    except UnicodeEncodeError as error:
        raise RecordsError(
            f"column {name} has text that is not valid Unicode ({error.object[error.start : error.end]!r} "
            f"in {error.object[:80]!r}): clean it before it is asked, or where the answer is made"
        ) from error
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise RecordsError(f"column {name} cannot hold what it was given, as {kind}: {error}") from error


def _nested(values: list[Any], kind: pa.DataType) -> pa.Array:
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
