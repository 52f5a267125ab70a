"""The digest of an item's tags, which is recorded beside the key of its request.

A key says what was asked; the tags say what a probe takes the answer for, so they decide a finding as much as the
answer does. They are not part of the key: a probe that labels its questions otherwise need not ask them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

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
    plain = [
        (name, value.item() if isinstance(value, np.generic) else value) for name, value in sorted(tags.items())
    ]
    return hashlib.blake2b(repr(plain).encode("utf-8", "surrogatepass"), digest_size=TAGS_BYTES).digest()
