"""Everything that is measured of one model, before tables are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clinometer.probes.kit.numbers import model_rng
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.sentiment_words.answers import Answers, read_answers
from clinometer.probes.sentiment_words.association import Association, measure_association
from clinometer.probes.sentiment_words.chance import Chance, shuffled_shares
from clinometer.probes.sentiment_words.label_shuffles import LabelShuffles, shuffle_labels
from clinometer.probes.sentiment_words.options import Options
from clinometer.probes.sentiment_words.sense import Sense, sense_sentiment
from clinometer.probes.sentiment_words.shift import Shift, measure_shift
from clinometer.probes.sentiment_words.verdicts import draws_for
from clinometer.types import ModelInfo

FEWEST_REVIEWS = 5  # of each class: with fewer nothing is computed


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What was measured of one model; without tests where reviews were not answered or a class has no words."""

    info: ModelInfo
    options: Options
    answers: Answers
    senses: Mapping[str, Sense]  # by template
    associations: Mapping[str, Association]  # by template
    chances: Mapping[str, Chance]  # by template, of the neutral words
    shifts: Mapping[tuple[str, str], Shift]  # by template and pair

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.info.name

    @property
    def measured(self) -> bool:
        """Whether there are reviews and words enough to say anything."""
        return bool(self.senses)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the association test."""
        return self.answers.words.tested

    @property
    def classes(self) -> NDArray[np.str_]:
        """The class of each word of the association test."""
        return _classes(self.answers, self.words)

    @property
    def shift_words(self) -> tuple[str, ...]:
        """The words of the shift test."""
        return self.answers.words.shift

    @property
    def shift_classes(self) -> NDArray[np.str_]:
        """The class of each word of the shift test."""
        return _classes(self.answers, self.shift_words)

    @property
    def main_shift(self) -> Shift | None:
        """The shift test with the main template and the first pair of label words that the model has."""
        return next(iter(self.shifts.values()), None)

    @property
    def main_pair(self) -> str | None:
        """The first pair of label words that the model has."""
        return next((pair.name for pair in self.answers.words.pairs), None)

    def interpretable(self, template: str | None = None, pair: str | None = None) -> bool:
        """Tell whether findings with a template and label words (default: the main ones) can be interpreted."""
        sense = self.senses.get(template or self.options.main_template)
        return sense is not None and sense.interpretable(pair or self.main_pair)


def view_model(plan: Plan, records: Records) -> View:
    """Read and test the answers of one model."""
    options: Options = plan.options
    answers = read_answers(plan, records)
    rng = model_rng(plan.seed, plan.model.name)
    enough = min(answers.positive.sum(), (~answers.positive).sum()) >= FEWEST_REVIEWS
    templates = options.templates if enough and all(answers.words.used.values()) else ()
    classes = _classes(answers, answers.words.tested)
    shift_classes = _classes(answers, answers.words.shift)
    senses, associations, chances = {}, {}, {}
    for template in templates:
        probability = answers.probability[template]
        senses[template] = sense_sentiment(answers, template, rng=rng, draws=options.draws)
        most = max(len(words) for words in answers.words.used.values())
        shuffles = shuffle_labels(probability, answers.positive, rng=rng, draws=draws_for(most))
        associations[template] = measure_association(
            probability, answers.positive, classes, shuffles, ms=options.ms, rng=rng, draws=options.draws
        )
        neutral = classes == "neutral"
        chances[template] = shuffled_shares(
            probability[:, neutral],
            answers.positive,
            LabelShuffles(sizes=shuffles.sizes[:, neutral]),
            ms=options.ms,
            rng=rng,
        )
    shifts = {
        key: measure_shift(
            answers.before[key],
            after,
            answers.positive,
            shift_classes,
            ks=options.ks,
            rng=rng,
            draws=options.draws,
        )
        for key, after in answers.after.items()
        if templates
    }
    return View(
        info=plan.model,
        options=options,
        answers=answers,
        senses=senses,
        associations=associations,
        chances=chances,
        shifts=shifts,
    )


def _classes(answers: Answers, words: tuple[str, ...]) -> NDArray[np.str_]:
    label_of = answers.words.label_of
    return np.array([label_of[word] for word in words], dtype=np.str_)
