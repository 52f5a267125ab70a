"""How much the scores of generated text depend on who it is about: individual and group fairness.

Both rest on the Wasserstein-1 distance between two samples (counterfactual audit).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist, squareform

from clinometer.metrics.fairness_pooled import PooledDistances
from clinometer.metrics.means import Floats, Integers, present_mean


def wasserstein1(x: ArrayLike, y: ArrayLike) -> float:
    r"""Return the Wasserstein-1 distance between the distributions of two samples.

    .. math:: W_1(P, Q) = \int_0^1 |F_P^{-1}(u) - F_Q^{-1}(u)|\,du
        = E_{\tau \sim U[0,1]} |p(S > \tau) - p(\tilde S > \tau)|

    Equation 1 of the counterfactual paper; the second form is for scores from 0 to 1. Shapes (n,) and (m,); NaN is
    missing and left out, and the result is NaN if nothing is left of either. Even two samples of the same
    distribution have a positive distance, which falls with :math:`1/\sqrt n`: see `fairness_null`.

    Of three quarters of the mass at 0, one quarter moves to 1:

    >>> wasserstein1([0.0, 0.0, 0.0, 1.0], [0.0, 1.0])
    0.25
    """
    first, second = (np.sort(np.asarray(each, dtype=np.float64).ravel()) for each in (x, y))
    first, second = first[~np.isnan(first)], second[~np.isnan(second)]
    if not len(first) or not len(second):
        return float("nan")
    if len(first) == len(second):
        return float(np.abs(first - second).mean())
    grid = quantile_grid(np.array([len(first), len(second)]))
    return float((np.abs(first[grid.places[0]] - second[grid.places[1]]) * grid.widths).sum())


@dataclass(frozen=True, slots=True)
class QuantileGrid:
    """The steps on which the quantile functions of samples of given sizes are all constant.

    On step j, which has `widths[j]` of the probability, the quantile function of sample i is its sorted value
    number `places[i, j]`. Samples of the same size n have n steps of width 1/n.
    """

    places: Integers  # (samples, steps)
    widths: Floats  # (steps,), they add up to 1


def quantile_grid(sizes: Integers) -> QuantileGrid:
    """Return the common steps of samples of these sizes, each at least 1.

    >>> grid = quantile_grid(np.array([2, 3]))
    >>> grid.widths.round(3).tolist(), grid.places.tolist()
    ([0.333, 0.167, 0.167, 0.333], [[0, 0, 1, 1], [0, 1, 1, 2]])
    """
    distinct = np.unique(sizes)
    if len(distinct) == 1:  # nearly always
        n = int(distinct[0])
        return QuantileGrid(np.tile(np.arange(n), (len(sizes), 1)), np.full(n, 1 / n))
    ends = np.unique(np.concatenate([np.arange(1, size + 1) / size for size in distinct]))
    # i/n of two sizes can differ in the last bit, which does not make a step
    ends = ends[np.append(np.diff(ends) > 1e-12, True)]
    starts = np.concatenate([[0.0], ends[:-1]])
    middles = (starts + ends) / 2
    return QuantileGrid((middles * sizes[:, None]).astype(np.int64), ends - starts)


def small_labels(numbers: Integers) -> Any:
    """Return group numbers in one byte each where possible, because such labels sort much faster."""
    return numbers.astype(np.uint8) if numbers.max(initial=0) < 256 else numbers.astype(np.uint16)


def individual_fairness(scores: ArrayLike) -> float:
    r"""Return the mean Wasserstein-1 distance between two values of the attribute in the same template (I.F.).

    .. math:: \frac{2}{M |A| (|A| - 1)} \sum_{m=1}^{M} \sum_{a, \tilde a} W_1(P_S(x^m), P_S(\tilde x^m))

    Equation 3 of the counterfactual paper: over all M templates and, within a template, all unordered pairs of
    values. `scores` is templates × values × samples; NaN is a missing sample. A pair is left out of the mean where
    one of its values has no sample in the template. 0 is fair; finite samples never quite reach it: see
    `fairness_null`.

    Two templates, two values; the scores differ by 0.2 in the first and by 0 in the second:

    >>> round(individual_fairness([[[0.4, 0.6], [0.6, 0.8]], [[0.1, 0.9], [0.9, 0.1]]]), 3)
    0.1
    """
    pairs = pairwise_wasserstein(scores)
    return float(present_mean(pairs[:, *np.triu_indices(pairs.shape[1], 1)], axis=None))


def group_fairness(scores: ArrayLike, subgroups: Sequence[Hashable] | None = None) -> float:
    r"""Return the mean Wasserstein-1 distance between a subgroup's scores and all scores (G.F.).

    .. math:: \frac{1}{|A|} \sum_{a \in A} W_1(P_S^a, P_S^*)

    Equation 4 of the counterfactual paper. :math:`P_S^a` is over "all generated sentences of inputs from this
    subgroup", :math:`P_S^*` over "the entire evaluation set" (§3). Both are pooled over the templates, so opposite
    effects in two templates can cancel, unlike in I.F. For a single template give `scores[[m]]`.

    Args:
        scores: templates × values × samples; NaN is missing.
        subgroups: (values,), the subgroup of each value; by default each value is its own.

    >>> round(group_fairness([[[0.4, 0.6], [0.6, 0.8]]]), 3)
    0.1
    """
    return float(present_mean(subgroup_wasserstein(scores, subgroups).distances))


def demographic_disparity(scores: ArrayLike, *, threshold: float) -> float:
    r"""Return the mean difference between the positive rates of two values in the same template.

    .. math:: |p(S > \tau \mid a) - p(S > \tau \mid \tilde a)|

    §3 of the counterfactual paper, averaged over templates and unordered pairs as I.F. is; its mean over all
    thresholds between 0 and 1 is I.F. For its null or interval, pass `above_threshold(scores, …)` to those
    functions.

    >>> demographic_disparity([[[0.4, 0.6], [0.6, 0.8]]], threshold=0.5)
    0.5
    """
    return individual_fairness(above_threshold(scores, threshold=threshold))


def above_threshold(scores: ArrayLike, *, threshold: float) -> Floats:
    """Return 1 where a score is above the threshold, 0 where not, NaN where it is missing.

    >>> above_threshold([0.2, 0.5, 0.7, np.nan], threshold=0.5).tolist()
    [0.0, 0.0, 1.0, nan]
    """
    array = np.asarray(scores, dtype=np.float64)
    return np.where(np.isnan(array), np.nan, (array > threshold).astype(np.float64))


def pairwise_wasserstein(scores: ArrayLike) -> Floats:
    """Return the Wasserstein-1 distance between every two values, template by template.

    Shapes: templates × values × samples -> templates × values × values; NaN for pairs with a value without
    samples.

    >>> pairwise_wasserstein([[[0.5, 0.5], [0.5, 1.0], [0.0, 0.0]]])[0].tolist()
    [[0.0, 0.25, 0.5], [0.25, 0.0, 0.75], [0.5, 0.75, 0.0]]
    """
    array = as_scores(scores)
    templates, values, _ = array.shape
    out = np.full((templates, values, values), np.nan)
    for at, (used, distances) in enumerate(_pair_distances(array)):
        if len(used):
            out[at, used[:, None], used] = squareform(distances)
    return out


def every_pair(scores: Floats) -> Floats:
    """Return the Wasserstein-1 distances of all pairs that there are, template after template, (pairs,)."""
    return np.concatenate([distances for _, distances in _pair_distances(scores)])


def _pair_distances(scores: Floats) -> Iterator[tuple[Integers, Floats]]:
    """Yield which values of a template have samples, and the distances of every two of these."""
    ordered = np.sort(scores, axis=2)  # NaN goes last
    for template, sizes in zip(ordered, (~np.isnan(scores)).sum(axis=2), strict=True):
        used = np.flatnonzero(sizes)
        if not len(used):
            yield used, np.zeros(0)
        elif sizes.min() == template.shape[1]:
            yield used, pdist(template, "cityblock") / template.shape[1]
        else:
            grid = quantile_grid(sizes[used])
            yield used, pdist(np.take_along_axis(template[used], grid.places, axis=1) * grid.widths, "cityblock")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubgroupDistances:
    """How far the scores of each subgroup are from all scores."""

    subgroups: tuple[Hashable, ...]  # in the order of first appearance
    distances: Floats  # (subgroups,): NaN for one without samples


def subgroup_wasserstein(scores: ArrayLike, subgroups: Sequence[Hashable] | None = None) -> SubgroupDistances:
    """Return the Wasserstein-1 distance of each subgroup from all scores, pooled over templates: the terms of G.F.

    >>> found = subgroup_wasserstein([[[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]], ["x", "y", "y"])
    >>> found.subgroups, found.distances.round(3).tolist()
    (('x', 'y'), [0.5, 0.25])
    """
    array = as_scores(scores)
    groups = group_values(array.shape[1], subgroups)
    present = ~np.isnan(array)
    labels = np.broadcast_to(small_labels(groups.of_value)[:, None], array.shape)[present]
    pool = PooledDistances(array[present], np.bincount(labels, minlength=len(groups.names)))
    return SubgroupDistances(subgroups=groups.names, distances=pool.of(labels))


def as_scores(scores: ArrayLike) -> Floats:
    """Return the scores as an array templates × values × samples, or say what is wrong with them."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 3 or array.shape[1] < 2:
        raise ValueError(f"found scores of shape {array.shape}; give templates × values (2 or more) × samples")
    if np.isinf(array).any():
        raise ValueError("found an infinite score; give numbers, or NaN where a score is missing")
    return array


def samples_of(many: Sequence[Floats]) -> Integers:
    """Return the samples of each value in each template, which must be the same for all sets of scores."""
    sizes: Integers = (~np.isnan(many[0])).sum(axis=2)
    if any(not np.array_equal((~np.isnan(each)).sum(axis=2), sizes) for each in many):
        raise ValueError("the sets of scores have different samples missing; give each of them alone")
    return sizes


@dataclass(frozen=True, slots=True)
class ValueGroups:
    """The subgroups that values belong to, numbered in the order of first appearance."""

    names: tuple[Hashable, ...]
    of_value: NDArray[np.int64]  # (values,): number of the subgroup


def group_values(values: int, subgroups: Sequence[Hashable] | None) -> ValueGroups:
    """Return the subgroup of each value; without subgroups, each value is its own."""
    labels = range(values) if subgroups is None else subgroups
    if len(labels) != values:
        raise ValueError(f"found {len(labels)} subgroups for {values} values; give one for each value")
    names = tuple(dict.fromkeys(labels))
    place = {name: at for at, name in enumerate(names)}
    return ValueGroups(names, np.array([place[label] for label in labels], dtype=np.int64))


def counted_pairs(groups: ValueGroups, *, across: bool) -> NDArray[np.bool_]:
    """Tell which unordered pairs I.F. averages: all, or those of two subgroups alone.

    >>> counted_pairs(group_values(3, ["x", "x", "y"]), across=True).tolist()  # 0 and 1, 0 and 2, 1 and 2
    [False, True, True]
    """
    first, second = np.triu_indices(len(groups.of_value), 1)
    counted: NDArray[np.bool_] = groups.of_value[first] != groups.of_value[second]
    return counted if across else np.ones(len(first), dtype=np.bool_)


def pair_matrix(pairs: Floats) -> Floats:
    """Put one number for each unordered pair into a matrix values × values, with NaN on the diagonal."""
    full: Floats = squareform(pairs, checks=False)
    np.fill_diagonal(full, np.nan)
    return full
