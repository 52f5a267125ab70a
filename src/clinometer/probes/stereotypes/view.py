"""What all finding tables of one model share: its attributes by group, and their emotions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clinometer.data.emotions import EmotionLexicon
from clinometer.data.social_groups import Group
from clinometer.metrics import emotion_profile
from clinometer.probes.kit.numbers import Floats, Ints, model_rng
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.stereotypes.answers import Answers, read_answers
from clinometer.probes.stereotypes.options import Options
from clinometer.probes.stereotypes.questions import Question

ALL = "all"  # in the place of a category


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The answers of one model, ready to be summarised. Groups are numbered in the order asked."""

    plan: Plan
    options: Options
    questions: tuple[Question, ...]
    groups: tuple[Group, ...]
    answers: Answers
    lists: pl.DataFrame  # group, word, typicality, probability: over the templates of a group, most typical first
    profile_words: tuple[tuple[str, ...], ...]  # of each group: the distinct attributes of its profile
    lexicon: EmotionLexicon
    vectors: Floats  # (groups, emotions)
    covered: Ints  # (groups,): words of the profile that are in the lexicon
    rng: np.random.Generator

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.plan.model.name

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories of the groups, in the order asked."""
        return tuple(dict.fromkeys(group.category for group in self.groups))

    def members(self, category: str) -> NDArray[np.int64]:
        """Return the numbers of the groups of a category."""
        return np.array([i for i, group in enumerate(self.groups) if category in (ALL, group.category)], np.int64)


def view_model(
    plan: Plan,
    records: Records,
    questions: tuple[Question, ...],
    groups: tuple[Group, ...],
    lexicon: EmotionLexicon,
) -> View:
    """Read the answers of one model and put them together by group."""
    options: Options = plan.options
    answers = read_answers(plan, records)
    by_group = attributes_by_group(answers.attributes, questions, groups)
    profile_words = _profile_words(by_group, groups=len(groups), k=options.profile_k)
    found = [emotion_profile(words, lexicon.words, emotions=options.emotion_names) for words in profile_words]
    return View(
        plan=plan,
        options=options,
        questions=questions,
        groups=groups,
        answers=answers,
        lists=_lists(by_group, _templates_asked(questions)),
        profile_words=profile_words,
        lexicon=lexicon,
        vectors=np.array([profile.vector for profile in found]),
        covered=np.array([profile.covered for profile in found], dtype=np.int64),
        rng=model_rng(plan.seed, plan.model.name),
    )


def attributes_by_group(
    attributes: pl.DataFrame, questions: tuple[Question, ...], groups: tuple[Group, ...]
) -> pl.DataFrame:
    """Return the attributes that the templates brought up, with the number of their `group`."""
    number = {group.name: i for i, group in enumerate(groups)}
    of_template = [
        {"index": i, "group": number[question.group.name]}
        for i, question in enumerate(questions)
        if question.origin == "template"
    ]
    where = pl.DataFrame(of_template, schema={"index": pl.Int64, "group": pl.Int64})
    return attributes.join(where, on="index", how="inner", maintain_order="left")


def _templates_asked(questions: tuple[Question, ...]) -> pl.DataFrame:
    counts: dict[str, int] = {}
    for question in questions:
        if question.origin == "template":
            counts[question.group.name] = counts.get(question.group.name, 0) + 1
    # every group has a template, so that they come in the order of their numbers
    return pl.DataFrame(
        {"group": list(range(len(counts))), "templates": list(counts.values())},
        schema={"group": pl.Int64, "templates": pl.Int64},
    )


def _lists(by_group: pl.DataFrame, templates: pl.DataFrame) -> pl.DataFrame:
    """Return one list for each group: means over its templates; one that does not offer a word counts as 0."""
    sums = by_group.group_by("group", "word", maintain_order=True).agg(
        typicality=pl.when(pl.col("typicality").is_not_nan().any()).then(pl.col("typicality").fill_nan(0.0).sum()),
        probability=pl.col("logprob").exp().sum(),
    )
    return (
        sums.join(templates, on="group", how="left", maintain_order="left")
        .with_columns(pl.col("typicality", "probability") / pl.col("templates"))
        .drop("templates")
        .sort(["group", "typicality", "word"], descending=[False, True, False], nulls_last=True)
    )


def _profile_words(by_group: pl.DataFrame, *, groups: int, k: int) -> tuple[tuple[str, ...], ...]:
    chosen = by_group.filter(pl.col("after") <= k).group_by("group").agg(pl.col("word").unique().sort())
    words: Mapping[int, list[str]] = dict(chosen.iter_rows())
    return tuple(tuple(words.get(i, ())) for i in range(groups))
