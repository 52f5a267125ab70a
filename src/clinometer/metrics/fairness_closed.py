"""I.F. and G.F., and the means that they have under shuffled labels in closed form: without a shuffle.

At a threshold with a share p of N scores below it, the shares of n and m shuffled ones differ by about a normal
number of variance N/(N − 1) p (1 − p) (1/n + 1/m). Distances are sums of such differences over the gaps between
scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from clinometer.metrics.fairness import ValueGroups, every_pair, small_labels
from clinometer.metrics.fairness_pooled import PooledDistances
from clinometer.metrics.means import Floats, Integers, present_mean


def group_and_null(scores: Floats, groups: ValueGroups) -> tuple[float, float]:
    """Return G.F. and its null."""
    distance, null = present_mean(Pool.of(scores).subgroup_rows(groups), axis=-1)
    return float(distance), float(null)


def pair_rows(scores: Floats) -> Floats:
    """Return the distances and null means of all unordered pairs in each template: (templates, 2, pairs)."""
    sizes = (~np.isnan(scores)).sum(axis=2)
    first, second = np.triu_indices(scores.shape[1], 1)
    both = (sizes[:, first] > 0) & (sizes[:, second] > 0)
    rows = np.full((len(scores), 2, len(first)), np.nan)
    rows[:, 0][both] = every_pair(scores)
    with np.errstate(divide="ignore", invalid="ignore"):  # ∞ · 0: a value without samples among equal scores
        inverse = 1 / sizes
        null = np.sqrt(2 / np.pi * (inverse[:, first] + inverse[:, second])) * _spread(scores)[:, None]
    rows[:, 1][both] = null[both]
    return rows


def _spread(scores: Floats) -> Floats:
    """Σ gap √(p (1 − p) N/(N − 1)) of each template, NaN for fewer than two scores: (templates,)."""
    flat = np.sort(scores.reshape(len(scores), -1), axis=1)  # NaN goes last
    found = np.full(len(scores), np.nan)
    for at, n in enumerate((~np.isnan(flat)).sum(axis=1).tolist()):
        if n > 1:
            below = np.arange(1, n) / n
            found[at] = (np.diff(flat[at, :n]) * np.sqrt(below * (1 - below) * n / (n - 1))).sum()
    return found


@dataclass(frozen=True, slots=True)
class Pool:
    """All scores of some templates, ascending, and where each is from: (scores,) each."""

    scores: Floats
    template: Integers
    value: Integers
    sample: Integers
    shape: tuple[int, int]  # templates and values that there are

    @classmethod
    def of(cls, scores: Floats) -> Pool:
        """Sort the scores, templates × values × samples; NaN is missing."""
        template, value, sample = np.nonzero(~np.isnan(scores))
        flat = scores[template, value, sample]
        order = np.argsort(flat, kind="stable")
        return cls(flat[order], template[order], value[order], sample[order], (scores.shape[0], scores.shape[1]))

    def only(self, kept: NDArray[np.bool_]) -> Pool:
        """Return some of the scores."""
        return Pool(self.scores[kept], self.template[kept], self.value[kept], self.sample[kept], self.shape)

    def subgroup_rows(self, groups: ValueGroups) -> Floats:
        """Return the distances and null means of all subgroups, templates pooled: (2, subgroups)."""
        labels = small_labels(groups.of_value)[self.value]
        sizes = np.bincount(labels, minlength=len(groups.names))
        return np.stack([PooledDistances(self.scores, sizes).of(labels), self._null(groups)])

    def _null(self, groups: ValueGroups) -> Floats:
        """The mean distance of each subgroup from all scores under shuffled labels: (subgroups,)."""
        templates, values = self.shape
        per_value = np.bincount(self.template * values + self.value, minlength=templates * values)
        per_value = per_value.reshape(templates, values).astype(np.float64)
        member = groups.of_value == np.arange(len(groups.names))[:, None]
        totals = per_value.sum(axis=1)
        # subgroups of the same sizes have the same null: without missing samples a few rows are enough
        kinds, kind_of = np.unique(member @ per_value.T, axis=0, return_inverse=True)  # (kinds, templates)
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = kinds / kinds.sum(axis=1, keepdims=True)
            varied = np.where(kinds > 0, weight**2 * (1 / kinds - 1 / totals), 0.0)
        # a template in which a subgroup is overrepresented pulls it away from all scores
        pulled = weight - totals / max(totals.sum(), 1)
        gaps = np.diff(self.scores)
        step, share = self._steps(totals)
        null = np.full(len(kinds), np.nan)
        for at in np.flatnonzero(kinds.sum(axis=1) > 0):
            variance = np.cumsum(varied[at][self.template] * step)[:-1]
            offset = np.zeros(1)
            if np.abs(pulled[at]).max(initial=0) > 1e-12:
                offset = np.cumsum(pulled[at][self.template] * share)[:-1]
            null[at] = (_folded(offset, np.sqrt(np.maximum(variance, 0.0))) * gaps).sum()
        return null[kind_of.ravel()]

    def _steps(self, totals: Floats) -> tuple[Floats, Floats]:
        """By how much each score changes p (1 − p) N/(N − 1) of its template, and p: (scores,) each.

        Of p = c/N before the score and (c + 1)/N after it, the former changes by (N − 2c − 1)/(N (N − 1)).
        """
        order = np.argsort(self.template.astype(np.uint16), kind="stable")
        counts = np.bincount(self.template, minlength=len(totals))
        before = np.empty(len(order))
        before[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        n = totals[self.template]
        return (n - 2 * before - 1) / (n * np.maximum(n - 1, 1)), 1 / n


def _folded(mean: Floats, deviation: Floats) -> Floats:
    """E|X| of a normal X."""
    if not np.abs(mean).max(initial=0) > 1e-12:
        folded: Floats = np.sqrt(2 / np.pi) * deviation
        return folded
    z = np.divide(mean, deviation, out=np.zeros_like(mean), where=deviation > 0)
    folded = deviation * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + mean * (1 - 2 * stats.norm.cdf(-z))
    return np.where(deviation > 0, folded, np.abs(mean))
