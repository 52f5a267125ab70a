"""With which word a chat model begins its answer, by probability: every spelling of a word, and only whole words.

P(word) is the sum over its spellings ("kind", "Kind", " kind", …) of the probability of its tokens times that of a
token after them which does not go on with the word. So no two words share an answer, and all add up to at most 1.
A spelling that can hold no more than a thousandth of its word is left out, as if it were never written.

What it costs: each conversation once, and one token more for nearly each spelling tried, because the end of
a word is seen only after its last token.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clinometer.errors import RequestError
from clinometer.models.local.continuations import Begun, Continuations, share_of
from clinometer.models.local.text import Ids, Tokens
from clinometer.types import AnswerWord, WordAnswer

_ANCHOR = 16  # characters of the prompt's end, behind which a word is encoded
_NEGLIGIBLE = math.log(1000)  # a spelling that is so much less probable than its word is left out
_IMPOSSIBLE = -1e30
_LONGEST = 8  # tokens of a word that is searched for
_SPARE = math.log(
    2
)  # a word is searched for if one of its spellings may hold half of the least word that is wanted
_TRIES = 8  # of a search, for each word that is wanted, and _MORE_TRIES: a model may find all words alike probable
_MORE_TRIES = 64
_INSIDE = "'’-"  # marks that do not end a word


Word = tuple[int, ...]  # the tokens of one spelling of a word


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A query on its way: what is known of its words so far."""

    query: AnswerWord
    row: int  # of the conversations that have run together
    text: str  # the conversation
    words: Sequence[str] = ()  # to be measured
    known: dict[Word, float] = field(default_factory=dict)  # log-probability of a spelling as a whole word
    sums: dict[str, float] = field(default_factory=dict)  # … and of words, over their spellings

    def __post_init__(self) -> None:
        self.words = self.query.words


@dataclass(slots=True, kw_only=True)
class _Search:
    """The search for the likeliest words of one conversation."""

    wanted: int
    open: list[tuple[float, Word]]  # beginnings that have not been tried, with their log-probability
    tries: int = 0
    found: dict[str, float] = field(default_factory=dict)  # words in lower case
    written: dict[str, tuple[float, str]] = field(default_factory=dict)  # how each is written most often

    @property
    def width(self) -> int:
        """How many ways to go on with a beginning are looked at."""
        return max(16, self.wanted)

    def add(self, written: str, logprob: float) -> None:
        """Take note of a word."""
        word = written.lower()
        self.found[word] = float(np.logaddexp(self.found.get(word, -math.inf), logprob))
        self.written[word] = max(self.written.get(word, (-math.inf, "")), (logprob, written))

    def next(self) -> list[tuple[float, Word]]:
        """Return which beginnings are tried next: none when what is left cannot matter."""
        least = self._least()
        self.open = sorted((one for one in self.open if one[0] >= max(least, _IMPOSSIBLE)), reverse=True)
        most = min(self.wanted, _TRIES * self.wanted + _MORE_TRIES - self.tries)
        some, self.open = self.open[:most], self.open[most:]
        self.tries += len(some)
        return some

    def words(self) -> tuple[str, ...]:
        """Return the words that may be among the likeliest, as written."""
        least = self._least()
        return tuple(self.written[word][1] for word in sorted(self.found) if self.found[word] >= least)

    def _least(self) -> float:
        if len(self.found) < self.wanted:
            return -math.inf
        return sorted(self.found.values(), reverse=True)[self.wanted - 1] - _SPARE


class FirstWords:
    """Reads the first word of answers off one chat model."""

    def __init__(self, continuations: Continuations, tokens: Tokens) -> None:
        self._continuations = continuations
        self._tokens = tokens
        self._known: dict[tuple[str, str], list[Word]] = {}

    def check(self, query: AnswerWord) -> None:
        """Raise RequestError unless the query asks for given words or for the top k."""
        if bool(query.words) == (query.top_k > 0):
            raise RequestError("give either words or top_k (at least 1) to AnswerWord, not both and not neither")
        if query.normalise == "words" and not query.words:
            raise RequestError("normalise='words' needs words")
        if query.candidates < 0:
            raise RequestError(f"candidates = {query.candidates}: expected 0 (all words) or more")

    def cost(self, query: AnswerWord, prompt: Ids) -> int:
        """Return a quarter of the tokens that run: the prompt, much of which is shared, and two for each word."""
        listed = min(query.candidates or len(query.words), len(query.words))
        return (len(prompt) + 2 * (listed or query.top_k)) // 4 + 1

    def answers(
        self, queries: Sequence[AnswerWord], prompts: Sequence[Ids], texts: Sequence[str]
    ) -> list[WordAnswer]:
        """Answer each query after its prompt, given as ids and as text."""
        found: dict[int, WordAnswer] = {}
        for some, begun in self._continuations.together(prompts):
            asked = [_Asked(query=queries[index], row=row, text=texts[index]) for row, index in enumerate(some)]
            self._search([each for each in asked if each.query.top_k], begun)
            self._measure(asked, begun)
            found.update(zip(some, map(_answer, asked), strict=True))
        return [found[index] for index in range(len(queries))]

    # -- given words

    def _measure(self, asked: Sequence[_Asked], begun: Begun) -> None:
        """Measure the spellings of every word, the likeliest first, until what is left cannot matter."""
        waiting = [self._bounds(each, begun) for each in asked]
        for each, words in zip(asked, waiting, strict=True):
            each.sums = dict.fromkeys(words, -math.inf)
        while True:
            turn = [
                (each, word, some.pop(0)[1])
                for each, words in zip(asked, waiting, strict=True)
                for word, some in words.items()
                if some and some[0][0] > each.sums[word] - _NEGLIGIBLE
            ]
            if not turn:
                break
            new = [(each, tokens) for each, _, tokens in turn if tokens not in each.known]
            scores = begun.score([each.row for each, _ in new], [tokens for _, tokens in new], ends=self._ends)
            for (each, tokens), score in zip(new, scores, strict=True):
                each.known[tokens] = float(score.sum())
            for each, word, tokens in turn:
                each.sums[word] = float(np.logaddexp(each.sums[word], each.known[tokens]))

    def _bounds(self, asked: _Asked, begun: Begun) -> dict[str, list[tuple[float, Word]]]:
        """Return the spellings of each word that is to be measured, with what they can hold at most."""
        logprobs = begun.logprobs[asked.row]
        bounds = {}
        for word, some in self._spellings_of(asked.words, asked.text).items():
            if some:
                firsts = logprobs[[tokens[0] for tokens in some]].tolist()
                bounds[word] = sorted(zip(firsts, some, strict=True), reverse=True)
        most = asked.query.candidates
        if 0 < most < len(bounds):
            best = sorted(bounds, key=lambda word: (-bounds[word][0][0], word))[:most]
            bounds = {word: bounds[word] for word in best}
        return bounds

    def _spellings_of(self, words: Sequence[str], text: str) -> dict[str, list[Word]]:
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

    @torch.inference_mode()
    def _search(self, asked: Sequence[_Asked], begun: Begun) -> None:
        """Search token by token for the likeliest words of each conversation, to be measured like given ones.

        The likeliest beginnings come first. What goes on from a beginning is never more probable than it, so the
        search ends where all that is left is too improbable.
        """
        searches = [
            _Search(wanted=each.query.top_k, open=self._first(begun.logprobs[each.row], each.query.top_k))
            for each in asked
        ]
        widest = max((search.width for search in searches), default=0)
        while turn := [
            (each, search, one) for each, search in zip(asked, searches, strict=True) for one in search.next()
        ]:
            tails = [tokens for _, _, (_, tokens) in turn]
            for some, logprobs in begun.after([each.row for each, _, _ in turn], tails):
                over = share_of(self._ends, logprobs.exp()).log().tolist()
                more = logprobs.masked_fill_(self._ends, -torch.inf).topk(min(widest, logprobs.shape[1]))
                rows = zip(some, over, more.values.tolist(), more.indices.tolist(), strict=True)
                for at, ended, values, following in rows:
                    each, search, (logprob, tokens) = turn[at]
                    each.known[tokens] = logprob + ended
                    search.add(self._text_of(tokens).strip(), logprob + ended)
                    if len(tokens) < _LONGEST:
                        pairs = zip(values[: search.width], following, strict=False)
                        search.open += [(logprob + value, (*tokens, token)) for value, token in pairs]
        for each, search in zip(asked, searches, strict=True):
            each.words = search.words()

    def _first(self, logprobs: Tensor, wanted: int) -> list[tuple[float, Word]]:
        """Return the likeliest tokens that begin a word."""
        width = min(_TRIES * wanted + _MORE_TRIES, len(logprobs))
        values, tokens = logprobs.masked_fill(~self._begins, -torch.inf).topk(width)
        pairs = zip(values.tolist(), tokens.tolist(), strict=True)
        return [(value, (token,)) for value, token in pairs if value > -math.inf]

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
        """What each token adds to a text; "" for special tokens and rows of the matrix that are not tokens."""
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


def _answer(asked: _Asked) -> WordAnswer:
    query, logprobs = asked.query, asked.sums
    if query.top_k:
        best = sorted(logprobs, key=lambda word: (-logprobs[word], word))[: query.top_k]
        logprobs = {word.lower(): logprobs[word] for word in best}
    apart = {word.strip().lower(): logprob for word, logprob in logprobs.items()}  # "Kind" and "kind" are one word
    total = float(np.logaddexp.reduce(list(apart.values()))) if apart else -math.inf
    taken = total if query.normalise == "words" else 0.0
    words = query.words or tuple(logprobs)
    return WordAnswer(
        words=words,
        logprobs=tuple(logprobs[word] - taken if word in logprobs else math.nan for word in words),
        covered=min(1.0, math.exp(total)),
    )
