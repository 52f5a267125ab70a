"""Fills a blank with a model that reads left to right: P(word | left, right) ∝ P(left word right).

The part before the blank runs once for all words. Where only some of the listed words are to be scored, those most
probable after the left part are found without running the others: no word is more probable than its first token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clinometer.errors import RequestError
from clinometer.models.local.continuations import Begun, Continuations
from clinometer.models.local.text import BLANKS, Ids, TextEncoder, quote
from clinometer.types import MASK, Rescore, WordAnswer

Word = tuple[int, ...]  # the tokens of a word after the left part


@dataclass(slots=True, kw_only=True)
class _Blank:
    """A request on its way: its text around the blank, its tokens, and what is known of its words so far."""

    query: Rescore
    left: str
    right: str
    base: Ids  # what comes before the text: the family's first token, the context
    after_space: bool  # whether the text follows a context
    start: Ids  # base and left part: what runs once
    rest: Word = ()  # the left part's last tokens, where a word is joined with them: then `start` ends before them
    heads: dict[str, Word] = field(default_factory=dict)  # listed words that can be scored
    # log-probability of a word right after the left part: exact, or no more than this (its first token)
    exact: dict[str, float] = field(default_factory=dict)
    bounds: dict[str, float] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)  # of the whole text, from `start` on


class Rescorer:
    """Answers `Rescore` requests with one causal model."""

    def __init__(self, continuations: Continuations, encoder: TextEncoder) -> None:
        self._continuations = continuations
        self._encoder = encoder
        self._tokens = encoder.tokens
        tokenizer: Any = encoder.tokens.tokenizer
        # what a text begins with whose first word is asked for, where the tokenizer puts nothing there
        starts = (tokenizer.bos_token_id, tokenizer.eos_token_id)
        self._first = next((token for token in starts if token is not None), None)
        self._known: dict[str, Word] = {}

    def cost(self, query: Rescore) -> int:
        """Return the tokens that run: the left part once, and what follows it once for each candidate."""
        left, right = _sides(query)
        tail = self._longest_tail(query.words, right)
        _, start = self._start_of(query, left, reserve=tail)
        listed = min(query.candidates or len(query.words), len(query.words))
        return len(start) + (listed + query.top_k) * tail

    def answers(self, queries: Sequence[Rescore]) -> list[WordAnswer]:
        """Answer each request; those whose left parts have one length run together."""
        blanks = [self._blank(query) for query in queries]
        for some in self._continuations.groups([blank.start for blank in blanks]):
            group = [blanks[index] for index in some]
            begun = self._continuations.begin([blank.start for blank in group])
            self._choose(group, begun)
            self._score(group, begun)
        return [_answer(blank) for blank in blanks]

    # -- text and tokens

    def _blank(self, query: Rescore) -> _Blank:
        left, right = _sides(query)
        words = self._after_space(query.words)
        base, start = self._start_of(query, left, reserve=self._longest_tail(query.words, right))
        blank = _Blank(
            query=query,
            left=left,
            right=right,
            base=base,
            after_space=bool(query.context.rstrip()),
            start=start,
        )
        if left[-1:] != " " or not left.strip():  # the word does not follow a space: ask the tokenizer itself
            words = self._joined(blank, list(words))
        blank.heads = {
            word: head for word, head in words.items() if head and self._tokens.special.isdisjoint(head)
        }
        return blank

    def _longest_tail(self, words: Sequence[str], right: str) -> int:
        """Return how many tokens the longest word and what comes after it have, to a token or so."""
        longest = max(map(len, self._after_space(words).values()), default=1)
        return longest + (len(self._tokens.following([right.strip()])[0]) if right.strip() else 0)

    def _start_of(self, query: Rescore, left: str, *, reserve: int) -> tuple[Ids, Ids]:
        """Return the ids before the text, and with its left part; the context gives way where space is short."""
        context = self._encoder.context(query.context)
        opening = np.asarray(self._tokens.start, np.int32)
        begun = self._tokens.as_text(left).rstrip()
        encode = self._tokens.following if len(context) else self._tokens.first
        text = (
            np.asarray(encode([begun.lstrip() if len(context) else begun])[0], np.int32) if begun else opening[:0]
        )
        if window := self._encoder.window:
            room = window - len(opening) - len(text) - reserve
            if room < 0:
                raise RequestError(
                    f"a text of {window - room} tokens, filled with its longest word, is longer than the model's"
                    f" window of {window}: {quote(query.text)}; shorten it (only the context is cut)"
                )
            context = context[max(0, len(context) - room) :]
        base = np.concatenate((opening, context))
        if not len(base) and not len(text):
            base = self._opening(query)
        return base, np.concatenate((base, text))

    def _opening(self, query: Rescore) -> Ids:
        """Return what a text begins with whose first word is asked for."""
        if self._first is None:
            raise RequestError(
                f"this model has no token to start a text with, and {quote(query.text)} begins with the blank;"
                " put something before it"
            )
        return np.asarray([self._first], np.int32)

    def _after_space(self, words: Sequence[str]) -> dict[str, Word]:
        """Return the tokens of words as they read after a space; words that are nothing but space are left out."""
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        for word, ids in zip(
            new, self._tokens.following([self._tokens.as_text(word) for word in new]), strict=True
        ):
            self._known[word] = tuple(ids) if word.strip() else ()
        return {word: self._known[word] for word in words if self._known[word]}

    def _whole(self, blank: _Blank, texts: Sequence[str]) -> list[Word]:
        """Return the tokens of whole texts, `base` included, exactly as the tokenizer writes them."""
        plain = [self._tokens.as_text(text) for text in texts]
        if blank.after_space:
            rows = self._tokens.following([text.lstrip() for text in plain])
        else:
            rows = self._tokens.first(plain)
        return [(*blank.base.tolist(), *row) for row in rows]

    def _joined(self, blank: _Blank, words: Sequence[str]) -> dict[str, Word]:
        """Return the tokens of words that do not follow a space; one that joins the left part shortens it."""
        begun = tuple(blank.start.tolist())
        rows = self._whole(blank, [f"{blank.left}{word}" for word in words])
        length = _common([begun, *rows])
        if not length:  # nothing is left before the words
            blank.base = self._opening(blank.query)
            blank.start = np.concatenate((blank.base, blank.start))
            return self._joined(blank, words)
        blank.start, blank.rest = blank.start[:length], begun[length:]
        return {word: row[length:] for word, row in zip(words, rows, strict=True)}

    def _heads_of(self, blank: _Blank, words: Sequence[str]) -> dict[str, Word]:
        """Return the tokens of words after the left part; () where the tokenizer joins the two."""
        begun = tuple(blank.start.tolist())
        rows = self._whole(blank, [f"{blank.left}{word}" for word in words])
        return {
            word: row[len(begun) :] if row[: len(begun)] == begun else ()
            for word, row in zip(words, rows, strict=True)
        }

    # -- which words

    def _choose(self, group: Sequence[_Blank], begun: Begun) -> None:
        """Keep, of each request's listed words, those to be scored; add the model's own for a top k.

        Requests that differ only after the blank have the same candidates, which are found once.
        """
        first: dict[tuple[Any, ...], int] = {}
        like = [first.setdefault(_before(blank), row) for row, blank in enumerate(group)]
        for row in first.values():
            blank = group[row]
            logprobs = begun.logprobs[row]
            firsts = logprobs[[head[0] for head in blank.heads.values()]].tolist() if blank.heads else []
            for (word, head), logprob in zip(blank.heads.items(), firsts, strict=True):
                (blank.exact if len(head) == 1 else blank.bounds)[word] = logprob
        while unsure := {row: words for row in first.values() if (words := _unsure(group[row]))}:
            self._measure(group, unsure, begun)
        for row in first.values():
            blank = group[row]
            chosen = _most_probable(blank) if _is_limited(blank) else list(blank.heads)
            blank.heads = {word: blank.heads[word] for word in chosen}
            if blank.query.top_k:
                blank.heads |= self._own_words(blank, begun, row)
        for blank, row in zip(group, like, strict=True):
            blank.heads, blank.exact = dict(group[row].heads), dict(group[row].exact)

    def _measure(self, group: Sequence[_Blank], words: Mapping[int, Sequence[str]], begun: Begun) -> None:
        """Compute the probability, after the left part, of words of several tokens."""
        pairs = [(row, word) for row, some in words.items() for word in some]
        scores = begun.score([row for row, _ in pairs], [group[row].heads[word] for row, word in pairs])
        for (row, word), score in zip(pairs, scores, strict=True):
            group[row].exact[word] = float(score.sum())
            group[row].bounds.pop(word, None)

    def _own_words(self, blank: _Blank, begun: Begun, row: int) -> dict[str, Word]:
        """Return the model's most probable whole words after the left part, as many as the top k asks for."""
        order = begun.logprobs[row].sort(descending=True, stable=True)
        tokenizer: Any = self._tokens.tokenizer
        found: dict[str, Word] = {}
        anchor = [int(blank.start[-1])]
        printed = tokenizer.decode(anchor, clean_up_tokenization_spaces=False)
        step = 4 * blank.query.top_k + 16
        for at in range(0, len(order.indices), step):
            tokens = [
                token
                for token in order.indices[at : at + step].tolist()
                if token < len(tokenizer) and token not in self._tokens.special
            ]
            texts = [
                tokenizer.decode([*anchor, token], clean_up_tokenization_spaces=False)
                .removeprefix(printed)
                .strip()
                for token in tokens
            ]
            heads = self._heads_of(blank, texts)
            for token, text in zip(tokens, texts, strict=True):
                # a piece of a word or a mark is not a word; and it must be read again as what it was
                if text and text[0].isalnum() and heads[text] == (token,):
                    found.setdefault(text, (token,))
                if len(found) == blank.query.top_k:
                    return found
        return found

    # -- their scores

    def _score(self, group: Sequence[_Blank], begun: Begun) -> None:
        """Score the whole text with every word."""
        shared: list[tuple[int, str, Word]] = []
        apart: list[tuple[_Blank, dict[str, Word]]] = []
        for row, blank in enumerate(group):
            words = list(blank.heads)
            texts = [f"{blank.left}{word}{blank.right}" for word in words]
            whole = dict(zip(words, self._whole(blank, texts), strict=True))
            begins = tuple(blank.start.tolist())
            if all(ids[: len(begins)] == begins and len(ids) > len(begins) for ids in whole.values()):
                shared += [(row, word, ids[len(begins) :]) for word, ids in whole.items()]
            else:  # the tokenizer joins a word with what is before it
                apart.append((blank, whole))
        scores = begun.score([row for row, _, _ in shared], [tail for _, _, tail in shared])
        again: dict[int, list[str]] = {}
        for (row, word, tail), score in zip(shared, scores, strict=True):
            group[row].scores[word] = float(score.sum())
            head = group[row].heads[word]
            if tail[: len(head)] == head:
                group[row].exact[word] = float(score[: len(head)].sum())
            elif word not in group[row].exact:
                again.setdefault(row, []).append(word)
        self._measure(group, again, begun)
        for row, blank in enumerate(group):
            if blank.rest:  # given the whole left part, not only what all words share of it
                given = float(begun.score([row], [blank.rest])[0].sum())
                blank.exact = {word: min(0.0, logprob - given) for word, logprob in blank.exact.items()}
        for blank, whole in apart:
            self._score_apart(blank, whole)

    def _score_apart(self, blank: _Blank, whole: Mapping[str, Word]) -> None:
        """Score texts that share only some of the left part's tokens."""
        rows = list(whole.values())
        length = _common([row[:-1] for row in rows])
        if not length:
            raise RequestError(
                f"the words for {quote(blank.query.text)} share no token to start with; add a context"
            )
        begun = self._continuations.begin([np.asarray(rows[0][:length], np.int32)])
        for word, score in zip(whole, begun.score([0] * len(rows), [row[length:] for row in rows]), strict=True):
            blank.scores[word] = float(score.sum())
        unknown = [word for word in whole if word not in blank.exact]
        again = self._continuations.begin([blank.start])
        for word, score in zip(
            unknown, again.score([0] * len(unknown), [blank.heads[word] for word in unknown]), strict=True
        ):
            blank.exact[word] = float(score.sum())


def _sides(query: Rescore) -> tuple[str, str]:
    """Return the text before and after the blank; RequestError for a query that cannot be asked."""
    if not query.words and query.top_k < 1:
        raise RequestError(f"give words, top_k (at least 1) or both: {quote(query.text)}")
    if query.candidates < 0 or query.top_k < 0:
        raise RequestError(
            f"candidates = {query.candidates}, top_k = {query.top_k}: expected 0 or more: {quote(query.text)}"
        )
    pieces = BLANKS.split(query.text)
    if pieces[1::2] != [MASK]:
        raise RequestError(
            f"expected exactly one {MASK}, and no other blank, in a text for a model that reads left to right;"
            f" found {', '.join(pieces[1::2]) or 'none'}: {quote(query.text)}"
        )
    return pieces[0], pieces[2]


def _common(rows: Sequence[Word]) -> int:
    """Return how many tokens the rows have in common at their beginning.

    >>> _common([(5, 6, 7), (5, 6), (5, 6, 8)])
    2
    """
    length = 0
    while all(length < len(row) for row in rows) and len({row[length] for row in rows}) == 1:
        length += 1
    return length


def _before(blank: _Blank) -> tuple[Any, ...]:
    """Return what decides which words are scored: all but what comes after the blank."""
    query = blank.query
    return blank.start.tobytes(), blank.left, query.words, query.candidates, query.top_k


def _is_limited(blank: _Blank) -> bool:
    return 0 < blank.query.candidates < len(blank.heads)


def _most_probable(blank: _Blank) -> list[str]:
    """Return the words, among those measured, that are most probable after the left part; ties by the alphabet."""
    return sorted(blank.exact, key=lambda word: (-blank.exact[word], word))[: blank.query.candidates]


def _unsure(blank: _Blank) -> list[str]:
    """Return words that must be measured before it is known which are most probable; [] when it is known."""
    if not _is_limited(blank):
        return []
    best = _most_probable(blank)
    least = blank.exact[best[-1]] if len(best) == blank.query.candidates else -math.inf
    open_words = [word for word, bound in blank.bounds.items() if bound >= least]
    return sorted(open_words, key=lambda word: (-blank.bounds[word], word))[: blank.query.candidates]


def _answer(blank: _Blank) -> WordAnswer:
    """Normalise the scores over the candidates; two spellings of the same tokens count once."""
    distinct = {blank.heads[word]: blank.scores[word] for word in blank.scores}
    total = float(np.logaddexp.reduce(list(distinct.values()))) if distinct else math.nan
    logprobs = {word: score - total for word, score in blank.scores.items()}
    words = blank.query.words
    if blank.query.top_k:
        words = tuple(sorted(logprobs, key=lambda word: (-logprobs[word], word))[: blank.query.top_k])
    return WordAnswer(
        words=words,
        logprobs=tuple(logprobs.get(word, math.nan) for word in words),
        covered=_covered(blank),
    )


def _covered(blank: _Blank) -> float:
    """Return the probability that a scored word comes after the left part; "un" covers "unable", too."""
    heads = {blank.heads[word]: blank.exact[word] for word in blank.scores}
    apart = [
        logprob
        for head, logprob in heads.items()
        if not any(head[:length] in heads for length in range(1, len(head)))
    ]
    return min(1.0, float(np.exp(apart).sum())) if apart else 0.0
