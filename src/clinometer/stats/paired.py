"""Whether one of two paired leans is farther from 0 than the other, whichever sign each has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from clinometer.stats._clusters import FloatArray, IntArray, Labels, as_columns
from clinometer.stats.bootstrap import cluster_bootstrap
from clinometer.stats.permutation import sign_flip_test
from clinometer.stats.shares import paired_share_interval
from clinometer.stats.two_groups import two_group_bootstrap

FEWEST_UNITS = 5  # of a part (or clusters of them) that an interval needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Sure:
    """Estimates with their intervals and two-sided p of "it is 0"; one entry for each column."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedLeans:
    """Two leans over the same units, and how they differ; one entry for each column."""

    before: FloatArray
    after: FloatArray
    change: Sure  # after − before, with its sign
    both: Sure  # after + before: decides which sign is farther from 0
    distance: Sure  # |after| − |before|
    n: IntArray  # units that both have


def paired_leans(
    before: ArrayLike,
    after: ArrayLike,
    parts: Sequence[int],
    weights: Sequence[float],
    *,
    rng: np.random.Generator,
    signed: bool = True,
    shares: bool = False,
    clusters: Labels | None = None,
    draws: int = 4999,
) -> PairedLeans:
    r"""Compare two leans that are weighted sums of means over the same units, column by column.

    .. math:: L = \sum_s w_s \bar v_s, \qquad D = L_B - L_A, \qquad S = L_B + L_A, \qquad
        |L_B| - |L_A| = (|S + D| - |S - D|) / 2

    The distance from 0 has a kink there, so it is not resampled itself: of two even-handed models both distances
    are chance, and a bootstrap of them would not know it. Instead :math:`|L_B| > |L_A|` exactly where D and S have
    one sign. Both are smooth, both come from the same units, and each gets an interval and a p-value of its own.
    That the distances are equal means that D or S is 0; so :math:`p = \max(p_D, p_S)` (an intersection-union test,
    Berger 1982), and the interval holds every distance that some D and S in their intervals give. It is without 0
    exactly where both of theirs are.

    One part: bootstrap of the mean, and sign flips. Two parts: `two_group_bootstrap`, p with it. `shares` are
    values of 0 and 1: the interval is that of paired shares.

    Args:
        before: (units,) or (units, columns); NaN is missing, and then missing in both.
        after: the same units.
        parts: (units,), the number of the part that a unit is in: 0, or 0 and 1.
        weights: of the mean of each part.
        rng: where the draws come from.
        signed: whether leans have a sign; if not, they are distances themselves, and D is all there is.
        shares: whether values are 0 or 1 (one part, not signed).
        clusters: (units,), units that are resampled together; for one part only.
        draws: of the bootstrap.

    >>> a = np.tile([0.1, -0.1], 20)
    >>> found = paired_leans(a + 0.1, 2 * a - 0.4, [0] * 40, [1.0], rng=np.random.default_rng(0))
    >>> found.before.round(2).item(), found.after.round(2).item(), found.distance.estimate.round(2).item()
    (0.1, -0.4, 0.3)
    >>> bool(0 < found.distance.low[0] < 0.3 < found.distance.high[0]), bool(found.distance.p[0] < 0.01)
    (True, True)
    """
    first, second = as_columns(before), as_columns(after)
    missing = np.isnan(first) | np.isnan(second)
    first, second = np.where(missing, np.nan, first), np.where(missing, np.nan, second)
    of_part = np.asarray(parts)
    sides = [of_part == part for part in range(len(weights))]
    enough = np.all([_units(~missing[side], clusters, side) >= FEWEST_UNITS for side in sides], axis=0)

    def sure(values: FloatArray) -> Sure:
        turned = [weight * values[side] for weight, side in zip(weights, sides, strict=True)]
        if shares:
            found = _shares(turned[0], rng=rng)
        elif len(turned) == 1:
            found = _one_part(turned[0], clusters, rng=rng, draws=draws)
        else:
            found = _two_parts(*turned, rng=rng, draws=draws)
        nan = np.where(enough, 0.0, np.nan)
        return Sure(estimate=found.estimate, low=found.low + nan, high=found.high + nan, p=found.p + nan)

    change = sure(second - first)
    both = sure(second + first) if signed else change
    leans = [
        np.sum(
            [weight * _mean(values[side]) for weight, side in zip(weights, sides, strict=True)],
            axis=0,
        )
        for values in (first, second)
    ]
    return PairedLeans(
        before=leans[0],
        after=leans[1],
        change=change,
        both=both,
        distance=distance_change(change, both) if signed else change,
        n=(~missing).sum(axis=0),
    )


def mean_leans(
    values: ArrayLike,
    parts: Sequence[int],
    weights: Sequence[float],
    *,
    rng: np.random.Generator,
    draws: int = 1999,
) -> Sure:
    """Return weighted sums of the means of one or two parts, column by column, as `paired_leans` has them.

    >>> found = mean_leans([[1.0], [3.0], [0.0], [2.0]], [0, 0, 1, 1], [1.0, -1.0], rng=np.random.default_rng(0))
    >>> found.estimate.tolist(), found.low.tolist()  # two units are too few
    ([1.0], [nan])
    """
    columns = as_columns(values)
    sides = [np.asarray(parts) == part for part in range(len(weights))]
    if not all(side.any() for side in sides):
        nothing = np.full(columns.shape[1], np.nan)
        return Sure(estimate=nothing, low=nothing, high=nothing, p=nothing)
    turned = [weight * columns[side] for weight, side in zip(weights, sides, strict=True)]
    if len(turned) == 1:
        found = _one_part(turned[0], None, rng=rng, draws=draws)
    else:
        found = _two_parts(*turned, rng=rng, draws=draws)
    enough = np.all([(~np.isnan(side)).sum(axis=0) >= FEWEST_UNITS for side in turned], axis=0)
    nan = np.where(enough, 0.0, np.nan)
    return Sure(estimate=found.estimate, low=found.low + nan, high=found.high + nan, p=found.p + nan)


def distance_change(change: Sure, both: Sure) -> Sure:
    """Return |after| − |before| from after − before and after + before.

    It rises or falls with each of the two while the other one stays, so its extremes are at their ends.

    >>> one, five = (np.array([value]) for value in (1.0, 5.0))
    >>> change = Sure(estimate=-one, low=-2 * one, high=-0.5 * one, p=0.01 * one)
    >>> both = Sure(estimate=-five, low=-6 * one, high=-4 * one, p=0.02 * one)
    >>> found = distance_change(change, both)  # −2 became −3
    >>> found.estimate.item(), found.low.item(), found.high.item(), found.p.item()
    (1.0, 0.5, 2.0, 0.02)
    """
    ends = [_distance(d, s) for d in (change.low, change.high) for s in (both.low, both.high)]
    return Sure(
        estimate=_distance(change.estimate, both.estimate),
        low=np.min(ends, axis=0),
        high=np.max(ends, axis=0),
        p=np.maximum(change.p, both.p),
    )


def independent_change(before: Sure, after: Sure, *, quantile: float = 1.96) -> Sure:
    """Return after − before of two estimates that nothing links, with an interval made of theirs.

    Zou & Donner, Construction of confidence limits about effect measures (Statistics in Medicine 27, 2008). p is
    that of the end towards 0, `quantile` being how many standard errors an interval reaches.

    >>> sides = [Sure(estimate=np.array([x]), low=np.array([x - 0.3]), high=np.array([x + 0.3]), p=np.array([1.0]))
    ...          for x in (0.1, 0.8)]
    >>> found = independent_change(*sides)
    >>> found.estimate.round(2).item(), found.low.round(2).item(), found.p.round(3).item()
    (0.7, 0.28, 0.001)
    """
    estimate = after.estimate - before.estimate
    low = estimate - np.hypot(after.estimate - after.low, before.high - before.estimate)
    high = estimate + np.hypot(after.high - after.estimate, before.estimate - before.low)
    reach = np.where(estimate > 0, estimate - low, high - estimate)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.where(estimate == 0, 0.0, quantile * np.abs(estimate) / reach)
    return Sure(estimate=estimate, low=low, high=high, p=np.asarray(2 * stats.norm.sf(z)))


def _distance(change: FloatArray, both: FloatArray) -> FloatArray:
    distance: FloatArray = (np.abs(both + change) - np.abs(both - change)) / 2
    return distance


def _mean(values: FloatArray) -> FloatArray:
    present = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: FloatArray = np.where(present, values, 0.0).sum(axis=0) / present.sum(axis=0)
    return mean


def _units(present: NDArray[np.bool_], clusters: Labels | None, side: NDArray[np.bool_]) -> IntArray:
    if clusters is None:
        counted: IntArray = present.sum(axis=0).astype(np.int64)
        return counted
    names = np.asarray(clusters)[side]
    return np.array([len(set(names[column].tolist())) for column in present.T], dtype=np.int64)


def _one_part(values: FloatArray, clusters: Labels | None, *, rng: np.random.Generator, draws: int) -> Sure:
    found = cluster_bootstrap(values, clusters, rng=rng, draws=draws)
    p = sign_flip_test(values, clusters=clusters, rng=rng).p
    return Sure(estimate=found.estimate, low=found.low, high=found.high, p=p)


def _two_parts(one: FloatArray, other: FloatArray, *, rng: np.random.Generator, draws: int) -> Sure:
    found = two_group_bootstrap(one, -other, rng=rng, draws=draws)
    return Sure(estimate=found.estimate, low=found.low, high=found.high, p=found.p)


def _shares(changes: FloatArray, *, rng: np.random.Generator) -> Sure:
    present = ~np.isnan(changes)
    gained, lost, n = ((mask & present).sum(axis=0) for mask in (changes > 0, changes < 0, present))
    found = paired_share_interval(gained, lost, n)
    p = sign_flip_test(changes, rng=rng).p
    return Sure(estimate=_mean(changes), low=np.asarray(found.low), high=np.asarray(found.high), p=p)
