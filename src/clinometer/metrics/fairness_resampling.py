"""Intervals of I.F. for these templates: how much it varies from one set of samples to another."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from clinometer.metrics.fairness import (
    QuantileGrid,
    ValueGroups,
    as_scores,
    counted_pairs,
    group_values,
    quantile_grid,
)
from clinometer.metrics.fairness_closed import group_and_null, pair_rows
from clinometer.metrics.fairness_intervals import ExcessInterval
from clinometer.metrics.fairness_pooled import Ranks
from clinometer.metrics.means import Floats, Integers, present_mean

_BATCH = 150_000  # numbers drawn at a time
_FREEDOM = 19  # of Student's quantile: the error is an estimate, and with few samples somewhat too small


@dataclass(frozen=True, slots=True, kw_only=True)
class IndividualIntervals:
    """I.F. with its interval, over all templates and within each."""

    whole: ExcessInterval
    templates: tuple[ExcessInterval, ...]


def individual_interval(
    scores: ArrayLike,
    *,
    subgroups: Sequence[Hashable] | None = None,
    across: bool = False,
    rng: np.random.Generator,
    draws: int = 199,
    level: float = 0.95,
) -> ExcessInterval:
    """Give the excess of I.F. over chance an interval for these templates: see `individual_intervals`.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=(5, 3, 100))
    >>> scores[0, 0] += 0.3
    >>> found = individual_interval(scores, rng=rng)
    >>> bool(0 < found.low < found.excess < found.high)
    True
    """
    return individual_intervals(
        scores, subgroups=subgroups, across=across, rng=rng, draws=draws, level=level
    ).whole


def individual_intervals(
    scores: ArrayLike,
    *,
    subgroups: Sequence[Hashable] | None = None,
    across: bool = False,
    rng: np.random.Generator,
    draws: int = 199,
    level: float = 0.95,
) -> IndividualIntervals:
    r"""Give the excess of I.F. over chance intervals for these templates, by drawing samples anew.

    .. math:: \theta \pm t_{19} \, s(\theta^*), \qquad
        x^*_{tv} \sim c_t \hat P_{tv} + (1 - c_t) \hat P_{t \cdot}, \qquad
        c_t^2 = 1 - (E_0 T_t / T_t)^2

    The samples of a value differ from those of the others by what is there and by chance; drawn from them alone,
    the new samples would differ by chance twice. So they are drawn from a mixture with all samples of the template
    that has as much of the difference left as is beyond chance: all of it where the values lie far apart, nothing
    where they lie as far apart as shuffled ones. :math:`T` is I.F. of the template or, where that has more left,
    G.F. over the values or over the subgroups: a small difference that all templates share is seen by them alone.
    The same new samples serve the intervals of single templates.

    Leaving samples out in turn (`fairness_interval`) does not work as well: where two values hardly differ, I.F.
    has a kink, and the error comes out by half too large, most of all for scores of few steps.

    Args:
        scores: templates × values × samples; NaN is missing.
        subgroups: (values,), the subgroup of each value; by default each value is its own.
        across: whether I.F. averages the pairs of two subgroups alone.
        rng: where the new samples come from.
        draws: how many sets of them.
        level: share of intervals that should contain the truth.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=(5, 3, 100))
    >>> scores[0, 0] += 0.3
    >>> found = individual_intervals(scores, rng=rng).templates
    >>> [bool(each.low > 0) for each in found]
    [True, False, False, False, False]
    """
    array = as_scores(scores)
    groups = group_values(array.shape[1], subgroups)
    of_value = groups.of_value if across else np.arange(array.shape[1])
    templates = [_Resampled.of(each, of_value) for each in array]
    rows = pair_rows(array)  # (templates, 2, pairs)
    kept = _kept(array, rows, groups)
    found = np.array([each.draw(share, rng=rng, draws=draws) for each, share in zip(templates, kept, strict=True)])
    told = ((~np.isnan(array)).sum(axis=2) > 1).any(axis=1)  # what single samples vary by cannot be seen
    quantile = float(stats.t.ppf((1 + level) / 2, _FREEDOM))

    counted = rows[:, :, counted_pairs(groups, across=across)]

    def interval(some: Floats, of_draws: Floats) -> ExcessInterval:
        estimate, null = (float(each) for each in present_mean(present_mean(some), axis=-1))
        error, raw_error = (
            quantile * float(each.std(ddof=1)) if not np.isnan(estimate) else np.nan
            for each in (of_draws[0] - of_draws[1], of_draws[0])
        )
        return ExcessInterval(
            estimate=np.array(estimate),
            null=np.array(null),
            excess=np.array(estimate - null),
            low=np.array(estimate - null - error),
            high=np.array(estimate - null + error),
            bound=np.array(estimate + raw_error),
        )

    weights = np.array([each.pairs for each in templates], dtype=np.float64)
    unknown = np.full((2, draws), np.nan)
    whole = np.average(found, axis=0, weights=weights) if weights[told].any() else unknown
    return IndividualIntervals(
        whole=interval(counted, whole),
        templates=tuple(interval(counted[[at]], each if told[at] else unknown) for at, each in enumerate(found)),
    )


def _kept(scores: Floats, rows: Floats, groups: ValueGroups) -> Floats:
    """The share of each template's differences that is beyond chance: (templates,)."""
    alone = group_values(scores.shape[1], None)
    kept = np.array([_beyond(*each) for each in present_mean(rows, axis=-1).tolist()])
    for each in (alone, groups) if len(groups.names) < len(alone.names) else (alone,):
        kept = np.maximum(kept, _beyond(*group_and_null(scores, each)))
    return kept


def _beyond(distance: float, null: float) -> float:
    return float(np.sqrt(max(1 - (null / distance) ** 2, 0.0))) if distance > 0 and null >= 0 else 0.0


@dataclass(frozen=True)
class _Resampled:
    """A template whose values have samples, by the ranks of its scores: short whole numbers sort faster."""

    scores: Floats  # (scores,), ascending, of all values together, minus the middle one
    ranks: Ranks  # (values with samples, samples), ascending: of each among them; one more than the last: missing
    sizes: Integers  # (values with samples,)
    groups: Integers  # (values with samples,): pairs within a group do not count

    @classmethod
    def of(cls, scores: Floats, of_value: Integers) -> _Resampled:
        sizes = (~np.isnan(scores)).sum(axis=1)
        ordered = np.sort(scores[sizes > 0], axis=1)  # NaN goes last
        known = ~np.isnan(ordered)
        flat = ordered[known]
        order = np.argsort(flat, kind="stable")
        ranks = np.full(ordered.shape, len(flat), dtype=np.uint16 if len(flat) < 2**16 - 1 else np.uint32)
        place = np.empty(len(flat), dtype=ranks.dtype)
        place[order] = np.arange(len(flat))
        ranks[known] = place
        middle = flat[order[len(flat) // 2]] if len(flat) else 0.0  # so that equal scores are exactly 0 apart
        return cls(flat[order] - middle, ranks, sizes[sizes > 0], of_value[sizes > 0])

    @property
    def pairs(self) -> int:
        return int(self._counted.sum())

    @property
    def _counted(self) -> NDArray[np.bool_]:
        first, second = np.triu_indices(len(self.groups), 1)
        counted: NDArray[np.bool_] = self.groups[first] != self.groups[second]
        return counted

    def draw(self, kept: float, *, rng: np.random.Generator, draws: int) -> Floats:
        """I.F. and its null for each draw, (2, draws); 0 where there is no pair."""
        if not self.pairs:
            return np.zeros((2, draws))
        if self.scores[0] < self.scores[-1] and bool(np.isin(self.scores, self.scores[[0, -1]]).all()):
            parts = [self._of_two_scores(self._drawn_of_two(kept, rng=rng, draws=draws))]
        else:
            parts = [self._measured(many) for many in self._drawn(kept, rng=rng, draws=draws)]
        distances, nulls = (np.concatenate(part) for part in zip(*parts, strict=True))
        return np.stack([distances / self.pairs, self._scale * nulls])

    @property
    def _scale(self) -> float:
        """√(2/π (1/n + 1/m)), mean over the pairs that count."""
        first, second = np.triu_indices(len(self.groups), 1)
        inverse = 1 / self.sizes
        return float(np.sqrt(2 / np.pi * (inverse[first] + inverse[second]))[self._counted].mean())

    def _drawn(self, kept: float, *, rng: np.random.Generator, draws: int) -> Iterator[Ranks]:
        """Sets of samples, in any order: (some draws, values, samples)."""
        missing = self.ranks == len(self.scores)
        source = np.concatenate([self.ranks.ravel(), self.ranks[~missing]])  # a value's own, then all
        own, everything = self.ranks.size, len(self.scores)
        values, samples = self.ranks.shape
        before = np.arange(values)[:, None] * float(samples)
        batch = max(1, _BATCH // own)
        for done in range(0, draws, batch):
            # one random number tells both: below `kept` it is a place among a value's own, above among all
            random = rng.random((min(batch, draws - done), values, samples))
            place = random * (self.sizes[:, None] / kept if kept > 0 else 0.0)
            place += before
            if kept < 1:
                of_all = random * (everything / (1 - kept))
                of_all += own - everything * kept / (1 - kept)
                np.copyto(place, of_all, where=random >= kept)
            # a sum may be rounded up to the end of what is drawn from: it is clipped
            many = np.take(source, place.astype(np.intp), mode="clip")
            if missing.any():
                many[:, missing] = everything
            yield many

    @cached_property
    def _grid(self) -> QuantileGrid:
        return quantile_grid(self.sizes)

    @cached_property
    def _weights(self) -> Floats:
        """What each of the sorted scores counts: Σ_k (x_(k+1) − x_(k)) r_k is Σ_k x_(k) (r_(k−1) − r_k)."""
        n = len(self.scores)
        below = np.arange(n + 1) / n
        return -np.diff(np.sqrt(below * (1 - below) * n / (n - 1)))

    def _measured(self, many: Ranks) -> tuple[Floats, Floats]:
        """Σ W1 over the pairs that count, and Σ gap √(p (1 − p) N/(N − 1)): (draws,) each."""
        grid, ordered = self._grid, np.sort(many, axis=2)
        if (self.sizes < many.shape[2]).any():  # else each step is a sample
            ordered = np.take_along_axis(ordered, grid.places[None], axis=2)
        steps = np.ascontiguousarray(ordered.transpose(0, 2, 1))
        distances = self._over_pairs(steps, grid.widths)
        for members in self._within:
            distances -= self._over_pairs(steps[:, :, members], grid.widths)
        together = np.sort(many.reshape(len(many), -1), axis=1)[:, : len(self.scores)]
        return distances, np.einsum("ds,s->d", np.take(self.scores, together, mode="clip"), self._weights)

    def _over_pairs(self, steps: Ranks, widths: Floats) -> Floats:
        """Σ W1 over all pairs: (draws, steps, values) -> (draws,).

        Σ |x_i − x_j| is Σ (2k − V + 1) x_(k) of the sorted values, which saves the pairs.
        """
        values = np.take(self.scores, np.sort(steps, axis=2), mode="clip").reshape(len(steps), -1)
        total: Floats = np.einsum("ds,s->d", values, np.outer(widths, _ranked(steps.shape[2])).ravel())
        return total

    def _drawn_of_two(self, kept: float, *, rng: np.random.Generator, draws: int) -> Integers:
        """How often each value gets the larger one of two scores, which says everything: (draws, values)."""
        n = len(self.scores)
        lower = int(np.searchsorted(self.scores, self.scores[-1]))  # scores that are the smaller one
        shares = ((self.ranks >= lower) & (self.ranks < n)).sum(axis=1) / self.sizes
        likely = kept * shares + (1 - kept) * (n - lower) / n
        return rng.binomial(self.sizes, np.clip(likely, 0.0, 1.0), size=(draws, len(shares)))

    def _of_two_scores(self, larger: Integers) -> tuple[Floats, Floats]:
        """The same for scores that are one of two, from how often each value gets the larger one."""
        n = len(self.scores)
        shares = larger / self.sizes
        distances = np.sort(shares, axis=1) @ _ranked(len(self.sizes))
        for members in self._within:
            distances -= np.sort(shares[:, members], axis=1) @ _ranked(int(members.sum()))
        below = 1 - larger.sum(axis=1) / n
        gap = self.scores[-1] - self.scores[0]
        return gap * distances, gap * np.sqrt(below * (1 - below) * n / (n - 1))

    @property
    def _within(self) -> list[NDArray[np.bool_]]:
        """Which values each group of several has."""
        names, counts = np.unique(self.groups, return_counts=True)
        return [self.groups == name for name in names[counts > 1]]


def _ranked(values: int) -> Floats:
    return np.arange(1.0 - values, values, 2.0)
