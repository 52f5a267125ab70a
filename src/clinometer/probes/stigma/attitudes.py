"""What the blanks of masked models say: the negative attitude of every prompt, and what it leaves unread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clinometer.metrics import negative_attitude, overall_attitude
from clinometer.metrics.attitude import ATTITUDES, RATINGS, Floats, present_mean
from clinometer.probes.kit.before_after import pairs_of
from clinometer.probes.kit.numbers import model_rng
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.stigma.options import Options
from clinometer.probes.stigma.prompts import BASELINE
from clinometer.probes.stigma.roster import Roster, roster_of

ALL_MASKED = "all masked models"
UNRATED = "unrated"
LISTS = (*RATINGS, UNRATED)

_COLUMNS = ("tag_template", "tag_distance", "tag_wording", "tag_group", "got_words", "got_logprobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedView:
    """Negative attitude of one masked model, or of all together, ready to be summarised."""

    model: str
    tuned: bool  # it began with another model of the run
    rng: np.random.Generator
    draws: int
    roster: Roster
    templates: tuple[str, ...]
    distances: tuple[str, ...]
    by_template: Floats  # (templates, conditions)
    by_distance: Floats  # (distances, conditions)
    overall: Floats  # (conditions,)
    baseline: Floats  # (templates, distances)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """One word that a model offered at prompts about a condition."""

    word: str
    listed: str  # its rating, or "unrated"
    probability: float  # mean over those prompts; 0 where the word is not among those read
    prompts: int  # that offer it


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedAnswers:
    """The answers of one masked model, prompt by prompt; NaN is missing."""

    model: str
    negative: Floats  # (templates, wordings, distances)
    baseline: Floats  # (templates, distances)
    masses: Mapping[str, Floats]  # list -> probability of its words, (templates, wordings, distances)
    words: tuple[Offered, ...]  # most probable first

    @property
    def coverage(self) -> Floats:
        """Probability, of 1, that stands in the ratio of each prompt."""
        covered: Floats = np.sum([self.masses[name] for name in ATTITUDES], axis=0)
        return covered


def masked_answers(plan: Plan, records: Records, ratings: Mapping[str, str]) -> MaskedAnswers:
    """Read and rate the answers of one model."""
    options: Options = plan.options
    roster = roster_of(options.chosen_conditions())
    table = records.table(model=plan.model.name, stage="attitudes", columns=_COLUMNS)
    places = (
        _numbers(table["tag_template"], options.templates),
        _numbers(table["tag_wording"], [each.name for each in roster.wordings]),
        _numbers(table["tag_distance"], options.distances),
    )
    is_baseline = (table["tag_group"] == BASELINE).to_numpy()
    negative = np.array(
        [
            negative_attitude(_predictions(words, logprobs), ratings).negative
            for words, logprobs in zip(table["got_words"], table["got_logprobs"], strict=True)
        ]
    )
    shape = (len(options.templates), len(roster.wordings), len(options.distances))

    def arranged(values: Floats) -> Floats:
        placed = np.full(shape, np.nan)
        placed[tuple(place[~is_baseline] for place in places)] = values[~is_baseline]
        return placed

    baseline = np.full((shape[0], shape[2]), np.nan)
    baseline[places[0][is_baseline], places[2][is_baseline]] = negative[is_baseline]
    rated = _rated_words(table, ratings)
    return MaskedAnswers(
        model=plan.model.name,
        negative=arranged(negative),
        baseline=baseline,
        masses={name: arranged(mass) for name, mass in _masses(rated, len(table)).items()},
        words=_offered(rated.filter(~pl.Series(is_baseline)[rated["prompt"]]), int((~is_baseline).sum())),
    )


def masked_views(plans: Sequence[Plan], answers: Sequence[MaskedAnswers]) -> tuple[MaskedView, ...]:
    """Return one view for each model; where there are several, the mean of all before them.

    A checkpoint is not counted in that mean beside its base: it is the same model once more.
    """
    tuned = {pair.after for pair in pairs_of([plan.model for plan in plans])}
    views = [
        _view(plan, each.model, each.negative[None], each.baseline, tuned=i in tuned)
        for i, (plan, each) in enumerate(zip(plans, answers, strict=True))
    ]
    counted = [each for i, each in enumerate(answers) if i not in tuned]
    if len(counted) < 2:
        return tuple(views)
    everything = np.stack([each.negative for each in counted])
    baseline = present_mean(np.stack([each.baseline for each in counted]), axis=0)
    return (_view(plans[0], ALL_MASKED, everything, baseline, tuned=False), *views)


def _view(plan: Plan, model: str, negative: Floats, baseline: Floats, *, tuned: bool) -> MaskedView:
    """Aggregate (models, templates, wordings, distances) in the paper's order."""
    options: Options = plan.options
    roster = roster_of(options.chosen_conditions())
    names = [each.condition for each in roster.wordings]
    found = overall_attitude(negative, names)
    by_distance = [overall_attitude(negative[..., [d]], names).overall for d in range(negative.shape[-1])]
    return MaskedView(
        model=model,
        tuned=tuned,
        rng=model_rng(plan.seed, model),
        draws=options.draws,
        roster=roster,
        templates=options.templates,
        distances=options.distances,
        by_template=present_mean(found.by_template, axis=0),
        by_distance=np.stack(by_distance),
        overall=found.overall,
        baseline=baseline,
    )


def _numbers(tags: pl.Series, names: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the place of each tag among the names; −1 for none of them (the wording of a baseline)."""
    place = {name: at for at, name in enumerate(names)}
    return np.array([place.get(tag, -1) for tag in tags], dtype=np.int64)


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


def _offered(rated: pl.DataFrame, prompts: int) -> tuple[Offered, ...]:
    found = (
        rated.filter(pl.col("probability").is_not_nan())
        .group_by("word", "list")
        .agg(pl.col("probability").sum(), pl.col("prompt").n_unique())
        .sort(["probability", "word"], descending=[True, False])
    )
    return tuple(
        Offered(word=word, listed=listed, probability=probability / prompts, prompts=count)
        for word, listed, probability, count in found.iter_rows()
    )
