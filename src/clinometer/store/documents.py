"""Small JSON documents of a run folder."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from clinometer.errors import StoreError

T = TypeVar("T")


def to_json(value: object) -> bytes:
    """Return a value as JSON, the same bytes for equal values; NaN stays NaN, as Python's reader takes it."""
    return (json.dumps(_plain(value), indent=1) + "\n").encode("ascii")


def read_json(path: Path, build: Callable[[Any], T]) -> T:
    """Read a JSON document and build from it what it stands for; raise StoreError that names a broken file."""
    try:
        return build(json.loads(path.read_bytes()))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StoreError(
            f"{path} is damaged ({error or type(error).__name__}); put back the file that was there"
        ) from error


def _plain(value: object) -> object:
    """Replace dataclasses, mappings, tuples and numpy scalars by what JSON has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
