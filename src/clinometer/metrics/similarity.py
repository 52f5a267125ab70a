"""How alike two models see the relations between groups: representational similarity (stereotypes audit)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepresentationalSimilarity:
    """The similarity of two models, and what each group adds to it."""

    mean: float
    per_group: Floats  # (groups,): NaN for a group that cannot be compared


def representational_similarity(
    a: ArrayLike, b: ArrayLike, *, self_similarity: bool = True
) -> RepresentationalSimilarity:
    r"""Return how alike two models see the relations between the same groups.

    .. math:: \rho = \frac1n \sum_i \mathrm{spearman}(w^a_i, w^b_i), \quad w_{ij} = \cos(v_i, v_j)

    "Comparison across models" in Section 5 of the stereotypes paper. `a` and `b` have shape (groups, dimensions):
    the same groups in the same order, and any number of dimensions each. The paper's authors keep a group's
    similarity with itself, which is 1 in both models; `self_similarity=False` leaves it out. A group whose vector
    is zero or missing (NaN) in either model has no cosine: it is left out of every comparison, and its `per_group`
    is NaN; so is that of a group whose similarities do not differ, and the mean where no group is left.

    >>> a = [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 3.0]]
    >>> round(representational_similarity(a, a).mean, 6)
    1.0
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 2 or second.ndim != 2 or len(first) != len(second):
        raise ValueError(
            f"found shapes {first.shape} and {second.shape}; give groups × dimensions, the same groups in both"
        )
    usable = has_direction(first) & has_direction(second)
    per_group = np.full(len(first), np.nan)
    if usable.any():
        ranks = [
            standard_ranks(similarity_matrix(vectors[usable]), self_similarity=self_similarity)
            for vectors in (first, second)
        ]
        per_group[usable] = np.clip((ranks[0] * ranks[1]).sum(axis=1), -1.0, 1.0)
    known = per_group[~np.isnan(per_group)]
    return RepresentationalSimilarity(mean=float(known.mean()) if len(known) else np.nan, per_group=per_group)


def has_direction(vectors: Floats) -> NDArray[np.bool_]:
    """Tell which vectors have a cosine with others: (groups, dimensions) -> (groups,)."""
    known: NDArray[np.bool_] = np.isfinite(vectors).all(axis=1) & (vectors != 0).any(axis=1)
    return known


def similarity_matrix(vectors: Floats) -> Floats:
    """Return the cosine between every two groups: (groups, dimensions) -> (groups, groups).

    >>> similarity_matrix(np.array([[1.0, 0.0], [3.0, 4.0]])).round(2).tolist()
    [[1.0, 0.6], [0.6, 1.0]]
    """
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    # cosines that are equal but for rounding must be ties
    return np.asarray(np.round(unit @ unit.T, 12))


def standard_ranks(matrix: Floats, *, self_similarity: bool) -> Floats:
    """Return the ranks within each row, with mean 0 and length 1: the product of two such rows is Spearman's ρ.

    Without self-similarity the diagonal is not ranked and 0. NaN in a row whose values do not differ.
    """
    ranked = matrix.copy()
    diagonal = np.eye(len(matrix), dtype=bool)
    if not self_similarity:
        ranked[diagonal] = np.inf  # the last rank, taken out again: the other ranks stay 1 … n − 1
    ranks = np.asarray(stats.rankdata(ranked, axis=1), dtype=np.float64)
    kept = np.ones_like(diagonal) if self_similarity else ~diagonal
    counts = kept.sum(axis=1, keepdims=True)
    sums = np.where(kept, ranks, 0.0).sum(axis=1, keepdims=True)
    deviations = np.where(kept, ranks - np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0), 0.0)
    length = np.linalg.norm(deviations, axis=1, keepdims=True)
    standard: Floats = np.divide(deviations, length, out=np.full_like(deviations, np.nan), where=length > 0)
    return standard
