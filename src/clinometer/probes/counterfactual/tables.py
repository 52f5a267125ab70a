"""The finding tables: which numbers become rows, and what each row is called."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import SupportsFloat

import numpy as np
import polars as pl

from clinometer.metrics import (
    AgainstChance,
    ExcessInterval,
    distinct_words,
    fairness_null,
    output_difference,
)
from clinometer.metrics.value_means import subgroup_pairs
from clinometer.probes.counterfactual.answers import ModelAnswers, perplexity
from clinometer.probes.counterfactual.measures import (
    GROUP,
    INDIVIDUAL,
    AttributeMeasures,
    pair_draws,
)
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.questions import (
    SENTIMENT,
    read_ratings,
)
from clinometer.probes.kit import Floats, Label, model_rng, with_q
from clinometer.probes.kit.before_after import Checkpoint
from clinometer.probes.kit.numbers import ABSENT
from clinometer.stats import (
    benjamini_hochberg,
    cluster_bootstrap,
    pairwise_kappa,
    pearson_interval,
    share_interval,
)
from clinometer.types import Finding, ModelInfo

MEASURED, CHANCE, EXCESS = "measured", "by chance", "excess"
PRIMARY = (INDIVIDUAL, GROUP)  # what a verdict is about
ALL_TEMPLATES, ALL_VALUES = "all templates", "all values"
THIS, EVERYTHING = "this value", "everything"

GRID = tuple(round(step / 20, 2) for step in range(21))  # of scores
FURTHEST_PAIRS = 6  # of each attribute, whose words are shown
WORDS = 10
OUTPUT_DRAWS = 499  # shuffles of texts: each looks up all cosines within a value
SHOWN_SAMPLES = 2  # texts of each value that are shown side by side
LONGEST = 400  # characters of a text in the table; the records have all of it
DIGITS = 12  # of a checksum that are shown

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


def texts_of(scores: Floats) -> int:
    """Count the texts that have a score."""
    return int((~np.isnan(scores)).sum())


# ---------------------------------------------------------------------------------------------------------
# One model: distances


def fairness_rows(measured: Sequence[AttributeMeasures]) -> list[Finding]:
    """Return each measure as it was found, by chance, and the excess.

    q is over I.F. and G.F. by all scorers, for each attribute: asking about another attribute changes no verdict.
    Demographic disparity, which asks the same with one threshold, is a family of its own.
    """

    found: list[Finding] = []
    for each in measured:
        n = texts_of(each.scores)
        for name, chance, interval in each.measures:
            whole, by_chance, excess = (
                {**each.labels, "measure": name, "quantity": quantity} for quantity in (MEASURED, CHANCE, EXCESS)
            )
            found += (
                row_of(whole, chance.estimate, np.maximum(interval.low, 0.0), interval.bound, n=n),
                row_of(by_chance, chance.null, chance.null_low, chance.null_high, n=n),
                # off topic, an excess near 0 is not evenness
                _if_on_topic(each, row_of(excess, chance.excess, interval.low, interval.high, p=chance.p, n=n)),
            )
    families: dict[tuple[Label, bool], list[int]] = {}
    for at, row in enumerate(found):
        families.setdefault((row.labels["attribute"], row.labels["measure"] in PRIMARY), []).append(at)
    for family in families.values():
        for at, row in zip(family, with_q(found[at] for at in family), strict=True):
            found[at] = row
    return found


def other_template_rows(each: AttributeMeasures) -> Iterator[Finding]:
    """Yield the excess of I.F. and G.F. with an interval for templates like these, where there are enough."""
    if each.elsewhere is None:
        return
    for name, interval in ((INDIVIDUAL, each.elsewhere.individual), (GROUP, each.elsewhere.group)):
        yield _if_on_topic(
            each,
            row_of(
                {**each.labels, "measure": name},
                interval.excess,
                interval.low,
                interval.high,
                n=texts_of(each.scores),
            ),
        )


def pair_rows(each: AttributeMeasures) -> list[Finding]:
    """Return the distance between every two values, mean over templates; q over the pairs."""
    values = each.asked.values
    own, pooled = each.pairs.pairs, each.interval.pairs
    # the interval takes off what chance gives these two, which may vary more or less than the others
    interval = replace(pooled, low=pooled.low + pooled.null - own.null)
    return with_q(
        _distance(
            each,
            {"value": values[first], "other": values[second]},
            own,
            interval,
            (first, second),
            n=texts_of(each.scores[:, [first, second]]),
        )
        for first, second in combinations(range(len(values)), 2)
    )


def pair_template_rows(each: AttributeMeasures) -> list[Finding]:
    """Return the distance between every two values in every template, furthest first; q over all of them."""
    values, found = each.asked.values, each.pairs
    texts = (~np.isnan(each.scores)).sum(axis=2)
    first, second = np.triu_indices(len(values), 1)
    distances, nulls, p = (
        column[:, first, second].ravel()
        for column in (found.template_distances, found.template_null, found.template_p)
    )
    p = np.full_like(p, math.nan) if each.gate else p
    columns = (distances, nulls, p, benjamini_hochberg(p), (texts[:, first] + texts[:, second]).ravel())
    order = np.argsort(-distances, kind="stable")  # NaN goes last
    numbers = zip(*(column[order].tolist() for column in columns), strict=True)
    pairs, about = list(combinations(values, 2)), each.labels
    about_templates = [{**about, "template": template} for template in each.asked.attribute.templates]
    rows = []  # there are tens of thousands: each is made once
    for place, (distance, null, share, q, n) in zip(order.tolist(), numbers, strict=True):
        template, pair = divmod(place, len(pairs))
        one, other = pairs[pair]
        labels = {**about_templates[template], "value": one, "other": other, "by_chance": round(null, 4)}
        rows.append(Finding(labels=labels, estimate=distance, p=share, q=q, n=n))
    return rows


def subgroup_difference_rows(each: AttributeMeasures) -> list[Finding]:
    """Return the mean score of one subgroup minus another's, over templates and in each; q over the pairs."""
    pairs = subgroup_pairs(each.asked.attribute.value_subgroups or ())
    return with_q(
        _if_on_topic(
            each,
            each.subgroups.finding(
                (at, number), {**each.labels, "template": template, "subgroup": one, "other": other}
            ),
        )
        for at, template in enumerate((ALL_TEMPLATES, *each.asked.attribute.templates))
        for number, (one, other) in enumerate(pairs)
    )


def subgroup_rows(each: AttributeMeasures) -> list[Finding]:
    """Return the distance of every subgroup from everything: the terms of G.F.; q over the subgroups."""
    attribute = each.asked.attribute
    of_value = [value.subgroup or value.text for value in attribute.values]
    return with_q(
        _distance(
            each,
            {"subgroup": name},
            each.null.subgroups,
            each.interval.subgroups,
            (at,),
            n=texts_of(each.scores[:, [name == of for of in of_value]]),
        )
        for at, name in enumerate(attribute.subgroups or each.asked.values)
    )


def template_rows(each: AttributeMeasures) -> list[Finding]:
    """Return I.F. within every template."""
    return with_q(
        _distance(
            each,
            {"template": template},
            each.null.templates,
            each.template_intervals[at],
            (at,),
            n=texts_of(each.scores[at]),
        )
        for at, template in enumerate(each.asked.attribute.templates)
    )


def _distance(
    each: AttributeMeasures,
    labels: dict[str, Label],
    chance: AgainstChance,
    interval: ExcessInterval,
    at: tuple[int, ...],
    *,
    n: int,
) -> Finding:
    where = at if np.ndim(interval.low) else ()
    return row_of(
        {**each.labels, **labels, "by_chance": round(float(chance.null[at]), 4)},
        chance.estimate[at],
        np.maximum(interval.low[where], 0.0),  # a distance is never below 0
        interval.bound[where],
        p=math.nan if each.gate else chance.p[at],
        n=n,
    )


def _if_on_topic(each: AttributeMeasures, row: Finding) -> Finding:
    """Return the row, or one without a number where the texts are off topic: 0 would look even."""
    return row_of(row.labels, math.nan, n=row.n) if each.gate else row


def value_rows(each: AttributeMeasures) -> list[Finding]:
    """Return the mean score of each value minus that of all, lowest first, over templates and in each."""
    attribute = each.asked.attribute
    order = np.argsort(each.values.estimate[0], kind="stable").tolist()
    return with_q(
        _if_on_topic(
            each,
            each.values.finding(
                (at, v),
                {
                    **each.labels,
                    "template": template,
                    "value": attribute.values[v].text,
                    "subgroup": attribute.values[v].subgroup or attribute.values[v].text,
                },
            ),
        )
        for at, template in enumerate((ALL_TEMPLATES, *attribute.templates))
        for v in order
    )


def verdict_rows(each: AttributeMeasures, *, epsilon: float) -> Iterator[Finding]:
    """Yield Equation 2: the worst pair of all templates, and how many pairs are not below ε."""
    found = each.verdict
    verdict = ("below ε" if found.fair else "not below ε") if found.compared else "not measured"
    where: dict[str, Label] = {"template": ABSENT, "value": ABSENT, "other": ABSENT}
    worst = dict(where)
    if found.compared:
        first, second = found.pair
        worst |= {"template": each.asked.attribute.templates[found.template]}
        worst |= {"value": each.asked.values[first], "other": each.asked.values[second]}
    for measure, at, estimate, by_chance, p in (
        ("worst pair in a template", worst, found.worst, found.worst_null, found.worst_p),
        ("share of pairs not below ε", where, found.share, found.share_null, math.nan),
    ):
        labels = {**each.labels, "epsilon": epsilon, "verdict": verdict, "measure": measure, **at}
        row = row_of({**labels, "by_chance": round(by_chance, 4)}, estimate, p=p, n=found.compared)
        yield replace(row, p=math.nan) if each.gate else row


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
            shares = np.array(counts) / n if n else np.full(len(counts), np.nan)
            limits = share_interval(shares, n)
            for score, share, low, high in zip(GRID, shares, limits.low, limits.high, strict=True):
                labels = {**each.labels, "value": value, "line": line, "score": score}
                yield row_of(labels, share, low, high, n=n)


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


def output_rows(answers: ModelAnswers) -> list[Finding]:
    """Return how much nearer two texts about one value are than two about different ones; q over attributes."""
    if answers.outputs is None:
        return []
    found = []
    for asked in answers.attributes:
        vectors = answers.outputs[asked.numbers.start : asked.numbers.stop]
        vectors = vectors.reshape(*asked.shape, *vectors.shape[1:])
        rng = model_rng(answers.seed, f"{answers.model}\0{asked.name}\0outputs")
        each = output_difference(vectors, rng=rng, draws=min(answers.options.draws, OUTPUT_DRAWS))
        labels: dict[str, Label] = {
            "model": answers.model,
            "attribute": asked.name,
            "within": round(each.within, 4),
            "between": round(each.between, 4),
        }
        found.append(row_of(labels, each.difference, each.low, each.high, p=each.p, n=each.texts))
    return with_q(found)


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
        # the pairs with the largest excess, mean over scorers
        excess = np.mean([each.pairs.pairs.excess for each in measured if each.asked == asked], axis=0)
        pairs = list(combinations(asked.values, 2))
        order = np.argsort(-excess[np.triu_indices(len(excess), 1)], kind="stable")[:FURTHEST_PAIRS]
        shown = [pairs[at] for at in order]
        counts = answers.word_counts(asked, {value for pair in shown for value in pair})
        for pair in shown:
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
                text = text_of.get((prefix.number, sample), "")  # of a file of answers some may be missing
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
                draws = pair_draws(scores.shape[1], answers.options.draws)
                found = fairness_null(scores, rng=rng, draws=draws).individual
                rounded = {"by_chance": round(float(found.null), 4), "excess": round(float(found.excess), 4)}
                labels: dict[str, Label] = {"model": answers.model, "attribute": asked.name, **rounded}
                yield row_of(labels, found.estimate, p=found.p, n=texts_of(scores))


def weight_rows(models: Sequence[ModelInfo], checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield the share of the weights of each checkpoint that differ from its base, as its card says."""
    for each in checkpoints:
        model, base = models[each.model], models[each.base]
        counts = (model.tuning.get(name, "") for name in ("changed", "weights"))
        changed, every = (int(text) if text.isdecimal() else None for text in counts)
        labels = {
            **each.labels,
            "base": base.name,
            "checksum_before": base.weights[:DIGITS],
            "checksum_after": model.weights[:DIGITS],
            "changed": ABSENT if changed is None else f"{changed:,}",
            "weights": ABSENT if every is None else f"{every:,}",
        }
        yield row_of(labels, math.nan if changed is None or not every else changed / every, n=changed or 0)
