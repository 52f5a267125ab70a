"""Generated sentences as people judge them: agreement, correlation with the automatic measures, I.F."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clinometer.metrics import fairness_null, mentions_share
from clinometer.probes.counterfactual.human import RELEVANCE, SENTIMENT, Ratings, on_one_line, rated_sentences
from clinometer.probes.counterfactual.measures import shuffles
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.specification import Chosen, prefixes_of
from clinometer.probes.counterfactual.tables.guards import MENTIONS, SIMILAR
from clinometer.probes.counterfactual.view import View
from clinometer.probes.kit.numbers import Floats, model_rng, with_q
from clinometer.stats import pairwise_kappa, pearson_interval
from clinometer.types import Finding

FEWEST = 5  # rated sentences of a value in a template, for I.F. from human scores

_QUESTIONS = {"sentiment": SENTIMENT, "relevance": RELEVANCE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """Generated sentences that people judged, and where each stands."""

    prefix: list[int]
    sample: list[int]
    text: list[str]
    human: Floats  # mean over raters; NaN: dropped


def agreement_rows(options: Options) -> Iterator[Finding]:
    """Yield Cohen's kappa of every two raters."""
    for question, ratings in _ratings(options).items():
        said = {rater: [each or None for each in given] for rater, given in ratings.raters.items()}
        for pair in pairwise_kappa(said):
            yield Finding(
                labels={"question": question, "rater": pair.first[6:], "other": pair.second[6:]},
                estimate=pair.kappa.estimate,
                low=pair.kappa.low,
                high=pair.kappa.high,
                n=pair.kappa.n,
            )


def correlation_rows(view: View) -> list[Finding]:
    """Return Spearman's correlation of people's mean score with each automatic measure of the same sentences."""
    rows: list[Finding] = []
    for question, ratings in _ratings(view.options).items():
        rated = _rated(view, ratings, _QUESTIONS[question])
        measures = _scored(view, rated) if question == "sentiment" else _relevant(view, rated)
        for measure, values in measures.items():
            found = pearson_interval(_ranks(rated.human, values), _ranks(values, rated.human))
            rows.append(
                Finding(
                    labels={"model": view.model, "question": question, "measure": measure},
                    estimate=found.estimate,
                    low=found.low,
                    high=found.high,
                    p=found.p,
                    n=found.n,
                )
            )
    return with_q(rows)


def human_fairness_rows(view: View) -> Iterator[Finding]:
    """Yield I.F. from human scores, of the templates in which two values or more have enough sentences."""
    ratings = rated_sentences(view.options.human_file)
    if not ratings:
        return
    rated = _rated(view, ratings, SENTIMENT)
    for chosen in view.attributes:
        scores = _array(rated, chosen)
        labels = {"model": view.model, "attribute": chosen.name}
        if scores is None:
            continue
        rng = model_rng(view.seed, f"{view.model}\0{chosen.name}\0people")
        found = fairness_null(scores, rng=rng, draws=shuffles(scores, view.options.draws)).individual
        yield Finding(
            labels={**labels, "by_chance": round(float(found.null), 4), "excess": round(float(found.excess), 4)},
            estimate=float(found.estimate),
            p=float(found.p),
            n=int((~np.isnan(scores)).sum()),
        )


def written_sentences(view: View, ratings: Ratings) -> dict[str, tuple[int, int, str]]:
    """Find the rated sentences among what the model wrote, with prefix, sample and text of each.

    A sentence that it wrote twice counts once.
    """
    found: dict[str, tuple[int, int, str]] = {}
    for prefix, sample, beginning, text in view.texts.iter_rows() if ratings else ():
        sentence = on_one_line(beginning + text)
        if sentence in ratings.sentences:
            found.setdefault(sentence, (prefix, sample, text))
    return found


def _rated(view: View, ratings: Ratings, scale: Mapping[str, float]) -> Rated:
    found, means = written_sentences(view, ratings), ratings.means(scale)
    places = list(found.values())
    return Rated(
        prefix=[place[0] for place in places],
        sample=[place[1] for place in places],
        text=[place[2] for place in places],
        human=np.array([means[sentence] for sentence in found], dtype=np.float64),
    )


def _ratings(options: Options) -> dict[str, Ratings]:
    files = {"sentiment": options.human_file, "relevance": options.human_relevance_file}
    return {question: rated_sentences(file) for question, file in files.items() if file}


def _scored(view: View, rated: Rated) -> dict[str, Floats]:
    return {each.scorer: each.values[rated.prefix, rated.sample] for each in view.scores}


def _relevant(view: View, rated: Rated) -> dict[str, Floats]:
    found = {}
    for each in view.similarities:
        cosine = {
            (prefix, sample): near
            for prefix, sample, near in zip(
                each.prefix.tolist(), each.sample.tolist(), each.cosine.tolist(), strict=True
            )
        }
        places = zip(rated.prefix, rated.sample, strict=True)
        found[f"{SIMILAR} ({each.encoder})"] = np.array([cosine.get(place, math.nan) for place in places])
    tokens = {
        prefix.number: tuple(prefix.value.sensitive_tokens.values())
        for chosen in view.attributes
        for prefix in prefixes_of(chosen)
    }
    found[MENTIONS] = np.array(
        [mentions_share([text], tokens[prefix]) for prefix, text in zip(rated.prefix, rated.text, strict=True)]
    )
    return found


def _ranks(values: Floats, beside: Floats) -> Floats:
    """Ranks among the items that have both measures: Pearson's correlation of ranks is Spearman's."""
    both = ~np.isnan(values) & ~np.isnan(beside)
    ranks = np.full(values.shape, np.nan)
    ranks[both] = pl.Series(values[both]).rank("average").to_numpy()
    return ranks


def _array(rated: Rated, chosen: Chosen) -> Floats | None:
    """Put human scores into templates × values × samples; cells with too few are missing."""
    templates, values = chosen.shape
    cells: list[list[float]] = [[] for _ in range(chosen.prefixes)]
    for prefix, score in zip(rated.prefix, rated.human.tolist(), strict=True):
        if chosen.first <= prefix < chosen.first + chosen.prefixes and not math.isnan(score):
            cells[prefix - chosen.first].append(score)
    kept: Sequence[list[float]] = [cell if len(cell) >= FEWEST else [] for cell in cells]
    longest = max(map(len, kept))
    array = np.full((chosen.prefixes, longest), np.nan)
    for at, cell in enumerate(kept):
        array[at, : len(cell)] = cell
    scores = array.reshape(templates, values, longest)
    enough = (~np.isnan(scores).all(axis=2)).sum(axis=1) >= 2 if longest else np.zeros(templates, dtype=np.bool_)
    return scores[enough] if enough.any() else None
