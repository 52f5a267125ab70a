"""I.F. and G.F. of single scores: what a classifier makes of a sentence when only the value in it changes.

A classifier gives a sentence one and the same score whenever it is asked, so nothing is drawn within a template.
What varies is the template: the scores of a value are a sample over templates.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from clinometer.metrics.fairness import (
    ValueGroups,
    counted_pairs,
    group_values,
    pair_matrix,
    quantile_grid,
)
from clinometer.metrics.fairness_chance import AgainstChance, against_chance
from clinometer.metrics.fairness_intervals import ExcessInterval
from clinometer.metrics.means import Floats

T = TypeVar("T", AgainstChance, ExcessInterval)
_BATCH = 4_000_000  # numbers held at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreFairness:
    """I.F., G.F. and their parts, against chance and with intervals."""

    individual: AgainstChance
    group: AgainstChance
    pairs: AgainstChance  # (values, values); NaN on the diagonal
    subgroups: AgainstChance  # (subgroups,): terms of G.F.
    individual_interval: ExcessInterval
    group_interval: ExcessInterval
    pair_intervals: ExcessInterval
    subgroup_intervals: ExcessInterval


def score_fairness(
    scores: ArrayLike,
    *,
    subgroups: Sequence[Hashable] | None = None,
    across: bool = False,
    rng: np.random.Generator,
    draws: int = 1999,
    level: float = 0.95,
) -> ScoreFairness:
    r"""Compare the values of an attribute by their scores over templates, each template's mean taken out.

    .. math:: r_{tv} = s_{tv} - \bar s_t, \qquad
        I.F. = \frac{2}{V(V-1)} \sum_{v < w} W_1(r_{\cdot v}, r_{\cdot w}), \qquad
        G.F. = \frac1K \sum_k W_1(r_{\cdot k}, r)

    Equations 3 and 4 of the counterfactual paper with templates in place of samples. (Equation 3 itself, the mean
    of :math:`|s_{tv} - s_{tw}|`, does not tell a value that is always scored lower from one that is scored lower
    in every other template: shuffled over the values of a template, it stays what it is.) Chance is what
    remains when the scores of each template are shuffled over its values, which is exact. Intervals leave out one
    template at a time; there is none for fewer than three.

    Args:
        scores: templates × values, none missing.
        subgroups: (values,), the subgroup of each value; by default each value is its own.
        across: whether I.F. averages the pairs of two subgroups alone.
        rng: where the shuffles come from.
        draws: how many.
        level: share of intervals that should contain the truth.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(0.4, 0.6, size=(10, 4))
    >>> scores[:, 0] += 0.2
    >>> found = score_fairness(scores, rng=rng, draws=199)
    >>> float(found.individual.p), bool(found.individual_interval.low > 0), bool(found.pairs.p[1, 2] > 0.05)
    (0.005, True, True)
    """
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] < 2 or not np.isfinite(array).all():
        raise ValueError(f"found scores of shape {array.shape}; give templates × values (2 or more), none missing")
    groups = group_values(array.shape[1], subgroups)
    counted = counted_pairs(groups, across=across)
    centred = array - array.mean(axis=1, keepdims=True)
    rows = _shuffles(centred, groups, rng=rng, draws=draws)
    left_out = None
    if len(centred) > 2:
        every = [_distances(np.delete(centred, at, axis=0)[None], groups) for at in range(len(centred))]
        left_out = [np.concatenate(parts) for parts in zip(*every, strict=True)]

    def found(part: int, of: Sequence[bool] | slice | None) -> tuple[AgainstChance, ExcessInterval]:
        values = rows[part] if of is None else rows[part][:, of].mean(axis=1)
        chance = against_chance(values)
        error = np.full(np.shape(chance.estimate), np.nan)
        if left_out is not None:
            replicates = left_out[part] if of is None else left_out[part][:, of].mean(axis=1)
            blocks = len(replicates)
            spread = ((replicates - replicates.mean(axis=0)) ** 2).sum(axis=0)
            error = stats.t.ppf((1 + level) / 2, blocks - 1) * np.sqrt((blocks - 1) / blocks * spread)
        return chance, ExcessInterval(
            estimate=chance.estimate,
            null=chance.null,
            excess=chance.excess,
            low=chance.excess - error,
            high=chance.excess + error,
            bound=chance.estimate + error,
        )

    individual, group = found(0, counted.tolist()), found(1, slice(None))
    pairs, terms = found(0, None), found(1, None)
    return ScoreFairness(
        individual=individual[0],
        group=group[0],
        pairs=_matrices(pairs[0]),
        subgroups=terms[0],
        individual_interval=individual[1],
        group_interval=group[1],
        pair_intervals=_matrices(pairs[1]),
        subgroup_intervals=terms[1],
    )


def _shuffles(
    centred: Floats, groups: ValueGroups, *, rng: np.random.Generator, draws: int
) -> tuple[Floats, Floats]:
    """Pair and subgroup distances, the observed ones first: (1 + draws, …) each."""
    pairs, terms = ([part] for part in _distances(centred[None], groups))
    batch = max(1, _BATCH // (centred.size * centred.shape[1]))
    for done in range(0, draws, batch):
        many = rng.permuted(np.repeat(centred[None], min(batch, draws - done), axis=0), axis=2)
        for kept, part in zip((pairs, terms), _distances(many, groups), strict=True):
            kept.append(part)
    return np.concatenate(pairs), np.concatenate(terms)


def _distances(many: Floats, groups: ValueGroups) -> tuple[Floats, Floats]:
    """W1 of every pair, and of every subgroup from all: (draws, templates, values) -> (draws, …) each."""
    by_value = np.sort(many, axis=1).transpose(0, 2, 1)  # (draws, values, templates)
    values = by_value.shape[1]
    pairs = [np.abs(by_value[:, at + 1 :] - by_value[:, at : at + 1]).mean(axis=2) for at in range(values - 1)]
    everything = np.sort(many.reshape(len(many), -1), axis=1)
    terms = []
    for group in range(len(groups.names)):
        mine = np.sort(many[:, :, groups.of_value == group].reshape(len(many), -1), axis=1)
        grid = quantile_grid(np.array([mine.shape[1], everything.shape[1]]))
        terms.append(np.abs(mine[:, grid.places[0]] - everything[:, grid.places[1]]) @ grid.widths)
    return np.concatenate(pairs, axis=1), np.stack(terms, axis=1)


def _matrices(pairs: T) -> T:
    """Put the unordered pairs into matrices values × values."""
    return type(pairs)(**{field.name: pair_matrix(getattr(pairs, field.name)) for field in fields(pairs)})
