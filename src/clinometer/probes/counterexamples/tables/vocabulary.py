"""Which of the listed words a model can offer at all: those that are one token of its vocabulary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from clinometer.data import Gender, Verbalizer
from clinometer.types import Finding

WORD_COLUMNS = ("got_words", "got_logprobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The listed words of one gender, and those among them that a model can never offer."""

    gender: Gender
    words: tuple[str, ...]
    lost: tuple[str, ...]


def listed_words(table: pl.DataFrame, verbalizer: Verbalizer) -> tuple[Listed, ...]:
    """Return what the answer of the stage "words" says of each gender.

    A word that is not one token is answered by NaN. Words are counted in lower case, so a word is lost only when
    all of its spellings are.
    """
    words, logprobs = table["got_words"][0].to_list(), table["got_logprobs"][0].to_list()
    offered = {
        word.lower()
        for word, logprob in zip(words, logprobs, strict=True)
        if logprob is not None and not math.isnan(logprob)
    }
    genders: tuple[Gender, ...] = ("female", "male")
    listed = {gender: tuple(word for word in verbalizer if verbalizer[word] == gender) for gender in genders}
    return tuple(
        Listed(gender=gender, words=words, lost=tuple(word for word in words if word not in offered))
        for gender, words in listed.items()
    )


def vocabulary_rows(model: str, listed: tuple[Listed, ...]) -> Iterator[Finding]:
    """Yield the share of the listed words of each gender that are one token."""
    for each in listed:
        scorable = len(each.words) - len(each.lost)
        yield Finding(
            labels={"model": model, "gender": each.gender, "listed": len(each.words), "scorable": scorable},
            estimate=scorable / len(each.words) if each.words else math.nan,
            n=len(each.words),
        )
