"""Differences between the classes of reviews when the labels of the reviews are shuffled: what chance gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clinometer.probes.kit.numbers import Floats
from clinometer.probes.sentiment_words.answers import Bools

_BATCH = 4_000_000  # labels held at a time, so that memory stays flat
_TIE = 1e-9  # relative: two sums of the same numbers in another order are equal


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelShuffles:
    """|mean over positive reviews − mean over negative reviews| of shuffled labels, sorted: (draws, words)."""

    sizes: Floats

    def p_of(self, difference: Floats) -> Floats:
        r"""Return p of the observed differences, two-sided: (words,) -> (words,).

        .. math:: p = (1 + \#\{|T^*| \ge |T|\}) / (1 + \mathrm{draws})

        The same test as `stats.two_group_permutation`, but for the shuffles being kept: many sets of labels can be
        tested against them.
        """
        draws, words = self.sizes.shape
        wanted = np.abs(difference) * (1 - _TIE)
        below = np.array([np.searchsorted(self.sizes[:, word], wanted[word]) for word in range(words)])
        p: Floats = (1 + draws - below) / (1 + draws)
        return p


def shuffle_labels(values: Floats, positive: Bools, *, rng: np.random.Generator, draws: int) -> LabelShuffles:
    """Shuffle the labels of the reviews: values (reviews, words)."""
    centred = values - values.mean(axis=0)  # numbers near zero are rounded less
    count, total = int(positive.sum()), len(positive)
    found = np.empty((draws, values.shape[1]))
    batch = max(1, _BATCH // total)
    for done in range(0, draws, batch):
        rows = min(batch, draws - done)
        labels = rng.permuted(np.tile(positive, (rows, 1)), axis=1)
        # the centred values sum to 0: the negative reviews hold what the positive ones lack
        found[done : done + rows] = np.abs(labels.astype(np.float64) @ centred)
    found *= 1 / count + 1 / (total - count)
    found.sort(axis=0)
    return LabelShuffles(sizes=found)


def class_difference(values: Floats, positive: Bools) -> Floats:
    """Return the mean over positive minus the mean over negative reviews: (reviews, words) -> (words,)."""
    difference: Floats = values[positive].mean(axis=0) - values[~positive].mean(axis=0)
    return difference
