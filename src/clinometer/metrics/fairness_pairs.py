"""Every two values against chance, each pair with itself alone (counterfactual audit)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clinometer.metrics.fairness import as_scores, pair_matrix
from clinometer.metrics.fairness_shuffles import AgainstChance, against_chance
from clinometer.metrics.means import Floats, Integers, present_mean

_BATCH = 250_000  # distances that are measured at a time: what a processor's cache holds
_ALONE = 500_000  # multiplications that OpenBLAS does without threads of its own
_TIE_OF_SINGLES = 1e-5  # relative: two sums of the same numbers, of single precision, in another order


@dataclass(frozen=True, slots=True, kw_only=True)
class PairNull:
    """Every two values against chance, each pair with itself alone; NaN on the diagonal."""

    pairs: AgainstChance  # (values, values): mean over templates
    template_distances: Floats  # (templates, values, values)
    template_null: Floats  # mean over the shuffles
    template_p: Floats
    draws: int


def pair_null(
    scores: ArrayLike, *, rng: np.random.Generator, draws: int = 1000, most: int = 200_000_000
) -> PairNull:
    """Set W1 of every two values against what shuffling the samples of these two gives, in each template.

        p = (1 + #{W1* ≥ W1}) / (draws + 1)

    The null is that two values have one distribution, whatever the others have; `fairness_null` shuffles over all
    values, and calls two that vary more than the others different although they are alike. Exact for any sizes.

    For the sorted scores of both, W1 = Σ_j gap_j |i_j/n − k_j/m|, where i_j of the n scores of one and k_j of the
    m of the other lie below gap j. Which labels lie below does not depend on the scores, so pairs of the same
    sizes share their shuffles, and all their distances are one product of matrices.

    Args:
        scores: templates × values × samples; NaN is missing.
        rng: where the shuffles come from.
        draws: how many; for false-discovery rates over m pairs at least 20 · m.
        most: labels that are shuffled at the most; many different sizes take fewer draws.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=(3, 4, 50))
    >>> scores[:, 0] **= 3
    >>> found = pair_null(scores, rng=rng, draws=199)
    >>> float(found.pairs.p[0, 1]), bool(found.pairs.p[1, 2] > 0.05), found.template_p.shape
    (0.005, True, (3, 4, 4))
    """
    array = as_scores(scores)
    templates, values, _ = array.shape
    first, second = np.triu_indices(values, 1)
    sizes = (~np.isnan(array)).sum(axis=2)
    ordered = np.sort(array, axis=2)  # NaN goes last
    classes = [_size_classes(each[first], each[second]) for each in sizes]
    draws = max(min(draws, most // max(sum(n + m for each in classes for n, m in each), 1)), 1)
    distances, as_large, sums = (np.full((templates, len(first)), np.nan) for _ in range(3))
    means, counts = np.zeros((1 + draws, len(first)), dtype=np.float32), np.zeros(len(first))  # over templates
    for at, each in enumerate(classes):
        for (n, m), pairs in each.items():
            # most often all pairs have the same sizes, and a slice is written much faster than a list of places
            where: Integers | slice = slice(None) if len(pairs) == len(first) else pairs
            both = np.concatenate([ordered[at, first[pairs], :n], ordered[at, second[pairs], :m]], axis=1)
            order = np.argsort(both, axis=1, kind="stable")
            gaps = np.diff(np.take_along_axis(both, order, axis=1), axis=1)
            found = (_imbalance(order < n, n, m) * gaps).sum(axis=1) / (n * m)
            counts[where] += 1
            distances[at, where], as_large[at, where], sums[at, where] = found, 0.0, 0.0
            steps = (gaps.T / (n * m)).astype(np.float32)
            threshold = (found * (1 - _TIE_OF_SINGLES)).astype(np.float32)
            labels = (np.arange(n + m) < n).astype(np.int64)  # whole words are shuffled fastest
            means[0, where] += threshold
            batch = min(draws, max(1, _BATCH // max(n + m, len(pairs))))
            for done in range(1, 1 + draws, batch):
                many = rng.permuted(np.tile(labels, (min(batch, 1 + draws - done), 1)), axis=1)
                shuffled = _product(_imbalance(many, n, m), steps)  # (draws, pairs)
                means[done : done + len(many), where] += shuffled
                # twice as fast as to count what is true
                as_large[at, where] += (shuffled >= threshold).view(np.uint8).sum(axis=0, dtype=np.uint32)
                sums[at, where] += shuffled.sum(axis=0, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):  # a pair that is in no template
        means /= counts.astype(np.float32)
    against = against_chance(means)
    estimate = present_mean(distances)
    return PairNull(
        pairs=_as_matrices(replace(against, estimate=estimate, excess=estimate - against.null)),
        template_distances=np.stack([pair_matrix(each) for each in distances]),
        template_null=np.stack([pair_matrix(each) for each in sums / draws]),
        template_p=np.stack([pair_matrix(each) for each in (1 + as_large) / (1 + draws)]),
        draws=draws,
    )


def _size_classes(first: Integers, second: Integers) -> dict[tuple[int, int], Integers]:
    """The pairs of each two sizes; those with nothing on one side are left out."""
    sizes = np.stack([first, second], axis=1)
    return {
        (int(n), int(m)): np.flatnonzero((sizes == (n, m)).all(axis=1))
        for n, m in np.unique(sizes, axis=0)
        if n and m
    }


def _imbalance(labels: NDArray[np.bool_] | Integers, n: int, m: int) -> NDArray[np.floating[Any]]:
    """n · m · |share of the n below each gap − share of the m|: (…, n + m) -> (…, n + m − 1).

    Whole numbers: exact in single precision up to a few thousand samples, which takes half of the time.
    """
    exact = n * (n + m) < 2**24
    of_first: NDArray[Any] = np.cumsum(labels, axis=1, dtype=np.int32 if exact else np.int64)[:, :-1]
    below: NDArray[Any] = np.arange(1, n + m, dtype=of_first.dtype)
    # i/n − (j − i)/m, of j below the gap, is (i (n + m) − j n) / n m
    imbalance: NDArray[Any] = np.abs(of_first * (n + m) - below * n)
    return imbalance.astype(np.float32 if exact else np.float64)


def _product(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return the product of two matrices, in tiles so small that no other thread is called to help.

    Tasks already keep every core busy: threads of the library would only wait for each other, and how they share
    the work, and so the last bits, would depend on the number of cores.
    """
    (rows, inner), columns = first.shape, second.shape[1]
    deep, wide = min(inner, 320), min(columns, 64)  # terms and columns of a tile …
    high = _ALONE // (deep * wide) // 12 * 12  # … and rows, of which a processor takes twelve at a time
    if high >= rows and deep == inner and wide == columns:
        small: NDArray[Any] = first @ second
        return small
    left = np.zeros((-(-rows // high), 1, high, inner), dtype=first.dtype)
    left.reshape(-1, inner)[:rows] = first
    right = np.zeros((inner, -(-columns // wide), wide), dtype=second.dtype)
    right.reshape(inner, -1)[:, :columns] = second
    right = right.transpose(1, 0, 2)
    out = np.empty((len(left), high, len(right), wide), dtype=np.result_type(first, second))
    tiles = out.transpose(0, 2, 1, 3)
    np.matmul(left[..., :deep], right[:, :deep], out=tiles)
    for start in range(deep, inner, deep):
        tiles += np.matmul(left[..., start : start + deep], right[:, start : start + deep])
    return out.reshape(len(left) * high, -1)[:rows, :columns]


def _as_matrices(pairs: AgainstChance) -> AgainstChance:
    """Put the unordered pairs into matrices values × values."""
    return AgainstChance(**{field.name: pair_matrix(getattr(pairs, field.name)) for field in fields(pairs)})
