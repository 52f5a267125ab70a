"""With which word a chat model begins its answer, by probability: every spelling of a word, and only whole words.

P(word) is the sum over its spellings ("kind", "Kind", " kind", …) of the probability of its tokens times that of a
token after them which does not go on with the word. So no two words share an answer, and all add up to at most 1.
A spelling that can hold no more than a thousandth of its word is left out, as if it were never written.

What it costs: each conversation once, and one token more for nearly each spelling tried, because the end of
a word is seen only after its last token.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clinometer.errors import RequestError
from clinometer.models.local.continuations import Begun, Continuations, Counts, Logprobs, share_of
from clinometer.models.local.text import Ids, Tokens
from clinometer.models.local.word_search import Search, Word
from clinometer.types import AnswerWord, WordAnswer

_ANCHOR = 16  # characters of the prompt's end, behind which a word is encoded
_NEGLIGIBLE = math.log(1000)  # a spelling that is so much less probable than its word is left out
_LONGEST = 8  # tokens of a word that is searched for
_INSIDE = "'’-"  # marks that do not end a word
_KEPT = 1 << 17  # spellings whose text is known: what is tried after one conversation is tried after others, too


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A query on its way: what is known of its words so far."""

    query: AnswerWord
    row: int  # of the conversations that have run together
    text: str  # the conversation
    words: tuple[str, ...] = ()  # to be measured
    known: dict[Word, float] = field(default_factory=dict)  # log-probability of a spelling as a whole word
    sums: dict[str, float] = field(default_factory=dict)  # … and of words, over their spellings

    def __post_init__(self) -> None:
        self.words = self.query.words


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spelled:
    """The spellings of some words, as columns: there may be a hundred thousand of them."""

    words: tuple[str, ...]  # those that have a spelling
    tails: tuple[Word, ...]  # the tokens of each spelling, once: "Kind" and "kind" have some in common
    # of each spelling; a word's stand side by side
    word: Counts  # its place in words
    tail: Counts  # … and in tails
    first: Counts  # its first token


class FirstWords:
    """Reads the first word of answers off one chat model."""

    def __init__(self, continuations: Continuations, tokens: Tokens) -> None:
        self._continuations = continuations
        self._tokens = tokens
        self._known: dict[tuple[str, str], list[Word]] = {}
        self._spelled = functools.lru_cache(maxsize=8)(self._spell)  # many queries ask for the same words
        self._text_of = functools.lru_cache(maxsize=_KEPT)(self._decode)

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
        spelled = [self._spelled(each.words, each.text[-_ANCHOR:]) for each in asked]
        every = _joined(spelled)
        owner = np.repeat([each.row for each in asked], [len(some.tails) for some in spelled])  # of each tail
        known = np.concatenate([_known(each, some.tails) for each, some in zip(asked, spelled, strict=True)])
        # a spelling holds no more than its first token; stable: of equal ones in the order of their tokens
        bound = begun.firsts(owner[every.tail], every.first)
        order = np.lexsort((-bound, every.word))
        bound, tail = np.append(bound[order], -np.inf), every.tail[order]
        # of each word, the spelling that is next, and where those of the word after it begin
        at, end = (np.searchsorted(every.word, np.arange(len(every.words)), side) for side in ("left", "right"))
        wanted = _candidates(asked, spelled, bound[at])
        sums = np.full(len(at), -np.inf)
        while len(turn := np.flatnonzero(wanted & (at < end) & (bound[at] > sums - _NEGLIGIBLE))):
            tried = tail[at[turn]]
            new = np.unique(tried[np.isnan(known[tried])])
            known[new] = begun.totals(owner[new].tolist(), [every.tails[each] for each in new], ends=self._ends)
            sums[turn] = np.logaddexp(sums[turn], known[tried])
            at[turn] += 1
        first = 0
        for each, some in zip(asked, spelled, strict=True):
            here = slice(first, first + len(some.words))
            values = zip(some.words, sums[here].tolist(), wanted[here].tolist(), strict=True)
            each.sums = {word: value for word, value, measured in values if measured}
            first = here.stop

    def _spell(self, words: tuple[str, ...], anchor: str) -> _Spelled:
        """Return how an answer after the anchor may begin that has one of the words first."""
        tails: dict[Word, int] = {}
        spellings = {
            word: sorted(some, reverse=True) for word, some in self._tails_of(words, anchor).items() if some
        }
        every = [(number, tokens) for number, some in enumerate(spellings.values()) for tokens in some]
        return _Spelled(
            words=tuple(spellings),
            word=np.array([number for number, _ in every], np.int64),
            tail=np.array([tails.setdefault(tokens, len(tails)) for _, tokens in every], np.int64),
            first=np.array([tokens[0] for _, tokens in every], np.int64),
            tails=tuple(tails),
        )

    def _tails_of(self, words: Sequence[str], anchor: str) -> dict[str, list[Word]]:
        """Return the tokens of each spelling of each word after the anchor."""
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
        return {word: self._known[anchor, word] for word in words}

    def _encode(self, texts: list[str]) -> list[list[int]]:
        encoded = self._tokens.tokenizer(
            texts, add_special_tokens=False, return_attention_mask=False, verbose=False
        )
        return [list(row) for row in encoded["input_ids"]]

    # -- the most probable words

    @torch.inference_mode()
    def _search(self, asked: Sequence[_Asked], begun: Begun) -> None:
        """Search for the likeliest words of each conversation, to be measured like given ones."""
        searches = self._searches(asked, begun)
        widest = max((search.width for search in searches), default=0)
        while turn := [
            (each, search, one) for each, search in zip(asked, searches, strict=True) for one in search.next()
        ]:
            tails = [tokens for _, _, (_, tokens) in turn]
            for some, logprobs in begun.after([each.row for each, _, _ in turn], tails):
                over = _read(share_of(self._ends, logprobs.exp()).log())
                more = logprobs.masked_fill_(self._ends, -torch.inf).topk(min(widest, logprobs.shape[1]))
                rows = zip(some, over.tolist(), _read(more.values), more.indices.cpu().numpy(), strict=True)
                for at, ended, values, following in rows:
                    each, search, (logprob, tokens) = turn[at]
                    each.known[tokens] = logprob + ended
                    search.add(self._text_of(tokens).strip(), logprob + ended)
                    if len(tokens) < _LONGEST:
                        search.go_on(tokens, logprob + values[: search.width], following[: search.width])
        for each, search in zip(asked, searches, strict=True):
            each.words = search.words()

    def _searches(self, asked: Sequence[_Asked], begun: Begun) -> list[Search]:
        """Begin to search: with the likeliest tokens that begin a word."""
        searches = [Search(wanted=each.query.top_k) for each in asked]
        if searches:
            logprobs = begun.logprobs[[each.row for each in asked]].masked_fill_(~self._begins, -torch.inf)
            width = max(search.most_tries for search in searches)
            best = logprobs.topk(min(width, logprobs.shape[1]))
            rows = zip(searches, _read(best.values), best.indices.cpu().numpy(), strict=True)
            for search, values, tokens in rows:
                search.go_on((), values[: search.most_tries], tokens[: search.most_tries])
        return searches

    def _decode(self, tokens: Word) -> str:
        """Return what tokens add to a text."""
        whole: str = self._tokens.tokenizer.decode([*self._anchor, *tokens], clean_up_tokenization_spaces=False)
        return whole.removeprefix(self._anchor_text)

    # -- the vocabulary

    @functools.cached_property
    def _anchor(self) -> list[int]:
        return self._tokens.first(["the"])[0]

    @functools.cached_property
    def _anchor_text(self) -> str:
        text: str = self._tokens.tokenizer.decode(self._anchor, clean_up_tokenization_spaces=False)
        return text

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
                pieces[token] = self._decode((token,))
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


def _joined(parts: Sequence[_Spelled]) -> _Spelled:
    """Return the spellings of several queries one after the other, numbered through."""
    words_before = itertools.accumulate((len(part.words) for part in parts), initial=0)
    tails_before = itertools.accumulate((len(part.tails) for part in parts), initial=0)
    return _Spelled(
        words=tuple(itertools.chain.from_iterable(part.words for part in parts)),
        tails=tuple(itertools.chain.from_iterable(part.tails for part in parts)),
        word=np.concatenate([part.word + before for part, before in zip(parts, words_before, strict=False)]),
        tail=np.concatenate([part.tail + before for part, before in zip(parts, tails_before, strict=False)]),
        first=np.concatenate([part.first for part in parts]),
    )


def _known(asked: _Asked, tails: Sequence[Word]) -> Logprobs:
    """Return what the search has found out about each tail: its log-probability, or not a number."""
    if not asked.known:
        return np.full(len(tails), np.nan)
    return np.array([asked.known.get(tail, math.nan) for tail in tails])


def _candidates(asked: Sequence[_Asked], spelled: Sequence[_Spelled], most: Logprobs) -> npt.NDArray[np.bool_]:
    """Tell which words are measured, by what each can hold at most: all, or as many as the query allows."""
    wanted = np.ones(len(most), np.bool_)
    first = 0
    for each, some in zip(asked, spelled, strict=True):
        last = first + len(some.words)
        if 0 < each.query.candidates < len(some.words):
            pairs = zip((-most[first:last]).tolist(), some.words, range(first, last), strict=True)
            wanted[[place for _, _, place in sorted(pairs)[each.query.candidates :]]] = False
        first = last
    return wanted


def _read(values: Tensor) -> Logprobs:
    return values.cpu().numpy().astype(np.float64)


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
