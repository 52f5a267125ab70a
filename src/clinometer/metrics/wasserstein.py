"""The Wasserstein-1 distance between two samples (counterfactual audit)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Labels = NDArray[np.uint8] | NDArray[np.uint16]


def wasserstein1(x: ArrayLike, y: ArrayLike) -> float:
    r"""Return the Wasserstein-1 distance between the distributions of two samples.

    .. math:: W_1(P, Q) = \int_0^1 |F_P^{-1}(u) - F_Q^{-1}(u)|\,du
        = E_{\tau \sim U[0,1]} |p(S > \tau) - p(\tilde S > \tau)|

    Equation 1 of the counterfactual paper; the second form is for scores from 0 to 1. Shapes (n,) and (m,), of any
    two sizes; NaN is missing and left out. NaN where nothing is left of either. Between samples of one and the
    same distribution it is positive too, and falls with :math:`1/\sqrt n`: see `fairness_null`.

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
    number `places[i, j]`. Samples of one size n have n steps of width 1/n.
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
    ends = np.unique(np.concatenate([np.arange(1, size + 1) / size for size in distinct]))
    # i/n of two sizes can differ in the last bit: a step so short is no step
    ends = ends[np.append(np.diff(ends) > 1e-12, True)]
    starts = np.concatenate([[0.0], ends[:-1]])
    middles = (starts + ends) / 2
    return QuantileGrid((middles * sizes[:, None]).astype(np.int64), ends - starts)


class PooledDistances:
    """W1 of each of several groups from everything together, as a function of which group a score belongs to."""

    def __init__(self, scores: Floats, sizes: Integers) -> None:
        """Sort the scores, (n,), none missing; `sizes` says how many of them each group has."""
        self._order = np.argsort(scores, kind="stable")
        self._sizes = sizes
        self._starts = np.cumsum(sizes) - sizes
        n = len(scores)
        gaps = np.diff(scores[self._order])
        # up to gap number j, Σ gap and Σ gap · j/N, where j/N is the share of everything that lies below the gap
        self._gaps = np.concatenate([[0.0], np.cumsum(gaps)])
        self._weighted = np.concatenate([[0.0], np.cumsum(gaps * np.arange(1, n) / max(n, 1))])
        self._steps = {int(size): np.arange(size + 1) for size in sizes if size}
        self._turns = {size: steps * n // size for size, steps in self._steps.items()}

    def of(self, labels: Labels) -> Floats:
        """Return Σ_j gap_j |i_j/n − j/N| for each group, i_j being how many of its n scores lie below gap j.

        Between two neighbouring ranks of the group i is constant and j/N grows, so the sign of the difference
        changes once, at j = iN/n: differences of the cumulative sums give the whole stretch. `labels` has the
        group of each score, (n,), in the order in which the scores were given. NaN for a group without scores.
        """
        order = np.argsort(labels[self._order], kind="stable")
        out = np.full(len(self._sizes), np.nan)
        for at in np.flatnonzero(self._sizes):
            size = int(self._sizes[at])
            edges = np.empty(size + 2, dtype=np.int64)
            edges[0], edges[-1] = 0, len(order) - 1
            edges[1:-1] = order[self._starts[at] : self._starts[at] + size]  # gap number `rank` is the last below
            turns = np.clip(self._turns[size], edges[:-1], edges[1:])
            gaps = 2 * self._gaps[turns]
            at_edges = self._gaps[edges]
            gaps -= at_edges[:-1]
            gaps -= at_edges[1:]
            weighted = self._weighted[edges]
            rest = 2 * (weighted.sum() - self._weighted[turns].sum()) - weighted[0] - weighted[-1]
            out[at] = max(self._steps[size] @ gaps / size + rest, 0.0)  # rounding must not make it negative
        return out


def small_labels(numbers: Integers) -> Any:
    """Return group numbers in one byte each where that is enough: labels sort much faster so."""
    return numbers.astype(np.uint8) if numbers.max(initial=0) < 256 else numbers.astype(np.uint16)
