"""Columns of a table in few characters: what repeats is on the page once.

A column is written in the shortest of four ways, which `assets/findings.js` reads:

- as it is: `[0.5, 2, null]`;
- each distinct value once, and a code for every row: `{"each": ["man", "woman"], "at": " !  "}`;
- texts by their words: each distinct word once, and for every text the codes of its words;
- numbers by their 64 bits, in ten characters, which is half of what their digits take; nothing is rounded.

A code is one or more characters of `LETTERS`, all of one column equally long. Compression by a library would be
shorter, but its bytes depend on the library's release, and `clinometer verify` compares pages byte for byte.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

Packable = str | int | float | None

# printable, and the same in JSON, in HTML and in a script: without quotation mark, backslash, <, > and &
LETTERS = "".join(chr(i) for i in range(32, 127) if chr(i) not in '"\\<>&')
_HALF = 5  # characters that hold 32 bits


def packed(values: Sequence[Packable]) -> list[Any] | dict[str, Any]:
    """Return the values for JSON, in the shortest of the ways above.

    >>> packed(["man", "woman", "man", "man", "man", "man"])
    {'each': ['man', 'woman'], 'at': ' !    '}
    >>> packed([0.5, 2, None])
    [0.5, 2, None]
    """
    plain = list(values)
    ways: list[list[Any] | dict[str, Any]] = [plain]
    each = list(dict.fromkeys(plain))
    if len(each) < len(plain):
        at = "".join(_codes(plain, each))
        ways.append({"each": each, "at": at})
        if all(isinstance(value, str) for value in each):
            ways.append({"each": _by_words(each), "at": at})
        if _is_numbers(each):
            ways.append({"each": _by_bits(each), "at": at})
    if plain and all(isinstance(value, str) for value in plain):
        ways.append(_by_words(plain))
    if plain and _is_numbers(plain):
        ways.append(_by_bits(plain))
    return min(ways, key=_length)


def _is_numbers(values: Sequence[Packable]) -> bool:
    return all(value is None or (not isinstance(value, str) and abs(value) < 2**53) for value in values)


def _by_bits(values: Sequence[Any]) -> dict[str, str]:
    """Return numbers by the two halves of their bits; what is missing is NaN there.

    >>> _by_bits([0.1])
    {'bits': '2=W,~K:zf@'}
    """
    bits = struct.pack(f">{len(values)}d", *(math.nan if value is None else value for value in values))
    halves = struct.unpack(f">{2 * len(values)}L", bits)
    return {"bits": "".join(_code(half, _HALF) for half in halves)}


def _by_words(texts: Sequence[Any]) -> dict[str, Any]:
    """Return texts by their words; a space is between any two of them.

    >>> _by_words(["loyal, proud", "proud, loyal, proud"])
    {'words': ['loyal,', 'proud', 'proud,'], 'texts': [' !', '# !']}
    """
    split = [text.split(" ") for text in texts]
    words = list(dict.fromkeys(word for text in split for word in text))
    code = dict(zip(words, _codes(words, words), strict=True))
    return {"words": words, "texts": ["".join(code[word] for word in text) for text in split]}


def _codes(values: Iterable[Hashable], each: Sequence[Hashable]) -> list[str]:
    """Return the code of every value, by its place among the distinct ones."""
    width = code_width(len(each))
    places = {value: place for place, value in enumerate(each)}
    return [_code(places[value], width) for value in values]


def code_width(count: int) -> int:
    """Return how many characters a code has that tells so many values apart.

    >>> code_width(1), code_width(90), code_width(91)
    (1, 1, 2)
    """
    width = 1
    while len(LETTERS) ** width < count:
        width += 1
    return width


def _code(place: int, width: int) -> str:
    letters = []
    for _ in range(width):
        place, rest = divmod(place, len(LETTERS))
        letters.append(LETTERS[rest])
    return "".join(reversed(letters))


def _length(way: object) -> int:
    return len(json.dumps(way, separators=(",", ":")))
