"""Turns the parts of a request into one row of token ids."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clinometer.errors import RequestError
from clinometer.models.tokens import Tokens
from clinometer.types import HIDDEN, MASK, WordQuery

Ids = npt.NDArray[np.int32]

_BLANKS = re.compile(f"({re.escape(MASK)}|{re.escape(HIDDEN)})")
_CACHED_PARTS = 1 << 16
_NO_LIMIT = 10**9  # tokenizers write 10**30 for "no limit known"
# These count positions from the padding token's id on, so that many rows of the position matrix are never used.
_OFFSET_FAMILIES = frozenset({"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "data2vec-text"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A request as token ids, special tokens included; `blank` is the place of the word that is asked for."""

    ids: Ids
    blank: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Padded:
    """Rows of different lengths in one matrix; `attention` is 1 on tokens and 0 on padding."""

    ids: npt.NDArray[np.int64]
    attention: npt.NDArray[np.int64]


class TextEncoder:
    """Encodes requests for one tokenizer, each distinct part once."""

    def __init__(self, tokenizer: Any, *, window: int) -> None:
        self.tokens = Tokens(tokenizer)
        self.window = window
        self._mask_id: int | None = tokenizer.mask_token_id
        self._mask_text: str = tokenizer.mask_token or ""
        self._separator: int | None = tokenizer.sep_token_id
        self._parts: OrderedDict[tuple[bool, str], Ids] = OrderedDict()

    def fill(self, queries: Sequence[WordQuery]) -> list[Encoded]:
        """Encode texts with one `MASK` each, between the special tokens of the family."""
        rows = self._join(queries, [self._with_mask(query.text) for query in queries], end=self.tokens.end)
        return [
            Encoded(ids=ids, blank=self._blank(query, ids, context))
            for query, (ids, context) in zip(queries, rows, strict=True)
        ]

    def prefixes(self, queries: Sequence[WordQuery]) -> list[Encoded]:
        """Encode texts that are to be continued: no blanks are read, and no special tokens come after them."""
        rows = self._join(queries, [self.tokens.as_text(query.text) for query in queries], end=())
        return [Encoded(ids=ids) for ids, _ in rows]

    def _join(
        self, queries: Sequence[WordQuery], texts: Sequence[str], *, end: Sequence[int]
    ) -> list[tuple[Ids, int]]:
        """Return each row of ids with the number of ids that stand before the text's own."""
        contexts = [self.tokens.as_text(query.context).rstrip() for query in queries]
        after_space = [bool(context) and q.join == "space" for q, context in zip(queries, contexts, strict=True)]
        # spaces at the seam are the join's, not the text's
        texts = [text.lstrip() if spaced else text for text, spaced in zip(texts, after_space, strict=True)]
        keys = [*((False, context) for context in contexts if context), *zip(after_space, texts, strict=True)]
        parts = self._encode_parts(keys)
        rows = []
        for query, context, text_key in zip(queries, contexts, zip(after_space, texts, strict=True), strict=True):
            text = parts[text_key]
            between = self._separator_of(query) if context and query.join == "separator" else ()
            before = np.asarray([*self.tokens.start], np.int32)
            if context:
                known = parts[False, context]
                room = len(known) + len(between)
                if self.window:
                    room = self.window - len(before) - len(text) - len(end)
                if (keep := min(room - len(between), len(known))) > 0:
                    before = np.concatenate([before, known[len(known) - keep :], np.asarray(between, np.int32)])
            row = np.concatenate([before, text, np.asarray(end, np.int32)])
            if self.window and len(row) > self.window:
                raise RequestError(
                    f"a text of {len(row)} tokens is longer than the model's window of {self.window}:"
                    f" {_quote(query.text)}; shorten it (only the context is cut)"
                )
            rows.append((row, len(before)))
        return rows

    def _with_mask(self, text: str) -> str:
        pieces = _BLANKS.split(text)
        if pieces[1::2].count(MASK) != 1:
            raise RequestError(
                f"expected exactly one {MASK} in a text, found {pieces[1::2].count(MASK)}: {_quote(text)};"
                f" write {MASK} where the word is asked for (and {HIDDEN} for a blank that is not)"
            )
        pieces[::2] = [self.tokens.as_text(piece) for piece in pieces[::2]]
        pieces[1::2] = [self._mask_text] * (len(pieces) // 2)
        return "".join(pieces)

    def _blank(self, query: WordQuery, ids: Ids, before: int) -> int:
        blanks = _BLANKS.findall(query.text)
        places = np.flatnonzero(ids[before:] == self._mask_id)
        if len(places) != len(blanks):
            raise RequestError(
                f"the tokenizer reads {len(places)} masks where the text has {len(blanks)} blanks:"
                f" {_quote(query.text)}; remove what looks like a mask token"
            )
        return before + int(places[blanks.index(MASK)])

    def _separator_of(self, query: WordQuery) -> tuple[int]:
        if self._separator is None:
            raise RequestError(
                f"this model has no separator token to put before {_quote(query.text)}; join with a space"
            )
        return (self._separator,)

    def _encode_parts(self, keys: Iterable[tuple[bool, str]]) -> dict[tuple[bool, str], Ids]:
        found: dict[tuple[bool, str], Ids] = {}
        missing: dict[bool, list[str]] = {False: [], True: []}
        for key in dict.fromkeys(keys):
            if key in self._parts:
                self._parts.move_to_end(key)
                found[key] = self._parts[key]
            else:
                missing[key[0]].append(key[1])
        for after_space, parts in missing.items():
            encoded = self.tokens.following(parts) if after_space else self.tokens.first(parts)
            for part, ids in zip(parts, encoded, strict=True):
                self._parts[after_space, part] = found[after_space, part] = np.asarray(ids, np.int32)
        while len(self._parts) > _CACHED_PARTS:
            self._parts.popitem(last=False)
        return found


def window_of(tokenizer: Any, config: Any) -> int:
    """Return the longest sequence, in tokens, that a model reads; 0 where no limit is known."""
    limits = [tokenizer.model_max_length]
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        offset = config.pad_token_id + 1 if config.model_type in _OFFSET_FAMILIES else 0
        limits.append(positions - offset)
    return min((int(limit) for limit in limits if 0 < limit < _NO_LIMIT), default=0)


def pad(rows: Sequence[Ids], *, pad_id: int, left: bool = False) -> Padded:
    """Put rows of ids into one matrix, filled up at the right (or left) with the padding token."""
    width = max(len(row) for row in rows)
    ids = np.full((len(rows), width), pad_id, np.int64)
    attention = np.zeros((len(rows), width), np.int64)
    for index, row in enumerate(rows):
        place = slice(width - len(row), width) if left else slice(0, len(row))
        ids[index, place] = row
        attention[index, place] = 1
    return Padded(ids=ids, attention=attention)


def _quote(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:55]} … {text[-22:]}")
