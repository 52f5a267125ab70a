"""Requests as rows of token ids: contexts and texts are encoded once, and joined many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Part:
    """A context or a text as token ids; `blank` is the place, among them, of the word that is asked for."""

    ids: Ids
    blank: int = -1


@dataclass(frozen=True, slots=True)
class Parts:
    """Many parts, one after the other."""

    ids: Ids
    lengths: Places
    starts: Places
    blanks: Places

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Parts:
        """Put parts one after the other."""
        lengths = np.fromiter((len(part.ids) for part in parts), np.intp, len(parts))
        blanks = np.fromiter((part.blank for part in parts), np.intp, len(parts))
        ids = np.concatenate([part.ids for part in parts])
        return cls(ids, lengths, np.cumsum(lengths) - lengths, blanks)

    def then(self, others: Parts) -> Parts:
        """Return these parts and then the others."""
        return Parts(
            np.concatenate((self.ids, others.ids)),
            np.concatenate((self.lengths, others.lengths)),
            np.concatenate((self.starts, others.starts + len(self.ids))),
            np.concatenate((self.blanks, others.blanks)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Rows of ids, filled up at the right; `blanks` are the places of the words that are asked for."""

    ids: npt.NDArray[np.int64]
    lengths: Places
    blanks: Places

    @property
    def attention(self) -> npt.NDArray[np.int64] | None:
        """1 on tokens and 0 on padding; None where there is no padding."""
        width = self.ids.shape[1]
        if self.lengths.min() == width:
            return None
        return (np.arange(width) < self.lengths[:, None]).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What each request is joined from: a context, or its end, perhaps a separator, and a text."""

    start: tuple[int, ...]
    end: tuple[int, ...]
    contexts: Parts
    context_starts: Places  # for each row, where in `contexts.ids` its own begins …
    context_lengths: Places  # … and how much of it fits in the window
    separator: int
    separated: npt.NDArray[np.bool_]
    texts: Parts
    text_codes: Places

    @property
    def lengths(self) -> Places:
        """How many ids each row has."""
        around = len(self.start) + len(self.end)
        found: Places = around + self.context_lengths + self.separated + self.texts.lengths[self.text_codes]
        return found

    def matrix(self, *, pad_id: int) -> Matrix:
        """Return the rows as one matrix."""
        lengths = self.lengths
        width = int(lengths.max())
        ids = np.full((len(lengths), width), pad_id, np.int64)
        flat = ids.reshape(-1)
        rows = np.arange(len(lengths)) * width
        ids[:, : len(self.start)] = self.start
        at = rows + len(self.start)
        _copy(flat, at, self.contexts.ids, self.context_starts, self.context_lengths)
        at += self.context_lengths
        if self.separated.any():
            flat[at[self.separated]] = self.separator
            at += self.separated
        text_lengths = self.texts.lengths[self.text_codes]
        _copy(flat, at, self.texts.ids, self.texts.starts[self.text_codes], text_lengths)
        blanks = at - rows + self.texts.blanks[self.text_codes]
        at += text_lengths
        for number, token in enumerate(self.end):
            flat[at + number] = token
        return Matrix(ids=ids, lengths=lengths, blanks=blanks)


def _copy(target: npt.NDArray[np.int64], to: Places, source: Ids, start: Places, lengths: Places) -> None:
    """Copy pieces of one array into another, each with a start of its own in both."""
    before = np.cumsum(lengths) - lengths
    steps = np.arange(int(lengths.sum()))
    target[steps + np.repeat(to - before, lengths)] = source[steps + np.repeat(start - before, lengths)]
