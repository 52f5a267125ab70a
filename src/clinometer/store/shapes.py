"""Values from JSON documents, checked field by field: a number where text belongs is found here, not later.

Text may be anything, lone surrogates included: it is what a model wrote.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def built(kind: type[T], values: object) -> T:
    """Return a value of a type, dataclasses included, from what JSON has; raise ValueError for anything else.

    >>> built(tuple[str, ...], ["a", "b"]), built(dict[str, float], {"a": 1})
    (('a', 'b'), {'a': 1})
    """
    found: T = _as(kind, values, "")
    return found


def all_built(kind: type[T], values: object) -> tuple[T, ...]:
    """Return every one of a list."""
    return built(tuple[kind, ...], values)  # type: ignore[valid-type]


def _as(hint: Any, value: object, place: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _record(typing.cast(type, hint), value, place)
    if origin in (typing.Union, types.UnionType):
        for choice in arguments:
            if _is(choice, value):
                return value
    elif origin is typing.Literal:
        if any(value == choice and type(value) is type(choice) for choice in arguments):
            return value
    elif origin is tuple and isinstance(value, list):
        return tuple(_as(arguments[0], each, f"{place}, entry {number}") for number, each in enumerate(value, 1))
    elif origin in (dict, Mapping) and isinstance(value, dict):
        return {str(name): _as(arguments[1], each, f"{place}.{name}") for name, each in value.items()}
    elif _is(hint, value):
        return value
    raise ValueError(f"{place.lstrip('.,') or 'it'} is not what belongs there: {repr(value)[:40]}")


def _is(hint: Any, value: object) -> bool:
    """Tell whether a value has a plain type; a whole number is a fraction, too, but true is not a number."""
    if hint is float:
        return type(value) in (int, float)
    return type(value) is (type(None) if hint is None else hint)


def _record(kind: type, value: object, place: str) -> Any:
    hints = _hints(kind)
    if not isinstance(value, dict) or not value.keys() <= hints.keys():
        raise ValueError(f"{place.lstrip('.,') or 'it'} has other fields than a {kind.__name__}")
    try:
        return kind(**{name: _as(hints[name], each, f"{place}.{name}") for name, each in value.items()})
    except TypeError as error:  # a field is missing
        raise ValueError(f"{place.lstrip('.,') or 'it'}: {error}") from None


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
