"""Every two values against chance, each pair with itself alone (counterfactual audit)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clinometer.metrics.fairness import as_scores, every_pair, pair_matrix, samples_of
from clinometer.metrics.fairness_chance import AgainstChance, Tally, Turn, ahead, turns
from clinometer.metrics.means import Floats, Integers, present_mean
from clinometer.metrics.products import product

_BATCH = 250_000  # distances that are measured at a time: what a processor's cache holds
_LABELS = 1_000_000  # labels that are shuffled at a time
_TIE_OF_SINGLES = 1e-5  # relative: two sums of the same numbers, of single precision, in another order


@dataclass(frozen=True, slots=True, kw_only=True)
class PairNull:
    """Every two values against chance, each pair with itself alone; NaN on the diagonal."""

    pairs: AgainstChance  # (values, values): mean over templates
    template_distances: Floats  # (templates, values, values)
    template_null: Floats  # mean over the shuffles
    template_p: Floats
    draws: int  # at most


def pair_null(
    scores: ArrayLike, *, rng: np.random.Generator, draws: int = 1000, further: int = 0, most: int = 250_000_000
) -> PairNull:
    """Set W1 of every two values against what shuffling the samples of these two gives, in each template.

        p = (1 + #{W1* ≥ W1}) / (draws + 1)

    The null is that two values have one distribution, whatever the others have; `fairness_null` shuffles over all
    values, and calls two that vary more than the others different although they are alike. Exact for any sizes.

    For the sorted scores of both, W1 = Σ_j gap_j |i_j/n − k_j/m|, where i_j of the n scores of one and k_j of the
    m of the other lie below gap j. Which labels lie below does not depend on the scores, so pairs of the same
    sizes share their shuffles, and all their distances are one product of matrices.

    A pair that is plainly no further apart than shuffled ones has fewer shuffles than `draws`: see
    `fairness_chance`. With `further`, those that may differ get more, twice as many each time, until a small
    false-discovery rate is within reach of them (`Tally.settle`): a single pair needs many shuffles, many pairs
    need few. So the cost grows with the pairs, and no faster. How many others may differ is looked at, so p is
    exact but for what a pair itself has to do with that number; the simulations show nothing of it.

    Args:
        scores: templates × values × samples; NaN is missing.
        rng: where the shuffles come from.
        draws: how many at most, without `further`.
        further: how many for a single pair that differs; for false-discovery rates over m pairs at least 20 · m.
        most: labels that are shuffled at the most; many different sizes take fewer draws.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=(3, 4, 50))
    >>> scores[:, 0] **= 3
    >>> found = pair_null(scores, rng=rng, draws=199)
    >>> float(found.pairs.p[0, 1]), bool(found.pairs.p[1, 2] > 0.05), found.template_p.shape
    (0.005, True, (3, 4, 4))
    """
    return pair_nulls([scores], rng=rng, draws=draws, further=further, most=most)[0]


def pair_nulls(
    many: Sequence[ArrayLike],
    *,
    rng: np.random.Generator,
    draws: int = 1000,
    further: int = 0,
    most: int = 250_000_000,
) -> tuple[PairNull, ...]:
    """Return what `pair_null` does for several sets of scores with the same samples missing, on all cores.

    One set of shuffles serves all. What is found for one does not depend on the others: a set that stops early
    leaves the shuffles of the others as they are.
    """
    arrays = [as_scores(each) for each in many]
    if not arrays:
        return ()
    sizes = samples_of(arrays)
    first, second = np.triu_indices(sizes.shape[1], 1)
    classes = [_size_classes(each[first], each[second]) for each in sizes]
    feasible = max(1, most // max(sum(n + m for each in classes for n, m in each), 1))
    draws = min(draws, feasible)
    every_turn = turns(draws, min(further, feasible))
    every = [_Tested(each, sizes) for each in arrays]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:  # numpy leaves the interpreter to others
        for turn in every_turn:
            if not (unsure := [each for each in every if each.begin(turn)]):
                break
            for some in ahead(_shuffles(classes, turn, rng), pool):
                list(pool.map(partial(_Tested.take, some=some), unsure))
            for each in unsure:
                each.end(turn, is_enough=turn.last >= draws)
    return tuple(each.null(every_turn[-1].last) for each in every)


class _Shuffled(NamedTuple):
    """Some shuffles of the labels of two values with n and m samples in a template."""

    template: int
    n: int
    m: int
    pairs: Integers  # all that have so many samples
    imbalance: NDArray[np.floating[Any]]  # (shuffles, n + m − 1)
    first: int  # of these shuffles in their turn


def _shuffles(
    classes: Sequence[dict[tuple[int, int], Integers]], turn: Turn, rng: np.random.Generator
) -> Iterator[_Shuffled]:
    """Yield the shuffles of a turn: template after template, and sizes after sizes."""
    for template, of_sizes in enumerate(classes):
        for (n, m), pairs in of_sizes.items():
            labels = (np.arange(n + m) < n).astype(np.int64)  # whole words are shuffled fastest
            rows = min(turn.shuffles, max(1, _LABELS // (n + m)))
            for first in range(0, turn.shuffles, rows):
                many = rng.permuted(np.tile(labels, (min(rows, turn.shuffles - first), 1)), axis=1)
                yield _Shuffled(template, n, m, pairs, _imbalance(many, n, m), first)


class _Tested:
    """One set of scores: how far its pairs are apart, and how often shuffled ones were as far."""

    def __init__(self, scores: Floats, sizes: Integers) -> None:
        self._ordered = np.sort(scores, axis=2)  # NaN goes last
        self._first, self._second = np.triu_indices(scores.shape[1], 1)
        present = (sizes[:, self._first] > 0) & (sizes[:, self._second] > 0)
        self._templates: NDArray[np.float32] = present.sum(axis=0).astype(np.float32)  # of each pair
        self._distances = np.full(present.shape, np.nan)
        self._distances[present] = every_pair(scores)
        least = (self._distances * (1 - _TIE_OF_SINGLES)).astype(np.float32)
        self._cells = Tally(self._distances, least=least)  # (templates, pairs)
        with np.errstate(invalid="ignore"):  # a pair that is in no template
            means = np.where(present, least, 0).sum(axis=0, dtype=np.float32) / self._templates
        self._means = Tally(means)  # over templates: (pairs,)

    def begin(self, turn: Turn) -> bool:
        """Make room for the shuffles of a turn; False if none is needed."""
        self._followed = np.flatnonzero(self._means.unsure)  # pairs whose means are kept
        self._column = np.zeros(len(self._templates), dtype=np.intp)
        self._column[self._followed] = np.arange(len(self._followed))
        self._sums = np.zeros((turn.shuffles, len(self._followed)), dtype=np.float32)
        self._steps: tuple[tuple[int, int, int], Integers, NDArray[np.float32]] | None = None
        return bool(self._cells.unsure.any() or len(self._followed))

    def take(self, some: _Shuffled) -> None:
        """Measure some shuffles."""
        template, n, m = about = some[:3]
        if self._steps is None or self._steps[0] != about:
            wanted = some.pairs[(self._cells.unsure[template] | self._means.unsure)[some.pairs]]
            self._steps = about, wanted, self._steps_of(template, n, m, wanted)
        _, pairs, steps = self._steps
        if not len(pairs):
            return
        followed = self._means.unsure[pairs]
        # a slice is written much faster than a list of places
        every = int(followed.sum()) == len(self._templates)
        columns: Integers | slice = slice(None) if every else self._column[pairs[followed]]
        least = self._cells.least[template, pairs]
        few = max(1, _BATCH // max(n + m, len(pairs)))
        for first in range(0, len(some.imbalance), few):
            shuffled = product(some.imbalance[first : first + few], steps)  # (shuffles, pairs)
            rows = slice(some.first + first, some.first + first + len(shuffled))
            self._sums[rows, columns] += shuffled if followed.all() else shuffled[:, followed]
            # twice as fast as to count what is true
            as_far = (shuffled >= least).view(np.uint8).sum(axis=0, dtype=np.uint32)
            sums = shuffled.sum(axis=0, dtype=np.float64)
            self._cells.add_counts((template, pairs), as_far, sums, len(shuffled))

    def _steps_of(self, template: int, n: int, m: int, pairs: Integers) -> NDArray[np.float32]:
        """Return the gaps between the scores of each pair: (n + m − 1, pairs)."""
        one, other = (
            self._ordered[template, self._first[pairs], :n],
            self._ordered[template, self._second[pairs], :m],
        )
        both = np.sort(np.concatenate([one, other], axis=1), axis=1)
        steps: NDArray[np.float32] = (np.diff(both, axis=1).T / (n * m)).astype(np.float32)
        return steps

    def end(self, turn: Turn, *, is_enough: bool) -> None:
        """See after a turn which pairs need no more."""
        means = np.full((len(self._sums), len(self._templates)), np.nan, dtype=np.float32)
        means[:, self._followed] = self._sums / self._templates[self._followed]
        self._means.add(means)
        for tally in (self._means, self._cells):
            tally.look()
            if is_enough:
                tally.settle(turn.last)
        del self._sums

    def null(self, draws: int) -> PairNull:
        """Return what was found."""
        pairs = self._means.against_chance(estimate=present_mean(self._distances))
        cells = self._cells.against_chance(estimate=self._distances)
        return PairNull(
            pairs=AgainstChance(**{each.name: pair_matrix(getattr(pairs, each.name)) for each in fields(pairs)}),
            template_distances=np.stack([pair_matrix(each) for each in cells.estimate]),
            template_null=np.stack([pair_matrix(each) for each in cells.null]),
            template_p=np.stack([pair_matrix(each) for each in cells.p]),
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


def _imbalance(labels: NDArray[np.bool_] | Integers, n: int, m: int) -> NDArray[np.floating[Any]]:
    """n · m · |share of the n below each gap − share of the m|: (…, n + m) -> (…, n + m − 1).

    Whole numbers: exact in single precision up to a few thousand samples, which takes half of the time.
    """
    exact = n * (n + m) < 2**24
    of_first: NDArray[Any] = np.cumsum(labels, axis=1, dtype=np.int32 if exact else np.int64)[:, :-1]
    below: NDArray[Any] = np.arange(1, n + m, dtype=of_first.dtype)
    # i/n − (j − i)/m, of j below the gap, is (i (n + m) − j n) / n m
    imbalance: NDArray[Any] = np.abs(of_first * (n + m) - below * n)
    return imbalance.astype(np.float32 if exact else np.float64)
