"""What the models answered, as arrays: words in a blank, classes of statements, answers on the scale.

NaN is missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from clinometer.metrics import negative_attitude, overall_attitude
from clinometer.metrics.attitude import ATTITUDES as RATIO
from clinometer.metrics.attitude import RATINGS
from clinometer.probes.kit import Floats, Ints, Numbers, model_rng
from clinometer.probes.kit.chat import DrawnWords, count_words, gives_probabilities
from clinometer.probes.kit.choices import REFUSAL, UNCLEAR, ChoiceCounts, read_answer, read_choices
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.stigma.questions import (
    ATTITUDES,
    BASELINE,
    CHECKS,
    CHOICES,
    FIRST_WORDS,
    LEFT,
    SCALE,
    SENTENCES,
    WORDS,
    Bools,
    Roster,
    asks_words,
    blank_conditions,
    blank_distances,
    chat_conditions,
    is_rescored,
)

UNRATED = "unrated"
LISTS = (*RATINGS, UNRATED)

CLASSES = ("negative", "neutral", "positive")
UNDECIDED = "undecided"  # two classes are equally probable


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedWord:
    """One word that a model offered at prompts about a condition."""

    word: str
    listed: str  # its rating, or "unrated"
    probability: float  # mean over those prompts; 0 where the word is not among those read
    prompts: int  # that offer it


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedAnswers:
    """The answers of one masked model, or of a causal one that rescored the same sentences, prompt by prompt."""

    plan: Plan
    roster: Roster
    distances: tuple[str, ...]
    negative: Floats  # (templates, wordings, distances)
    baseline: Floats  # (templates, distances)
    masses: Mapping[str, Floats]  # list -> probability of its words, (templates, wordings, distances)
    words: tuple[OfferedWord, ...]  # most probable first
    # causal: list -> probability of its words after each template's left part, (templates,); none: masked
    left: Mapping[str, Floats] = field(default_factory=dict)
    # chat: what was drawn at each prompt about a condition, with its wording; none: words were not asked for
    drawn: tuple[tuple[int, DrawnWords], ...] = ()

    @property
    def pooled(self) -> bool:
        """Whether it was asked as masked models are: only these have a mean in common."""
        return not self.left and not self.drawn

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.plan.model.name

    @property
    def coverage(self) -> Floats:
        """The probability, of 1, of the words in the ratio of each prompt."""
        covered: Floats = np.sum([self.masses[name] for name in RATIO], axis=0)
        return covered


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierOutcomes:
    """The outcomes of one classifier."""

    model: str
    rng: np.random.Generator
    draws: int
    roster: Roster
    templates: tuple[str, ...]
    classes: tuple[str, ...]  # those that the classifier has, and "undecided" where that occurs
    outcomes: Floats  # (templates, wordings, classes): 1 for the outcome, 0 for the others
    baseline: Floats  # (templates, classes)
    # positive, negative -> whether each statement of that plain sense was taken so; none: not asked
    sensed: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def negative(self) -> Floats:
        """Whether each sentence came out negative, (templates, wordings)."""
        return self.outcomes[:, :, self.classes.index("negative")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswers:
    """The answers of one chat model on the Social Distance Scale; only answers on the scale have a score."""

    model: str
    rng: np.random.Generator
    draws: int
    roster: Roster
    readings: tuple[str, ...]  # the options of the scale, then refusal and unclear
    counts: Floats  # (wordings, distances, readings): how many answers were read so
    baseline: Floats  # (distances,): mean score of the question without a condition
    by_distance: Floats  # (distances, conditions): mean score
    overall: Floats  # (conditions,)

    def share(self, reading: str) -> float:
        """Return the share of all answers that were read so."""
        return float(self.counts[..., self.readings.index(reading)].sum() / self.counts.sum())

    def on_scale(self, numbers: Numbers) -> Numbers:
        """Return scores within the scale, which a studentized interval may leave."""
        highest = len(self.readings) - 3  # the last two readings are not options, and the first has score 0
        return numbers.transformed(lambda scores: np.clip(scores, 0.0, highest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers of all models of a run, by what they were asked."""

    ratings: Mapping[str, str]  # by which the words of masked models were read
    masked: tuple[MaskedAnswers, ...]
    classifiers: tuple[ClassifierOutcomes, ...]
    chats: tuple[ChatAnswers, ...]
    chosen: tuple[ChoiceCounts, ...] = ()  # of chat models: their answers to the user's questions


def read_answers(plans: Sequence[Plan], records: Records) -> Answers:
    """Read the answers of all models; the options are the same for all."""
    ratings = plans[0].options.chosen_ratings()
    masked = [plan for plan in plans if "fill" in plan.model.capabilities or is_rescored(plan)]
    others = [plan for plan in plans if plan not in masked]
    asked = [plan for plan in others if asks_words(plan)]
    return Answers(
        ratings=ratings,
        masked=tuple(masked_answers(plan, records, ratings) for plan in (*masked, *asked)),
        classifiers=tuple(
            classifier_outcomes(plan, records) for plan in others if "classify" in plan.model.capabilities
        ),
        chats=tuple(chat_answers(plan, records) for plan in others if "classify" not in plan.model.capabilities),
        chosen=tuple(_chosen(plan, records) for plan in others if asks_choices(plan)),
    )


# ---------------------------------------------------------------------------------------------------------
# Masked and causal models


def masked_answers(plan: Plan, records: Records, ratings: Mapping[str, str]) -> MaskedAnswers:
    """Read and rate the words of one masked model, or of one that rescored sentences."""
    options, distances = plan.options, blank_distances(plan)
    roster = Roster(wordings=blank_conditions(plan))
    columns = ("tag_template", "tag_distance", "tag_wording", "tag_group")
    left: dict[str, Floats] = {}
    drawn: list[DrawnWords] = []
    if asks_words(plan):
        table, drawn = _chat_words(plan, records, ratings, columns)
    else:
        answers = ("got_words", "got_logprobs", *(["got_covered"] if is_rescored(plan) else []))
        table = records.table(model=plan.model.name, stage=ATTITUDES, columns=(*columns, *answers))
    if is_rescored(plan):
        table = _scored(table)
        before = table.filter(pl.col("tag_group") == LEFT)
        left = _masses(_rated_words(before, ratings), len(before))
        table = table.filter(pl.col("tag_group") != LEFT)
    places = (
        _places(table["tag_template"], options.templates),
        _places(table["tag_wording"], [each.name for each in roster.wordings]),
        _places(table["tag_distance"], distances),
    )
    is_baseline = (table["tag_group"] == BASELINE).to_numpy()
    negative = np.array(
        [
            negative_attitude(_predictions(words, logprobs), ratings).negative
            for words, logprobs in zip(table["got_words"], table["got_logprobs"], strict=True)
        ]
    )
    shape = (len(options.templates), len(roster.wordings), len(distances))

    def arranged(values: Floats) -> Floats:
        placed = np.full(shape, np.nan)
        placed[tuple(place[~is_baseline] for place in places)] = values[~is_baseline]
        return placed

    baseline = np.full((shape[0], shape[2]), np.nan)
    baseline[places[0][is_baseline], places[2][is_baseline]] = negative[is_baseline]
    rated = _rated_words(table, ratings)
    return MaskedAnswers(
        plan=plan,
        roster=roster,
        distances=distances,
        negative=arranged(negative),
        baseline=baseline,
        masses={name: arranged(mass) for name, mass in _masses(rated, len(table)).items()},
        words=_offered_words(rated.filter(~pl.Series(is_baseline)[rated["prompt"]]), int((~is_baseline).sum())),
        left=left,
        drawn=tuple((int(at), each) for at, each in zip(places[1], drawn, strict=False) if at >= 0),
    )


def _chat_words(
    plan: Plan, records: Records, ratings: Mapping[str, str], columns: Sequence[str]
) -> tuple[pl.DataFrame, list[DrawnWords]]:
    """Return a chat model's words like those of a masked model, and what was drawn at each prompt.

    Its own probabilities of the first word where it gives them, else shares of the answers that are not refusals.
    """
    name = plan.model.name
    table = records.table(model=name, stage=WORDS, columns=(*columns, "tag_text", "got_texts"))
    known = [word for word, rating in ratings.items() if rating != "irrelevant"]
    drawn = [
        count_words(texts.to_list(), asked=text, words=known)
        for text, texts in zip(table["tag_text"], table["got_texts"], strict=True)
    ]
    if gives_probabilities(plan.model):
        given = records.table(model=name, stage=FIRST_WORDS, columns=(*columns, "got_words", "got_logprobs"))
        return _scored(given.with_columns(got_covered=pl.lit(1.0))), drawn
    words, logprobs = [], []
    for each in drawn:
        tried = each.draws - each.count("refusal")
        shares = {word: share * each.answered / tried for word, share in each.words.items()} if tried else {}
        words.append(list(shares))
        logprobs.append([math.log(share) for share in shares.values()])
    return table.with_columns(
        got_words=pl.Series(words, dtype=pl.List(pl.String)),
        got_logprobs=pl.Series(logprobs, dtype=pl.List(pl.Float64)),
    ), drawn


def _scored(table: pl.DataFrame) -> pl.DataFrame:
    """Return the answers of a causal model with the words that were scored only, and their part of 1.

    It answers with each word's share of the candidates: times what these hold after the left part, that is a part
    of all it would say.
    """
    covered = table["got_covered"].cast(pl.Float64).fill_null(math.nan).to_list()
    words, logprobs = [], []
    for listed, given, held in zip(table["got_words"], table["got_logprobs"], covered, strict=True):
        values = given.cast(pl.Float64).fill_null(math.nan).to_numpy()
        # a probability that is not a number, and not merely of a word left out, is missing
        known = ~np.isnan(values) if not np.isnan(values).all() else np.ones(len(values), dtype=np.bool_)
        of_one = math.log(held) if held > 0 else math.nan
        words.append(listed.filter(pl.Series(known)).to_list())
        logprobs.append((values[known] + of_one).tolist())
    return table.with_columns(
        got_words=pl.Series(words, dtype=pl.List(pl.String)),
        got_logprobs=pl.Series(logprobs, dtype=pl.List(pl.Float64)),
    )


def by_distance(values: Floats, roster: Roster) -> Floats:
    """Return what is found at each social distance alone.

    (models, templates, wordings, distances) -> (distances, conditions)
    """
    names = [each.condition for each in roster.wordings]
    return np.stack([overall_attitude(values[..., [d]], names).overall for d in range(values.shape[-1])])


def _places(tags: pl.Series, names: Sequence[str]) -> Ints:
    """Return the place of each tag among the names; −1 for the empty wording of a baseline."""
    place = {"": -1} | {name: at for at, name in enumerate(names)}
    return np.array([place[tag] for tag in tags], dtype=np.int64)


def _predictions(words: pl.Series, logprobs: pl.Series) -> list[tuple[str, float]]:
    return [
        (word, math.nan if logprob is None else math.exp(logprob))
        for word, logprob in zip(words.to_list(), logprobs.to_list(), strict=True)
    ]


def _rated_words(table: pl.DataFrame, ratings: Mapping[str, str]) -> pl.DataFrame:
    """Return one row for each word of each prompt: `prompt`, `word`, `probability`, `list`."""
    lengths = table["got_words"].list.len().to_numpy()
    words = table["got_words"].explode(empty_as_null=False).str.strip_chars().str.to_lowercase()
    logprobs = table["got_logprobs"].explode(empty_as_null=False).cast(pl.Float64).fill_null(math.nan)
    return pl.DataFrame(
        {"prompt": np.repeat(np.arange(len(table)), lengths), "word": words, "probability": logprobs.exp()}
    ).with_columns(list=pl.col("word").replace_strict(dict(ratings), default=UNRATED, return_dtype=pl.String))


def _masses(rated: pl.DataFrame, prompts: int) -> dict[str, Floats]:
    """Return the probability that each prompt gives to each list; NaN where a probability is missing."""
    masses: dict[str, Floats] = {}
    for name in LISTS:
        of_list = rated.filter(pl.col("list") == name)
        weights = of_list["probability"].to_numpy()
        masses[name] = np.bincount(of_list["prompt"], weights=weights, minlength=prompts).astype(np.float64)
    lost = rated.filter(pl.col("probability").is_nan())["prompt"].unique().to_numpy()
    for mass in masses.values():
        mass[lost] = np.nan
    return masses


def _offered_words(rated: pl.DataFrame, prompts: int) -> tuple[OfferedWord, ...]:
    found = (
        rated.filter(pl.col("probability").is_not_nan())
        .group_by("word", "list")
        .agg(pl.col("probability").sum(), pl.col("prompt").n_unique())
        .sort(["probability", "word"], descending=[True, False])
    )
    return tuple(
        OfferedWord(word=word, listed=listed, probability=probability / prompts, prompts=count)
        for word, listed, probability, count in found.iter_rows()
    )


# ---------------------------------------------------------------------------------------------------------
# Classifiers


def classifier_outcomes(plan: Plan, records: Records) -> ClassifierOutcomes:
    """Read the outcomes of one classifier: the most probable class of each sentence (§4.3)."""
    roster = Roster(wordings=plan.options.chosen_conditions())
    columns = ("tag_template", "tag_wording", "tag_group", *(f"got_{name}" for name in CLASSES))
    table = records.table(model=plan.model.name, stage=SENTENCES, columns=columns)
    one_hot, present = _most_probable(_probabilities(table))
    classes = tuple(name for name, there in zip((*CLASSES, UNDECIDED), present, strict=True) if there)
    templates = tuple(dict.fromkeys(table["tag_template"]))
    template = _places(table["tag_template"], templates)
    wording = _places(table["tag_wording"], [each.name for each in roster.wordings])
    is_baseline = (table["tag_group"] == BASELINE).to_numpy()
    outcomes = np.full((len(templates), len(roster.wordings), len(classes)), np.nan)
    outcomes[template[~is_baseline], wording[~is_baseline]] = one_hot[~is_baseline][:, present]
    baseline = np.full((len(templates), len(classes)), np.nan)
    baseline[template[is_baseline]] = one_hot[is_baseline][:, present]
    return ClassifierOutcomes(
        model=plan.model.name,
        rng=model_rng(plan.seed, plan.model.name),
        draws=plan.options.draws,
        roster=roster,
        templates=templates,
        classes=classes,
        outcomes=outcomes,
        baseline=baseline,
        sensed=_sensed(plan, records, classes),
    )


def _probabilities(table: pl.DataFrame) -> Floats:
    """Return the probability of each of the `CLASSES`, (sentences, classes)."""
    columns = [table[f"got_{name}"].cast(float).fill_null(np.nan).to_numpy() for name in CLASSES]
    return np.stack(columns, axis=1).astype(np.float64)


def _sensed(plan: Plan, records: Records, classes: Sequence[str]) -> dict[str, Floats]:
    """Return whether each statement of a plain sense was taken so.

    Where a classifier has no class "positive", a positive statement must not come out negative.
    """
    if not plan.options.chosen_prompts().checks:
        return {}
    columns = ("tag_sense", *(f"got_{name}" for name in CLASSES))
    table = records.table(model=plan.model.name, stage=CHECKS, columns=columns)
    one_hot, _ = _most_probable(_probabilities(table))
    negative, positive = (one_hot[:, CLASSES.index(name)] for name in ("negative", "positive"))
    right = {"positive": positive if "positive" in classes else 1.0 - negative, "negative": negative}
    return {sense: right[sense][(table["tag_sense"] == sense).to_numpy()] for sense in right}


def _most_probable(probabilities: Floats) -> tuple[Floats, Bools]:
    """Return the outcome of each sentence as 0 and 1 over the classes and "undecided", and which of these exist.

    A class that a classifier does not have (of two classes, or mapped to two) is NaN in every answer. A sentence
    without any probability is missing.
    """
    missing = np.isnan(probabilities).all(axis=1)
    filled = np.where(np.isnan(probabilities), -1.0, probabilities)
    best = filled.max(axis=1, keepdims=True)
    is_best = filled == best
    tied = is_best.sum(axis=1) > 1
    one_hot: Floats = np.concatenate([is_best & ~tied[:, None], tied[:, None]], axis=1).astype(np.float64)
    one_hot[missing] = np.nan
    has = [not np.isnan(column).all() for column in probabilities.T]
    has[CLASSES.index("negative")] = True  # what is asked about: never, where a classifier has no such class
    return one_hot, np.array([*has, bool((tied & ~missing).any())])


# ---------------------------------------------------------------------------------------------------------
# Chat models


def chat_answers(plan: Plan, records: Records) -> ChatAnswers:
    """Read the answers of one chat model."""
    options = plan.options
    roster = Roster(wordings=chat_conditions(plan))
    scale = options.chosen_prompts().questions[0].options
    readings = (*scale, REFUSAL, UNCLEAR)
    columns = ("tag_distance", "tag_wording", "tag_group", "got_texts")
    table = records.table(model=plan.model.name, stage=SCALE, columns=columns)
    distance = _places(table["tag_distance"], options.distances)
    wording = _places(table["tag_wording"], [each.name for each in roster.wordings])
    counts = np.zeros((len(roster.wordings), len(options.distances), len(readings)))
    at_baseline = np.zeros(counts.shape[1:])
    for d, w, group, texts in zip(distance, wording, table["tag_group"], table["got_texts"], strict=True):
        into = at_baseline[d] if group == BASELINE else counts[w, d]
        for text in texts:
            read = read_answer(text, scale)
            into[read if isinstance(read, int) else readings.index(read)] += 1
    scores = _mean_scores(counts, len(scale))[None, None]  # one model, one template
    return ChatAnswers(
        model=plan.model.name,
        rng=model_rng(plan.seed, plan.model.name),
        draws=options.draws,
        roster=roster,
        readings=readings,
        counts=counts,
        baseline=_mean_scores(at_baseline, len(scale)),
        by_distance=by_distance(scores, roster),
        overall=overall_attitude(scores, [each.condition for each in roster.wordings]).overall,
    )


def asks_choices(plan: Plan) -> bool:
    """Tell whether a model is asked the user's questions: a chat model, where there are any."""
    return "ask" in plan.model.capabilities and bool(plan.options.questions_file)


def _chosen(plan: Plan, records: Records) -> ChoiceCounts:
    table = records.table(model=plan.model.name, stage=CHOICES, columns=("got_texts",))
    return read_choices(
        plan.model.name, plan.options.chosen_choices(), [texts.to_list() for texts in table["got_texts"]]
    )


def _mean_scores(counts: Floats, options: int) -> Floats:
    """Return the mean score of the answers on the scale, (..., readings) -> (...); NaN where there is none."""
    on_scale = counts[..., :options]
    answered = on_scale.sum(axis=-1)
    total = on_scale @ np.arange(options, dtype=np.float64)
    means: Floats = np.divide(total, answered, out=np.full(answered.shape, np.nan), where=answered > 0)
    return means
