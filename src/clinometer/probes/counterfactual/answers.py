"""The answers about one model as arrays: texts, scores, similarities, counts, and what people said."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clinometer.data import find_values
from clinometer.metrics import mentions, mentions_share
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.questions import (
    OUTPUTS,
    PERPLEXITY,
    PLAIN,
    PREFIX,
    SENTIMENT,
    AskedAttribute,
    Ratings,
    asked_attributes,
    asks_perplexity,
    continuations,
    embeddings_stage,
    on_one_line,
    refusals,
    scores_stage,
    stages,
)
from clinometer.probes.kit import Floats, Ints, percent
from clinometer.probes.kit.chat import OUTCOMES
from clinometer.probes.kit.refusals import Asked
from clinometer.probes.protocol import Plan, Records
from clinometer.stats import share_interval

Bools = NDArray[np.bool_]

OPINION_WORDS = "opinion-words"  # the family of scorers that can tell when a text has no opinion word
SIMILAR, MENTIONS = "S.S.", "S.S.c"
WHOLE = "whole text"
_WORD = r"\w+(?:['’-]\w+)*"
# The share of texts on topic below which nothing is concluded. The built-in model has 0.17 to 0.22 by S.S. and
# 0.16 to 0.22 by S.S.c, the paper's own 0.14 and more, its example of irrelevant text (appendix C.6) 0.049 and
# 0.011. Random tokens have at most 0.002 and 0.000; random words from texts about these very values at most 0.010
# and 0.029: of 64 texts, the fewest of any profile, they have the 7 that a lower limit of 0.05 takes in 0.3 % of
# runs.
ON_TOPIC = 0.05

FEWEST_RATED = 5  # sentences of a value in a template, for I.F. from human scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What one scorer makes of the texts."""

    scorer: str
    values: Floats  # (prefixes, samples) in [0, 1]; NaN: nothing was written
    without_opinion: float  # share of texts without an opinion word; NaN where the scorer cannot tell

    def of(self, asked: AskedAttribute) -> Floats:
        """Return the scores of one attribute, templates × values × samples."""
        return self.values[asked.numbers.start : asked.numbers.stop].reshape(*asked.shape, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarities:
    """How near continuations are to their prefixes, as one encoder sees it; a row for each that was asked."""

    encoder: str
    prefix: Ints
    sample: Ints
    cosine: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceCounts:
    """How many continuations of each prefix are similar to it, or mention its value."""

    asked: AskedAttribute
    measure: str
    by: str  # the encoder, or how mentions are found
    hits: Floats  # templates × values
    texts: Floats  # templates × values: how many were looked at

    @property
    def share(self) -> float:
        """The share of all continuations; NaN where there is none."""
        return float(self.hits.sum() / self.texts.sum()) if self.texts.sum() else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageScores:
    """How probable the passages of the held-out text are to one model."""

    sums: Floats  # (passages, 2): log-probability and tokens
    parts: Mapping[str, Bools]  # whole text, passages about an attribute -> which passages


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedSentences:
    """Generated sentences that people judged; one that was written twice counts once."""

    sentences: Sequence[str]
    prefix: list[int]
    sample: list[int]
    texts: Sequence[str]
    human: Floats  # mean over raters; NaN: dropped

    def scores_of(self, asked: AskedAttribute) -> Floats:
        """Return human scores, templates × values × samples, of the templates that have enough to compare.

        A value with too few sentences in a template is missing there; two or more must have enough.
        """
        cells: list[list[float]] = [[] for _ in asked.numbers]
        for prefix, score in zip(self.prefix, self.human.tolist(), strict=True):
            if prefix in asked.numbers and not math.isnan(score):
                cells[prefix - asked.first].append(score)
        cells = [cell if len(cell) >= FEWEST_RATED else [] for cell in cells]
        longest = max(1, *map(len, cells))
        scores = np.array([cell + [math.nan] * (longest - len(cell)) for cell in cells])
        scores = scores.reshape(*asked.shape, longest)
        enough: Floats = scores[(~np.isnan(scores[:, :, 0])).sum(axis=1) >= 2]
        return enough


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswers:
    """All that was answered about one model."""

    model: str
    options: Options
    seed: int
    attributes: tuple[AskedAttribute, ...]
    texts: pl.DataFrame  # prefix, sample, beginning, text
    scores: tuple[Scores, ...]
    similarities: tuple[Similarities, ...] = ()
    relevance: tuple[RelevanceCounts, ...] = ()
    passages: PassageScores | None = None  # None where perplexity was not asked
    outputs: Floats | None = None  # (prefixes, compared samples, dimensions) of neutralised texts; None: not asked

    def word_counts(self, asked: AskedAttribute, values: Collection[str]) -> dict[str, dict[str, int]]:
        """Count the words in the texts about some values of an attribute."""
        number, texts = _written(self.texts, asked)
        counts = {}
        for at, value in enumerate(asked.values):
            if value in values:
                mine = texts.filter(number % len(asked.values) == at).str.to_lowercase()
                words = mine.str.extract_all(_WORD).explode().drop_nulls().value_counts(name="times")
                counts[value] = dict(words.iter_rows())
        return counts

    def rated(self, ratings: Ratings) -> RatedSentences:
        """Find the rated sentences among what the model wrote."""
        found: dict[str, tuple[int, int, str]] = {}
        for prefix, sample, beginning, text in self.texts.iter_rows():
            sentence = on_one_line(beginning + text)
            if sentence in ratings.sentences:
                found.setdefault(sentence, (prefix, sample, text))
        return RatedSentences(
            sentences=tuple(found),
            prefix=[prefix for prefix, _, _ in found.values()],
            sample=[sample for _, sample, _ in found.values()],
            texts=[text for _, _, text in found.values()],
            human=np.array([ratings.score(sentence) for sentence in found], dtype=np.float64),
        )

    def automatic(self, question: str, rated: RatedSentences) -> dict[str, Floats]:
        """Return what is measured of each rated sentence: its sentiment by each scorer, or its relevance.

        Relevance is the cosine by each encoder, and whether the value is mentioned.
        """
        if question == SENTIMENT:
            return {each.scorer: each.values[rated.prefix, rated.sample] for each in self.scores}
        found = {}
        for each in self.similarities:
            places = zip(each.prefix.tolist(), each.sample.tolist(), strict=True)
            cosine = dict(zip(places, each.cosine.tolist(), strict=True))
            wanted = zip(rated.prefix, rated.sample, strict=True)
            found[f"{SIMILAR} ({each.encoder})"] = np.array([cosine.get(place, math.nan) for place in wanted])
        tokens = {
            prefix.number: tuple(prefix.value.sensitive_tokens.values())
            for asked in self.attributes
            for prefix in asked.prefixes
        }
        mentioned = [
            mentions_share([text], tokens[at]) for at, text in zip(rated.prefix, rated.texts, strict=True)
        ]
        return {**found, MENTIONS: np.array(mentioned)}


def read_answers(plan: Plan, records: Records, way: str = "") -> ModelAnswers:
    """Read the answers about one model, by one way to ask it."""
    options: Options = plan.options
    attributes = asked_attributes(options, seed=plan.seed)
    shape = (attributes[-1].numbers.stop, options.samples)
    texts = pl.concat(list(continuations(plan, records, way)))
    written = bool((texts["text"].str.strip_chars() != "").any())
    similarities = tuple(
        _similarities(plan, records, way, number) for number, _ in enumerate(plan.roles["encoder"])
    )
    return ModelAnswers(
        model=name_of(plan, way),
        options=options,
        seed=plan.seed,
        attributes=attributes,
        texts=texts,
        scores=tuple(
            _scores(plan, records, way, number, shape, written=written)
            for number, _ in enumerate(plan.roles["scorer"])
        ),
        similarities=similarities,
        relevance=tuple(
            counts
            for asked in attributes
            for counts in (*(_similar(each, asked, options) for each in similarities), _mentioned(texts, asked))
        ),
        passages=_passages(plan, records, attributes) if asks_perplexity(plan) else None,
        outputs=_outputs(plan, records, way, shape[0]) if written else None,
    )


def name_of(plan: Plan, way: str) -> str:
    """Return what a model is called by the way it was asked: the first way needs no name."""
    return f"{plan.model.name} (plain prompt)" if way == PLAIN else plan.model.name


def refusals_of(plan: Plan, records: Records, way: str) -> dict[str, Asked]:
    """Return how often a chat model refuses, for each attribute: by subgroup, or by value."""
    attributes = asked_attributes(plan.options, seed=plan.seed)
    outcomes = np.zeros((attributes[-1].numbers.stop, len(OUTCOMES)), dtype=np.int64)
    for prefix, counts in refusals(plan, records, way):
        outcomes[prefix] += np.array(counts)
    return {
        asked.name: Asked(
            model=name_of(plan, way),
            groups=tuple(prefix.value.subgroup or prefix.value.text for prefix in asked.prefixes),
            units=tuple(prefix.text for prefix in asked.prefixes),
            outcomes=outcomes[asked.numbers.start : asked.numbers.stop],
        )
        for asked in attributes
    }


def score_of(table: pl.DataFrame) -> Floats:
    r"""Return the score of each answer of a classifier, from 0 (negative) to 1 (positive).

    .. math:: s = \frac{p_+ + p_0 / 2}{p_+ + p_0 + p_-}

    Without a neutral class that is the positive probability; for opinion words p/(p + n), and 0.5 without any.
    """
    negative, neutral, positive = (
        table[f"got_{name}"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        for name in ("negative", "neutral", "positive")
    )
    neutral = np.nan_to_num(neutral)
    with np.errstate(invalid="ignore"):
        score: Floats = (positive + neutral / 2) / (positive + neutral + negative)
    return score


def _scores(
    plan: Plan, records: Records, way: str, number: int, shape: tuple[int, int], *, written: bool
) -> Scores:
    """Read the scores of one scorer."""
    found = np.full(shape, np.nan)
    silent = asked = 0
    columns = ("tag_prefix", "tag_sample", "got_negative", "got_neutral", "got_positive")
    batches = records.batches(model=plan.model.name, stage=f"{way}{scores_stage(number)}", columns=columns)
    # where nothing at all was written, the scorer was asked nothing and has no records
    for table in batches if written else ():
        found[table["tag_prefix"].to_numpy(), table["tag_sample"].to_numpy()] = score_of(table)
        silent += int((table["got_neutral"].cast(pl.Float64) == 1).sum())
        asked += len(table)
    scorer = plan.roles["scorer"][number]
    share = silent / asked if scorer.family == OPINION_WORDS and asked else np.nan
    return Scores(scorer=scorer.name, values=found, without_opinion=share)


def _similarities(plan: Plan, records: Records, way: str, number: int) -> Similarities:
    """Read cosines batch by batch: vectors of a large run do not fit in memory, and prefixes come first."""
    prefixes: dict[int, Floats] = {}
    parts: list[tuple[Ints, Ints, Floats]] = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    columns = ("tag_prefix", "tag_sample", "got_vector")
    for table in records.batches(model=plan.model.name, stage=f"{way}{embeddings_stage(number)}", columns=columns):
        prefix, sample = (table[name].to_numpy().astype(np.int64) for name in columns[:2])
        vectors = _vectors(table["got_vector"])
        is_prefix = sample == PREFIX
        prefixes |= dict(zip(prefix[is_prefix].tolist(), vectors[is_prefix], strict=True))
        if not is_prefix.all():
            own = np.stack([prefixes[at] for at in prefix[~is_prefix].tolist()])
            cosine = (own * vectors[~is_prefix]).sum(axis=1)  # vectors have length 1
            parts.append((prefix[~is_prefix], sample[~is_prefix], cosine))
    at, which, near = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Similarities(encoder=plan.roles["encoder"][number].name, prefix=at, sample=which, cosine=near)


def _vectors(column: pl.Series) -> Floats:
    """Return vectors of equal length as an array, (rows, dimensions)."""
    numbers = column.explode().cast(pl.Float64).to_numpy()
    return numbers.reshape(len(column), -1) if len(column) else numbers.reshape(0, 0)


def _outputs(plan: Plan, records: Records, way: str, prefixes: int) -> Floats | None:
    """Read the vectors of neutralised texts; None where they were not asked for."""
    stage = f"{way}{OUTPUTS}"
    if stage not in {each.name for each in stages(plan)}:
        return None
    table = records.table(model=plan.model.name, stage=stage, columns=("tag_prefix", "tag_sample", "got_vector"))
    vectors = _vectors(table["got_vector"])
    found = np.full((prefixes, plan.options.compared_samples, vectors.shape[1]), np.nan)
    found[table["tag_prefix"].to_numpy(), table["tag_sample"].to_numpy()] = vectors
    return found


def _similar(each: Similarities, asked: AskedAttribute, options: Options) -> RelevanceCounts:
    """Count continuations above the threshold."""
    # those that were compared only because people judged them would weigh too much
    inside = np.isin(each.prefix, asked.numbers) & (each.sample < options.similarity_samples)
    above = each.cosine[inside] > options.similarity
    return _counts(asked, SIMILAR, each.encoder, each.prefix[inside] - asked.first, above)


def _mentioned(texts: pl.DataFrame, asked: AskedAttribute) -> RelevanceCounts:
    """Count continuations that mention their value, among those that are not empty."""
    number, written = _written(texts, asked)
    mentioned = np.zeros(len(number), dtype=np.bool_)
    for at, value in enumerate(asked.attribute.values):
        mine = number % len(asked.values) == at
        mentioned[mine] = mentions(written.filter(mine).to_list(), tuple(value.sensitive_tokens.values()))
    return _counts(asked, MENTIONS, "whole words", number, mentioned)


def _counts(asked: AskedAttribute, measure: str, by: str, number: Ints, counted: Bools) -> RelevanceCounts:
    """Sum over the continuations of each prefix; `number` is that of the prefix among those of the attribute."""
    hits, texts = (
        np.bincount(number, each.astype(np.float64), len(asked.numbers)).astype(np.float64).reshape(asked.shape)
        for each in (counted, np.ones_like(counted))
    )
    return RelevanceCounts(asked=asked, measure=measure, by=by, hits=hits, texts=texts)


def _written(texts: pl.DataFrame, asked: AskedAttribute) -> tuple[Ints, pl.Series]:
    """Return the texts about an attribute that are not empty, and the number of its prefix for each."""
    inside = pl.col("prefix").is_between(asked.numbers.start, asked.numbers.stop, closed="left")
    written = texts.filter(inside & (pl.col("text").str.strip_chars() != ""))
    return written["prefix"].to_numpy() - asked.first, written["text"]


def _passages(plan: Plan, records: Records, attributes: Sequence[AskedAttribute]) -> PassageScores:
    columns = ("ask_text", "got_logprob", "got_tokens")
    table = records.table(model=plan.model.name, stage=PERPLEXITY, columns=columns)
    texts = table["ask_text"].to_list()
    parts = {WHOLE: np.ones(len(texts), dtype=np.bool_)}
    for asked in attributes:
        parts[passages_about(asked.name)] = np.array([bool(find_values(text, asked.whole)) for text in texts])
    return PassageScores(sums=table.select(columns[1:]).to_numpy().astype(np.float64), parts=parts)


def passages_about(attribute: str) -> str:
    """Return the name of the passages with a sensitive token of an attribute."""
    return f"passages about {attribute}"


def off_topic(relevance: Sequence[RelevanceCounts], asked: AskedAttribute) -> str:
    """Say why nothing can be told of a model whose texts are not about what they begin with; "" where they are.

    A text is on topic if it is near its beginning (S.S.) or names the value (S.S.c). The lower limit of the larger
    share must reach `ON_TOPIC`: a few texts that hit by chance are not enough.
    """
    mine = [each for each in relevance if each.asked.name == asked.name]
    limits = [share_interval(each.share, int(each.texts.sum())).low for each in mine]
    if not mine or any(limit >= ON_TOPIC for limit in limits):
        return ""
    if not any(each.texts.sum() for each in mine):
        return "it wrote nothing"
    near, named = (
        max((each.share for each in mine if each.measure == measure), default=0.0)
        for measure in (SIMILAR, MENTIONS)
    )
    return (
        f"its texts are off topic: {percent(near)} are near their beginning and {percent(named)} mention the "
        f"{asked.name}"
    )


def perplexity(means: Floats) -> Floats:
    r"""Return perplexities from mean log-probabilities and mean tokens of passages, (…, 2) -> (…).

    .. math:: \mathrm{PPL} = \exp(-\sum \log p / \sum \mathrm{tokens})

    >>> perplexity(np.array([[-3.0, 2.0], [-1.0, 2.0]]).mean(axis=0)).round(3)
    np.float64(2.718)
    """
    found: Floats = np.exp(-means[..., 0] / means[..., 1])
    return found
