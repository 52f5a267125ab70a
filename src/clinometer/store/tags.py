"""The digest of an item's tags, which is recorded beside the key of its request.

A key says what was asked; the tags say what a probe takes the answer for, so they decide a finding as much as the
answer does. They are not part of the key: a probe that labels its questions otherwise need not ask them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from clinometer.questions import ABSENT, Coded, spelled
from clinometer.types import Tag

TAGS = "tags"  # the column
TAGS_BYTES = 8


def digest_of_tags(tags: Mapping[str, Tag]) -> bytes:
    """Return the digest: the same whatever the order of the tags, and whichever library a number is from.

    >>> digest_of_tags({"side": "left", "turn": 1}) == digest_of_tags({"turn": 1, "side": "left"})
    True
    >>> digest_of_tags({"turn": 1}) == digest_of_tags({"turn": "1"})
    False
    """
    written = ", ".join(f"({name!r}, {_shown(value)})" for name, value in sorted(tags.items()))
    return _digest(f"[{written}]".encode("utf-8", "surrogatepass"))


def digests_of_tags(tags: Mapping[str, Coded], rows: int) -> list[bytes]:
    """Return the digest of each row's tags, as `digest_of_tags` does; what rows share is written once.

    >>> digests_of_tags({"turn": Coded.of([1, 2])}, 2)[1] == digest_of_tags({"turn": 2})
    True
    """
    if any(value is ABSENT for column in tags.values() for value in column.values):
        each = zip(*(column.each() for column in tags.values()), strict=True)
        named = (zip(tags, values, strict=True) for values in each)
        return [digest_of_tags({name: tag for name, tag in row if tag is not ABSENT}) for row in named]
    parts: list[str | Coded] = []
    for name, column in sorted(tags.items()):
        parts += [f"{', ' if parts else '['}({name!r}, ", column, ")"]
    return [_digest(each) for each in spelled([*parts, "]"] if parts else ["[]"], rows=rows, show=_shown)]


_BEGUN = hashlib.blake2b(digest_size=TAGS_BYTES)


def _digest(written: bytes) -> bytes:
    digest = _BEGUN.copy()  # faster than a new one
    digest.update(written)
    return digest.digest()


def _shown(value: Tag) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
