"""Permutation tests: sign flips for paired differences, shuffled labels for groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clinometer.stats._clusters import FloatArray, IntArray, Labels, as_columns, group_items, one_row_each

LabelStatistic = Callable[[FloatArray, NDArray[Any]], FloatArray]

_BATCH = 4_000_000  # numbers held at a time, to limit memory
_TIE = 1e-12  # relative: two sums of the same numbers in another order count as equal


@dataclass(frozen=True, slots=True, kw_only=True)
class PermutationResult:
    """What was observed and what chance gives; each field has the shape of the statistic."""

    estimate: FloatArray
    null: FloatArray  # mean of the statistic under permutation: `estimate − null` is the excess over chance
    p: FloatArray
    n: IntArray  # items that were not missing


def sign_flip_test(
    differences: ArrayLike, *, clusters: Labels | None = None, rng: np.random.Generator, draws: int = 9999
) -> PermutationResult:
    """Test whether the mean of paired differences is zero, by flipping the sign of whole clusters.

        p = #{σ : |Σ_g σ_g S_g| ≥ |Σ_g S_g|} / #σ,   S_g = Σ_{i in g} d_i,   σ_g = ±1

    Two-sided. All 2^G sign patterns are tried if half of them (the other half mirrors it) are at most `draws`;
    otherwise `draws` random ones and the observed one, (b + 1)/(m + 1), which is never 0. The test is exact if
    swapping the members of a pair changes nothing but the sign. For a false-discovery rate over many columns p
    must be able to become small: use at least 20 × columns draws. Phipson & Smyth (2010).

    Args:
        differences: (items,) or (items, ...); NaN is missing.
        clusters: a label for each item; items of one cluster are flipped together.
        rng: where the signs come from; not used if all patterns are tried.
        draws: how many random sign patterns.

    Of the 8 sign patterns of (1, 2, 3) two give a sum of ±6, p = 2/8:

    >>> float(sign_flip_test([1.0, 2.0, 3.0], rng=np.random.default_rng(0)).p)
    0.25
    """
    columns = as_columns(differences)
    shape = np.shape(differences)[1:]
    grouping = group_items(clusters, len(columns))
    present = ~np.isnan(columns)
    n = present.sum(axis=0)
    sums = grouping.sums(np.where(present, columns, 0.0))
    threshold = np.abs(sums.sum(axis=0)) - _TIE * np.abs(sums).sum(axis=0)

    exact = 2 ** (len(sums) - 1) <= draws
    patterns = _all_signs(len(sums)) if exact else _random_signs(sums.shape, draws=draws, rng=rng)
    as_large = np.zeros(sums.shape[1], dtype=np.int64)
    tried = 0
    for signs in patterns:
        as_large += (np.abs(signs @ sums) >= threshold).sum(axis=0)
        tried += len(signs)
    # the random patterns may not include the observed one: add it
    p = as_large / tried if exact else (as_large + 1) / (tried + 1)
    estimate = np.divide(sums.sum(axis=0), n, out=np.full(n.shape, np.nan), where=n > 0)
    return PermutationResult(
        estimate=estimate.reshape(shape)[()],
        null=np.where(n > 0, 0.0, np.nan).reshape(shape)[()],
        p=np.where(n > 0, p, np.nan).reshape(shape)[()],
        n=n.reshape(shape)[()],
    )


def _all_signs(groups: int) -> Iterator[FloatArray]:
    """Every sign pattern whose last sign is +: (2^(groups − 1), groups)."""
    bits = np.arange(2 ** (groups - 1))[:, None] >> np.arange(groups)
    yield (1 - 2 * (bits & 1)).astype(np.float64)


def _random_signs(shape: tuple[int, ...], *, draws: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    batch = max(1, _BATCH // max(shape))
    for done in range(0, draws, batch):
        bits = rng.integers(2, size=(min(batch, draws - done), shape[0]), dtype=np.int8)
        yield (1 - 2 * bits).astype(np.float64)


def difference_of_means(values: FloatArray, labels: NDArray[Any]) -> FloatArray:
    """Return the mean under the larger label minus the mean under the smaller, for each row of labels.

    Shapes: values (items, ...), labels (k, items) -> (k, ...).

    >>> difference_of_means(np.array([1.0, 2.0, 6.0]), np.array([[False, False, True], [False, True, False]]))
    array([ 4.5, -1.5])
    """
    names = np.unique(labels[0])
    if len(names) != 2:
        raise ValueError(f"found {len(names)} distinct labels; a difference of means needs 2")
    chosen = (labels == names[1]).astype(np.float64)
    columns = values.reshape(len(values), -1)
    present = (~np.isnan(columns)).astype(np.float64)
    filled = np.nan_to_num(columns)
    with np.errstate(invalid="ignore", divide="ignore"):  # a label without any present value has no mean
        above = (chosen @ filled) / (chosen @ present)
        below = ((1 - chosen) @ filled) / ((1 - chosen) @ present)
    return np.reshape(above - below, (len(labels), *values.shape[1:]))


def permutation_test(
    values: ArrayLike,
    labels: Labels,
    *,
    rng: np.random.Generator,
    statistic: LabelStatistic = difference_of_means,
    groups: Labels | None = None,
    alternative: Literal["two-sided", "greater"] = "two-sided",
    draws: int = 1999,
) -> PermutationResult:
    """Test whether a statistic depends on the labels, by shuffling them over the items.

        p₊ = (1 + #{T* ≥ T}) / (draws + 1),   p = p₊ ("greater") or min(1, 2 · min(p₊, p₋)) ("two-sided")

    "greater" is for distances, which only grow if labels matter (the Wasserstein distance).
    Phipson & Smyth (2010).

    Args:
        values: (items,) or (items, ...); NaN is missing, which the statistic must handle.
        labels: (items,), one for each item.
        rng: where the shuffles come from.
        statistic: (values, labels as k × items) -> (k, ...), one row for each row of labels.
        groups: (items,); labels are shuffled only within a group (a template).
        alternative: "two-sided", or "greater" if only large values speak against chance.
        draws: how many shuffles.

    >>> scores = [0.1, 0.2, 0.1, 0.2, 0.1, 0.8, 0.9, 0.8, 0.9, 0.8]
    >>> stigmatized = [False] * 5 + [True] * 5
    >>> result = permutation_test(scores, stigmatized, rng=np.random.default_rng(0))
    >>> round(float(result.estimate), 2), bool(result.p < 0.02)
    (0.7, True)
    """
    if alternative not in ("two-sided", "greater"):
        raise ValueError(f"found alternative={alternative!r}; give 'two-sided' or 'greater'")
    array, observed = np.asarray(values, dtype=np.float64), np.asarray(labels)
    items = len(as_columns(array))
    if observed.shape != (items,):
        raise ValueError(f"found labels of shape {observed.shape} for {items} items; give one label for each item")
    estimate = one_row_each(statistic(array, observed[None]), 1, of="labels")[0]

    shuffled = []
    batch = max(1, _BATCH // items)
    for done in range(0, draws, batch):
        rows = min(batch, draws - done)
        some = _shuffle_within(observed, groups, rows=rows, rng=rng)
        shuffled.append(one_row_each(statistic(array, some), rows, of="labels"))
    null = np.concatenate(shuffled)
    slack = _TIE * np.abs(null).max(axis=0)
    above = (1 + (null >= estimate - slack).sum(axis=0)) / (draws + 1)
    below = (1 + (null <= estimate + slack).sum(axis=0)) / (draws + 1)
    p = above if alternative == "greater" else np.minimum(1.0, 2 * np.minimum(above, below))
    return PermutationResult(
        estimate=estimate[()],
        null=null.mean(axis=0)[()],
        p=np.where(np.isnan(estimate), np.nan, p)[()],
        n=np.full(estimate.shape, (~np.isnan(as_columns(array))).any(axis=1).sum())[()],
    )


def _shuffle_within(
    labels: NDArray[Any], groups: Labels | None, *, rows: int, rng: np.random.Generator
) -> NDArray[Any]:
    """Return the labels in a new order, `rows` times; each group keeps its own labels."""
    every = np.tile(labels, (rows, 1))
    if groups is None:
        return rng.permuted(every, axis=1)
    grouping = group_items(groups, len(labels))
    for members in np.split(grouping.order, grouping.starts[1:]):
        every[:, members] = rng.permuted(every[:, members], axis=1)
    return every
