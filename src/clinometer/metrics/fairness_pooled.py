"""How far the scores of each group lie from all scores together: the terms of G.F., for one labelling or many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinometer.metrics.means import Floats, Integers

Labels = NDArray[np.uint8] | NDArray[np.uint16]
Ranks = NDArray[np.unsignedinteger[Any]]
LongFloats = NDArray[np.longdouble]

_FEW = 20  # looking up this part of all scores is dearer than looking up each once


class PooledDistances:
    r"""W1 of each of several groups from all scores together, as a function of which group a score belongs to.

    A group of n among N scores has n quantiles, each 1/n wide. The i-th of them stands against the stretch i of
    all scores, from iN/n to (i + 1)N/n in their order:

    .. math:: W_1 = \frac1n \sum_i \frac nN \int_{iN/n}^{(i+1)N/n} |x_{r_i} - x_{\lfloor s \rfloor}|\,ds

    with :math:`r_i` the rank of the group's i-th score among all. Where :math:`r_i` lies outside of its stretch,
    all differences have one sign and the term is the distance from the stretch's mean; inside, which is rare, it
    depends on :math:`r_i` alone. Both are looked up in tables that are made once, and nothing is merged.
    """

    def __init__(self, scores: Floats, sizes: Integers) -> None:
        """Sort the scores, (n,), none missing; `sizes` says how many of them each group has."""
        order = np.argsort(scores, kind="stable")
        n = len(scores)
        kind = np.uint16 if n < 2**16 else np.uint32  # short numbers sort faster
        self.ranks: Ranks = np.empty(n, dtype=kind)  # of each score among all
        self.ranks[order] = np.arange(n, dtype=kind)
        self.sizes = sizes
        ordered = scores[order]
        self._ordered = ordered - (ordered[n // 2] if n else 0.0)  # so that equal scores are exactly 0 apart
        sums: LongFloats = np.concatenate([[0.0], np.cumsum(self._ordered.astype(np.longdouble))])
        self._stretches = {
            size: _Stretches.of(self._ordered, sums, size, kind) for size in set(sizes.tolist()) if size
        }

    def of(self, labels: Labels) -> Floats:
        """Return the distance of each group; `labels` has the group of each score, (n,), in the order given.

        NaN for a group without scores.
        """
        of_rank = np.empty_like(labels)
        of_rank[self.ranks] = labels
        by_group = np.argsort(of_rank, kind="stable").astype(self.ranks.dtype)  # ascending within a group
        found: Floats = self.of_groups(by_group[None], self.sizes)[0]
        return found

    def of_groups(self, ranks: Ranks, sizes: Integers) -> Floats:
        """Return the distances of groups of some sizes: (labellings, scores of these) -> (labellings, groups).

        The ranks are group after group, ascending within each.
        """
        rows = len(ranks)
        if sizes.min() == sizes.max() and sizes.min() > 0:  # most often: all groups at once
            return self._distances(ranks.reshape(rows, len(sizes), -1))
        out = np.full((rows, len(sizes)), np.nan)
        for group, start in enumerate((np.cumsum(sizes) - sizes).tolist()):
            if sizes[group]:
                out[:, group] = self._distances(ranks[:, start : start + int(sizes[group])])
        return out

    def of_two(self, ranks: Ranks) -> Floats:
        """Return the distances of the only two groups from the ranks of the first, ascending: (labellings, 2).

        Below any score, what the first has too many the second has too few: their distances from all are as
        1/n to 1/m.
        """
        first = self._distances(ranks)
        return np.stack([first, first * (self.sizes[0] / self.sizes[1])], axis=1)

    def _distances(self, ranks: Ranks) -> Floats:
        """The distances of groups of equal size: (…, size), ascending -> (…)."""
        table = self._stretches[ranks.shape[-1]]
        # none lies beyond the end, and to check that would take longer than all the rest
        distances = np.take(self._ordered, ranks, mode="clip")
        distances -= table.means
        np.abs(distances, out=distances)
        inside = np.flatnonzero((ranks - table.first) < table.width)  # unsigned: a rank below the first is huge
        distances.ravel()[inside] = table.own(ranks.ravel()[inside])
        found: Floats = distances.mean(axis=-1)
        return found


@dataclass(frozen=True)
class _Stretches:
    """All scores in as many stretches of equal length as a group has scores; ends may fall within a score."""

    means: Floats  # (stretches,)
    first: Ranks  # (stretches,): the first rank that begins in each
    width: Ranks  # (stretches,): how many do
    ends: LongFloats  # (stretches + 1,): the integral of the scores up to each end
    sums: LongFloats  # (scores + 1,): up to each score
    ordered: Floats

    @classmethod
    def of(
        cls, ordered: Floats, sums: LongFloats, stretches: int, kind: type[np.unsignedinteger[Any]]
    ) -> _Stretches:
        n = len(ordered)
        length = n / stretches
        whole, rest = np.divmod(np.arange(stretches + 1) * n, stretches)
        # differences of long sums are taken: more digits, where the machine has them
        ends: LongFloats = sums[whole] + ordered[np.minimum(whole, n - 1)] * (rest / stretches)
        starts = whole + (rest > 0)
        return cls(
            means=(np.diff(ends) / length).astype(np.float64),
            first=starts[:-1].astype(kind),
            width=np.diff(starts).astype(kind),
            ends=ends,
            sums=sums,
            ordered=ordered,
        )

    def own(self, ranks: Ranks) -> Floats:
        """Return the mean distance of some scores, each from the stretch in which it begins."""
        if len(ranks) * _FEW > len(self.ordered):  # of all scores at once, for what comes later
            return np.take(self._own_of_all, ranks, mode="clip")
        return self._own(ranks.astype(np.int64))

    @cached_property
    def _own_of_all(self) -> Floats:
        return self._own(np.arange(len(self.ordered)))

    def _own(self, rank: Integers) -> Floats:
        n, stretches = len(self.ordered), len(self.means)
        mine = rank * stretches // n
        # what is below it there minus what is above
        balance = (2 * (rank * stretches - mine * n) - n) / stretches
        rest = self.ends[mine] + self.ends[mine + 1] - 2 * self.sums[rank]
        own = balance * self.ordered[rank] + rest.astype(np.float64)
        found: Floats = np.maximum(own / (n / stretches), 0.0)  # rounding must not make it negative
        return found
