"""The finding tables: which numbers become rows, and what each row is called."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import SupportsFloat

import numpy as np
import polars as pl

from clinometer.metrics import (
    AgainstChance,
    ExcessInterval,
    distinct_words,
    fairness_interval,
    fairness_null,
)
from clinometer.probes.counterfactual.answers import (
    ModelAnswers,
)
from clinometer.probes.counterfactual.measures import (
    AttributeMeasures,
    pair_draws,
    perplexity,
)
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.questions import (
    SENTIMENT,
    read_ratings,
)
from clinometer.probes.kit import Floats, Label, model_rng, with_q
from clinometer.stats import cluster_bootstrap, pairwise_kappa, pearson_interval, share_interval
from clinometer.types import Finding

MEASURED, CHANCE, EXCESS = "measured", "by chance", "excess"
ALL_TEMPLATES, ALL_VALUES = "all templates", "all values"
THIS, EVERYTHING = "this value", "everything"

GRID = tuple(round(step / 20, 2) for step in range(21))  # of scores
FURTHEST_PAIRS = 6  # of each attribute, whose words are shown
WORDS = 10
SHOWN_SAMPLES = 2  # texts of each value that are shown side by side
LONGEST = 400  # characters of a text in the table; the records have all of it

Rows = Mapping[str, Sequence[Finding]]


def row_of(
    labels: Mapping[str, Label],
    estimate: SupportsFloat,
    low: SupportsFloat = math.nan,
    high: SupportsFloat = math.nan,
    *,
    p: SupportsFloat = math.nan,
    n: int = 0,
) -> Finding:
    """Return a row; whatever is not given is missing."""
    return Finding(labels=labels, estimate=float(estimate), low=float(low), high=float(high), p=float(p), n=n)


def _share(labels: Mapping[str, Label], share: float, n: int) -> Finding:
    limits = share_interval(share, n)
    return row_of(labels, share, limits.low, limits.high, n=n)


def _texts(scores: Floats) -> int:
    return int((~np.isnan(scores)).sum())


# ---------------------------------------------------------------------------------------------------------
# One model: distances


def fairness_rows(measured: Sequence[AttributeMeasures]) -> list[Finding]:
    """Return each measure as it was found, by chance, and the excess; q over all measures of a model."""

    def rows() -> Iterator[Finding]:
        for each in measured:
            n = _texts(each.scores)
            for name, chance, interval in each.measures:
                whole, by_chance, excess = (
                    {**each.labels, "measure": name, "quantity": quantity}
                    for quantity in (MEASURED, CHANCE, EXCESS)
                )
                yield row_of(whole, chance.estimate, np.maximum(interval.low, 0.0), interval.bound, n=n)
                yield row_of(by_chance, chance.null, chance.null_low, chance.null_high, n=n)
                yield row_of(excess, chance.excess, interval.low, interval.high, p=chance.p, n=n)

    return with_q(rows())


def pair_rows(each: AttributeMeasures) -> list[Finding]:
    """Return the distance between every two values, mean over templates; q over the pairs."""
    values = each.asked.values
    return with_q(
        _distance(
            {**each.labels, "value": values[first], "other": values[second]},
            each.null.pairs,
            each.interval.pairs,
            (first, second),
            n=_texts(each.scores[:, [first, second]]),
        )
        for first, second in combinations(range(len(values)), 2)
    )


def subgroup_rows(each: AttributeMeasures) -> list[Finding]:
    """Return the distance of every subgroup from everything: the terms of G.F.; q over the subgroups."""
    attribute = each.asked.attribute
    of_value = [value.subgroup or value.text for value in attribute.values]
    return with_q(
        _distance(
            {**each.labels, "subgroup": name},
            each.null.subgroups,
            each.interval.subgroups,
            (at,),
            n=_texts(each.scores[:, [name == of for of in of_value]]),
        )
        for at, name in enumerate(attribute.subgroups or each.asked.values)
    )


def template_rows(each: AttributeMeasures) -> list[Finding]:
    """Return I.F. within every template; intervals leave out samples, because there is one template."""
    return with_q(
        _distance(
            {**each.labels, "template": template},
            each.null.templates,
            fairness_interval(each.scores[[at]], over="samples").individual,
            (at,),
            n=_texts(each.scores[at]),
        )
        for at, template in enumerate(each.asked.attribute.templates)
    )


def _distance(
    labels: dict[str, Label], chance: AgainstChance, interval: ExcessInterval, at: tuple[int, ...], *, n: int
) -> Finding:
    where = at if np.ndim(interval.low) else ()
    return row_of(
        {**labels, "by_chance": round(float(chance.null[at]), 4)},
        chance.estimate[at],
        np.maximum(interval.low[where], 0.0),  # a distance is never below 0
        interval.bound[where],
        p=chance.p[at],
        n=n,
    )


def value_rows(each: AttributeMeasures) -> list[Finding]:
    """Return the mean score of each value minus that of all, lowest first, over templates and in each."""
    attribute = each.asked.attribute
    order = np.argsort(each.values.estimate[0], kind="stable").tolist()
    return with_q(
        each.values.finding(
            (at, v),
            {
                **each.labels,
                "template": template,
                "value": attribute.values[v].text,
                "subgroup": attribute.values[v].subgroup or attribute.values[v].text,
            },
        )
        for at, template in enumerate((ALL_TEMPLATES, *attribute.templates))
        for v in order
    )


def verdict_rows(each: AttributeMeasures, *, epsilon: float) -> Iterator[Finding]:
    """Yield Equation 2: the worst pair of all templates, and how many pairs are not below ε."""
    found = each.verdict
    verdict = ("below ε" if found.fair else "not below ε") if found.compared else "not measured"
    for measure, estimate, by_chance, p in (
        ("worst pair in a template", found.worst, found.worst_null, found.worst_p),
        ("share of pairs not below ε", found.share, found.share_null, math.nan),
    ):
        labels = {**each.labels, "epsilon": epsilon, "verdict": verdict, "measure": measure}
        yield row_of({**labels, "by_chance": round(by_chance, 4)}, estimate, p=p, n=found.compared)


def distribution_rows(each: AttributeMeasures) -> Iterator[Finding]:
    """Yield the share of texts that score no more than 0, 0.05, …, 1: of each value, and of everything."""
    attribute = each.asked.attribute
    shown = {
        f"all {name}": each.scores[:, [value.subgroup == name for value in attribute.values]]
        for name in attribute.subgroups
    }
    shown |= {value: each.scores[:, at] for at, value in enumerate(each.asked.values)}
    whole = _at_most(each.scores)
    for value, scores in shown.items():
        for line, counts in ((THIS, _at_most(scores)), (EVERYTHING, whole)):
            n = counts[-1]  # no score is above 1
            for score, count in zip(GRID, counts, strict=True):
                labels = {**each.labels, "value": value, "line": line, "score": score}
                yield _share(labels, count / n if n else math.nan, n)


def _at_most(scores: Floats) -> list[int]:
    """Count the texts with at most each score of the grid."""
    known = np.sort(scores[~np.isnan(scores)])
    counts: list[int] = np.searchsorted(known, np.array(GRID) + 1e-9, side="right").tolist()
    return counts


# ---------------------------------------------------------------------------------------------------------
# One model: its texts


def scorer_rows(answers: ModelAnswers) -> Iterator[Finding]:
    """Yield what each scorer gives on average, and how many texts it can say nothing about."""
    for each in answers.scores:
        labels = {"model": answers.model, "scorer": each.scorer}
        known = each.values[~np.isnan(each.values)]
        n = len(known)
        error = float(known.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan
        mean = float(known.mean()) if n else math.nan
        yield row_of({**labels, "measure": "mean score"}, mean, mean - 1.96 * error, mean + 1.96 * error, n=n)
        positive = float((known > answers.options.threshold).mean()) if n else math.nan
        yield _share({**labels, "measure": "positive texts"}, positive, n)
        if not math.isnan(each.without_opinion):
            yield _share({**labels, "measure": "texts without an opinion word"}, each.without_opinion, n)


def relevance_rows(answers: ModelAnswers) -> Iterator[Finding]:
    """Yield S.S. with every encoder, and S.S.c, of each attribute and of each of its values."""
    for each in answers.relevance:
        labels = {"model": answers.model, "attribute": each.asked.name, "measure": each.measure, "by": each.by}
        yield _share({**labels, "value": ALL_VALUES}, each.share, int(each.texts.sum()))
        for value, hits, n in zip(each.asked.values, each.hits.sum(axis=0), each.texts.sum(axis=0), strict=True):
            yield _share({**labels, "value": value}, hits / n if n else math.nan, int(n))


def perplexity_rows(answers: ModelAnswers) -> Iterator[Finding]:
    """Yield the perplexity of the held-out text and of its passages with a sensitive token of each attribute."""
    if answers.passages is None:
        return
    rng = model_rng(answers.seed, f"{answers.model}\0perplexity")
    sums = answers.passages.sums
    for part, inside in answers.passages.parts.items():
        some = sums[inside & (sums[:, 1] > 0)]
        labels: dict[str, Label] = {"model": answers.model, "part": part, "tokens": int(some[:, 1].sum())}
        if len(some):
            found = cluster_bootstrap(some, statistic=perplexity, rng=rng, draws=answers.options.draws)
            yield row_of(labels, found.estimate, found.low, found.high, n=len(some))
        else:
            yield row_of(labels, math.nan)


def word_rows(answers: ModelAnswers, measured: Sequence[AttributeMeasures]) -> Iterator[Finding]:
    """Yield the words that are much more frequent for one value than for the other, for the pairs most apart."""
    for asked in answers.attributes:
        counts = answers.word_counts(asked)
        # the pairs with the largest excess, mean over scorers
        excess = np.mean([each.null.pairs.excess for each in measured if each.asked == asked], axis=0)
        pairs = list(combinations(asked.values, 2))
        order = np.argsort(-excess[np.triu_indices(len(excess), 1)], kind="stable")[:FURTHEST_PAIRS]
        for pair in (pairs[at] for at in order):
            for value, other in (pair, pair[::-1]):
                for rank, found in enumerate(distinct_words(counts[value], counts[other], n=WORDS), start=1):
                    labels: dict[str, Label] = {
                        "model": answers.model,
                        "attribute": asked.name,
                        "value": value,
                        "other": other,
                        "rank": rank,
                        "word": found.word,
                        "count_for_other": found.other_count,
                    }
                    yield row_of(labels, found.ratio, n=found.count)


def text_rows(answers: ModelAnswers, measured: Sequence[AttributeMeasures]) -> Iterator[Finding]:
    """Yield the first texts of every value in the template whose values lie furthest apart."""
    scores = np.mean([each.values for each in answers.scores], axis=0)  # of all scorers
    shown = answers.texts.filter(pl.col("sample") < SHOWN_SAMPLES)
    text_of = {(prefix, sample): " ".join(text.split()) for prefix, sample, _, text in shown.iter_rows()}
    for asked in answers.attributes:
        excess = next(each for each in measured if each.asked == asked).null.templates.excess
        template = asked.attribute.templates[int(np.argmax(np.nan_to_num(excess, nan=-np.inf)))]
        for sample in range(min(SHOWN_SAMPLES, answers.options.samples)):
            for prefix in (each for each in asked.prefixes if each.template == template):
                text = text_of[prefix.number, sample]
                labels: dict[str, Label] = {
                    "model": answers.model,
                    "attribute": asked.name,
                    "sample": sample,
                    "beginning": prefix.text,
                    "text": text if len(text) <= LONGEST else f"{text[:LONGEST]} …",
                }
                yield row_of(labels, scores[prefix.number, sample], n=1)


# ---------------------------------------------------------------------------------------------------------
# People's judgement


def agreement_rows(options: Options) -> Iterator[Finding]:
    """Yield Cohen's kappa of every two raters."""
    for ratings in read_ratings(options):
        said = {rater: [each or None for each in given] for rater, given in ratings.raters.items()}
        for pair in pairwise_kappa(said):
            labels = {"question": ratings.question, "rater": pair.first[6:], "other": pair.second[6:]}
            yield row_of(labels, pair.kappa.estimate, pair.kappa.low, pair.kappa.high, n=pair.kappa.n)


def correlation_rows(answers: ModelAnswers) -> list[Finding]:
    """Return Spearman's correlation of people's mean score with each automatic measure of the same sentences."""
    found = []
    for ratings in read_ratings(answers.options):
        rated = answers.rated(ratings)
        for measure, values in answers.automatic(ratings.question, rated).items():
            both = ~np.isnan(rated.human) & ~np.isnan(values)
            human, automatic = (pl.Series(each[both]).rank("average").to_numpy() for each in (rated.human, values))
            each = pearson_interval(human, automatic)  # of ranks: Spearman's correlation
            labels = {"model": answers.model, "question": ratings.question, "measure": measure}
            found.append(row_of(labels, each.estimate, each.low, each.high, p=each.p, n=each.n))
    return with_q(found)


def human_fairness_rows(answers: ModelAnswers) -> Iterator[Finding]:
    """Yield I.F. from human scores, of the templates in which two values or more have enough sentences."""
    for ratings in read_ratings(answers.options):
        if ratings.question != SENTIMENT:
            continue
        rated = answers.rated(ratings)
        for asked in answers.attributes:
            if len(scores := rated.scores_of(asked)):
                rng = model_rng(answers.seed, f"{answers.model}\0{asked.name}\0people")
                draws = pair_draws(scores, answers.options.draws)
                found = fairness_null(scores, rng=rng, draws=draws).individual
                rounded = {"by_chance": round(float(found.null), 4), "excess": round(float(found.excess), 4)}
                labels: dict[str, Label] = {"model": answers.model, "attribute": asked.name, **rounded}
                yield row_of(labels, found.estimate, p=found.p, n=_texts(scores))
