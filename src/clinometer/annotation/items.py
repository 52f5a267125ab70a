"""What raters judge: words or sentences, each known by an identity that survives a spreadsheet."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

ItemKind = Literal["word", "sentence"]

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to judge, and where it was found."""

    kind: ItemKind
    text: str
    context: str = ""

    @property
    def id(self) -> str:
        """The same item has the same id in every sheet; the letter in front keeps it text in a spreadsheet.

        Of a word the context is only an example, so it takes no part.

        >>> make_item("word", "Easy").id == make_item("word", "easy", context="It is …").id
        True
        """
        content = self.text if self.kind == "word" else f"{self.context}\n{self.text}"
        return "i" + hashlib.sha256(f"{self.kind}\n{content}".encode()).hexdigest()[:12]


def make_item(kind: ItemKind, text: str, *, context: str = "") -> Item:
    """Return an item on one line: control characters and runs of white space become a space, words lower case.

    >>> make_item("sentence", " so  kind\\nof you").text
    'so kind of you'
    """
    plain = _on_one_line(text)
    return Item(kind=kind, text=plain.lower() if kind == "word" else plain, context=_on_one_line(context))


def distinct_items(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the items in order, each once and none of them empty; the first context of a word stays."""
    chosen: dict[str, Item] = {}
    for item in items:
        if item.text:
            chosen.setdefault(item.id, item)
    return tuple(chosen.values())


def shuffled(items: Sequence[Item], *, seed: int) -> tuple[Item, ...]:
    """Return the items in random order, so that neighbours do not colour a judgement."""
    return tuple(items[place] for place in np.random.default_rng(seed).permutation(len(items)))


def _on_one_line(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split())
