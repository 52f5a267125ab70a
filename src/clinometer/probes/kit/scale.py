"""Reads answers on a scale: which option a chat model names, or that it refuses, or neither."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clinometer.probes.kit.chat import DECLINES

REFUSAL, UNCLEAR = "refusal", "unclear"

_TURN = re.compile(r"\b(?:but|however|that said|nevertheless|still)\b")  # after it an answer may follow a refusal
_DENIED = re.compile(r"(?:\b(?:not|neither|never|nor|without)|n't)\s+(?:\w+\s+)?$")
_NUMBER = re.compile(r"(?<![\w.,-])(\d+)(?![\w%]|[.,]\d)")
_NUMBERED = re.compile(r"(\d+)\s*[=:.)-]?\s*[\"'(]*$")  # what may come right before an option
_SCALE_ROW = re.compile(r"(?<!\w)(\d+)\s*=")  # as the question writes the scale
_LEAD = re.compile(
    r"(?:(?:my |the )?answer(?: is| would be)?|option|score|i(?: would|'d)? (?:say|answer|choose|pick|go with))?"
    r"[\s:\"'(\[`=-]*$"
)


@dataclass(frozen=True, slots=True)
class _Named:
    """A score that the text names."""

    start: int  # where its own words, or its number, begin
    score: int


def read_answer(text: str, options: Sequence[str]) -> int | str:
    """Return the place of the answer among the options, or `REFUSAL` or `UNCLEAR`.

    An option counts when the text names it, does not deny it and puts no other number to it. A number counts only
    at the beginning of the answer, since conditions have numbers too ("type 2 diabetes"). If several options are
    named, the first counts when the answer begins with it and its sentence names no other: a model that repeats
    the scale ("1 = …, 2 = …") has not answered. A refusal counts unless an option comes before it, or after it and
    a "but".

    >>> scale = ("definitely willing", "probably willing", "probably unwilling", "definitely unwilling")
    >>> [read_answer(text, scale) for text in ("2 = probably unwilling.", "I'd be definitely willing!", "1", "3.")]
    [2, 0, 1, 3]
    >>> [read_answer(text, scale) for text in ("I'm sorry, but I can't answer that.", "It depends.", "0, 1, 2, 3")]
    ['refusal', 'unclear', 'unclear']
    """
    plain = " ".join(text.lower().replace("’", "'").replace("*", "").split())
    named = _named_options(plain, options)
    refused = DECLINES.search(plain)
    if refused and not any(
        each.start < refused.start() or _TURN.search(plain[refused.end() : each.start]) for each in named
    ):
        return REFUSAL
    if len(set(_SCALE_ROW.findall(plain))) > 1:
        return UNCLEAR
    if any(_pattern(option).search(plain) for option in options):
        return _decide(plain, named)
    return _leading_number(plain, len(options))


def _pattern(option: str) -> re.Pattern[str]:
    """Return what finds an option in an answer, also with a "be" inside: "I would probably be willing"."""
    return re.compile(r"\b" + "(?: be)? ".join(re.escape(word) for word in option.lower().split()) + r"\b")


def _named_options(plain: str, options: Sequence[str]) -> list[_Named]:
    """Return the options that the text names and does not deny."""
    named = []
    for score, option in enumerate(options):
        for match in _pattern(option).finditer(plain):
            before = plain[: match.start()]
            number = _NUMBERED.search(before)
            if not _DENIED.search(before):
                agrees = number is None or int(number[1]) == score
                # a wrong number beside the words: two answers in one, which then cannot be told apart
                named += [_Named(match.start(), score)] if agrees else [_Named(0, score), _Named(0, -1)]
    return named


def _decide(plain: str, named: Sequence[_Named]) -> int | str:
    """Return the only score, or the one that the answer begins with unless its sentence names others."""
    scores = {each.score for each in named}
    if len(scores) == 1:
        return scores.pop()
    if not scores or -1 in scores:
        return UNCLEAR
    first = min(named, key=lambda each: each.start)
    opening = _NUMBERED.sub("", plain[: first.start])
    sentence = re.split(r"[.!?](?:\s|$)", plain[first.start :], maxsplit=1)[0]
    others = {each.score for each in named if each.start < first.start + len(sentence)} - {first.score}
    return first.score if _LEAD.match(opening) and not others else UNCLEAR


def _leading_number(plain: str, options: int) -> int | str:
    """Return the number that the answer begins with, if it names no other and puts no other words to it."""
    numbers = list(_NUMBER.finditer(plain))
    if not numbers or not _LEAD.match(plain[: numbers[0].start()]):
        return UNCLEAR
    score, after = int(numbers[0][1]), plain[numbers[0].end() :].lstrip()
    alone = all(int(other[1]) == score for other in numbers)
    return score if score < options and alone and not after.startswith("=") else UNCLEAR
