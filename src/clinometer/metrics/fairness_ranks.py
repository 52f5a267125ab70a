"""Shuffled labels, and what they alone decide: which of the sorted scores a value gets, and how I.F. weighs each.

Nothing here sees a score, so what is made here serves every model and scorer with the same samples missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinometer.metrics.fairness import ValueGroups, quantile_grid, small_labels
from clinometer.metrics.means import Floats, Integers

_BATCH = 250_000  # scores of a template that are shuffled at a time


class Cells:
    """Where samples lie: template after template, in it value after value, and from the lowest score on."""

    def __init__(self, sizes: Integers) -> None:
        """Take how many samples there are, templates × values."""
        self.sizes = sizes
        self.used = sizes > 0
        self.ends = np.cumsum(sizes.sum(axis=1))
        self.starts = self.ends - sizes.sum(axis=1)  # of templates
        # how many samples every value has in every template; 0 if that differs
        self.size = int(sizes.min()) if sizes.min(initial=1) == sizes.max(initial=0) else 0

    @property
    def templates(self) -> list[slice]:
        """Where each template's samples lie."""
        return [slice(*ends) for ends in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]


class CountedPairs:
    """The pairs of values that I.F. averages, and the sum of their distances without a loop over pairs.

    Σ |x_v − x_w| over all pairs is Σ (2k − V + 1) x_(k) of the sorted values. With `across` the same sum within
    each subgroup is taken off.
    """

    def __init__(self, groups: ValueGroups, *, across: bool) -> None:
        self._of_value = groups.of_value if across else np.arange(len(groups.of_value))

    def number(self, present: NDArray[np.bool_]) -> int:
        """Count the pairs among the values that are present."""
        sizes = np.bincount(self._of_value[present])
        total = int(sizes.sum())
        return (total * (total - 1) - int((sizes * (sizes - 1)).sum())) // 2

    def sums(self, values: Floats, present: NDArray[np.bool_]) -> Floats:
        """Σ |x_v − x_w| over the pairs: (…, present values) -> (…)."""
        total = _over_pairs(values)
        for members in self._within(present):
            total -= _over_pairs(values[..., members])
        return total

    def weights(self, places: Integers, sizes: Integers) -> Floats:
        """Return what each sorted score of a template counts in Σ W1 over the pairs: (shuffles, scores).

        W1 is Σ |x_(i) − y_(i)|/n, so Σ W1 over pairs sorts the values at each i. Which of them comes first there
        depends on the places of their scores alone. `places` is value after value, (shuffles, scores), and
        `sizes` has the samples of each value.
        """
        present = sizes > 0
        grid = quantile_grid(sizes[present])
        rows, scores = places.shape
        short = places.astype(np.uint16 if scores < 2**16 else np.uint32)  # short numbers sort faster
        if sizes[present].min() == sizes[present].max():
            steps = np.ascontiguousarray(short.reshape(rows, len(grid.places), -1).transpose(0, 2, 1))
        else:
            firsts = (np.cumsum(sizes) - sizes)[present]
            steps = short[:, (firsts[:, None] + grid.places).T]  # (shuffles, steps, values)
        total = _weights_over_pairs(steps, grid.widths, scores)
        for members in self._within(present):
            total -= _weights_over_pairs(steps[:, :, members], grid.widths, scores)
        return total

    def _within(self, present: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
        """The subgroups of several values: which of those present are in each."""
        of_value = self._of_value[present]
        names, counts = np.unique(of_value, return_counts=True)
        return [of_value == name for name in names[counts > 1]]


def _over_pairs(values: Floats) -> Floats:
    found: Floats = np.einsum("...v,v->...", np.sort(values, axis=-1), _ranked(values.shape[-1]))
    return found


def _weights_over_pairs(steps: NDArray[np.unsignedinteger], widths: Floats, scores: int) -> Floats:
    """What each of the sorted scores counts: (shuffles, steps, values) -> (shuffles, scores)."""
    rows, _, values = steps.shape
    at = np.sort(steps, axis=-1) + scores * np.arange(rows)[:, None, None]
    weights = np.broadcast_to(widths[:, None] * _ranked(values), at.shape)
    return np.bincount(at.ravel(), weights.ravel(), rows * scores).astype(np.float64, copy=False).reshape(rows, -1)


def _ranked(values: int) -> Floats:
    return np.arange(1.0 - values, values, 2.0)


class Shuffles(NamedTuple):
    """Some labellings of all samples; scores are sorted within each template, one template after the other."""

    places: Integers  # (shuffles, samples): which of the sorted scores each sample has, as `Cells` has them
    weights: Floats  # (shuffles, samples): what each of the sorted scores counts in I.F. of its template

    @classmethod
    def empty(cls, cells: Cells, rows: int) -> Shuffles:
        """Return room for some shuffles."""
        shape = (rows, int(cells.sizes.sum()))
        return cls(np.empty(shape, dtype=np.int64), np.zeros(shape))

    def put(self, at: int, places: Integers, cells: Cells, pairs: CountedPairs) -> None:
        """Take the places within one template."""
        of, sizes = cells.templates[at], cells.sizes[at]
        np.add(places, int(cells.starts[at]), out=self.places[:, of])
        if number := pairs.number(sizes > 0):
            np.divide(pairs.weights(places, sizes), number, out=self.weights[:, of])


def label_shuffles(
    cells: Cells, pairs: CountedPairs, *, rng: np.random.Generator, draws: int
) -> Iterator[Shuffles]:
    """Yield shuffles of the labels within each template, some at a time.

    Room for two lots is made once, which saves a good part of the time: a lot is gone when the next but one is
    made.
    """
    batch = min(draws, max(1, _BATCH // max(1, *cells.sizes.sum(axis=1).tolist())))
    rooms = cycle([Shuffles.empty(cells, batch) for _ in range(2)])
    for done in range(0, draws, batch):
        rows = min(batch, draws - done)
        room = next(rooms)
        some = Shuffles(room.places[:rows], room.weights[:rows])
        for at, sizes in enumerate(cells.sizes):
            some.put(at, shuffled_places(sizes, rows, rng), cells, pairs)
        yield some


def shuffled_places(sizes: Integers, rows: int, rng: np.random.Generator) -> Integers:
    """Deal the places of a template's sorted scores to its values: (rows, samples).

    Value after value, ascending within each; `sizes` has the samples of each value.
    """
    labels = np.repeat(np.arange(len(sizes)), sizes)
    shuffled = rng.permuted(np.tile(labels, (rows, 1)), axis=1)  # whole words are shuffled fastest …
    # … and bytes sorted: by label, and by place within a label
    return np.argsort(small_labels(shuffled), axis=1, kind="stable")
