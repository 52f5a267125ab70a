"""The answers of one model as arrays, read in parts, and whether they show a sense of sentiment.

What a run never asked is left out, so that a run of an earlier release, which asked about fewer words or
templates, can still be read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clinometer.probes.kit import Floats, Ints, Label, model_rng, percent
from clinometer.probes.kit.asking import ANSWER, DRAWN, FILL, LABEL, NEXT_WORD, Way
from clinometer.probes.kit.chat import count_words, failed_to_answer
from clinometer.probes.kit.refusals import Asked, asked_of
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.sentiment_words.options import Options
from clinometer.probes.sentiment_words.questions import (
    ANSWERS,
    ASSOCIATION,
    CLASSIFIED,
    LISTED,
    SHIFT,
    ModelWords,
    choose_words,
    stages_of,
    templates_of,
)
from clinometer.stats import (
    cluster_bootstrap,
    share_interval,
    sign_flip_test,
    two_group_bootstrap,
    two_group_permutation,
)
from clinometer.types import Finding

Bools = NDArray[np.bool_]
Classes = NDArray[np.str_]  # positive, negative or neutral, word by word
Labels = NDArray[np.int8]  # 1 positive, 0 negative
Odds = NDArray[np.float32]  # log P(positive label word) − log P(negative one)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswers:
    """What one model answered, for the reviews that it answered completely."""

    words: ModelWords
    positive: Bools  # (reviews,): whether a review is positive
    source: NDArray[np.str_]  # (reviews,)
    probability: Mapping[str, Floats]  # template -> (reviews, tested words)
    before: Mapping[tuple[str, str], Odds]  # template, pair -> (reviews,)
    after: Mapping[tuple[str, str], Odds]  # template, pair -> (shift words, ks, reviews)
    left_out: int  # reviews with an answer that is not a number
    asked: Asked | None = None  # how a chat model answered, by class of reviews
    unanswered: str = ""  # why the words of a chat model mean nothing; "": they may

    @property
    def way(self) -> Way:
        """In which way the model was asked."""
        return self.words.way

    @property
    def templates(self) -> tuple[str, ...]:
        """The templates that the model was asked with."""
        return tuple(dict.fromkeys([*self.probability, *(template for template, _ in self.before)]))

    @property
    def classes(self) -> Classes:
        """The class of each word of the association test."""
        return self._classes(self.words.tested)

    @property
    def shift_classes(self) -> Classes:
        """The class of each word of the shift test."""
        return self._classes(self.words.shift)

    def _classes(self, words: tuple[str, ...]) -> Classes:
        return np.array([self.words.listed_as[word] for word in words], dtype=np.str_)


def labels_of(odds: Odds) -> Labels:
    """Return 1 where the positive label word is the more probable one, else 0 (so also for equal ones)."""
    labels: Labels = (odds > 0).astype(np.int8)
    return labels


def read_answers(plan: Plan, records: Records, *, shift_templates: Sequence[str]) -> ModelAnswers:
    """Read the records of the stages "association" and, unless no template is named, "shift"."""
    words = choose_words(plan, records)
    reviews = plan.options.chosen_reviews(plan.seed)
    logprobs = _read_association(plan, records, words, len(reviews))
    place = {word: column for column, word in enumerate(words.asked)}
    tested = [place[word] for word in words.tested]
    before = {}
    for template, array in logprobs.items():
        for pair in words.pairs:
            before[template, pair.name] = _odds(array[:, [place[pair.positive], place[pair.negative]]])
    after: dict[tuple[str, str], Odds] = {}
    if words.shift and shift_templates:
        appended, after = _read_shift(plan, records, words, shift_templates, len(reviews))
        words = replace(words, shift=appended)

    complete = np.ones(len(reviews), dtype=np.bool_)
    for array in logprobs.values():
        complete &= ~np.isnan(array).any(axis=1)
    for odds in after.values():
        complete &= ~np.isnan(odds).any(axis=(0, 1))
    asked, unanswered = _read_outcomes(plan, records, words.way)
    return ModelAnswers(
        words=words,
        positive=np.array([review.label == "positive" for review in reviews])[complete],
        source=np.array([review.source for review in reviews], dtype=np.str_)[complete],
        probability={name: np.exp(array[complete][:, tested]) for name, array in logprobs.items() if tested},
        before={key: odds[complete] for key, odds in before.items()},
        after={key: odds if complete.all() else odds[..., complete] for key, odds in after.items()},
        left_out=int((~complete).sum()),
        asked=asked,
        unanswered=unanswered,
    )


def _read_association(plan: Plan, records: Records, words: ModelWords, reviews: int) -> dict[str, Floats]:
    found: dict[str, Floats] = {}
    columns = ("tag_template", "tag_review", *_GOT[words.way.name])
    for batch in records.batches(model=plan.model.name, stage=ASSOCIATION, columns=columns):
        templates = batch["tag_template"].to_numpy()
        rows = batch["tag_review"].to_numpy()
        logprobs = _logprobs(batch, words, words.asked)
        if plan.model.told:
            logprobs = _with_untold(logprobs, words)
        for template in np.unique(templates):
            chosen = templates == template
            array = found.setdefault(str(template), np.full((reviews, len(words.asked)), np.nan))
            array[rows[chosen]] = logprobs[chosen]
    return {template: found[template] for template in templates_of(plan) if template in found}


def _with_untold(logprobs: Floats, words: ModelWords) -> Floats:
    """Return what an endpoint answered; a word that is not among the tokens that it tells has probability 0.

    So it is with words that are never drawn. The odds of two label words need both, and an answer that tells
    nothing stays unknown.
    """
    tested = np.array([word not in words.label_words for word in words.asked])
    answered: Bools = np.asarray(~np.isnan(logprobs).all(axis=1))
    untold: Floats = np.where(np.isnan(logprobs) & tested & answered[:, None], -math.inf, logprobs)
    return untold


def _read_shift(
    plan: Plan, records: Records, words: ModelWords, templates: Sequence[str], reviews: int
) -> tuple[tuple[str, ...], dict[tuple[str, str], Odds]]:
    """Return the words that were appended, and the log-odds after them."""
    options: Options = plan.options
    shape = (len(words.shift), len(options.ks), reviews)
    found = {
        (template, pair.name): np.full(shape, np.nan, dtype=np.float32)
        for template in templates
        for pair in words.pairs
    }
    place = {word: column for column, word in enumerate(words.label_words)}
    was_asked = np.zeros(len(words.shift), dtype=np.bool_)
    columns = ("tag_template", "tag_word", "tag_k", "tag_review", *_GOT[words.way.name])
    for every in records.batches(model=plan.model.name, stage=SHIFT, columns=columns):
        batch = every.filter(pl.col("tag_word").is_in(words.shift), pl.col("tag_template").is_in(templates))
        where = (
            _places(batch["tag_word"], words.shift),
            _places(batch["tag_k"], options.ks),
            batch["tag_review"].to_numpy(),
        )
        was_asked[where[0]] = True
        template_of = _places(batch["tag_template"], tuple(templates))
        logprobs = _logprobs(batch, words, words.label_words)
        for pair in words.pairs:
            odds = _odds(logprobs[:, [place[pair.positive], place[pair.negative]]])
            for number, template in enumerate(templates):
                chosen = template_of == number
                found[template, pair.name][tuple(axis[chosen] for axis in where)] = odds[chosen]
    appended = tuple(word for word, asked in zip(words.shift, was_asked, strict=True) if asked)
    if not appended:
        return (), {}
    return appended, found if was_asked.all() else {key: odds[was_asked] for key, odds in found.items()}


# which columns of an answer are read, by the way in which it was asked for
_GOT = {
    FILL.name: ("got_logprobs",),
    NEXT_WORD.name: ("got_logprobs",),
    ANSWER.name: ("got_logprobs",),
    DRAWN.name: ("got_texts",),
    LABEL.name: ("got_negative", "got_neutral", "got_positive"),
}
_SUREST = 1e-6  # a classifier that gives a label no probability at all is taken to give it this much


def _logprobs(batch: pl.DataFrame, words: ModelWords, asked: tuple[str, ...]) -> Floats:
    """Return the log-probabilities of the words asked about: (answers, words)."""
    if words.way is DRAWN:
        read = [
            _drawn_logprobs(texts, template, words, asked)
            for texts, template in zip(batch["got_texts"], batch["tag_template"], strict=True)
        ]
        return np.array(read).reshape(len(batch), len(asked))
    if words.way is LABEL:
        negative, neutral, positive = (
            batch[name].cast(pl.Float64).fill_null(math.nan).to_numpy() for name in _GOT[LABEL.name]
        )
        # half of what is neutral belongs to either side; a classifier of two classes has nothing neutral
        share = positive + np.nan_to_num(neutral) / 2
        share = np.clip(share / (share + negative + np.nan_to_num(neutral) / 2), _SUREST, 1 - _SUREST)
        logs: Floats = np.log(np.stack([share, 1 - share], axis=1))
        return logs
    return _matrix(batch["got_logprobs"], len(asked))


def _drawn_logprobs(texts: Sequence[str], template: str, words: ModelWords, asked: tuple[str, ...]) -> list[float]:
    """Return the logarithm of each word's share of the answers; −∞ for one that no answer gives.

    The two label words of drawn answers stand for all listed words of their class: hardly any answer is one given
    word. Half an answer is added to each, so that their odds are never infinite.
    """
    if not len(texts):  # of a file of answers, some may be missing
        return [math.nan] * len(asked)
    drawn = count_words(list(texts), asked=template, words=tuple(words.listed_as))
    shares: dict[str, float] = {}
    for sign, name in (("positive", LISTED.positive), ("negative", LISTED.negative)):
        rated = drawn.share({word for word in drawn.words if words.listed_as.get(word) == sign})
        shares[name] = (0.5 + np.nan_to_num(rated) * drawn.answered) / (1 + drawn.answered)
    given = [shares.get(word, drawn.words.get(word, 0.0)) for word in asked]
    return [math.log(share) if share > 0 else -math.inf for share in given]


def _read_outcomes(plan: Plan, records: Records, way: Way) -> tuple[Asked | None, str]:
    """Return how a chat model answered, review by review, and why its words mean nothing, if they do not."""
    stage = ASSOCIATION if way is DRAWN else ANSWERS
    if way is not DRAWN and stage not in {each.name for each in stages_of(plan)}:
        return None, ""
    table = records.table(
        model=plan.model.name, stage=stage, columns=("tag_template", "tag_review", "tag_label", "got_texts")
    )
    drawn = [
        count_words(texts.to_list(), asked=template)
        for texts, template in zip(table["got_texts"], table["tag_template"], strict=True)
    ]
    asked = asked_of(
        plan.model.name,
        drawn,
        groups=[f"{label} reviews" for label in table["tag_label"]],
        units=[str(number) for number in table["tag_review"]],
    )
    return asked, failed_to_answer(drawn) if way is DRAWN else ""


def _odds(logprobs: Floats) -> Odds:
    """Return the log-odds of the first of two words: (n, 2) -> (n,)."""
    odds: Odds = (logprobs[:, 0] - logprobs[:, 1]).astype(np.float32)
    return odds


def _matrix(column: pl.Series, width: int) -> Floats:
    flat = column.explode(empty_as_null=False).to_numpy().astype(np.float64)
    return flat.reshape(len(column), width)


def _places(column: pl.Series, values: tuple[str, ...] | tuple[int, ...]) -> Ints:
    """Return the place of each value of a column among the given ones."""
    places = column.replace_strict(pl.Series(values), pl.Series(range(len(values))), return_dtype=pl.Int64)
    return places.to_numpy()


# ---- whether the model senses sentiment: the gate

ALL_REVIEWS, POSITIVE, NEGATIVE = "all reviews", "positive reviews", "negative reviews"
CONTRAST = "positive minus negative reviews"
FEWEST_REVIEWS = 5  # of each class: with fewer nothing is computed
# The gate. With "It was [MASK]." the built-in masked model labels 93 to 97 % of positive and 48 to 61 % of
# negative reviews correctly (six samples); with "It was [MASK]" 99 to 100 % and 12 to 23 %, and calling everything
# positive is not a sense of sentiment. `simulations/sentiment_words.py` counts random models that pass: under 1 %.
GATE_LEVEL = 0.99  # of the interval of the accuracy over both classes, which must lie above 0.5
GATE_P = 0.01  # of the contrast between the classes, two-sided
GATE_SHARE = 1 / 3  # of the reviews of either class that must get their own label


@dataclass(frozen=True, slots=True, kw_only=True)
class SentimentCheck:
    """Whether the model's words and labels follow the reviews, with one template (§4.2)."""

    difference: Floats  # (reviews,): mean probability of positive minus that of negative words (Figures 3 and 4)
    means: Mapping[str, Finding]  # of both classes of reviews, and between them
    accuracy: Mapping[
        str, Mapping[str, Finding]
    ]  # pair -> share of reviews that get their label, by class and "all"
    unanswered: str = ""  # why the words of a chat model mean nothing
    felt: str = "positive words"  # what a positive review makes likelier

    def failed(self, pair: str | None) -> str:
        """Return why single words cannot be interpreted with a pair of label words; "" if they can."""
        if self.unanswered:
            return self.unanswered
        contrast = self.means[CONTRAST]
        if not (contrast.estimate > 0 and contrast.p < GATE_P):
            return f"positive reviews do not make {self.felt} likelier than negative reviews do"
        if pair is None:
            return ""
        every, *classes = (self.accuracy[pair][name] for name in (ALL_REVIEWS, POSITIVE, NEGATIVE))
        for name, found in zip((POSITIVE, NEGATIVE), classes, strict=True):
            if found.estimate < GATE_SHARE:
                return f"it labels {percent(found.estimate, 0)} of {name} correctly; a third is needed"
        if not share_interval(every.estimate, every.n, level=GATE_LEVEL).low > 0.5:
            return f"it labels {percent(every.estimate, 0)} of the reviews correctly, which a coin might do"
        return ""


def check_sentiment(
    answers: ModelAnswers, template: str, *, rng: np.random.Generator, draws: int
) -> SentimentCheck:
    """Compare the model's words and labels with the labels of the reviews."""
    difference = _felt(answers, template)
    first, second = difference[answers.positive], difference[~answers.positive]
    means = {}
    for name, values in ((POSITIVE, first), (NEGATIVE, second)):
        interval = cluster_bootstrap(values, rng=rng, draws=draws)
        means[name] = Finding(
            labels={},
            estimate=float(interval.estimate),
            low=float(interval.low),
            high=float(interval.high),
            p=float(sign_flip_test(values, rng=rng).p),
            n=len(values),
        )
    between = two_group_bootstrap(first, second, rng=rng, draws=draws)
    means[CONTRAST] = Finding(
        labels={},
        estimate=float(first.mean() - second.mean()),
        low=float(between.low),
        high=float(between.high),
        p=float(two_group_permutation(first, second, rng=rng).p),
        n=len(difference),
    )
    return SentimentCheck(
        difference=difference,
        means=means,
        accuracy={
            pair.name: {
                name: accuracy_finding(answers, template, pair.name, chosen, {})
                for name, chosen in review_classes(answers).items()
            }
            for pair in answers.words.pairs
        },
        unanswered=answers.unanswered,
        felt="its positive label" if answers.way is LABEL else "positive words",
    )


def _felt(answers: ModelAnswers, template: str) -> Floats:
    """Return how much likelier positive words, or labels, are than negative ones after each review."""
    if answers.way is LABEL:
        odds: Floats = answers.before[template, CLASSIFIED.name].astype(np.float64)
        return np.tanh(odds / 2)  # P(positive) − P(negative)
    probability, classes = answers.probability[template], answers.classes
    good, bad = (probability[:, classes == label].mean(axis=1) for label in ("positive", "negative"))
    difference: Floats = good - bad
    return difference


def review_classes(answers: ModelAnswers) -> Mapping[str, Bools]:
    """Return which reviews belong to each class, and to both."""
    everything = np.ones(len(answers.positive), dtype=np.bool_)
    return {ALL_REVIEWS: everything, POSITIVE: answers.positive, NEGATIVE: ~answers.positive}


def accuracy_finding(
    answers: ModelAnswers, template: str, pair: str, chosen: Bools, labels: Mapping[str, Label]
) -> Finding:
    """Return the share of the chosen reviews to which the model gives their own label."""
    right = (labels_of(answers.before[template, pair]) == answers.positive) & chosen
    return share_finding(int(right.sum()), int(chosen.sum()), labels)


def share_finding(count: int, n: int, labels: Mapping[str, Label], *, p: float = math.nan) -> Finding:
    """Return count/n with Wilson's interval, see `share_interval`. A share of nothing (n = 0) is missing.

    >>> found = share_finding(5, 10, {})
    >>> found.estimate, round(found.low, 3), round(found.high, 3)
    (0.5, 0.237, 0.763)
    """
    if n == 0:
        return Finding(labels=labels, estimate=math.nan, n=0)
    limits = share_interval(count / n, n)
    return Finding(labels=labels, estimate=count / n, low=float(limits.low), high=float(limits.high), p=p, n=n)


def check_templates(plan: Plan, answers: ModelAnswers, *, rng: np.random.Generator) -> dict[str, SentimentCheck]:
    """Return the check of every template; nothing if too few reviews were answered or a class has no words."""
    if not can_be_measured(answers):
        return {}
    checks = {}
    for number, template in enumerate(answers.templates):
        own = rng if number == 0 else model_rng(plan.seed, f"{plan.model.name}\0{template}")
        checks[template] = check_sentiment(answers, template, rng=own, draws=plan.options.draws)
    return checks


def can_be_measured(answers: ModelAnswers) -> bool:
    """Tell whether enough reviews of each class were answered, and every class of words has one.

    A classifier is asked about no words.
    """
    count = int(answers.positive.sum())
    words = answers.way is LABEL or all(answers.words.used.values())
    return min(count, len(answers.positive) - count) >= FEWEST_REVIEWS and words


def main_template(plan: Plan, records: Records) -> str:
    """Return the first template with which the model senses sentiment, by the association answers; else the first.

    The shift test is made with it, so it must not depend on the answers to the shift test.
    """
    templates = templates_of(plan)
    if len(templates) == 1:
        return templates[0]
    answers = read_answers(plan, records, shift_templates=())
    pair = next((pair.name for pair in answers.words.pairs), None)
    checks = check_templates(plan, answers, rng=model_rng(plan.seed, plan.model.name))
    passed = [template for template, check in checks.items() if not check.failed(pair)]
    return (*passed, *templates)[0]


def shift_templates(plan: Plan, records: Records) -> tuple[str, ...]:
    """Return the templates that the shift test uses: the model's main one, or all of them."""
    options: Options = plan.options
    if options.shift_words == "none":
        return ()
    return templates_of(plan) if options.shift_templates else (main_template(plan, records),)
