"""Bootstrap intervals for items that come in clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from clinometer.stats._clusters import FloatArray, IntArray, Labels, as_columns, group_items
from clinometer.stats._resampling import (
    STEP,
    Draws,
    Statistic,
    check_draws,
    deviations_from,
    function_of_means,
    limits,
    resample,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its interval; each field has the shape of the statistic (a scalar for a single one)."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray  # two-sided, of "the statistic is `null`": at most 1 − level when the interval leaves it out
    n: IntArray  # items that were not missing


def cluster_bootstrap(
    values: ArrayLike,
    clusters: Labels | None = None,
    *,
    rng: np.random.Generator,
    statistic: Statistic | None = None,
    null: float = 0.0,
    draws: int = 1999,
    level: float = 0.95,
) -> Interval:
    """Give a mean, or a smooth function of means, an interval that respects clusters.

    Each draw resamples the clusters (templates, occupations), then the items within every cluster drawn; without
    `clusters` it resamples the items (reviews). Draws are studentized by a standard error between clusters:

        t* = (θ* − θ) / s*,   s² = G/(G−1) · Σ_g L_g² / N²,   L_g = Σ_{i in g} ℓ_i
        low = θ − t*_{1−α/2} · s,   high = θ − t*_{α/2} · s

    with G clusters, N items and ℓ_i the influence of item i on the statistic (for the mean, v_i − θ); s* is the
    same formula on the draw. All columns share their draws, so that they are resampled jointly.

    Why studentized: percentiles of the same draws count the spread within clusters twice (99.5 % coverage for 58
    clusters of 20 independent items) and are too short for few clusters (88 % for 10 clusters of skewed
    probabilities). In t* the double counting stands above and below the line, and skewness is corrected.
    By simulation it covers 94–96.5 % for 10 to 58 clusters of 1 to 20 items, normal or skewed, correlated within
    clusters or not. Too long for 0/1 items with mean 0.1 in 10 clusters (98 %), a little short for 10 clusters of
    which one holds a quarter of the items (91–93 %).
    Davison & Hinkley, Bootstrap Methods and their Application (1997), §2.4, §3.8, §5.2.

    Where so few values differ that draws without any spread reach the tails (two non-zero among thousands), the
    percentiles of the draws stand in. Values that never differ give an interval of no length; a single cluster
    gives none (NaN). `p` inverts the interval and is never below 2/(draws + 1). For a plain mean prefer the
    p-value of `sign_flip_test`, whose error rate holds for any number of non-zero values.

    Args:
        values: (items,) or (items, ...). NaN is missing: left out of its own column's mean and of `n`.
        clusters: a label for each item.
        rng: where the draws come from.
        statistic: smooth function of the column means, row by row, (k, ...) -> (k, ...); without it the means.
        null: the value that `p` tests.
        draws: how many; 1999 make 2.5 % of (draws + 1) a whole number.
        level: share of intervals that should hold the truth.

    >>> rng = np.random.default_rng(0)
    >>> found = cluster_bootstrap([1.0, 2.0, 3.0, 4.0, 5.0, 9.0], ["a", "a", "b", "b", "c", "c"], rng=rng)
    >>> float(found.estimate), int(found.n), bool(found.low < 4 < found.high)
    (4.0, 6, True)

    A ratio of two means:

    >>> x = rng.uniform(1, 2, size=(50, 2))
    >>> ratio = cluster_bootstrap(x, statistic=lambda means: means[:, 0] / means[:, 1], null=1.0, rng=rng)
    >>> bool(ratio.low < ratio.estimate < ratio.high)
    True
    """
    check_draws(draws, level)
    columns = as_columns(values)
    grouping = group_items(clusters, len(columns))
    present = ~np.isnan(columns)
    function = function_of_means(statistic, np.shape(values)[1:], missing=not present.all())
    if not present.all():
        columns = np.concatenate([np.where(present, columns, 0.0), present], axis=1)

    centre = columns.mean(axis=0)
    deviations = deviations_from(centre, columns)
    with np.errstate(invalid="ignore", divide="ignore"):  # a column with nothing present is 0/0, and NaN is right
        estimate = function(centre[None])
        shape = estimate.shape[1:]
        estimate = estimate.reshape(-1)
        if statistic is None and present.all():
            influence = deviations
            drawn = resample(influence, grouping, studentized=influence.shape[1], rng=rng, draws=draws)
            moved = drawn.means
        else:
            slope = (function(centre + STEP * deviations) - function(centre - STEP * deviations)) / (2 * STEP)
            influence = slope.reshape(len(columns), -1)
            both = np.concatenate([influence, deviations], axis=1)
            drawn = resample(both, grouping, studentized=influence.shape[1], rng=rng, draws=draws)
            moved = function(centre + drawn.means[:, influence.shape[1] :]).reshape(draws, -1) - estimate

    groups = len(grouping.sizes)
    if groups > 1:
        error = np.sqrt(groups / (groups - 1) * (grouping.sums(influence) ** 2).sum(axis=0)) / len(columns)
    else:
        error = np.full(estimate.shape, np.nan)
    found = limits(estimate, error, Draws(moved, drawn.errors), null=null, alpha=1 - level)
    n = present.sum(axis=0) if statistic is None else np.full(estimate.shape, present.any(axis=1).sum())
    return Interval(
        estimate=estimate.reshape(shape)[()],
        low=found.low.reshape(shape)[()],
        high=found.high.reshape(shape)[()],
        p=found.p.reshape(shape)[()],
        n=n.reshape(shape)[()],
    )
