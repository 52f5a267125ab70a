"""What I.F. and G.F. would be by chance: labels shuffled within each template (counterfactual audit)."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clinometer.metrics.fairness import (
    Integers,
    ValueGroups,
    as_scores,
    group_values,
    quantile_grid,
    small_labels,
)
from clinometer.metrics.means import Floats, present_mean
from clinometer.metrics.value_means import Moments, moments_from_sums

_BATCH = 250_000  # scores of a template that are shuffled at a time
_CACHE = 125_000  # of these, measured at a time: what a processor's cache holds
Statistic = Callable[[Moments], Floats]
_TIE = 1e-10  # relative: two sums of the same numbers in another order count as equal


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstChance:
    """A distance and what chance gives; each field has the shape of the distance, a scalar for a single one."""

    estimate: Floats
    null: Floats  # mean over the shuffles
    null_low: Floats  # 2.5 % of the shuffles are below
    null_high: Floats  # 97.5 % are
    excess: Floats  # estimate − null
    p: Floats  # (1 + shuffles that are as large)/(1 + shuffles)


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessNull:
    """I.F., G.F. and their parts against chance."""

    individual: AgainstChance
    group: AgainstChance
    templates: AgainstChance  # (templates,): I.F. of each
    subgroups: AgainstChance  # (subgroups,): terms of G.F.
    disparity: AgainstChance  # of the shares above the threshold: mean difference of two values
    subgroup_names: tuple[Hashable, ...]
    draws: int
    # (1 + draws, …): another statistic that was asked for, observed, then of each shuffle
    also: Floats = field(default_factory=lambda: np.zeros((1, 0)))


def fairness_null(
    scores: ArrayLike,
    *,
    subgroups: Sequence[Hashable] | None = None,
    across: bool = False,
    threshold: float = 0.5,
    rng: np.random.Generator,
    draws: int = 1000,
) -> FairnessNull:
    """Compare I.F. and G.F. with the same quantities after shuffling the samples' labels within each template.

        p = (1 + #{T* ≥ T}) / (draws + 1),   excess = T − mean T*

    Two samples of the same distribution differ, and small ones more; shuffling shows by how much. If the value
    does not matter in any template, p is uniform, whatever the shape of the scores and the number of samples (with
    many ties it is somewhat too large). The excess understates a true distance: shifting all scores by δ gives W1
    = δ at any sample size, but an excess below δ (see `fairness_interval`). For every two values by themselves see
    `pair_null`.

    Args:
        scores: templates × values × samples; NaN is missing.
        subgroups: (values,), the subgroup of each value; by default each value is its own.
        across: whether I.F. averages the pairs of two subgroups alone.
        threshold: the score above which a text counts as positive, for the disparity.
        rng: where the shuffles come from.
        draws: how many.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=(3, 4, 50))
    >>> scores[:, 0] **= 3
    >>> found = fairness_null(scores, rng=rng, draws=199)
    >>> float(found.individual.p), float(found.group.p), int(found.subgroups.excess.argmax())
    (0.005, 0.005, 0)
    """
    return fairness_nulls([scores], subgroups=subgroups, across=across, threshold=threshold, rng=rng, draws=draws)[
        0
    ]


def fairness_nulls(
    many: Sequence[ArrayLike],
    *,
    subgroups: Sequence[Hashable] | None = None,
    across: bool = False,
    threshold: float = 0.5,
    also: Statistic | None = None,
    rng: np.random.Generator,
    draws: int = 1000,
) -> tuple[FairnessNull, ...]:
    """Return what `fairness_null` does for several sets of scores with the same samples missing, on all cores.

    A shuffle says which of the sorted scores of a template go to which value, whatever these scores are: one set
    of shuffles, most of the work, serves all models and scorers. What is found for one does not depend on the
    others.

    W1 of two values is Σ|x_(i) − y_(i)|/n, so the mean over all pairs follows from sorting the values at each i,
    without any pair; W1 of a subgroup from all scores has a closed form between its neighbouring ranks. Exact for
    any sizes. `also` is another statistic of the means and errors of the values, shuffles × templates × values.
    """
    if draws < 1:
        raise ValueError(f"found draws={draws}; give at least 1")
    arrays = [as_scores(each) for each in many]
    if not arrays:
        return ()
    sizes = (~np.isnan(arrays[0])).sum(axis=2)
    if any(not np.array_equal((~np.isnan(each)).sum(axis=2), sizes) for each in arrays):
        raise ValueError("the sets of scores have different samples missing; give each of them alone")
    groups = group_values(arrays[0].shape[1], subgroups)
    pairs = _CountedPairs(groups, across=across)
    every = [_ShuffledScores(each, groups, pairs, threshold=threshold, also=also) for each in arrays]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:  # numpy leaves the interpreter to others
        for orders in _ahead(label_shuffles(sizes, rng=rng, draws=draws), pool):
            tasks = [(one, some) for some in _few(orders) for one in every]
            for (one, _), found in zip(tasks, pool.map(lambda task: task[0].measure(task[1]), tasks), strict=True):
                one.keep(found)
    return tuple(each.null(draws) for each in every)


def _ahead(shuffles: Iterator[list[Integers]], pool: ThreadPoolExecutor) -> Iterator[list[Integers]]:
    """Yield each item while the next one is made."""
    following = pool.submit(next, shuffles, None)
    while (item := following.result()) is not None:
        following = pool.submit(next, shuffles, None)
        yield item


def _few(orders: Sequence[Integers]) -> Iterator[list[Integers]]:
    """Yield some shuffles at a time."""
    few = max(1, _CACHE // max(1, *(order.shape[1] for order in orders)))
    for first in range(0, len(orders[0]), few):
        yield [order[first : first + few] for order in orders]


def label_shuffles(sizes: Integers, *, rng: np.random.Generator, draws: int) -> Iterator[list[Integers]]:
    """Yield which of the sorted scores each value has, some shuffles at a time: (shuffles, scores) a template.

    The places are value by value, ascending within a value. `sizes` has the samples of each value, templates ×
    values.
    """
    labels = [np.repeat(small_labels(np.arange(len(each))), each) for each in sizes]
    batch = max(1, _BATCH // max(1, *map(len, labels)))
    for done in range(0, draws, batch):
        rows = min(batch, draws - done)
        # sorted by label, and by score within a label, because the scores are already sorted
        yield [
            np.argsort(rng.permuted(np.tile(each, (rows, 1)), axis=1), axis=1, kind="stable") for each in labels
        ]


class _CountedPairs:
    """The pairs of values that I.F. averages, and the sum of their distances without a loop over pairs."""

    def __init__(self, groups: ValueGroups, *, across: bool) -> None:
        self._of_value = groups.of_value if across else np.arange(len(groups.of_value))

    def number(self, present: NDArray[np.bool_]) -> int:
        """Count the pairs among the values that are present."""
        sizes = np.bincount(self._of_value[present])
        total = int(sizes.sum())
        return (total * (total - 1) - int((sizes * (sizes - 1)).sum())) // 2

    def sums(self, values: Floats, present: NDArray[np.bool_]) -> Floats:
        """Σ |x_v − x_w| over the pairs: (…, present values, steps) -> (…, steps)."""
        of_value = self._of_value[present]
        total = _over_pairs(values)
        names, counts = np.unique(of_value, return_counts=True)
        for name in names[counts > 1]:
            total -= _over_pairs(values[..., of_value == name, :])
        return total


def _over_pairs(values: Floats) -> Floats:
    """Σ |x_v − x_w| over all pairs is Σ (2k − V + 1) x_(k) of the sorted values: (…, V, steps) -> (…, steps)."""
    number = values.shape[-2]
    weights = 2.0 * np.arange(number) - (number - 1)
    total: Floats = np.einsum("...vs,v->...s", np.sort(values, axis=-2), weights)
    return total


class _Shuffled(NamedTuple):
    """The distances of some shuffles, (shuffles, …) each."""

    templates: Floats
    disparity: Floats
    subgroups: Floats
    others: Floats


class _ShuffledScores:
    """The distances of one set of scores: those that are observed, then those of each shuffle."""

    def __init__(
        self,
        scores: Floats,
        groups: ValueGroups,
        pairs: _CountedPairs,
        *,
        threshold: float,
        also: Statistic | None,
    ) -> None:
        sizes = (~np.isnan(scores)).sum(axis=2)
        self._sizes, self._groups, self._counted = sizes, groups, pairs
        self._also = also
        flat = [each[~np.isnan(each)] for each in scores]
        orders = [np.argsort(each, kind="stable") for each in flat]
        self._sorted = [each[order] for each, order in zip(flat, orders, strict=True)]
        # one for each template, which is subtracted before squares are summed
        self._centres = np.array([each.mean() if len(each) else 0.0 for each in self._sorted])[:, None]
        # which of the sorted scores is the first above the threshold
        self._above = [int(np.searchsorted(each, threshold, side="right")) for each in self._sorted]
        self._used = [each > 0 for each in sizes]
        self._pairs = np.array([pairs.number(used) for used in self._used], dtype=np.float64)
        self._grids = [
            quantile_grid(each[used]) if used.any() else None for each, used in zip(sizes, self._used, strict=True)
        ]
        self._pool = _PooledRanks(self._sorted, sizes, groups)
        self._found: list[_Shuffled] = []
        # observed: value by value as given, and ascending within each
        starts = [np.cumsum(each) - each for each in sizes]
        places = [np.empty(len(order), dtype=np.int64) for order in orders]
        for place, order in zip(places, orders, strict=True):
            place[order] = np.arange(len(order))
        for place, start, of in zip(places, starts, sizes, strict=True):
            for first, size in zip(start.tolist(), of.tolist(), strict=True):
                place[first : first + size].sort()
        self.keep(self.measure([place[None] for place in places]))

    def keep(self, found: _Shuffled) -> None:
        """Take the measures of the next shuffles."""
        self._found.append(found)

    def measure(self, orders: Sequence[Integers]) -> _Shuffled:
        """Measure some shuffles."""
        rows = len(orders[0])
        individual = np.full((rows, len(orders)), np.nan)
        disparity = np.full((rows, len(orders)), np.nan)
        sums, squares = (np.zeros((rows, *self._sizes.shape)) for _ in range(2))
        for at, order in enumerate(orders):
            used, grid, pairs = self._used[at], self._grids[at], self._pairs[at]
            if grid is None:
                continue
            sizes = self._sizes[at][used]
            by_value, above = np.take(self._sorted[at], order), order >= self._above[at]
            if len(set(sizes.tolist())) == 1:
                steps = by_value.reshape(rows, len(sizes), -1)
                if pairs:
                    individual[:, at] = self._counted.sums(steps, used).mean(axis=-1) / pairs
                shares = np.count_nonzero(above.reshape(steps.shape), axis=-1) / sizes
                steps -= self._centres[at]
                sums[:, at, used], squares[:, at, used] = (
                    steps.sum(axis=-1),
                    np.einsum("rvs,rvs->rv", steps, steps),
                )
            else:
                starts = np.cumsum(sizes) - sizes
                if pairs:
                    steps = by_value[:, starts[:, None] + grid.places]
                    individual[:, at] = self._counted.sums(steps, used) @ grid.widths / pairs
                shares = np.add.reduceat(above, starts, axis=1, dtype=np.float64) / sizes
                by_value -= self._centres[at]
                sums[:, at, used] = np.add.reduceat(by_value, starts, axis=1)
                squares[:, at, used] = np.add.reduceat(by_value**2, starts, axis=1)
            if pairs:
                disparity[:, at] = self._counted.sums(shares[:, :, None], used)[:, 0] / pairs
        others = np.zeros((rows, 0))
        if self._also:
            others = self._also(moments_from_sums(sums, squares, self._sizes, centre=self._centres))
        return _Shuffled(individual, disparity, self._pool.distances(orders), others)

    def null(self, draws: int) -> FairnessNull:
        """Compare what is observed with the shuffles."""
        columns = zip(*self._found, strict=True)
        templates, disparity, subgroups, others = (np.concatenate(column) for column in columns)
        return FairnessNull(
            individual=against_chance(self._over_templates(templates)),
            group=against_chance(present_mean(subgroups, axis=1)),
            templates=against_chance(templates),
            subgroups=against_chance(subgroups),
            disparity=against_chance(self._over_templates(disparity)),
            also=others,
            subgroup_names=self._groups.names,
            draws=draws,
        )

    def _over_templates(self, rows: Floats) -> Floats:
        """Weigh templates by their pairs: I.F. is a mean over pairs and templates."""
        weights = self._pairs / self._pairs.sum() if self._pairs.any() else np.full(len(self._pairs), np.nan)
        mean: Floats = np.where(self._pairs > 0, rows, 0.0) @ weights
        return mean


class _PooledRanks:
    """W1 of each subgroup from all scores, templates pooled, for many shuffles at once."""

    def __init__(self, scores: Sequence[Floats], sizes: Integers, groups: ValueGroups) -> None:
        pooled = np.concatenate(scores)
        n = len(pooled)
        order = np.argsort(pooled, kind="stable")
        small = np.uint16 if n < 2**16 else np.uint32  # short numbers sort faster
        rank = np.empty(n, dtype=small)
        rank[order] = np.arange(n, dtype=small)
        self._ranks = np.split(rank, np.cumsum([len(each) for each in scores])[:-1])
        self._sizes = np.zeros(len(groups.names), dtype=np.int64)
        columns: list[list[NDArray[np.int64]]] = []  # for each subgroup and template, its places in an order
        for group in range(len(groups.names)):
            mine = [np.repeat(groups.of_value == group, each) for each in sizes]
            columns.append([np.flatnonzero(each) for each in mine])
            self._sizes[group] = sum(int(each.sum()) for each in mine)
        self._columns = [[_as_slice(each) for each in of_group] for of_group in columns]
        gaps = np.diff(pooled[order])
        # up to gap number j, Σ gap and Σ gap · j/N, where j/N is the share of all scores below the gap
        self._sums = np.zeros((max(n, 1), 2))
        np.cumsum(gaps, out=self._sums[1:, 0])
        np.cumsum(gaps * np.arange(1, n) / max(n, 1), out=self._sums[1:, 1])
        self._turns = {int(size): np.arange(size + 1) * n // size for size in self._sizes if size}

    def distances(self, orders: Sequence[Integers]) -> Floats:
        """Return Σ_j gap_j |i_j/n − j/N| for each subgroup, where i_j of its n scores are below gap j.

        Between two neighbouring ranks of the subgroup i is constant and j/N grows. So the sign of the difference
        changes once, at j = iN/n, and differences of the cumulative sums give the whole stretch. NaN for a
        subgroup without scores.
        """
        rows = len(orders[0])
        ranks = [np.take(rank, order) for rank, order in zip(self._ranks, orders, strict=True)]
        out = np.full((rows, len(self._sizes)), np.nan)
        last = len(self._sums) - 1
        for group in np.flatnonzero(self._sizes):
            size = int(self._sizes[group])
            mine = np.concatenate(
                [each[:, at] for each, at in zip(ranks, self._columns[group], strict=True)], axis=1
            )
            mine.sort(axis=1)
            edges = np.empty((rows, size + 2), dtype=np.int64)
            edges[:, 0], edges[:, -1] = 0, last
            edges[:, 1:-1] = mine
            turns = np.minimum(self._turns[size], edges[:, 1:])
            np.maximum(turns, edges[:, :-1], out=turns)
            # Stretch i lies between edges i and i + 1. With the sums G and H of the two columns, it adds
            # i/n · (2 G(turn) − G(edge) − G(next edge)) + H(edge) + H(next edge) − 2 H(turn).
            steps = np.arange(size + 1) / size
            at_edges = np.full((size + 2, 2), 2.0)
            at_edges[0, 1] = at_edges[-1, 1] = 1.0
            at_edges[:, 0] = -np.append(steps, 0.0) - np.insert(steps, 0, 0.0)
            at_turns = np.stack([2 * steps, np.full(size + 1, -2.0)], axis=1)
            found = np.take(self._sums, edges, axis=0).reshape(rows, -1) @ at_edges.ravel()
            found += np.take(self._sums, turns, axis=0).reshape(rows, -1) @ at_turns.ravel()
            out[:, group] = np.maximum(found, 0.0)  # rounding must not make it negative
        return out


def _as_slice(places: NDArray[np.int64]) -> NDArray[np.int64] | slice:
    """Return neighbouring places as a slice, which is copied much faster than a list of places."""
    if len(places) and places[-1] - places[0] + 1 == len(places):
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def against_chance(rows: Floats | NDArray[np.float32]) -> AgainstChance:
    """Compare the first row with the others."""
    estimate, shuffled = rows[0], rows[1:]
    null = shuffled.mean(axis=0, dtype=np.float64)
    low, high = np.quantile(shuffled, [0.025, 0.975], axis=0)
    as_large = (shuffled >= estimate - _TIE * np.abs(estimate)).sum(axis=0)
    p = np.where(np.isnan(estimate), np.nan, (1 + as_large) / (1 + len(shuffled)))
    return AgainstChance(
        estimate=estimate[()], null=null[()], null_low=low, null_high=high, excess=(estimate - null)[()], p=p[()]
    )
