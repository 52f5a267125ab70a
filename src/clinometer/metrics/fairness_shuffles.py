"""What I.F. and G.F. would be by chance: labels shuffled within each template (counterfactual audit)."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clinometer.metrics.fairness import ValueGroups, as_scores, group_values, samples_of
from clinometer.metrics.fairness_chance import AgainstChance, Tally, ahead, turns
from clinometer.metrics.fairness_pooled import PooledDistances
from clinometer.metrics.fairness_ranks import Cells, CountedPairs, Shuffles, label_shuffles
from clinometer.metrics.fairness_tables import Moved, ScoreTable
from clinometer.metrics.means import Floats, Integers, present_mean
from clinometer.metrics.value_means import Moments, moments_from_sums

# Scores that are measured at a time. Threads with shorter work would wait for each other; of arrays above 4 MiB
# numpy asks for huge pages each time, which takes half as long again.
_BATCH = 500_000
Statistic = Callable[[Moments], Floats]
_ROUNDING = 1e-15  # of the range of the scores


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessNull:
    """I.F., G.F. and their parts against chance."""

    individual: AgainstChance
    group: AgainstChance
    templates: AgainstChance  # (templates,): I.F. of each
    subgroups: AgainstChance  # (subgroups,): terms of G.F.
    disparity: AgainstChance  # of the shares above the threshold: mean difference of two values
    subgroup_names: tuple[Hashable, ...]
    draws: int  # at most
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

    What is plainly no larger than by chance has fewer shuffles than `draws`: see `fairness_chance`.

    Args:
        scores: templates × values × samples; NaN is missing.
        subgroups: (values,), the subgroup of each value; by default each value is its own.
        across: whether I.F. averages the pairs of two subgroups alone.
        threshold: the score above which a text counts as positive, for the disparity.
        rng: where the shuffles come from.
        draws: how many at most.

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
    another statistic of the means and errors of the values, shuffles × templates × values; it has all shuffles.
    """
    if draws < 1:
        raise ValueError(f"found draws={draws}; give at least 1")
    arrays = [as_scores(each) for each in many]
    if not arrays:
        return ()
    sizes = samples_of(arrays)
    groups = group_values(arrays[0].shape[1], subgroups)
    cells, pairs = Cells(sizes), CountedPairs(groups, across=across)
    every = [_ShuffledScores(each, cells, groups, pairs, threshold=threshold, also=also) for each in arrays]
    table = ScoreTable(cells, [each.centred for each in every], [each.positive for each in every])
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:  # numpy leaves the interpreter to others
        list(pool.map(_ShuffledScores.begin, every))
        for turn in turns(draws):
            if not (unsure := [at for at, each in enumerate(every) if each.unsure]):
                break
            for shuffles in ahead(label_shuffles(cells, pairs, rng=rng, draws=turn.shuffles), pool):
                moved = table.move(
                    shuffles,
                    pool,
                    individual=np.any([every[at].wanted_templates for at in unsure], axis=0),
                    moments=also is not None,
                    positive=[at for at in unsure if every[at].wants_positive],
                )
                list(pool.map(partial(_add, shuffles=shuffles), [(every[at], moved[at]) for at in unsure]))
            for at in unsure:
                every[at].look()
    return tuple(each.null(draws) for each in every)


class _Measured(NamedTuple):
    """The distances of some shuffles, (shuffles, …) each; NaN where they were not wanted."""

    individual: Floats
    group: Floats
    templates: Floats
    subgroups: Floats
    disparity: Floats
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
        self.centred = np.concatenate(
            [each - centre for each, centre in zip(ordered, self._centres[:, 0], strict=True)]
        )
        self.positive = np.concatenate([each > threshold for each in ordered])
        # a smaller distance is the rest of a difference of equal numbers
        self._least = np.array([_ROUNDING * (each[-1] - each[0]) if len(each) else 0.0 for each in ordered])
        self._pairs = np.array([pairs.number(used) for used in cells.used], dtype=np.float64)
        self._pool = _PooledRanks(np.concatenate(ordered), cells, groups)
        self._tallies: list[Tally] = []
        # as they are observed: value by value as given, and ascending within each
        self._observed = Shuffles.empty(cells, 1)
        for at, (order, sizes) in enumerate(zip(orders, cells.sizes, strict=True)):
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            for end, size in zip(np.cumsum(sizes).tolist(), sizes.tolist(), strict=True):
                place[end - size : end].sort()
            self._observed.put(at, place[None], cells, pairs)

    def begin(self) -> None:
        """Measure what is observed."""
        (moved,) = ScoreTable(self._cells, [self.centred], [self.positive]).move(
            self._observed,
            individual=np.ones(len(self._cells.sizes), dtype=np.bool_),
            moments=self._also is not None,
            positive=[0],
        )
        found = self._measure(self._observed, moved)
        self._others = [found.others]
        self._tallies = [Tally(part[0]) for part in found[:-1]]

    @property
    def wanted_templates(self) -> NDArray[np.bool_]:
        """Of which templates I.F. is wanted: (templates,)."""
        individual, _, of_templates, _, _ = self._wanted
        return np.broadcast_to(of_templates | individual, len(self._cells.sizes))

    @property
    def wants_positive(self) -> bool:
        """Whether positive samples are to be counted."""
        return bool(self._wanted[-1])

    @property
    def _wanted(self) -> list[NDArray[np.bool_]]:
        """Which parts of each measure need more shuffles."""
        return [tally.unsure for tally in self._tallies] or [np.ones(1, dtype=np.bool_)] * 5  # observed: all

    @property
    def unsure(self) -> bool:
        """Whether more shuffles tell more."""
        return bool(self._also) or any(tally.unsure.any() for tally in self._tallies)

    def add(self, shuffles: Shuffles, moved: Moved) -> None:
        """Measure and count the next shuffles."""
        found = self._measure(shuffles, moved)
        for tally, rows in zip(self._tallies, found[:-1], strict=True):
            tally.add(rows)
        self._others.append(found.others)

    def look(self) -> None:
        """See after a turn what needs no more shuffles."""
        for tally in self._tallies:
            tally.look()

    def _measure(self, shuffles: Shuffles, moved: Moved) -> _Measured:
        """Measure some shuffles, where that still tells something."""
        cells, number = self._cells, len(shuffles.places)
        individual, group, _, of_subgroups, disparity = self._wanted
        templates = np.where(self.wanted_templates, moved.individual, np.nan)
        templates[templates < self._least] = 0.0
        templates[:, self._pairs == 0] = np.nan
        subgroups = np.full((number, len(self._groups.names)), np.nan)
        if len(groups := np.flatnonzero(np.broadcast_to(of_subgroups | group, subgroups.shape[1:]))):
            few = max(1, _BATCH // max(1, shuffles.places.shape[1]))
            for first in range(0, number, few):
                some = slice(first, first + few)
                subgroups[some, groups] = self._pool.distances(shuffles.places[some], groups)
        nothing = np.full(number, np.nan)
        others = np.zeros((number, 0))
        if self._also:
            others = self._also(moments_from_sums(moved.sums, moved.squares, cells.sizes, centre=self._centres))
        return _Measured(
            individual=self._over_templates(templates) if individual else nothing,
            group=present_mean(subgroups, axis=1) if group else nothing,
            templates=templates,
            subgroups=subgroups,
            disparity=self._over_templates(self._disparity(moved.positive)) if disparity else nothing,
            others=others,
        )

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
        individual, group, templates, subgroups, disparity = (tally.against_chance() for tally in self._tallies)
        return FairnessNull(
            individual=individual,
            group=group,
            templates=templates,
            subgroups=subgroups,
            disparity=disparity,
            also=np.concatenate(self._others),
            subgroup_names=self._groups.names,
            draws=draws,
        )

    def _over_templates(self, rows: Floats) -> Floats:
        """Weigh templates by their pairs: I.F. is a mean over pairs and templates."""
        weights = self._pairs / self._pairs.sum() if self._pairs.any() else np.full(len(self._pairs), np.nan)
        mean: Floats = np.where(self._pairs > 0, rows, 0.0) @ weights
        return mean


def _add(one: tuple[_ShuffledScores, Moved], *, shuffles: Shuffles) -> None:
    scores, moved = one
    scores.add(shuffles, moved)


class _PooledRanks:
    """W1 of each subgroup from all scores, templates pooled, for many shuffles at once."""

    def __init__(self, scores: Floats, cells: Cells, groups: ValueGroups) -> None:
        of_cell = np.tile(groups.of_value, len(cells.sizes))
        of_sample = np.repeat(of_cell, cells.sizes.ravel())
        self._pool = PooledDistances(scores, np.bincount(of_sample, minlength=len(groups.names)))
        self._together = cells.size or 1  # samples that are moved as one
        order = np.argsort(of_cell if cells.size else of_sample, kind="stable")
        self._of_group = np.split(order, np.cumsum(self._pool.sizes)[:-1] // self._together)
        self._two = len(groups.names) == 2 and bool(self._pool.sizes.all())  # then one tells the other

    def distances(self, places: Integers, groups: Integers) -> Floats:
        """Return the distance of some groups, or NaN: (shuffles, samples) -> (shuffles, these groups)."""
        rows, sizes = len(places), self._pool.sizes[groups]
        order = np.concatenate([self._of_group[group] for group in groups[: 1 if self._two else None]])
        if 2 * len(order) > len(self._pool.ranks) // self._together:  # short numbers are put in order faster
            every = np.take(self._pool.ranks, places, mode="clip")
            ranks = every.reshape(rows, -1, self._together)[:, order].reshape(rows, -1)
        else:
            mine = places.reshape(rows, -1, self._together)[:, order].reshape(rows, -1)
            ranks = np.take(self._pool.ranks, mine, mode="clip")
        if self._two:
            ranks.sort(axis=1)
            return self._pool.of_two(ranks)[:, groups]
        if sizes.min() == sizes.max():
            ranks.reshape(rows, len(sizes), -1).sort(axis=2)
        else:
            ends = np.cumsum(sizes).tolist()
            for first, end in zip([0, *ends], ends, strict=False):
                ranks[:, first:end].sort(axis=1)
        return self._pool.of_groups(ranks, sizes)
