"""Stigmatized conditions beside the others: means, their difference, and how sure it is.

The unit is the condition, not the prompt: a hundred sentences about one condition say what a model makes of that
condition, and nothing about the next one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinometer.metrics.attitude import Floats
from clinometer.probes.kit.numbers import Numbers
from clinometer.stats import cluster_bootstrap, permutation_test, share_interval

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

FEWEST = 5  # conditions (or social distances) that an interval needs
SHUFFLES = 9999


def mean_interval(
    values: Floats, *, rng: np.random.Generator, draws: int, clusters: Ints | None = None
) -> Numbers:
    """Return the mean of each column with a bootstrap interval, (items, ...) -> (...); n counts clusters.

    Whole clusters are resampled, then their items; without `clusters` each item is one. NaN is missing. A column
    with fewer than `FEWEST` clusters has no interval.
    """
    shape = values.shape[1:]
    if not len(values):
        return Numbers(estimate=np.full(shape, np.nan), n=np.zeros(shape, dtype=np.int64))
    present = ~np.isnan(values)
    n: Ints = present.sum(axis=0)
    if clusters is not None:
        held = np.zeros((int(clusters.max()) + 1, *shape), dtype=np.int64)
        np.add.at(held, clusters, present)
        n = (held > 0).sum(axis=0)
    found = cluster_bootstrap(values, clusters, rng=rng, draws=draws)
    few = n < FEWEST
    return Numbers(
        estimate=np.asarray(found.estimate),
        low=np.where(few, np.nan, found.low),
        high=np.where(few, np.nan, found.high),
        n=np.asarray(n),
    )


def share_numbers(share: Floats, n: Ints) -> Numbers:
    """Return shares of n items with Wilson's interval, which has a length also where the share is 0 or 1.

    Of 0 in 10 items one may say with 95 % that the share is at most z²/(10 + z²) = .278. Fewer than `FEWEST` items
    have no interval.

    >>> found = share_numbers(np.array(0.0), np.array(10))
    >>> round(float(found.low), 3), round(float(found.high), 3)
    (0.0, 0.278)
    """
    limits = share_interval(share, np.where(np.asarray(n) < FEWEST, 0, n))
    return Numbers(estimate=share, low=limits.low, high=limits.high, n=np.asarray(n))


def difference(values: Floats, stigmatized: Bools, *, rng: np.random.Generator, draws: int) -> Numbers:
    """Return the mean of the stigmatized conditions minus that of the others, (conditions, ...) -> (...)."""
    above = mean_interval(values[stigmatized], rng=rng, draws=draws)
    below = mean_interval(values[~stigmatized], rng=rng, draws=draws)
    return replace(minus(above, below), p=shuffled_p(values, stigmatized, rng=rng))


def minus(above: Numbers, below: Numbers) -> Numbers:
    r"""Return the difference of two independent estimates, with an interval made of theirs.

    .. math:: \theta_1 - \theta_2 - \sqrt{(\theta_1 - l_1)^2 + (u_2 - \theta_2)^2}

    and likewise above. Zou & Donner, Construction of confidence limits about effect measures: a general approach
    (Statistics in Medicine 27, 2008). NaN where one of them has no interval.
    """
    gap = Numbers(estimate=above.estimate - below.estimate, n=above.n + below.n)
    if above.low is None or above.high is None or below.low is None or below.high is None:
        return gap
    return replace(
        gap,
        low=gap.estimate - np.hypot(above.estimate - above.low, below.high - below.estimate),
        high=gap.estimate + np.hypot(above.high - above.estimate, below.estimate - below.low),
    )


def shuffled_p(values: Floats, stigmatized: Bools, *, rng: np.random.Generator) -> Floats:
    """Return p of "both groups have one mean", two-sided, by shuffling which conditions are stigmatized.

    What is compared is the difference divided by its standard error (`welch_t`): the groups are of unequal size
    and may spread unequally, which a plain difference would take for an effect (Janssen 1997). NaN where a group
    has fewer than `FEWEST` conditions.
    """
    shape = values.shape[1:]
    present = ~np.isnan(values)
    enough = (present[stigmatized].sum(axis=0) >= FEWEST) & (present[~stigmatized].sum(axis=0) >= FEWEST)
    if not np.any(enough):
        return np.full(shape, np.nan)
    found = permutation_test(values, stigmatized, statistic=welch_t, rng=rng, draws=SHUFFLES)
    return np.where(enough, found.p, np.nan)


def welch_t(values: Floats, labels: NDArray[Any]) -> Floats:
    r"""Return Welch's t of the items with a true label against the others, for each row of labels.

    .. math:: t = (\bar v_1 - \bar v_0) / \sqrt{s_1^2 / n_1 + s_0^2 / n_0}

    Shapes: values (items, ...), labels (k, items) -> (k, ...). NaN is missing. Groups that do not spread at all
    have the t of a spread a billionth of all items': large, and finite.

    >>> welch_t(np.array([1.0, 3.0, 4.0, 6.0]), np.array([[False, False, True, True]])).round(4)
    array([2.1213])
    """
    columns = values.reshape(len(values), -1)
    present = (~np.isnan(columns)).astype(np.float64)
    # around their mean, so that squares are not differences of large numbers
    centred = np.where(present > 0, columns - np.nansum(columns, axis=0) / np.maximum(present.sum(axis=0), 1), 0.0)
    scale = np.abs(centred).max(axis=0)
    means, errors = [], np.zeros((len(labels), columns.shape[1]))
    for side in (labels.astype(np.float64), 1.0 - labels.astype(np.float64)):
        n, total, squares = side @ present, side @ centred, side @ centred**2
        with np.errstate(invalid="ignore", divide="ignore"):  # a side with one item has no spread: NaN
            means.append(total / n)
            errors += np.maximum(squares - total**2 / n, 0.0) / (n - 1) / n
    floor = np.where(scale > 0, (1e-9 * scale) ** 2, 1.0)  # values that never differ have no difference either
    t: Floats = (means[0] - means[1]) / np.sqrt(np.maximum(errors, floor))
    return t.reshape(len(labels), *values.shape[1:])
