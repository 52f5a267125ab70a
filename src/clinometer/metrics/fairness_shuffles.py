"""What I.F. and G.F. would be by chance: labels shuffled within each template (counterfactual audit)."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clinometer.metrics.fairness import ValueGroups, as_scores, group_values
from clinometer.metrics.fairness_pooled import PooledDistances
from clinometer.metrics.fairness_ranks import Cells, CountedPairs, Shuffles, label_shuffles
from clinometer.metrics.means import Floats, Integers, present_mean
from clinometer.metrics.value_means import Moments, moments_from_sums

_CACHE = 300_000  # scores that are measured at a time: what a processor's cache holds
Statistic = Callable[[Moments], Floats]
_TIE = 1e-10  # relative: two sums of the same numbers in another order count as equal
_ROUNDING = 1e-15  # of the range of the scores


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

    I.F. is a weighted sum of the sorted scores, and the weights depend on the shuffle alone (`CountedPairs`); W1
    of a subgroup from all scores is looked up rank by rank (`PooledDistances`). Exact for any sizes. `also` is
    another statistic of the means and errors of the values, shuffles × templates × values.
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
    cells, pairs = Cells(sizes), CountedPairs(groups, across=across)
    every = [_ShuffledScores(each, cells, groups, pairs, threshold=threshold, also=also) for each in arrays]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:  # numpy leaves the interpreter to others
        for shuffles in _ahead(label_shuffles(cells, pairs, rng=rng, draws=draws), pool):
            for one, found in zip(every, pool.map(partial(_measured, shuffles=shuffles), every), strict=True):
                one.keep(found)
    return tuple(each.null(draws) for each in every)


def _measured(one: _ShuffledScores, shuffles: Shuffles) -> _Shuffled:
    return one.measure(shuffles)


def _ahead(shuffles: Iterator[Shuffles], pool: ThreadPoolExecutor) -> Iterator[Shuffles]:
    """Yield each item while the next one is made."""
    following = pool.submit(next, shuffles, None)
    while (item := following.result()) is not None:
        following = pool.submit(next, shuffles, None)
        yield item


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
        cells: Cells,
        groups: ValueGroups,
        pairs: CountedPairs,
        *,
        threshold: float,
        also: Statistic | None,
    ) -> None:
        self._cells, self._groups, self._counted, self._also = cells, groups, pairs, also
        flat = [each[~np.isnan(each)] for each in scores]
        orders = [np.argsort(each, kind="stable") for each in flat]
        ordered = [each[order] for each, order in zip(flat, orders, strict=True)]
        # One for each template, which is subtracted before squares are summed. It is one of the scores: where all
        # are equal, exactly nothing is left.
        self._centres = np.array([each[len(each) // 2] if len(each) else 0.0 for each in ordered])[:, None]
        self._centred = np.concatenate(
            [each - centre for each, centre in zip(ordered, self._centres[:, 0], strict=True)]
        )
        # a smaller distance is the rest of a difference of equal numbers
        self._least = np.array([_ROUNDING * (each[-1] - each[0]) if len(each) else 0.0 for each in ordered])
        # for each sample, which of its template's sorted scores is the first above the threshold
        above = [int(np.searchsorted(each, threshold, side="right")) for each in ordered]
        self._above = np.repeat(cells.starts + np.array(above), [len(each) for each in ordered])
        self._pairs = np.array([pairs.number(used) for used in cells.used], dtype=np.float64)
        self._pool = _PooledRanks(np.concatenate(ordered), cells, groups)
        self._found: list[_Shuffled] = []
        # observed: value by value as given, and ascending within each
        observed = Shuffles.empty(cells, 1)
        for at, (order, sizes) in enumerate(zip(orders, cells.sizes, strict=True)):
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            for end, size in zip(np.cumsum(sizes).tolist(), sizes.tolist(), strict=True):
                place[end - size : end].sort()
            observed.put(at, place[None], cells, pairs)
        self.keep(self.measure(observed))

    def keep(self, found: _Shuffled) -> None:
        """Take the measures of the next shuffles."""
        self._found.append(found)

    def measure(self, shuffles: Shuffles) -> _Shuffled:
        """Measure some shuffles."""
        cells, number = self._cells, len(shuffles.places)
        individual = np.empty((number, len(cells.sizes)))
        subgroups = np.empty((number, len(self._groups.names)))
        sums, squares, positive = (np.empty((number, *cells.sizes.shape)) for _ in range(3))
        few = max(1, _CACHE // max(1, shuffles.places.shape[1]))
        for first in range(0, number, few):
            some = slice(first, first + few)
            places = shuffles.places[some]
            for at, of in enumerate(cells.templates):
                individual[some, at] = np.einsum("rs,s->r", shuffles.weights[some, of], self._centred[of])
            scores = np.take(self._centred, places)
            sums[some], squares[some] = cells.sums(scores), cells.squares(scores)
            positive[some] = cells.sums(places >= self._above)
            subgroups[some] = self._pool.distances(places)
        individual[individual < self._least] = 0.0
        individual[:, self._pairs == 0] = np.nan
        others = np.zeros((number, 0))
        if self._also:
            others = self._also(moments_from_sums(sums, squares, cells.sizes, centre=self._centres))
        return _Shuffled(individual, self._disparity(positive), subgroups, others)

    def _disparity(self, positive: Floats) -> Floats:
        """The mean difference of two values' shares of positive samples: (shuffles, templates)."""
        out = np.full(positive.shape[:2], np.nan)
        for used in np.unique(self._cells.used, axis=0):  # templates with the same values at once
            if pairs := self._counted.number(used):
                alike = (self._cells.used == used).all(axis=1)
                shares = positive[:, alike][:, :, used] / self._cells.sizes[alike][:, used]
                out[:, alike] = self._counted.sums(shares, used) / pairs
        return out

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

    def __init__(self, scores: Floats, cells: Cells, groups: ValueGroups) -> None:
        of_sample = np.repeat(np.tile(groups.of_value, len(cells.sizes)), cells.sizes.ravel())
        self._pool = PooledDistances(scores, np.bincount(of_sample, minlength=len(groups.names)))
        self._columns = np.argsort(of_sample, kind="stable")  # group after group
        self._two = len(groups.names) == 2 and bool(self._pool.sizes.all())  # then one tells the other
        if self._two:
            self._columns = self._columns[: int(self._pool.sizes[0])]

    def distances(self, places: Integers) -> Floats:
        """Return the distance of each subgroup, or NaN: (shuffles, samples) -> (shuffles, subgroups)."""
        if self._two:
            ranks = np.take(self._pool.ranks, np.take(places, self._columns, axis=1))
            ranks.sort(axis=1)
            return self._pool.of_two(ranks)
        ranks = np.take(np.take(self._pool.ranks, places), self._columns, axis=1)
        ends = np.cumsum(self._pool.sizes)
        if self._pool.sizes.min() == self._pool.sizes.max():
            ranks.reshape(len(ranks), len(ends), -1).sort(axis=2)
        else:
            for first, end in zip((ends - self._pool.sizes).tolist(), ends.tolist(), strict=True):
                ranks[:, first:end].sort(axis=1)
        return self._pool.of_groups(ranks)


def against_chance(rows: Floats | NDArray[np.float32]) -> AgainstChance:
    """Compare the first row with the others."""
    estimate, shuffled = rows[0], rows[1:]
    null = shuffled.mean(axis=0, dtype=np.float64)
    low, high = _quantiles(shuffled, [0.025, 0.975])
    as_large = (shuffled >= estimate - _TIE * np.abs(estimate)).sum(axis=0)
    p = np.where(np.isnan(estimate), np.nan, (1 + as_large) / (1 + len(shuffled)))
    return AgainstChance(
        estimate=estimate[()], null=null[()], null_low=low, null_high=high, excess=(estimate - null)[()], p=p[()]
    )


def _quantiles(rows: Floats | NDArray[np.float32], shares: Sequence[float]) -> list[Floats]:
    """Return quantiles of each column as `np.quantile` does, which is slower than to sort everything."""
    ordered = np.ascontiguousarray(rows.T)
    ordered.sort(axis=-1)  # NaN goes last
    found = []
    for share in shares:
        whole, part = divmod(share * (len(rows) - 1), 1)
        below, above = (ordered[..., min(int(whole) + more, len(rows) - 1)].astype(np.float64) for more in (0, 1))
        # from the nearer side, so that the end of a step is met exactly
        between = below + part * (above - below) if part < 0.5 else above - (1 - part) * (above - below)
        found.append(np.where(np.isnan(ordered[..., -1]), np.nan, between))
    return found
