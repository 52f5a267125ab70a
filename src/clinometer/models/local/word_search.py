"""The search for the likeliest words after one conversation, token by token and best first."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Word = tuple[int, ...]  # the tokens of one spelling of a word
Logprobs = npt.NDArray[np.float64]
Tokens = npt.NDArray[np.int64]

_IMPOSSIBLE = -1e30
# a beginning is tried if it may hold half of what the least word that is wanted holds
_SPARE = math.log(2)
_TRIES = 8  # for each word that is wanted, and _MORE_TRIES: a model may find all words alike probable
_MORE_TRIES = 64
_LEAST_WIDTH = 16


class Search:
    """What is known of the words that may come after one conversation, and what is tried next.

    What goes on from a beginning is never more probable than it, so the search ends where all that is left is too
    improbable.
    """

    def __init__(self, *, wanted: int) -> None:
        self.wanted = wanted
        self.tries = 0
        self._found: dict[str, float] = {}  # words in lower case
        self._written: dict[str, tuple[float, str]] = {}  # how each is written most often
        self._before: list[Word] = []  # what ways go on from
        # ways that have not been tried: log-probability, place in _before, last token
        self._open = (np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
        self._new: list[tuple[Logprobs, Tokens]] = []  # for each of the last of _before, the ways to go on

    @property
    def most_tries(self) -> int:
        """How many beginnings are tried at most."""
        return _TRIES * self.wanted + _MORE_TRIES

    @property
    def width(self) -> int:
        """How many ways to go on with a beginning are looked at."""
        return max(_LEAST_WIDTH, self.wanted)

    def go_on(self, before: Word, logprobs: Logprobs, tokens: Tokens) -> None:
        """Take note of ways to go on with a beginning, and of how probable it is all in all."""
        self._before.append(before)
        self._new.append((logprobs, tokens))

    def add(self, written: str, logprob: float) -> None:
        """Take note of a word."""
        word = written.lower()
        self._found[word] = float(np.logaddexp(self._found.get(word, -math.inf), logprob))
        self._written[word] = max(self._written.get(word, (-math.inf, "")), (logprob, written))

    def next(self) -> list[tuple[float, Word]]:
        """Return what is tried next, and how probable it is: nothing when what is left cannot matter."""
        logprobs, before, tokens = self._ways()
        left = self.most_tries - self.tries
        open_ = np.flatnonzero(logprobs >= max(self._least(), _IMPOSSIBLE))
        if len(open_) > left:  # more can never be tried
            cut = len(open_) - left
            open_ = open_[logprobs[open_] >= np.partition(logprobs[open_], cut)[cut]] if left else open_[:0]
        # stable: of equal ones, those come first that were seen first
        order = open_[np.argsort(-logprobs[open_], kind="stable")][:left]
        some, rest = order[: self.wanted], order[self.wanted :]
        self._open = (logprobs[rest], before[rest], tokens[rest])
        self.tries += len(some)
        return [(float(logprobs[at]), (*self._before[before[at]], int(tokens[at]))) for at in some]

    def words(self) -> tuple[str, ...]:
        """Return the words that may be among the likeliest, as written."""
        least = self._least()
        return tuple(self._written[word][1] for word in sorted(self._found) if self._found[word] >= least)

    def _ways(self) -> tuple[Logprobs, Tokens, Tokens]:
        """Return all ways that have not been tried."""
        first = len(self._before) - len(self._new)
        counts = [len(tokens) for _, tokens in self._new]
        added = np.repeat(np.arange(first, len(self._before)), counts)
        new, self._new = self._new, []
        logprobs, before, tokens = self._open
        return (
            np.concatenate([logprobs, *(each for each, _ in new)]),
            np.concatenate([before, added]),
            np.concatenate([tokens, *(each for _, each in new)]),
        )

    def _least(self) -> float:
        if len(self._found) < self.wanted:
            return -math.inf
        return sorted(self._found.values(), reverse=True)[self.wanted - 1] - _SPARE
