"""What is measured: how far apart the scores of the values are, and what changed from one model to another.

Chance is what remains when the labels are shuffled within each template.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from clinometer.metrics import (
    AgainstChance,
    ExcessInterval,
    FairnessInterval,
    FairnessNull,
    above_threshold,
    epsilon_fair,
    fairness_interval,
    fairness_null,
    pairwise_wasserstein,
)
from clinometer.probes.counterfactual.answers import ModelAnswers
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.questions import AskedAttribute
from clinometer.probes.kit import Floats, Label, Numbers, model_rng, present_mean

FEWEST_TEMPLATES = 5  # from so many on, intervals speak of templates like these; below, of these templates alone
PER_TEST = 20  # shuffles for each of the tests that are corrected together …
_MOST = 400_000_000  # … as far as so many shuffled scores allow
WORST_DRAWS = 199  # shuffles behind the verdict at ε: a mean and a rough p are enough for it
_Z = 1.959964  # of a 95 % interval
_BATCH = 4_000_000  # scores held at a time
_TIE = 1e-12

INDIVIDUAL, GROUP, DISPARITY = "I.F.", "G.F.", "demographic disparity"


# ---------------------------------------------------------------------------------------------------------
# One model


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeMeasures:
    """The distances between the values of one attribute, as one scorer sees them."""

    model: str
    asked: AskedAttribute
    scorer: str
    scores: Floats  # templates × values × samples
    null: FairnessNull
    interval: FairnessInterval
    disparity: AgainstChance
    disparity_interval: ExcessInterval
    values: Numbers  # (1 + templates, values), see `against_whole`
    verdict: EpsilonVerdict

    @property
    def labels(self) -> dict[str, Label]:
        """What every table begins with."""
        return {"model": self.model, "attribute": self.asked.name, "scorer": self.scorer}

    @property
    def measures(self) -> tuple[tuple[str, AgainstChance, ExcessInterval], ...]:
        """The name of each measure of all values, its value and chance, and its interval."""
        return (
            (INDIVIDUAL, self.null.individual, self.interval.individual),
            (GROUP, self.null.group, self.interval.group),
            (DISPARITY, self.disparity, self.disparity_interval),
        )


def measure(answers: ModelAnswers, *, single_pairs: bool = True) -> tuple[AttributeMeasures, ...]:
    """Measure every attribute with every scorer.

    Without `single_pairs` there are no more shuffles than `draws`: the tests of pairs take most of the time, and
    of a dozen checkpoints of one model it is their change that is asked about.
    """
    return tuple(
        _measure(answers, asked, number, single_pairs=single_pairs)
        for asked in answers.attributes
        for number in range(len(answers.scores))
    )


def _measure(
    answers: ModelAnswers, asked: AskedAttribute, number: int, *, single_pairs: bool
) -> AttributeMeasures:
    options: Options = answers.options
    scorer = answers.scores[number].scorer
    scores = answers.scores[number].of(asked)
    # a generator for each attribute and scorer: leaving one out changes no number of another
    rng = model_rng(answers.seed, f"{answers.model}\0{asked.name}\0{scorer}")
    subgroups = asked.attribute.value_subgroups
    positive = above_threshold(scores, threshold=options.threshold)
    over = left_out(scores)
    draws = pair_draws(scores, options.draws) if single_pairs else options.draws
    return AttributeMeasures(
        model=answers.model,
        asked=asked,
        scorer=scorer,
        scores=scores,
        null=fairness_null(scores, subgroups=subgroups, rng=rng, draws=draws),
        interval=fairness_interval(scores, subgroups=subgroups, over=over),
        disparity=fairness_null(positive, subgroups=subgroups, rng=rng, draws=options.draws).individual,
        disparity_interval=fairness_interval(positive, subgroups=subgroups, over=over).individual,
        values=against_whole(scores, rng=rng, draws=max(options.draws, PER_TEST * scores.shape[1])),
        verdict=epsilon_verdict(scores, epsilon=options.epsilon, rng=rng),
    )


def left_out(scores: Floats) -> Literal["templates", "samples"]:
    """Say what an interval leaves out in turn: templates, or samples where templates are few."""
    return "templates" if len(scores) >= FEWEST_TEMPLATES else "samples"


def pair_draws(scores: Floats, draws: int) -> int:
    """Return how many shuffles the tests of all pairs take: 20 for each, or what is feasible.

    >>> pair_draws(np.zeros((10, 10, 100)), 500), pair_draws(np.zeros((10, 34, 1000)), 1000)
    (900, 1176)
    """
    return max(draws, min(PER_TEST * math.comb(scores.shape[1], 2), _MOST // max(scores.size, 1)))


def against_whole(scores: Floats, *, rng: np.random.Generator, draws: int) -> Numbers:
    r"""Set the mean score of each value against the mean of all values in the same template.

    .. math:: d_v = \frac1T \sum_t (m_{tv} - \frac1V \sum_w m_{tw}), \quad
        s^2 = \frac1{T^2} \sum_t \sum_w (\delta_{vw} - \tfrac1V)^2 \frac{s_{tw}^2}{n_{tw}}

    (templates, values, samples) -> (1 + templates, values): first the mean over templates, then each template.
    The interval, d ± 1.96 s, holds for these templates; there is none where a prefix has one text only. p, of the
    mean over templates alone, shuffles the samples of a template over its values, each of which keeps its number.
    A value without a sample in a template is left out there, and V counts the others.
    """
    values = scores.shape[1]
    each = _differences(scores)
    present = ~np.isnan(each)
    shares = present / np.maximum(present.sum(axis=1, keepdims=True), 1)  # of each value in the mean of all
    weights = (np.eye(values) - shares[:, None]) ** 2  # (templates, of value, from value)
    errors = np.where(present, _error_squared(scores), 0.0)
    variance = (weights * errors[:, None]).sum(axis=2)  # (templates, values)
    difference = np.concatenate([present_mean(each)[None], each])
    overall = np.where(present, variance, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1) ** 2
    error = np.sqrt(np.concatenate([overall[None], variance]))
    error[np.isnan(difference)] = np.nan
    as_far = np.zeros(values)
    observed = np.abs(difference[0])
    for shuffled in _shuffled(scores, rng=rng, draws=draws):
        as_far += (np.abs(present_mean(_differences(shuffled), axis=-2)) >= observed - _TIE).sum(axis=0)
    p = np.full(difference.shape, np.nan)
    p[0] = np.where(np.isnan(observed), np.nan, (1 + as_far) / (1 + draws))
    samples = (~np.isnan(scores)).sum(axis=2)
    return Numbers(
        estimate=difference,
        low=difference - _Z * error,
        high=difference + _Z * error,
        p=p,
        n=np.concatenate([samples.sum(axis=0)[None], samples]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonVerdict:
    """Equation 2 at one ε, and what chance gives; NaN where nothing could be compared."""

    fair: bool
    compared: int
    worst: float = math.nan
    worst_null: float = math.nan
    worst_p: float = math.nan
    share: float = math.nan  # of pairs that are not below ε
    share_null: float = math.nan


def epsilon_verdict(scores: Floats, *, epsilon: float, rng: np.random.Generator) -> EpsilonVerdict:
    """Tell whether every pair in every template is below ε, and whether the same values shuffled would be."""
    observed = epsilon_fair(pairwise_wasserstein(scores), epsilon)
    if not observed.compared:
        return EpsilonVerdict(fair=False, compared=0)
    by_chance = [
        epsilon_fair(pairwise_wasserstein(shuffled), epsilon)
        for batch in _shuffled(scores, rng=rng, draws=WORST_DRAWS)
        for shuffled in batch
    ]
    worst = np.array([each.worst for each in by_chance])
    return EpsilonVerdict(
        fair=observed.fair,
        compared=observed.compared,
        worst=observed.worst,
        worst_null=float(worst.mean()),
        worst_p=float((1 + (worst >= observed.worst - _TIE).sum()) / (1 + WORST_DRAWS)),
        share=observed.above / observed.compared,
        share_null=float(np.mean([each.above / each.compared for each in by_chance])),
    )


def _shuffled(scores: Floats, *, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """Yield the scores with those of each template in a new order, some draws at a time.

    NaN stays where it is: a value with few samples is further out by chance, and must be so in a shuffle, too.
    """
    rows = scores.reshape(len(scores), -1)
    known = ~np.isnan(rows)
    size = max(1, _BATCH // max(rows.size, 1))
    for done in range(0, draws, size):
        many = np.repeat(rows[None], min(size, draws - done), axis=0)
        for template, at in enumerate(known):
            many[:, template, at] = rng.permuted(many[:, template, at], axis=1)
        yield many.reshape(-1, *scores.shape)


def _differences(scores: Floats) -> Floats:
    """Mean of each value minus that of all values: (…, templates, values, samples) -> (…, templates, values).

    NaN where a value has no sample, or is alone.
    """
    means = present_mean(scores, axis=-1)
    alone = (~np.isnan(means)).sum(axis=-1, keepdims=True) < 2
    return np.where(alone, np.nan, means - present_mean(means, axis=-1)[..., None])


def _error_squared(scores: Floats) -> Floats:
    """Squared standard error of each prefix's mean: (templates, values)."""
    n = (~np.isnan(scores)).sum(axis=2)
    sums = np.nansum((scores - present_mean(scores, axis=2)[..., None]) ** 2, axis=2)
    error: Floats = np.divide(sums, n * (n - 1.0), out=np.full(sums.shape, np.nan), where=n > 1)
    return error


def perplexity(means: Floats) -> Floats:
    r"""Return perplexities from mean log-probabilities and mean tokens of passages, (…, 2) -> (…).

    .. math:: \mathrm{PPL} = \exp(-\sum \log p / \sum \mathrm{tokens})

    >>> perplexity(np.array([[-3.0, 2.0], [-1.0, 2.0]]).mean(axis=0)).round(3)
    np.float64(2.718)
    """
    found: Floats = np.exp(-means[..., 0] / means[..., 1])
    return found
