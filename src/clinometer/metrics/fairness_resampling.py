"""The interval of I.F. for these templates: how much it varies from one set of samples to another."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from clinometer.metrics.fairness import ValueGroups, as_scores, group_values, quantile_grid
from clinometer.metrics.fairness_closed import group_and_null, individual_and_null
from clinometer.metrics.fairness_intervals import ExcessInterval
from clinometer.metrics.means import Floats, Integers

_BATCH = 4_000_000  # numbers drawn at a time
_CACHE = 50_000  # of these, measured at a time: what a processor's cache holds
_FREEDOM = 19  # of Student's quantile: the error is an estimate, and with few samples somewhat too small


def individual_interval(
    scores: ArrayLike,
    *,
    subgroups: Sequence[Hashable] | None = None,
    across: bool = False,
    rng: np.random.Generator,
    draws: int = 199,
    level: float = 0.95,
) -> ExcessInterval:
    r"""Give the excess of I.F. over chance an interval for these templates, by drawing samples anew.

    .. math:: \theta \pm t_{19} \, s(\theta^*), \qquad
        x^*_{tv} \sim c_t \hat P_{tv} + (1 - c_t) \hat P_{t \cdot}, \qquad
        c_t^2 = 1 - (E_0 T_t / T_t)^2

    The samples of a value differ from those of the others by what is there and by chance; drawn from them alone,
    the new samples would differ by chance twice. So they are drawn from a mixture with all samples of the template
    that has as much of the difference left as is beyond chance: all of it where the values lie far apart, nothing
    where they lie as far apart as shuffled ones. :math:`T` is I.F. of the template or, where that has more left,
    G.F. over the values or over the subgroups: a small difference that all templates share is seen by them alone.

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
    >>> found = individual_interval(scores, rng=rng)
    >>> bool(0 < found.low < found.excess < found.high)
    True
    """
    array = as_scores(scores)
    groups = group_values(array.shape[1], subgroups)
    estimate, null = individual_and_null(array, groups, across=across)
    error = raw_error = float("nan")
    if array.shape[2] > 1 and not np.isnan(estimate):  # of one sample each nothing can be drawn
        of_value = groups.of_value if across else np.arange(array.shape[1])
        resampled = _replicates(array, of_value, _kept(array, groups), rng=rng, draws=draws)
        quantile = float(stats.t.ppf((1 + level) / 2, _FREEDOM))
        error, raw_error = (quantile * float(each) for each in resampled.std(axis=1, ddof=1))
    return ExcessInterval(
        estimate=np.array(estimate),
        null=np.array(null),
        excess=np.array(estimate - null),
        low=np.array(estimate - null - error),
        high=np.array(estimate - null + error),
        bound=np.array(estimate + raw_error),
    )


def _kept(scores: Floats, groups: ValueGroups) -> Floats:
    """The share of each template's differences that is beyond chance: (templates,)."""
    alone = group_values(scores.shape[1], None)
    kept = np.array([_beyond(*individual_and_null(scores[[at]], alone)) for at in range(len(scores))])
    for each in (alone, groups) if len(groups.names) < len(alone.names) else (alone,):
        kept = np.maximum(kept, _beyond(*group_and_null(scores, each)))
    return kept


def _beyond(distance: float, null: float) -> float:
    return float(np.sqrt(max(1 - (null / distance) ** 2, 0.0))) if distance > 0 and null >= 0 else 0.0


def _replicates(
    scores: Floats, of_value: Integers, kept: Floats, *, rng: np.random.Generator, draws: int
) -> Floats:
    """The excess of I.F., and I.F. itself, of samples drawn anew: (2, draws).

    `of_value` has the group of each value; pairs within a group do not count.
    """
    templates = [_Resampled.of(each, of_value) for each in scores]
    weights = np.array([each.pairs for each in templates], dtype=np.float64)
    found = [each.draw(share, rng=rng, draws=draws) for each, share in zip(templates, kept, strict=True)]
    distances, nulls = (np.average(part, axis=0, weights=weights) for part in zip(*found, strict=True))
    return np.stack([distances - nulls, distances])


@dataclass(frozen=True, slots=True)
class _Resampled:
    """A template whose values have samples."""

    ordered: Floats  # (values with samples, samples), ascending, NaN last
    sizes: Integers  # (values with samples,)
    groups: Integers  # (values with samples,): pairs within a group do not count

    @classmethod
    def of(cls, scores: Floats, of_value: Integers) -> _Resampled:
        sizes = (~np.isnan(scores)).sum(axis=1)
        return cls(np.sort(scores[sizes > 0], axis=1), sizes[sizes > 0], of_value[sizes > 0])

    @property
    def pairs(self) -> int:
        first, second = np.triu_indices(len(self.groups), 1)
        return int((self.groups[first] != self.groups[second]).sum())

    def draw(self, kept: float, *, rng: np.random.Generator, draws: int) -> tuple[Floats, Floats]:
        """I.F. and its null for each draw: (draws,) each; 0 where there is no pair."""
        if not self.pairs:
            return np.zeros(draws), np.zeros(draws)
        parts = [self._measured(many) for many in self._drawn(kept, rng=rng, draws=draws)]
        first, second = zip(*parts, strict=True)
        return np.concatenate(first), np.concatenate(second)

    def _drawn(self, kept: float, *, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
        """Sets of samples, ascending, ∞ where there is none: (some draws, values, samples)."""
        missing = np.isnan(self.ordered)
        source = np.concatenate([self.ordered.ravel(), self.ordered[~missing]])  # a value's own, then all
        own = self.ordered.size
        values, samples = self.ordered.shape
        size, start = self.sizes[:, None], np.arange(values)[:, None] * samples
        batch, few = max(1, _BATCH // own), max(1, _CACHE // own)
        for done in range(0, draws, batch):
            shape = (min(batch, draws - done), values, samples)
            place, chosen = rng.random(shape), rng.random(shape)
            for first in range(0, len(place), few):
                at = place[first : first + few]
                mine = np.floor(at * size)
                mine += start
                pooled = np.floor(at * (len(source) - own))
                pooled += own
                many = np.take(source, np.where(chosen[first : first + few] < kept, mine, pooled).astype(np.int64))
                if missing.any():
                    many[:, missing] = np.inf
                many.sort(axis=2)
                yield many

    def _measured(self, many: Floats) -> tuple[Floats, Floats]:
        grid = quantile_grid(self.sizes)
        full = bool((self.sizes == many.shape[2]).all())  # each step is a sample
        quantiles = many if full else np.take_along_axis(many, grid.places[None], axis=2)
        distances = _over_pairs(quantiles, grid.widths)
        for group in np.unique(self.groups) if len(np.unique(self.groups)) < len(self.groups) else ():
            distances -= _over_pairs(quantiles[:, self.groups == group], grid.widths)
        n = int(self.sizes.sum())
        below = np.arange(1, n) / n
        spread = np.diff(np.sort(many.reshape(len(many), -1), axis=1)[:, :n], axis=1)
        inverse = 1 / self.sizes
        first, second = np.triu_indices(len(self.groups), 1)
        counted = self.groups[first] != self.groups[second]
        scale = np.sqrt(2 / np.pi * (inverse[first] + inverse[second]))[counted].mean()
        return distances / self.pairs, scale * (spread @ np.sqrt(below * (1 - below) * n / (n - 1)))


def _over_pairs(quantiles: Floats, widths: Floats) -> Floats:
    """Σ W1 over all pairs: (draws, values, steps) -> (draws,).

    Σ |x_i − x_j| is Σ (2k − V + 1) x_(k) of the sorted values, which saves the pairs.
    """
    values = quantiles.shape[1]
    weights = 2 * np.arange(values) - (values - 1)
    total: Floats = np.sort(quantiles, axis=1).reshape(len(quantiles), -1) @ np.outer(weights, widths).ravel()
    return total
