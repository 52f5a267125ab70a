"""Values from JSON documents, checked field by field: a number where text belongs is found here, not later."""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


def built(kind: type[T], values: object) -> T:
    """Return a dataclass, or a plain type such as `str`, from what JSON has; raise ValueError for anything else.

    >>> built(tuple[str, ...], ["a", "b"])
    ('a', 'b')
    """
    if dataclasses.is_dataclass(kind):
        known = {field.name for field in dataclasses.fields(kind)}
        if not isinstance(values, dict) or not values.keys() <= known:
            raise ValueError(f"a {kind.__name__.lower()} has other fields than it should")
    whole = _whole(values)
    try:
        # strict JSON mode, as for specs: "3" is not a number, but an array may become a tuple
        found: T = _adapter(cast(Any, kind)).validate_json(json.dumps(whole), strict=True)
        return found if whole == values else _with_texts_of(values, found)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place + ': ' if place else ''}{first['msg']}") from None


def all_built(kind: type[T], values: object) -> tuple[T, ...]:
    """Return every one of a list."""
    if not isinstance(values, list):
        raise ValueError(f"expected a list of {kind.__name__.lower()}s")
    return tuple(built(kind, each) for each in values)


def _whole(values: Any) -> Any:
    """Replace halves of UTF-16 pairs, which Python keeps from strange file names and strict JSON does not know."""
    if isinstance(values, str):
        return values.encode("utf-8", "replace").decode()
    if isinstance(values, list):
        return [_whole(each) for each in values]
    if isinstance(values, dict):
        return {_whole(name): _whole(each) for name, each in values.items()}
    return values


def _with_texts_of(values: Any, found: Any) -> Any:
    """Put the texts as they were into what was built without those halves."""
    if isinstance(values, str):
        return values
    if isinstance(values, list):
        return type(found)(_with_texts_of(each, one) for each, one in zip(values, found, strict=True))
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        known = {name: _with_texts_of(each, getattr(found, name)) for name, each in values.items()}
        return dataclasses.replace(found, **known)
    if isinstance(values, dict):
        return {
            name: _with_texts_of(each, one)
            for (name, each), one in zip(values.items(), found.values(), strict=True)
        }
    return found


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
