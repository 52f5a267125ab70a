"""Values from JSON documents, checked field by field: a number where text belongs is found here, not later."""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import Any, TypeVar

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
    try:
        # strict JSON mode, as for specs: "3" is not a number, but an array may become a tuple
        return _adapter(kind).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place + ': ' if place else ''}{first['msg']}") from None


def all_built(kind: type[T], values: object) -> tuple[T, ...]:
    """Return every one of a list."""
    if not isinstance(values, list):
        raise ValueError(f"expected a list of {kind.__name__.lower()}s")
    return tuple(built(kind, each) for each in values)


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
