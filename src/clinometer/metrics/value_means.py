"""Mean scores of values and subgroups in the same template: each against the whole, and one against another.

Of texts there are many samples of a value in a template; of a classifier, which always gives a sentence the same
score, there is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from clinometer.metrics.means import Floats, divide_or_nan, present_mean

Ints = NDArray[np.int64]

FEWEST = 3  # templates, for an interval over them
_Z = 1.959964  # of a 95 % interval
_BATCH = 4_000_000  # scores held at a time
_TIE = 1e-12
_ROUNDING = 1e-13  # of a sum of squares


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanDifferences:
    """Differences of mean scores: first the mean over templates, then each template, (1 + templates, …)."""

    estimate: Floats
    low: Floats
    high: Floats
    p: Floats  # of the mean over templates alone
    n: Ints


@dataclass(frozen=True, slots=True)
class Moments:
    """What |d|/s is made of: the mean of each value's samples and its squared standard error, of equal shape."""

    means: Floats  # NaN without a sample
    errors: Floats  # NaN with fewer than two


def moments_of(scores: Floats) -> Moments:
    """Return the moments of each value: (…, samples) -> (…)."""
    n = (~np.isnan(scores)).sum(axis=-1)
    means = present_mean(scores, axis=-1)
    squares = (scores - means[..., None]) ** 2
    sums = squares.sum(axis=-1) if (n == scores.shape[-1]).all() else np.nansum(squares, axis=-1)
    return Moments(means, divide_or_nan(sums, n * (n - 1.0)))


def moments_from_sums(sums: Floats, squares: Floats, n: Ints, *, centre: Floats) -> Moments:
    """Return the moments from Σ(x − centre) and Σ(x − centre)² of n samples each.

    Rounding makes a difference of two sums of nothing but equal numbers: what is as small as that is 0.
    """
    count = n.astype(np.float64)
    spread = squares - divide_or_nan(sums**2, count)
    spread = np.where(spread > _ROUNDING * squares, spread, 0.0)
    return Moments(centre + divide_or_nan(sums, count), divide_or_nan(spread, count * (count - 1)))


def against_whole(
    scores: Floats, *, rng: np.random.Generator, draws: int, chance: Floats | None = None
) -> MeanDifferences:
    r"""Set the mean score of each value against the mean of all values in the same template.

    .. math:: d_v = \frac1T \sum_t (m_{tv} - \frac1V \sum_w m_{tw}), \quad
        s^2 = \frac1{T^2} \sum_t \sum_w (\delta_{vw} - \tfrac1V)^2 \frac{s_{tw}^2}{n_{tw}}

    (templates, values, samples) -> (1 + templates, values): first the mean over templates, then each template.
    The interval, d ± 1.96 s, holds for these templates; there is none where a prefix has one text only. p, of the
    mean over templates alone, shuffles the samples of a template over its values, each of which keeps its number:
    this deals the samples of one value and of the rest anew. |d|/s is compared, not |d|, so that a value that only
    varies more than the rest is not called different (Janssen 1997); |d| itself where there is no s. A value
    without a sample in a template is left out there, and V counts the others. `chance`, (shuffles, values), has
    the |d|/s of shuffles that were made before, and none is made then.
    """
    moments = moments_of(scores)
    each = _differences(moments.means)
    variance = _difference_variance(moments)
    overall, overall_error = _overall(moments)
    difference = np.concatenate([overall[None], each])
    error = np.concatenate([overall_error[None], np.sqrt(variance)])
    error[np.isnan(difference)] = np.nan
    observed = _studentized(difference[0], error[0])
    if chance is None:
        many = shuffled_scores(scores, rng=rng, draws=draws)
        chance = np.concatenate([sizes_of_values(moments_of(shuffled)) for shuffled in many])
    p = np.full(difference.shape, np.nan)
    p[0] = _share_as_far(chance, observed)
    samples = (~np.isnan(scores)).sum(axis=2)
    return MeanDifferences(
        estimate=difference,
        low=difference - _Z * error,
        high=difference + _Z * error,
        p=p,
        n=np.concatenate([samples.sum(axis=0)[None], samples]),
    )


def sizes_of_values(moments: Moments) -> Floats:
    """|d|/s of each value against the whole: (…, templates, values) -> (…, values)."""
    return _studentized(*_overall(moments))


def sizes_of_subgroups(moments: Moments, subgroups: Sequence[str]) -> Floats:
    """|d|/s of the only two subgroups: (…, templates, values) -> (…, 1)."""
    ((one, _),) = subgroup_pairs(subgroups)
    difference, error = _contrast(moments, np.array([name == one for name in subgroups]))
    return _studentized(difference[..., :1], error[..., :1])


def _share_as_far(chance: Floats, observed: Floats) -> Floats:
    """(1 + shuffles that are as far out)/(1 + shuffles), and NaN where nothing is observed."""
    as_far = (chance >= observed * (1 - _TIE)).sum(axis=0)
    return np.where(np.isnan(observed), np.nan, (1 + as_far) / (1 + len(chance)))


def subgroup_differences(
    scores: Floats,
    subgroups: Sequence[str],
    *,
    rng: np.random.Generator,
    draws: int,
    chance: Floats | None = None,
) -> MeanDifferences:
    r"""Return the mean score of one subgroup minus that of another in the same template: female − male.

    (templates, values, samples) -> (1 + templates, pairs), pairs as `subgroup_pairs` has them: first the mean over
    templates, then each. The values of a subgroup count alike. The interval is for these values and templates; p
    shuffles the samples of the two over their values and compares |d|/s, as `against_whole` does. `chance`,
    (shuffles, 1), has those of the only two subgroups, if they were shuffled before.
    """
    found: list[tuple[Floats, Floats, float, Ints]] = []
    for one, other in subgroup_pairs(subgroups):
        mine = np.array([name in (one, other) for name in subgroups])
        some = scores[:, mine]
        sides = np.array([name == one for name in np.array(subgroups)[mine]])
        each, error = _contrast(moments_of(some), sides)
        observed = _studentized(each[0], error[0])
        if chance is None:
            names = [name for name, is_mine in zip(subgroups, mine, strict=True) if is_mine]
            many = shuffled_scores(some, rng=rng, draws=draws)
            by_chance = np.concatenate([sizes_of_subgroups(moments_of(shuffled), names) for shuffled in many])
        else:
            by_chance = chance
        share = float(_share_as_far(by_chance, observed[None])[0])
        texts = (~np.isnan(some)).sum(axis=(1, 2))
        found.append((each, error, share, np.concatenate([[texts.sum()], texts])))
    shape = (1 + len(scores), len(found))
    estimate, error, n = (
        np.array([each[at] for each in found]).T.reshape(shape) if found else np.zeros(shape) for at in (0, 1, 3)
    )
    p = np.full(shape, np.nan)
    p[0] = [each[2] for each in found]
    return MeanDifferences(
        estimate=estimate, low=estimate - _Z * error, high=estimate + _Z * error, p=p, n=n.astype(np.int64)
    )


def subgroup_pairs(subgroups: Sequence[str]) -> list[tuple[str, str]]:
    """Return every two subgroups, the later first.

    >>> subgroup_pairs(["male", "male", "female"])
    [('female', 'male')]
    """
    return [(one, other) for other, one in combinations(dict.fromkeys(subgroups), 2)]


def _contrast(moments: Moments, sides: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Mean of the values on one side minus the other's, and its error: (…, templates, …) -> (…, 1 + templates).

    First the mean over templates. A side without texts in a template leaves the template out.
    """
    means, errors = moments.means, moments.errors
    each, variance = [], []
    for side in (sides, ~sides):
        each.append(present_mean(means[..., side], axis=-1))
        known = (~np.isnan(means[..., side])).sum(axis=-1)
        sums = np.where(np.isnan(means[..., side]), 0.0, errors[..., side]).sum(axis=-1)
        variance.append(sums / np.maximum(known, 1) ** 2)
    difference, both = each[0] - each[1], variance[0] + variance[1]
    return _with_mean(difference, both)


def _with_mean(difference: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Put the mean over templates, the last axis, before them; with the error of each."""
    present = ~np.isnan(difference)
    overall = np.where(present, variance, 0.0).sum(axis=-1) / np.maximum(present.sum(axis=-1), 1) ** 2
    mean = present_mean(difference, axis=-1)
    error = np.sqrt(np.concatenate([np.where(np.isnan(mean), np.nan, overall)[..., None], variance], axis=-1))
    return np.concatenate([mean[..., None], difference], axis=-1), error


def _overall(moments: Moments) -> tuple[Floats, Floats]:
    """The difference of each value from all, mean over templates, and its error: (…, values)."""
    parts = _differences(moments.means), _difference_variance(moments)
    each, variance = (np.moveaxis(part, -2, -1) for part in parts)
    mean, error = _with_mean(each, variance)
    return mean[..., 0], error[..., 0]


def _difference_variance(moments: Moments) -> Floats:
    """The squared error of each value's difference from all: (…, templates, values)."""
    present = ~np.isnan(moments.means)
    share = present / np.maximum(present.sum(axis=-1, keepdims=True), 1)  # of each value in the mean of all
    errors = np.where(present, moments.errors, 0.0)
    # Σ_w (δ_vw − share_w)² e_w, without a matrix for each template
    variance: Floats = (share**2 * errors).sum(axis=-1, keepdims=True) + (1 - 2 * share) * errors
    return variance


def _studentized(difference: Floats, error: Floats) -> Floats:
    """|d|/s: 0 where both are 0, ∞ where only s is, and |d| where there is no s."""
    size = np.abs(difference)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = np.where(size > _TIE, size / np.where(error > _TIE, error, 0.0), 0.0)
    return np.where(np.isnan(error) | np.isnan(size), size, ratio)


def subgroup_weights(subgroups: Sequence[str]) -> Floats:
    """Mean of one subgroup minus that of another, for every two: (pairs, values)."""
    names = np.array(subgroups)
    rows = [
        (names == one) / (names == one).sum() - (names == other) / (names == other).sum()
        for one, other in subgroup_pairs(subgroups)
    ]
    return np.array(rows).reshape(len(rows), len(names))


def score_contrasts(scores: Floats, weights: Floats, *, rng: np.random.Generator, draws: int) -> MeanDifferences:
    """Return weighted sums of the values' scores, minus each template's mean: (1 + templates, contrasts).

    First the mean over templates, with an interval over templates and p from shuffles within each (|mean| over its
    error, as for texts); then each template, which is exact.
    """
    templates = len(scores)
    shape = (1 + templates, len(weights))
    if not len(weights):
        nothing = np.zeros(shape)
        return MeanDifferences(estimate=nothing, low=nothing, high=nothing, p=nothing, n=nothing.astype(np.int64))
    centred = scores - scores.mean(axis=1, keepdims=True)
    each = centred @ weights.T
    estimate, error = _mean_and_error(each)
    many = rng.permuted(np.repeat(centred[None], draws, axis=0), axis=2) @ weights.T
    shuffled = _size(*_mean_and_error(many))
    observed = _size(estimate, error)
    low, high, p = (np.full(shape, np.nan) for _ in range(3))
    p[0] = (1 + (shuffled >= observed * (1 - 1e-9)).sum(axis=0)) / (1 + draws)
    if templates >= FEWEST:
        reach = float(stats.t.ppf(0.975, templates - 1)) * error
        low[0], high[0] = estimate - reach, estimate + reach
    counted = (weights != 0).sum(axis=1)
    return MeanDifferences(
        estimate=np.concatenate([estimate[None], each]),
        low=low,
        high=high,
        p=p,
        n=np.concatenate([templates * counted[None], np.repeat(counted[None], templates, axis=0)]),
    )


def _mean_and_error(each: Floats) -> tuple[Floats, Floats]:
    templates = each.shape[-2]
    error = (
        each.std(axis=-2, ddof=1) / math.sqrt(templates)
        if templates > 1
        else np.zeros(each.shape[:-2] + each.shape[-1:])
    )
    return each.mean(axis=-2), error


def _size(mean: Floats, error: Floats) -> Floats:
    """|mean| in errors; without an error, |mean| itself."""
    return np.abs(mean) / np.where(error > 1e-12, error, 1.0)


def shuffled_scores(scores: Floats, *, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
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


def _differences(means: Floats) -> Floats:
    """Mean of each value minus that of all values: (…, templates, values) -> (…, templates, values).

    NaN where a value has no sample, or is alone.
    """
    alone = (~np.isnan(means)).sum(axis=-1, keepdims=True) < 2
    return np.where(alone, np.nan, means - present_mean(means, axis=-1)[..., None])
