"""With which word a chat model begins its answer, by probability: every spelling of a word, and only whole words.

P(word) is the sum over its spellings ("kind", "Kind", " kind", …) of the probability of its tokens times that of a
token after them which does not go on with the word. So no two words share an answer, and all add up to at most 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clinometer.errors import RequestError
from clinometer.models.local.continuations import Begun, Continuations
from clinometer.models.local.text import Ids, Tokens
from clinometer.types import AnswerWord, WordAnswer

_ANCHOR = 16  # characters of the prompt's end, behind which a word is encoded
_NEGLIGIBLE = 14.0  # a spelling that is e^14 times less probable than another changes no digit that is kept
_LONGEST = 8  # tokens of a word that is searched for
_INSIDE = "'’-"  # marks that do not end a word


class FirstWords:
    """Reads the first word of answers off one chat model."""

    def __init__(self, continuations: Continuations, tokens: Tokens) -> None:
        self._continuations = continuations
        self._tokens = tokens
        self._known: dict[tuple[str, str], list[tuple[int, ...]]] = {}

    def check(self, query: AnswerWord) -> None:
        """Raise RequestError unless the query asks for given words or for the top k."""
        if bool(query.words) == (query.top_k > 0):
            raise RequestError("give either words or top_k (at least 1) to AnswerWord, not both and not neither")
        if query.normalise == "words" and not query.words:
            raise RequestError("normalise='words' needs words")
        if query.candidates < 0:
            raise RequestError(f"candidates = {query.candidates}: expected 0 (all words) or more")

    def cost(self, query: AnswerWord, prompt: Ids) -> int:
        """Return about how many tokens run: the prompt, and two for each candidate."""
        listed = min(query.candidates or len(query.words), len(query.words))
        return len(prompt) + 2 * (listed or 4 * query.top_k)

    def answers(
        self, queries: Sequence[AnswerWord], prompts: Sequence[Ids], texts: Sequence[str]
    ) -> list[WordAnswer]:
        """Answer each query after its prompt, given as ids and as text."""
        found: dict[int, WordAnswer] = {}
        for some in self._continuations.groups(prompts):
            begun = self._continuations.begin([prompts[index] for index in some])
            given = [row for row, index in enumerate(some) if queries[index].words]
            asked = [queries[some[row]] for row in given]
            for row, answer in zip(
                given, self._given(asked, given, [texts[some[row]] for row in given], begun), strict=True
            ):
                found[some[row]] = answer
            for row, index in enumerate(some):
                if queries[index].top_k:
                    found[index] = self._top(queries[index], row, texts[index], begun)
        return [found[index] for index in range(len(queries))]

    # -- given words

    def _given(
        self, queries: Sequence[AnswerWord], rows: Sequence[int], texts: Sequence[str], begun: Begun
    ) -> list[WordAnswer]:
        """Measure the spellings of every word, the likeliest first, until what is left cannot matter."""
        waiting: list[dict[str, list[tuple[float, tuple[int, ...]]]]] = []
        for query, row, text in zip(queries, rows, texts, strict=True):
            spellings = self._spellings_of(query.words, text)
            logprobs = begun.logprobs[row]
            bounds = {
                word: sorted(
                    zip(logprobs[[tokens[0] for tokens in some]].tolist(), some, strict=True), reverse=True
                )
                for word, some in spellings.items()
                if some
            }
            if 0 < query.candidates < len(bounds):
                best = sorted(bounds, key=lambda word: (-bounds[word][0][0], word))[: query.candidates]
                bounds = {word: bounds[word] for word in best}
            waiting.append(bounds)
        sums: list[dict[str, float]] = [dict.fromkeys(some, -math.inf) for some in waiting]
        while True:
            turn = [
                (place, word, some.pop(0)[1])
                for place, words in enumerate(waiting)
                for word, some in words.items()
                if some and some[0][0] > sums[place][word] - _NEGLIGIBLE
            ]
            if not turn:
                break
            scores = begun.score(
                [rows[place] for place, _, _ in turn], [tokens for _, _, tokens in turn], ends=self._ends
            )
            for (place, word, _), score in zip(turn, scores, strict=True):
                sums[place][word] = float(np.logaddexp(sums[place][word], score.sum()))
        return [_answer(query, some) for query, some in zip(queries, sums, strict=True)]

    def _spellings_of(self, words: Sequence[str], text: str) -> dict[str, list[tuple[int, ...]]]:
        """Return the token sequences with which an answer may begin that has the word first, by word."""
        anchor = text[-_ANCHOR:]
        new = [word for word in dict.fromkeys(words) if (anchor, word) not in self._known]
        if new:
            spelled = [(word, spelling) for word in new for spelling in _spellings(word)]
            before, *rows = self._encode([anchor, *(f"{anchor}{spelling}" for _, spelling in spelled)])
            for word in new:
                self._known[anchor, word] = []
            for (word, _), row in zip(spelled, rows, strict=True):
                tail = tuple(row[len(before) :])
                known = self._known[anchor, word]
                apart = row[: len(before)] == before and self._tokens.special.isdisjoint(tail)
                if tail and apart and tail not in known:
                    known.append(tail)
        return {word: list(self._known[anchor, word]) for word in words}

    def _encode(self, texts: list[str]) -> list[list[int]]:
        encoded = self._tokens.tokenizer(
            texts, add_special_tokens=False, return_attention_mask=False, verbose=False
        )
        return [list(row) for row in encoded["input_ids"]]

    # -- the most probable words

    def _top(self, query: AnswerWord, row: int, text: str, begun: Begun) -> WordAnswer:
        """Find the likeliest words, then measure them as if they had been given."""
        found = self._search(row, 2 * query.top_k, begun)
        (measured,) = self._given([replace(query, words=tuple(found.values()), top_k=0)], [row], [text], begun)
        logprobs = dict(zip(found, measured.logprobs, strict=True))
        known = [word for word, logprob in logprobs.items() if not math.isnan(logprob)]
        best = sorted(known, key=lambda word: (-logprobs[word], word))[: query.top_k]
        return _answer(query, {word: logprobs[word] for word in best})

    def _search(self, row: int, wanted: int, begun: Begun) -> dict[str, str]:
        """Search token by token for the likeliest words; how each is written, by its lower case.

        What goes on from a beginning is never more probable than the beginning, so the search ends by itself.
        """
        width = max(16, 2 * wanted)
        found: dict[str, float] = {}
        spelled: dict[str, tuple[float, str]] = {}
        open_words = self._best(begun.logprobs[row], (), 0.0, width, first=True)
        for _ in range(_LONGEST):
            least = sorted(found.values(), reverse=True)[wanted - 1] if len(found) >= wanted else -math.inf
            open_words = sorted((one for one in open_words if one[0] >= least), reverse=True)[:width]
            if not open_words:
                break
            begun_words, open_words = open_words, []
            for some, logprobs in begun.after([row] * len(begun_words), [tokens for _, tokens in begun_words]):
                over = logprobs.masked_fill(~self._ends, -torch.inf).logsumexp(dim=1).tolist()
                for place, ended, after in zip(some, over, logprobs, strict=True):
                    logprob, tokens = begun_words[place]
                    written = self._text_of(tokens).strip()
                    word, whole = written.lower(), logprob + ended
                    found[word] = float(np.logaddexp(found.get(word, -math.inf), whole))
                    spelled[word] = max(spelled.get(word, (-math.inf, "")), (whole, written))
                    open_words += self._best(after, tokens, logprob, width, first=False)
        best = sorted(found, key=lambda word: (-found[word], word))[:wanted]
        return {word: spelled[word][1] for word in best}

    def _best(
        self, logprobs: Tensor, before: tuple[int, ...], so_far: float, width: int, *, first: bool
    ) -> list[tuple[float, tuple[int, ...]]]:
        """Return the likeliest tokens that begin a word, or go on with one, each with the probability so far."""
        allowed = self._begins if first else ~self._ends
        values, tokens = logprobs.masked_fill(~allowed, -torch.inf).topk(min(width, len(logprobs)))
        return [
            (so_far + value, (*before, token))
            for value, token in zip(values.tolist(), tokens.tolist(), strict=True)
            if value > -math.inf
        ]

    def _text_of(self, tokens: Sequence[int]) -> str:
        anchor = self._anchor
        text: str = self._tokens.tokenizer.decode([*anchor, *tokens], clean_up_tokenization_spaces=False)
        return text.removeprefix(self._tokens.tokenizer.decode(anchor, clean_up_tokenization_spaces=False))

    # -- the vocabulary

    @functools.cached_property
    def _anchor(self) -> list[int]:
        return self._tokens.first(["the"])[0]

    @functools.cached_property
    def _pieces(self) -> list[str]:
        """What each token adds to a text; "" for special tokens and rows of the matrix that are no token."""
        tokenizer: Any = self._tokens.tokenizer
        size = self._continuations.size
        known = [token for token in range(min(size, len(tokenizer))) if token not in self._tokens.special]
        pieces = [""] * size
        if tokenizer.is_fast:  # all at once: there may be a quarter of a million
            rows = [[*self._anchor, token] for token in known]
            texts = tokenizer.backend_tokenizer.decode_batch([self._anchor, *rows], skip_special_tokens=False)
            for token, text in zip(known, texts[1:], strict=True):
                pieces[token] = text.removeprefix(texts[0])
        else:
            for token in known:
                pieces[token] = self._text_of([token])
        return pieces

    @functools.cached_property
    def _ends(self) -> Tensor:
        """Which tokens end a word: those that begin with anything but a letter, a digit or a mark inside words."""
        inside = [bool(piece) and (piece[0].isalnum() or piece[0] in _INSIDE) for piece in self._pieces]
        return ~torch.tensor(inside, device=self._continuations.decoder.device)

    @functools.cached_property
    def _begins(self) -> Tensor:
        """Which tokens begin a word: a letter or digit, perhaps after spaces."""
        begin = [piece.lstrip()[:1].isalnum() for piece in self._pieces]
        return torch.tensor(begin, device=self._continuations.decoder.device)


def _spellings(word: str) -> list[str]:
    """Return how a word may be written at the start of an answer.

    >>> _spellings("kind")
    ['kind', ' kind', 'Kind', ' Kind']
    """
    word = word.strip()
    forms = dict.fromkeys((word, word[:1].upper() + word[1:], word.lower()))
    return [f"{space}{form}" for form in forms for space in ("", " ")] if word else []


def _answer(query: AnswerWord, logprobs: dict[str, float]) -> WordAnswer:
    apart = {word.strip().lower(): logprob for word, logprob in logprobs.items()}  # "Kind" and "kind" are one word
    total = float(np.logaddexp.reduce(list(apart.values()))) if apart else -math.inf
    taken = total if query.normalise == "words" else 0.0
    words = query.words or tuple(logprobs)
    return WordAnswer(
        words=words,
        logprobs=tuple(logprobs[word] - taken if word in logprobs else math.nan for word in words),
        covered=min(1.0, math.exp(total)),
    )
