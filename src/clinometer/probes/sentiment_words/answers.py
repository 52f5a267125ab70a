"""The answers of one model as arrays, read in parts: a run may hold millions of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clinometer.probes.kit import Floats, Ints
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.sentiment_words.options import Options
from clinometer.probes.sentiment_words.questions import ModelWords, choose_words

Bools = NDArray[np.bool_]
Classes = NDArray[np.str_]  # positive, negative or neutral, word by word
Labels = NDArray[np.int8]  # 1 positive, 0 negative, or
MISSING = -1  # an answer that is not a number


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswers:
    """What one model answered, for the reviews that it answered completely."""

    words: ModelWords
    positive: Bools  # (reviews,): whether a review is positive
    source: NDArray[np.str_]  # (reviews,)
    probability: Mapping[str, Floats]  # template -> (reviews, tested words)
    before: Mapping[tuple[str, str], Labels]  # template, pair -> (reviews,)
    after: Mapping[tuple[str, str], Labels]  # template, pair -> (shift words, ks, reviews)
    left_out: int  # reviews with an answer that is not a number

    @property
    def classes(self) -> Classes:
        """The class of each word of the association test."""
        return self._classes(self.words.tested)

    @property
    def shift_classes(self) -> Classes:
        """The class of each word of the shift test."""
        return self._classes(self.words.shift)

    def _classes(self, words: tuple[str, ...]) -> Classes:
        label_of = self.words.label_of
        return np.array([label_of[word] for word in words], dtype=np.str_)


def read_answers(plan: Plan, records: Records) -> ModelAnswers:
    """Read the records of the stages "association" and "shift"."""
    options: Options = plan.options
    words = choose_words(plan, records)
    reviews = options.chosen_reviews(plan.seed)
    logprobs = _read_association(plan, records, words, len(reviews))
    place = {word: column for column, word in enumerate(words.asked)}
    tested = [place[word] for word in words.tested]
    before = {}
    for template in options.templates:
        for pair in words.pairs:
            scores = logprobs[template][:, [place[pair.positive], place[pair.negative]]]
            before[template, pair.name] = _preferred(scores)
    after = _read_shift(plan, records, words, len(reviews)) if words.shift else {}

    complete = np.ones(len(reviews), dtype=np.bool_)
    for array in logprobs.values():
        complete &= ~np.isnan(array).any(axis=1)
    for labels in after.values():
        complete &= (labels != MISSING).all(axis=(0, 1))
    return ModelAnswers(
        words=words,
        positive=np.array([review.label == "positive" for review in reviews])[complete],
        source=np.array([review.source for review in reviews], dtype=np.str_)[complete],
        probability={name: np.exp(array[complete][:, tested]) for name, array in logprobs.items()},
        before={key: labels[complete] for key, labels in before.items()},
        after={key: labels if complete.all() else labels[..., complete] for key, labels in after.items()},
        left_out=int((~complete).sum()),
    )


def _read_association(plan: Plan, records: Records, words: ModelWords, reviews: int) -> dict[str, Floats]:
    found = {template: np.full((reviews, len(words.asked)), np.nan) for template in plan.options.templates}
    columns = ("tag_template", "tag_review", "got_logprobs")
    for batch in records.batches(model=plan.model.name, stage="association", columns=columns):
        templates = batch["tag_template"].to_numpy()
        rows = batch["tag_review"].to_numpy()
        logprobs = _matrix(batch["got_logprobs"], len(words.asked))
        for template, array in found.items():
            chosen = templates == template
            array[rows[chosen]] = logprobs[chosen]
    return found


def _read_shift(plan: Plan, records: Records, words: ModelWords, reviews: int) -> dict[tuple[str, str], Labels]:
    options: Options = plan.options
    templates = options.asked_shift_templates
    shape = (len(words.shift), len(options.ks), reviews)
    found = {
        (template, pair.name): np.full(shape, MISSING, dtype=np.int8)
        for template in templates
        for pair in words.pairs
    }
    place = {word: column for column, word in enumerate(words.label_words)}
    columns = ("tag_template", "tag_word", "tag_k", "tag_review", "got_logprobs")
    for batch in records.batches(model=plan.model.name, stage="shift", columns=columns):
        where = (
            _places(batch["tag_word"], words.shift),
            _places(batch["tag_k"], options.ks),
            batch["tag_review"].to_numpy(),
        )
        template_of = _places(batch["tag_template"], templates)
        logprobs = _matrix(batch["got_logprobs"], len(place))
        for pair in words.pairs:
            labels = _preferred(logprobs[:, [place[pair.positive], place[pair.negative]]])
            for number, template in enumerate(templates):
                chosen = template_of == number
                found[template, pair.name][tuple(axis[chosen] for axis in where)] = labels[chosen]
    return found


def _preferred(logprobs: Floats) -> Labels:
    """Return 1 where the first of two words is more probable, else 0 (so also for equal ones): (n, 2) -> (n,)."""
    labels: Labels = (logprobs[:, 0] > logprobs[:, 1]).astype(np.int8)
    labels[np.isnan(logprobs).any(axis=1)] = MISSING
    return labels


def _matrix(column: pl.Series, width: int) -> Floats:
    flat = column.explode(empty_as_null=False).to_numpy().astype(np.float64)
    return flat.reshape(len(column), width)


def _places(column: pl.Series, values: tuple[str, ...] | tuple[int, ...]) -> Ints:
    """Return the place of each value of a column among the given ones."""
    places = column.replace_strict(pl.Series(values), pl.Series(range(len(values))), return_dtype=pl.Int64)
    return places.to_numpy()
