"""What I.F. and G.F. would be by chance: labels shuffled within each template (counterfactual audit)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist

from clinometer.metrics.fairness import (
    Integers,
    Labels,
    PooledDistances,
    ValueGroups,
    as_scores,
    counted_pairs,
    group_values,
    pair_matrix,
    quantile_grid,
    small_labels,
)
from clinometer.metrics.means import Floats, present_mean

_FEW = 100  # up to this many different scores in a template, counting them is faster than shuffling them
_BATCH = 20_000_000  # numbers held at a time
_TIE = 1e-10  # relative: two sums of the same numbers in another order count as equal
_TIE_OF_SINGLES = 1e-5  # the same, of numbers of single precision


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
    pairs: AgainstChance  # (values, values): mean over templates; NaN on the diagonal
    subgroups: AgainstChance  # (subgroups,): terms of G.F.
    subgroup_names: tuple[Hashable, ...]
    draws: int


def fairness_null(
    scores: ArrayLike,
    *,
    subgroups: Sequence[Hashable] | None = None,
    across: bool = False,
    rng: np.random.Generator,
    draws: int = 1000,
) -> FairnessNull:
    """Compare I.F. and G.F. with the same quantities after shuffling the samples' labels within each template.

        p = (1 + #{T* ≥ T}) / (draws + 1),   excess = T − mean T*

    Two samples of the same distribution differ, and small ones more; shuffling shows by how much. If the value
    does not matter in any template, p is uniform, whatever the shape of the scores and the number of samples (with
    many ties it is somewhat too large). The excess understates a true distance: shifting all scores by δ gives W1
    = δ at any sample size, but an excess below δ (see `fairness_interval`).

    A shuffle leaves the sorted scores of a template in place and moves only their labels, so only labels are
    sorted. W1 of two values is Σ|x_(i) − y_(i)|/n; W1 of a subgroup from all scores has a closed form between the
    subgroup's neighbouring ranks. If a template has few different scores, tables of counts with given margins are
    drawn instead. Exact for any sizes. For 29 values × 10 templates × 1,000 samples a draw takes about 30 ms, 1 to
    20 ms with up to 100 different scores, and 70 ms if 1 % of the samples are missing, because then the sizes
    differ.

    Args:
        scores: templates × values × samples; NaN is missing.
        subgroups: (values,), the subgroup of each value; by default each value is its own.
        across: whether I.F. averages the pairs of two subgroups alone.
        rng: where the shuffles come from.
        draws: how many; for false-discovery rates over m pairs at least 20 · m.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=(3, 4, 50))
    >>> scores[:, 0] **= 3
    >>> found = fairness_null(scores, rng=rng, draws=199)
    >>> float(found.individual.p), bool(found.pairs.p[0, 1] < 0.05), bool(found.pairs.p[1, 2] > 0.05)
    (0.005, True, True)
    """
    array = as_scores(scores)
    if draws < 1:
        raise ValueError(f"found draws={draws}; give at least 1")
    groups = group_values(array.shape[1], subgroups)
    templates = [_Template.of(each) for each in array]
    few = all(len(template.levels) <= _FEW for template in templates)
    shuffles = (_count_shuffles if few else _rank_shuffles)(templates, groups, rng=rng, draws=draws)
    counted = shuffles.pairs[:, :, counted_pairs(groups, across=across)]
    return FairnessNull(
        individual=against_chance(present_mean(counted, axis=(1, 2))),
        group=against_chance(present_mean(shuffles.subgroups, axis=1)),
        templates=against_chance(present_mean(counted, axis=2)),
        pairs=_as_matrices(against_chance(present_mean(shuffles.pairs, axis=1))),
        subgroups=against_chance(shuffles.subgroups),
        subgroup_names=groups.names,
        draws=draws,
    )


@dataclass(frozen=True, slots=True)
class _Shuffles:
    """The observed distances in the first row, then those of each shuffle."""

    pairs: Floats  # (1 + draws, templates, unordered pairs)
    subgroups: Floats  # (1 + draws, subgroups)


@dataclass(frozen=True, slots=True)
class _Template:
    """The scores of one template in ascending order, with the value that each belongs to."""

    scores: Floats  # (present,)
    labels: Labels  # (present,)
    sizes: Integers  # (values,): samples that are present
    levels: Floats  # the different scores, ascending

    @classmethod
    def of(cls, scores: Floats) -> _Template:
        present = ~np.isnan(scores)
        sizes = present.sum(axis=1)
        labels = np.repeat(small_labels(np.arange(len(sizes))), sizes)
        flat = scores[present]
        order = np.argsort(flat, kind="stable")
        return cls(flat[order], labels[order], sizes, np.unique(flat))


def _rank_shuffles(
    templates: Sequence[_Template], groups: ValueGroups, *, rng: np.random.Generator, draws: int
) -> _Shuffles:
    """Shuffle the labels themselves, when most scores are different."""
    values = len(groups.of_value)
    pairs = np.full((1 + draws, len(templates), values * (values - 1) // 2), np.nan)
    subgroups = np.full((1 + draws, len(groups.names)), np.nan)
    distances = [_PairDistances(template) for template in templates]
    group_of = small_labels(groups.of_value)
    sizes = np.bincount(
        groups.of_value, weights=sum(template.sizes for template in templates), minlength=len(groups.names)
    )
    pool = PooledDistances(np.concatenate([template.scores for template in templates]), sizes.astype(np.int64))
    for draw in range(1 + draws):
        labels = [template.labels if draw == 0 else rng.permutation(template.labels) for template in templates]
        for at, each in enumerate(labels):
            pairs[draw, at, distances[at].pairs] = distances[at].of(each)
        subgroups[draw] = pool.of(group_of[np.concatenate(labels)])
    return _Shuffles(pairs, subgroups)


class _PairDistances:
    """W1 between every two values of a template, as a function of the labels of its sorted scores."""

    def __init__(self, template: _Template) -> None:
        used = np.flatnonzero(template.sizes)
        self.pairs = _pair_numbers(used, len(template.sizes))
        self._scores = template.scores
        starts = np.cumsum(template.sizes) - template.sizes
        grid = quantile_grid(template.sizes[used]) if len(used) else None
        self._places = None if grid is None else starts[used][:, None] + grid.places
        self._widths = None if grid is None else grid.widths

    def of(self, labels: Labels) -> Floats:
        if self._places is None:
            return np.zeros(0)
        # sorted by label, and by score within a label, because the scores are already sorted
        by_value = self._scores[np.argsort(labels, kind="stable")]
        distances: Floats = pdist(by_value[self._places] * self._widths, "cityblock")
        return distances


def _count_shuffles(
    templates: Sequence[_Template], groups: ValueGroups, *, rng: np.random.Generator, draws: int
) -> _Shuffles:
    """Draw tables of values × different scores with the observed margins: the same as shuffling labels."""
    values, names = len(groups.of_value), len(groups.names)
    levels = np.unique(np.concatenate([template.levels for template in templates]))
    columns = [np.searchsorted(levels, template.levels) for template in templates]
    belongs = (groups.of_value == np.arange(names)[:, None]).astype(np.float64)  # (subgroups, values)
    batch = max(1, _BATCH // (values * max(values, names) * max(len(levels), 1)))
    pairs, subgroups = [], []
    for done in range(0, 1 + draws, batch):
        rows = min(batch, 1 + draws - done)
        pooled = np.zeros((rows, names, len(levels)))
        distances = np.full((rows, len(templates), values * (values - 1) // 2), np.nan)
        for at, template in enumerate(templates):
            observed = _counts(template)
            tables = _random_tables(observed, rng=rng, draws=rows)
            if done == 0:
                tables[0] = observed
            distances[:, at] = _distances_of_counts(tables, template.levels)
            pooled[:, :, columns[at]] += belongs @ tables
        pairs.append(distances)
        subgroups.append(_distances_from_all(pooled, levels))
    return _Shuffles(np.concatenate(pairs), np.concatenate(subgroups))


def _counts(template: _Template) -> Integers:
    """How often each value has each score: (values, levels)."""
    level = np.searchsorted(template.levels, template.scores)
    shape = (len(template.sizes), len(template.levels))
    flat = np.bincount(template.labels.astype(np.int64) * shape[1] + level, minlength=shape[0] * shape[1])
    return flat.reshape(shape)


def _random_tables(observed: Integers, *, rng: np.random.Generator, draws: int) -> Integers:
    """Draw tables with the margins of the observed one, cell by cell, hypergeometric: (draws, values, levels)."""
    values, levels = observed.shape
    tables = np.zeros((draws, values, levels), dtype=np.int64)
    free = np.tile(observed.sum(axis=1), (draws, 1))  # places that a value still has
    for level in range(levels - 1):
        left = np.full(draws, observed[:, level].sum())  # samples with this score that are not yet given out
        others = free.sum(axis=1)
        for value in range(values - 1):
            others -= free[:, value]
            drawn = rng.hypergeometric(free[:, value], others, left)
            tables[:, value, level] = drawn
            left -= drawn
        tables[:, -1, level] = left
        free -= tables[:, :, level]
    if levels:
        tables[:, :, -1] = free
    return tables


def _distances_of_counts(tables: Integers, levels: Floats) -> Floats:
    """W1 between every two values from counts at given levels: (draws, values, levels) -> (draws, pairs)."""
    sizes = tables[0].sum(axis=1)
    with np.errstate(invalid="ignore"):  # a value without samples has no distribution: NaN
        below = tables.cumsum(axis=2)[:, :, :-1] / sizes[:, None] * np.diff(levels)
    parts = [
        np.abs(below[:, at + 1 :] - below[:, at : at + 1]).sum(axis=2) if sizes[at] else _nothing(tables, at)
        for at in range(len(sizes) - 1)
    ]
    distances = np.concatenate(parts, axis=1)
    if (sizes == 0).any():
        first, second = np.triu_indices(len(sizes), 1)
        distances[:, (sizes[first] == 0) | (sizes[second] == 0)] = np.nan
    return distances


def _nothing(tables: Integers, at: int) -> Floats:
    return np.full((len(tables), tables.shape[1] - at - 1), np.nan)


def _distances_from_all(pooled: Floats, levels: Floats) -> Floats:
    """W1 of each subgroup from all scores: (draws, subgroups, levels) -> (draws, subgroups)."""
    below = pooled.cumsum(axis=2)
    total = below.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        difference = below[:, :, :-1] / below[:, :, -1:] - total[:, :, :-1] / total[:, :, -1:]
    distances: Floats = (np.abs(difference) * np.diff(levels)).sum(axis=2)
    distances[pooled.sum(axis=2) == 0] = np.nan
    return distances


def _pair_numbers(used: Integers, values: int) -> Integers:
    """Return the positions of the pairs of some values among all unordered pairs."""
    number = np.full((values, values), -1, dtype=np.int64)
    number[np.triu_indices(values, 1)] = np.arange(values * (values - 1) // 2)
    inside = number[np.ix_(used, used)]
    return inside[np.triu_indices(len(used), 1)]


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


def _as_matrices(pairs: AgainstChance) -> AgainstChance:
    """Put the unordered pairs into matrices values × values."""
    return AgainstChance(**{field.name: pair_matrix(getattr(pairs, field.name)) for field in fields(pairs)})


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
            labels = np.arange(n + m) < n
            means[0, where] += threshold
            batch = max(1, _BATCH // (8 * max(n + m, len(pairs))))
            for done in range(1, 1 + draws, batch):
                many = rng.permuted(np.tile(labels, (min(batch, 1 + draws - done), 1)), axis=1)
                shuffled = _imbalance(many, n, m) @ steps  # (draws, pairs)
                means[done : done + len(many), where] += shuffled
                as_large[at, where] += np.count_nonzero(shuffled >= threshold, axis=0)
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


def _imbalance(labels: NDArray[np.bool_], n: int, m: int) -> NDArray[np.floating[Any]]:
    """n · m · |share of the n below each gap − share of the m|: (…, n + m) -> (…, n + m − 1).

    Whole numbers: exact in single precision up to a few thousand samples, which takes half of the time.
    """
    exact = n * (n + m) < 2**24
    of_first: NDArray[Any] = np.cumsum(labels, axis=1, dtype=np.int32 if exact else np.int64)[:, :-1]
    below: NDArray[Any] = np.arange(1, n + m, dtype=of_first.dtype)
    # i/n − (j − i)/m, of j below the gap, is (i (n + m) − j n) / n m
    imbalance: NDArray[Any] = np.abs(of_first * (n + m) - below * n)
    return imbalance.astype(np.float32 if exact else np.float64)
