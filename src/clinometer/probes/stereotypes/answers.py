"""What one model offered: the attributes of every question and group, how typical they are, and their emotions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clinometer.data.stereotypes_data import EmotionLexicon, Group
from clinometer.metrics import emotion_profile, typicality
from clinometer.probes.kit import Floats, Ints, model_rng
from clinometer.probes.kit.chat import DrawnWords, count_words, failed_to_answer
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.stereotypes.options import Options
from clinometer.probes.stereotypes.questions import (
    DRAWN,
    EVERYONE,
    Question,
    asked_of,
    before_blank,
    is_attribute,
    is_chat,
    is_drawn,
    is_piece,
    is_word,
    prior_keys,
)

ALL = "all"  # in the place of a category
# Share of the words offered that the lexicon has, below which nothing is concluded: of 60 random models each with
# small, large and very large weights, none offered more than 0.33 (0.16 without the words that have no emotion).
KNOWN_SHARE = {"complete": 0.4, "emotional": 0.25}
# What random words have, and by how many standard errors more a model's different words must have: a random model
# that offers the same five words for every group may well have two that are known.
RANDOM_SHARE = {"complete": 0.30, "emotional": 0.14}
BEYOND_CHANCE = 3.6
GATE_WORDS = 200  # of a list whose words must be known: beyond them, lists of good models are of no use either


@dataclass(frozen=True, slots=True, kw_only=True)
class WordCounts:
    """What became of the words that were offered, over all questions."""

    offered: int
    pieces: int  # pieces of words
    others: int  # numbers, marks, single letters
    without_prior: int  # of the words kept: no prior, so no typicality
    missing: int  # probabilities that are not numbers
    first: int  # of the first words at the templates …
    known: int  # … those that the emotion lexicon has: how well the model understands what it is asked for
    different: int  # of the first words, and of these …
    different_known: int  # … those that the lexicon has


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswers:
    """The answers of one model, by question and by group. Groups are numbered in the order asked.

    `attributes` has a row for each question and distinct word (in lower case): `index` of the question, `group`
    (its number; null for a prompt of the data set), `word`, `logprob`, `typicality` (NaN: unknown), and the word's
    position from 1 on: `before`, by probability, and `after`, by typicality, where unknown ones come last; `raw`:
    how the model spelled it.
    """

    plan: Plan
    questions: tuple[Question, ...]
    groups: tuple[Group, ...]
    attributes: pl.DataFrame
    counts: WordCounts
    lists: pl.DataFrame  # group, word, typicality, probability: means over a group's templates, most typical first
    # of each group: the attributes of its profile, distinct or (emotions = "published") once for each spelling
    profile_words: tuple[tuple[str, ...], ...]
    lexicon: EmotionLexicon
    profiles: Floats  # (groups, emotions)
    covered: Ints  # (groups,): how many words of the profile are in the lexicon
    drawn: tuple[DrawnWords, ...]  # of a chat model, for each question; else none
    rng: np.random.Generator

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.plan.model.name

    @property
    def options(self) -> Options:
        """The options of the audit."""
        options: Options = self.plan.options
        return options

    @property
    def gate(self) -> str:
        """Why nothing can be concluded from the answers of this model; "" if it understands the questions."""
        if self.drawn and (silent := failed_to_answer(self.drawn)):
            return silent
        which = "complete" if self.lexicon.complete else "emotional"
        counts, needed = self.counts, KNOWN_SHARE[which]
        share = counts.known / counts.first if counts.first else 0.0
        if share < needed:
            return f"only {share:.0%} of the words it offers are in the emotion lexicon ({needed:.0%} are needed)"
        random = RANDOM_SHARE[which]
        beyond = random + BEYOND_CHANCE * (random * (1 - random) / counts.different) ** 0.5
        if counts.different_known < beyond * counts.different:
            return (
                f"it offers only {counts.different} different words, {counts.different_known} of them in the "
                "emotion lexicon, as random words might be (ask for more with top_k)"
            )
        return ""

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories of the groups, in the order asked."""
        return tuple(dict.fromkeys(group.category for group in self.groups))

    def members(self, category: str) -> Ints:
        """Return the numbers of the groups of a category."""
        return np.array([i for i, group in enumerate(self.groups) if category in (ALL, group.category)], np.int64)


def with_all(categories: tuple[str, ...]) -> tuple[str, ...]:
    """Return "all" and the categories; a single category is already all.

    >>> with_all(("age", "gender")), with_all(("age",))
    (('all', 'age', 'gender'), ('age',))
    """
    return (ALL, *categories) if len(categories) > 1 else categories


def read_answers(
    plan: Plan, records: Records, questions: tuple[Question, ...], lexicon: EmotionLexicon
) -> ModelAnswers:
    """Read the records of both stages, re-rank each question's words and collect them by group."""
    options: Options = plan.options
    groups = tuple(dict.fromkeys(question.group for question in questions))
    drawn = _drawn(plan, records) if is_chat(plan.model) else ()
    offered = _offered_answers(drawn) if is_drawn(plan.model) else _offered(plan, records)
    kept = offered.filter(_known() & is_attribute(pl.col("raw"), options))
    rated = _with_typicality(kept, plan, records, questions)
    attributes = _ranked(rated).join(
        _group_numbers(questions, groups), on="index", how="left", maintain_order="left"
    )
    by_group = attributes.filter(pl.col("group").is_not_null())
    distinct = options.emotions == "paper"
    profile_words = _profile_words(by_group, groups=len(groups), k=options.profile_k, distinct=distinct)
    profiles = [
        emotion_profile(words, lexicon.words, emotions=options.emotion_names, distinct=distinct)
        for words in profile_words
    ]
    return ModelAnswers(
        plan=plan,
        questions=questions,
        groups=groups,
        attributes=attributes,
        counts=_word_counts(offered, rated, lexicon, _group_numbers(questions, groups)),
        lists=_group_lists(by_group, _group_numbers(questions, groups)),
        profile_words=profile_words,
        lexicon=lexicon,
        profiles=np.array([profile.vector for profile in profiles]),
        covered=np.array([profile.covered for profile in profiles], dtype=np.int64),
        drawn=drawn,
        rng=model_rng(plan.seed, plan.model.name),
    )


def _offered(plan: Plan, records: Records) -> pl.DataFrame:
    """Return `index`, `raw` (the word as the model writes it) and `logprob`."""
    table = records.table(model=plan.model.name, stage="posterior", columns=["index", "got_words", "got_logprobs"])
    offered = table.explode("got_words", "got_logprobs").select(
        pl.col("index").cast(pl.Int64), raw="got_words", logprob=pl.col("got_logprobs").cast(pl.Float64)
    )
    offered = offered.filter(pl.col("raw").is_not_null())  # a question without any answer
    if plan.options.posterior == "top-k":
        top = pl.col("logprob").max()
        log_total = top + (pl.col("logprob") - top).exp().sum().log()
        offered = offered.with_columns(logprob=pl.col("logprob") - log_total.over("index"))
    return offered


def _drawn(plan: Plan, records: Records) -> tuple[DrawnWords, ...]:
    table = records.table(model=plan.model.name, stage=DRAWN, columns=["got_texts"])
    asked = [before_blank(question.text) for question in asked_of(plan)]
    return tuple(
        count_words(texts.to_list(), asked=text) for text, texts in zip(asked, table["got_texts"], strict=True)
    )


def _offered_answers(drawn: Sequence[DrawnWords]) -> pl.DataFrame:
    """Return what was offered as shares of the answers with a word."""
    rows = [
        (index, word, float(np.log(share)))
        for index, each in enumerate(drawn)
        for word, share in each.words.items()
    ]
    schema = {"index": pl.Int64, "raw": pl.String, "logprob": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _known() -> pl.Expr:
    return pl.col("logprob").is_not_nan() & pl.col("logprob").is_not_null()


def _word_counts(
    offered: pl.DataFrame, rated: pl.DataFrame, lexicon: EmotionLexicon, of_templates: pl.DataFrame
) -> WordCounts:
    raw = pl.col("raw")
    asked = offered.join(of_templates, on="index", how="semi", maintain_order="left")
    likely = asked.filter(pl.col("logprob").rank("ordinal", descending=True).over("index") <= GATE_WORDS)
    word = raw.str.strip_chars().str.to_lowercase()
    known, different = word.is_in(list(lexicon.words)), likely.select(word.unique())["raw"]
    return WordCounts(
        offered=len(offered),
        pieces=offered.select(is_piece(raw).sum()).item(),
        others=offered.select((~is_piece(raw) & ~is_word(raw)).sum()).item(),
        without_prior=rated.select(pl.col("typicality").is_nan().sum()).item(),
        missing=offered.select((~_known()).sum()).item(),
        first=len(likely),
        known=likely.select(known.sum()).item(),
        different=len(different),
        different_known=int(different.is_in(list(lexicon.words)).sum()),
    )


def _with_typicality(
    kept: pl.DataFrame, plan: Plan, records: Records, questions: tuple[Question, ...]
) -> pl.DataFrame:
    columns = ["tag_template", "tag_hidden", "got_words", "got_logprobs"]
    keyed = kept.join(prior_keys(questions, plan), on="index", how="left", maintain_order="left")
    if is_drawn(plan.model):  # the mean over groups of what they were answered, 0 where a word did not come
        texts = records.table(model=plan.model.name, stage=DRAWN, columns=["got_texts"])["got_texts"]
        there = (texts.list.len() > 0).to_list()  # of a file of answers, some may be missing
        asked = prior_keys(questions, plan).filter(there).group_by("template").len("asked")
        shares = keyed.group_by("template", "raw", maintain_order=True).agg(pl.col("logprob").exp().sum())
        means = shares.join(asked, on="template").with_columns(prior=(pl.col("logprob") / pl.col("asked")).log())
        rated = keyed.join(
            means.select("template", "raw", "prior"), on=["template", "raw"], how="left", maintain_order="left"
        )
        return kept.with_columns(typicality=rated["logprob"] - rated["prior"])
    priors = records.table(model=plan.model.name, stage="prior", columns=columns)
    rated = keyed.join(
        _means_over_groups(priors.explode("got_words", "got_logprobs")),
        left_on=["template", "hidden", "raw"],
        right_on=["tag_template", "tag_hidden", "got_words"],
        how="left",
        maintain_order="left",
    )
    prior = rated["got_logprobs"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return kept.with_columns(typicality=pl.Series(typicality(kept["logprob"].to_numpy(), prior)))


def _means_over_groups(priors: pl.DataFrame) -> pl.DataFrame:
    """Return the priors with one row for a word where it was asked for every group: the mean probability."""
    of_all = pl.col("tag_hidden") == EVERYONE
    if not len(priors.filter(of_all)):
        return priors
    keys = ["tag_template", "tag_hidden", "got_words"]
    logprob = pl.col("got_logprobs").cast(pl.Float64)
    means = priors.filter(of_all).group_by(keys, maintain_order=True).agg(logprob.exp().mean().log())
    return pl.concat([priors.filter(~of_all).with_columns(logprob), means.select(priors.columns)])


def _ranked(rated: pl.DataFrame) -> pl.DataFrame:
    """Join the spellings of a word within each question, and number the words in both orders."""
    joined = (
        rated.with_columns(word=pl.col("raw").str.strip_chars().str.to_lowercase())
        .group_by("index", "word", maintain_order=True)
        .agg(pl.col("logprob").max(), pl.col("typicality").fill_nan(None).max().fill_null(np.nan), pl.col("raw"))
    )
    position = pl.int_range(1, pl.len() + 1).over("index")
    by_probability = joined.sort(["index", "logprob"], descending=[False, True], maintain_order=True)
    return (
        by_probability.with_columns(before=position, known=pl.col("typicality").fill_nan(None))
        .sort(["index", "known"], descending=[False, True], nulls_last=True, maintain_order=True)
        .with_columns(after=position)
        .drop("known")
    )


def _group_numbers(questions: tuple[Question, ...], groups: tuple[Group, ...]) -> pl.DataFrame:
    """Return `index` and `group` of the questions that are templates."""
    number = {group: i for i, group in enumerate(groups)}
    of_template = [(i, number[each.group]) for i, each in enumerate(questions) if each.origin == "template"]
    return pl.DataFrame(of_template, schema={"index": pl.Int64, "group": pl.Int64}, orient="row")


def _group_lists(by_group: pl.DataFrame, group_numbers: pl.DataFrame) -> pl.DataFrame:
    """Return a list for each group: means over its templates; a template without the word counts as 0."""
    sums = by_group.group_by("group", "word", maintain_order=True).agg(
        typicality=pl.when(pl.col("typicality").is_not_nan().any()).then(pl.col("typicality").fill_nan(0.0).sum()),
        probability=pl.col("logprob").exp().sum(),
    )
    return (
        sums.join(group_numbers.group_by("group").len("templates"), on="group", how="left", maintain_order="left")
        .with_columns(pl.col("typicality", "probability") / pl.col("templates"))
        .drop("templates")
        .sort(["group", "typicality", "word"], descending=[False, True, False], nulls_last=True)
    )


def _profile_words(by_group: pl.DataFrame, *, groups: int, k: int, distinct: bool) -> tuple[tuple[str, ...], ...]:
    chosen = by_group.filter(pl.col("after") <= k)
    if distinct:
        chosen = chosen.unique(["group", "word"])
    else:
        spelled = chosen.explode("raw").with_columns(pl.col("raw").str.strip_chars())
        chosen = spelled.unique(["group", "raw"])
    words: dict[int, list[str]] = dict(chosen.group_by("group").agg(pl.col("word").sort()).iter_rows())
    return tuple(tuple(words.get(i, ())) for i in range(groups))
