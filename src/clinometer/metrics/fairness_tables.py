"""What shuffled labels do to many sets of scores: a sample is moved once for all of them.

Sets with the same samples missing stand side by side, one row for each sample. To move a row costs little more
than to move a single score, and the rows of a value are added up by a product with ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinometer.metrics.fairness_ranks import Cells, Shuffles
from clinometer.metrics.means import Floats, Integers
from clinometer.metrics.products import product

_BATCH = 800_000  # scores that are moved at a time: threads with short work would wait for each other
_WIDE = 2  # sets come in so many columns: the sum of a single one would be made in another order


class Moved(NamedTuple):
    """What is known of one set of scores after some shuffles; NaN where it was not wanted."""

    individual: Floats  # (shuffles, templates): I.F. of each
    sums: Floats  # (shuffles, templates, values): of the scores
    squares: Floats
    positive: Floats  # how many are above the threshold


class ScoreTable:
    """Several sets of scores: sorted within each template, one template after the other."""

    def __init__(self, cells: Cells, scores: Sequence[Floats], positive: Sequence[NDArray[np.bool_]]) -> None:
        """Take what each sample of each set has: its score, and whether that is above the threshold."""
        self._cells = cells
        self._sets = len(scores)
        self._scores = _side_by_side(scores)
        self._positive = positive

    def move(
        self,
        shuffles: Shuffles,
        pool: ThreadPoolExecutor | None = None,
        *,
        individual: NDArray[np.bool_],
        moments: bool,
        positive: Sequence[int],
    ) -> list[Moved]:
        """Return what each set has after some shuffles.

        Args:
            shuffles: which sample goes where.
            pool: who helps, if anybody.
            individual: (templates,), where I.F. is wanted.
            moments: whether sums and squares are.
            positive: for which sets positive samples are counted.
        """
        cells, rows = self._cells, len(shuffles.places)
        of_templates = np.full((rows, len(cells.sizes), self._sets), np.nan)
        above = _side_by_side([self._positive[at] for at in positive]) if positive else np.zeros((0, 0))
        shape, columns = (rows, *cells.sizes.shape), self._scores.shape[1]
        sums, squares = (np.zeros((*shape, columns if moments else 0)) for _ in range(2))
        counts = np.zeros((*shape, above.shape[1]))

        def weigh(at: int) -> None:
            of = cells.templates[at]
            of_templates[:, at] = product(shuffles.weights[:, of], self._scores[of])[:, : self._sets]

        def add_up(some: slice) -> None:
            for at, of in enumerate(cells.templates):
                places = shuffles.places[some, of]
                if moments:
                    moved = np.take(self._scores, places, axis=0, mode="clip")
                    sums[some, at] = self._of_values(at, moved)
                    squares[some, at] = self._of_values(at, np.multiply(moved, moved, out=moved))
                if positive:
                    counts[some, at] = self._of_values(at, np.take(above, places, axis=0, mode="clip"))

        every = pool.map if pool else map
        list(every(weigh, np.flatnonzero(individual).tolist()))
        few = max(1, _BATCH // max(1, int(cells.sizes.sum(axis=1).max(initial=0)) * columns))
        parts = [slice(first, first + few) for first in range(0, rows, few)]
        list(every(add_up, parts if moments or positive else ()))
        nothing = np.full(shape, np.nan)
        column = {each: at for at, each in enumerate(positive)}
        return [
            Moved(
                individual=of_templates[:, :, at],
                sums=np.ascontiguousarray(sums[..., at]) if moments else nothing,
                squares=np.ascontiguousarray(squares[..., at]) if moments else nothing,
                positive=np.ascontiguousarray(counts[..., column[at]]) if at in column else nothing,
            )
            for at in range(self._sets)
        ]

    def _of_values(self, at: int, moved: Floats) -> Floats:
        """Add up the samples of each value of a template: (rows, samples, sets) -> (rows, values, sets)."""
        sizes: Integers = self._cells.sizes[at]
        rows, _, sets = moved.shape
        if sizes.min() == sizes.max() > 0:  # most often, and much faster
            size = int(sizes[0])
            found: Floats = np.matmul(np.ones((1, size)), moved.reshape(rows * len(sizes), size, sets))
            return found.reshape(rows, len(sizes), sets)
        out = np.zeros((rows, len(sizes), sets))
        if (used := sizes > 0).any():
            out[:, used] = np.add.reduceat(moved, (np.cumsum(sizes) - sizes)[used], axis=1)
        return out


def _side_by_side(sets: Sequence[Floats] | Sequence[NDArray[np.bool_]]) -> Floats:
    """One column for each set, and where needed one with nothing in it: (samples, columns)."""
    out = np.zeros((len(sets[0]), _WIDE * -(-len(sets) // _WIDE)))
    out[:, : len(sets)] = np.stack(sets, axis=1)
    return out
