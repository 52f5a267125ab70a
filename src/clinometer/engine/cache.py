"""Answers shared between runs, so that no run asks what another already knows."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from clinometer.errors import StoreError
from clinometer.models.protocols import ANSWERS
from clinometer.types import Answer, Request

Source = Mapping[str, str | int]
_CHECK_BYTES = 8
_LOOKUPS_AT_ONCE = 500  # SQLite's limit on the number of `?` in one statement is 999 in old builds


class AnswerCache:
    """Answers by content key, in one SQLite file; safe for several processes at once.

    Each value carries a checksum; a damaged row counts as absent and is asked again.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "answers.sqlite"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self._file, timeout=60)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"cannot use the cache folder {folder}: {error}; name another with --cache") from None

    def look_up(self, keyed: Mapping[bytes, Request]) -> dict[bytes, tuple[Answer, Source]]:
        """Return the known answers to these requests, by key, and what an endpoint said of itself with each."""
        keys = list(keyed)
        found: dict[bytes, tuple[Answer, Source]] = {}
        try:
            for start in range(0, len(keys), _LOOKUPS_AT_ONCE):
                some = keys[start : start + _LOOKUPS_AT_ONCE]
                marks = ",".join("?" * len(some))
                for key, value in self._db.execute(f"SELECT key, value FROM answers WHERE key IN ({marks})", some):
                    if _checksum(value[_CHECK_BYTES:]) == value[:_CHECK_BYTES]:
                        found[key] = _decode(value[_CHECK_BYTES:], ANSWERS[type(keyed[key])])
        except sqlite3.Error as error:
            raise StoreError(
                f"the answer cache {self._file} cannot be read ({error}); delete it, or run without --cache"
            ) from None
        return found

    def add(
        self, keys: Sequence[bytes], answers: Iterable[Answer], *, sources: Iterable[Source] | None = None
    ) -> None:
        """Remember answers."""
        given = itertools.repeat({}) if sources is None else sources
        rows = [(key, _encode(answer, source)) for key, answer, source in zip(keys, answers, given, strict=False)]
        try:
            with self._db:
                self._db.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            raise StoreError(f"cannot write to the answer cache: {error}; run without --cache") from None

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _encode(answer: Answer, source: Source) -> bytes:
    # by position: the request tells the class; exact floats and NaN survive Python's json
    values = [getattr(answer, field.name) for field in dataclasses.fields(answer)]
    text = json.dumps([*values, dict(source)] if source else values).encode()
    return _checksum(text) + text


def _decode(text: bytes, cls: type[Any]) -> tuple[Answer, Source]:
    values = [tuple(value) if isinstance(value, list) else value for value in json.loads(text)]
    source: Source = values.pop() if isinstance(values[-1], dict) else {}  # type: ignore[assignment]
    names = [field.name for field in dataclasses.fields(cls)]
    # an older release may have known fewer fields: those added since have defaults
    answer: Answer = cls(**dict(zip(names, values, strict=False)))
    return answer, source


def _checksum(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_CHECK_BYTES).digest()
