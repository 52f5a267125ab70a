"""Words and their probabilities, from what an endpoint tells: probable tokens, drawn texts, scored prompts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from clinometer.models.endpoint.asking import candidates_of
from clinometer.models.protocols import Reply
from clinometer.types import AnswerWord, NextWord, Rescore, WordAnswer

_MARKS = ".,;:!?\"'()[]*_`"
Contents = Sequence[Mapping[str, Any]]


def next_word(query: NextWord, contents: Contents) -> WordAnswer:
    """Read the word after a text: a token that begins with a space is a word, any other a piece of one."""
    drawn = _drawn(contents)
    if drawn is not None:
        return _chosen(query, _shares(drawn), told=1.0, draws=len(drawn))
    words = {_name(str(token)): float(logprob) for token, logprob in contents[0]["top"] if str(token).strip()}
    return _chosen(query, words, told=float(contents[0]["told"]), draws=0)


def first_word(query: AnswerWord, contents: Contents) -> WordAnswer:
    """Read the first word of an answer, in lower case: with a capital or not, after a space or not.

    Of a word of several tokens the endpoint tells only the first token, so it is not known; and a token that is a
    word counts as that word, whatever might follow it.
    """
    drawn = _drawn(contents)
    if drawn is not None:
        shares = _shares([word.casefold() for word in drawn])
        return _chosen(query, shares, told=1.0, draws=len(drawn), fold=True)
    mass: defaultdict[str, float] = defaultdict(float)
    for token, logprob in contents[0]["top"]:
        if word := str(token).strip().strip(_MARKS).casefold():
            mass[word] += math.exp(float(logprob))
    ranked = sorted(mass.items(), key=lambda pair: -pair[1])
    logprobs = {word: math.log(each) for word, each in ranked if each > 0}
    return _chosen(query, logprobs, told=float(contents[0]["told"]), draws=0, fold=True)


def rescored(query: Rescore, replies: Sequence[Reply]) -> WordAnswer:
    """Normalise the scores of whole texts over the words in their blank: P(w | left, right) ∝ P(left w right)."""
    scores = [reply for reply in replies if "logprob" in reply.content]
    before = list(replies[: len(replies) - len(scores)])
    candidates = candidates_of(query, before) if before else list(query.words)
    known = {word: float(reply.content["logprob"]) for word, reply in zip(candidates, scores, strict=True)}
    known = {word: score for word, score in known.items() if not math.isnan(score)}
    covered = math.fsum(math.exp(float(reply.content["word"])) for reply in scores)
    best = max(known.values(), default=0.0)
    total = best + math.log(math.fsum(math.exp(score - best) for score in known.values()) or 1.0)
    logprobs = {word: score - total for word, score in sorted(known.items(), key=lambda pair: -pair[1])}
    if query.top_k:
        some = dict(list(logprobs.items())[: query.top_k])
    else:
        some = {word: logprobs.get(word, math.nan) for word in query.words}
    return WordAnswer(words=tuple(some), logprobs=tuple(some.values()), covered=min(1.0, covered))


def _chosen(
    query: NextWord | AnswerWord, known: Mapping[str, float], *, told: float, draws: int, fold: bool = False
) -> WordAnswer:
    """Return the words that were asked for, or the most probable ones; NaN for those that are not known."""
    if query.top_k:
        best = list(known.items())[: query.top_k]
        words, logprobs = [word for word, _ in best], [logprob for _, logprob in best]
    else:
        words = list(query.words)
        logprobs = [known.get(word.casefold() if fold else word, math.nan) for word in words]
    covered = math.fsum(math.exp(each) for each in logprobs if not math.isnan(each))
    if query.normalise == "words":
        logprobs = [each - math.log(covered) if covered else math.nan for each in logprobs]
    return WordAnswer(
        words=tuple(words), logprobs=tuple(logprobs), covered=min(1.0, covered), told=told, draws=draws
    )


def _drawn(contents: Contents) -> list[str] | None:
    """Return the first word of every drawn text; None where log-probabilities were told."""
    if "top" in contents[0]:
        return None
    return [_first(text) for content in contents for text in content["texts"]]


def _first(text: str) -> str:
    words = text.split()
    return words[0].strip(_MARKS) if words else ""


def _shares(drawn: Sequence[str]) -> dict[str, float]:
    counts = Counter(word for word in drawn if word)
    return {word: math.log(count / len(drawn)) for word, count in counts.most_common()}


def _name(token: str) -> str:
    """Name a token as the local models do: a word, or "##" and a piece of one."""
    return token.strip() if token.startswith(" ") else f"##{token}"
