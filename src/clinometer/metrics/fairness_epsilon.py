"""Whether every two values are nearer than ε in every template, and whether shuffled ones would be."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from clinometer.metrics.fairness import as_scores, pairwise_wasserstein, quantile_grid, samples_of
from clinometer.metrics.fairness_ranks import shuffled_places
from clinometer.metrics.means import Floats, Integers

WORST_DRAWS = 199  # shuffles behind the verdict: a mean and a rough p are enough for it
_TIE = 1e-12
_ROUNDING = 1e-9
_BATCH = 1_000_000  # scores that are compared at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonFairness:
    """The verdict of Equation 2, and what it rests on."""

    fair: bool  # at least one distance was measured, and all are below ε
    worst: float
    above: int  # distances that are not below ε
    compared: int
    missing: int  # pairs without a distance


def epsilon_fair(pairwise: ArrayLike, epsilon: float) -> EpsilonFairness:
    r"""Return whether a model is counterfactually fair at ε.

    .. math:: W_1(P_S(x), P_S(cf(x, a, \tilde a))) < \epsilon \quad \text{for each } a \neq \tilde a

    Equation 2 of the counterfactual paper. `pairwise` is … × values × values, as `pairwise_wasserstein` gives it,
    or its mean over templates; each unordered pair counts once. The distances of finite samples are larger than
    the true ones: a model can miss a small ε because of the number of samples alone.

    >>> verdict = epsilon_fair([[0.0, 0.25], [0.25, 0.0]], 0.2)
    >>> verdict.fair, verdict.worst, verdict.above, verdict.compared
    (False, 0.25, 1, 1)
    """
    matrix = np.asarray(pairwise, dtype=np.float64)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"found shape {matrix.shape}; give distances as … × values × values")
    if not epsilon > 0:
        raise ValueError(f"found epsilon={epsilon}; give a number above 0")
    every = matrix[..., *np.triu_indices(matrix.shape[-1], 1)].ravel()
    known = every[~np.isnan(every)]
    above = int((known >= epsilon).sum())
    return EpsilonFairness(
        fair=above == 0 and len(known) > 0,
        worst=float(known.max()) if len(known) else float("nan"),
        above=above,
        compared=len(known),
        missing=len(every) - len(known),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonVerdict:
    """Equation 2 at one ε, and what chance gives; NaN where nothing could be compared."""

    fair: bool
    compared: int
    template: int = -1  # of the worst pair
    pair: tuple[int, int] = (-1, -1)
    worst: float = math.nan
    worst_null: float = math.nan
    worst_p: float = math.nan
    share: float = math.nan  # of pairs that are not below ε
    share_null: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstPairs:
    """The pair that is furthest apart in any template, and the share of pairs that are not below ε."""

    distance: Floats  # (shuffles,); NaN without a pair
    share: Floats  # (shuffles,)


def epsilon_verdict(scores: Floats, *, epsilon: float, by_chance: WorstPairs | None = None) -> EpsilonVerdict:
    """Tell whether every pair in every template is below ε, and whether the same values shuffled would be.

    `by_chance` has the latter, from `worst_by_chance`. Of single scores, chance has the same worst pair.
    """
    distances = pairwise_wasserstein(scores)
    observed = epsilon_fair(distances, epsilon)
    if not observed.compared:
        return EpsilonVerdict(fair=False, compared=0)
    template, *pair = (int(at) for at in np.unravel_index(np.nanargmax(distances), distances.shape))
    found = EpsilonVerdict(
        fair=observed.fair,
        compared=observed.compared,
        template=template,
        pair=(pair[0], pair[1]),
        worst=observed.worst,
        share=observed.above / observed.compared,
    )
    if by_chance is None:
        return found
    as_far = (by_chance.distance >= observed.worst - _TIE).sum()
    return replace(
        found,
        worst_null=float(by_chance.distance.mean()),
        worst_p=float((1 + as_far) / (1 + len(by_chance.distance))),
        share_null=float(by_chance.share.mean()),
    )


def worst_by_chance(
    many: Sequence[ArrayLike], *, epsilon: float, rng: np.random.Generator, draws: int | None = None
) -> tuple[WorstPairs, ...]:
    """Shuffle the labels of several sets of scores with the same samples missing within each template.

    One set of shuffles serves all; what is found for one does not depend on the others.

    >>> scores = np.random.default_rng(0).uniform(size=(3, 4, 50))
    >>> (found,) = worst_by_chance([scores], epsilon=0.1, rng=np.random.default_rng(0))
    >>> found.distance.mean().round(2).item(), found.share.mean().round(2).item()
    (0.12, 0.09)
    """
    arrays = [as_scores(each) for each in many]
    draws = WORST_DRAWS if draws is None else draws
    if not arrays:
        return ()
    sizes = samples_of(arrays)
    # templates in which something can be compared
    compared = [template for template, each in enumerate(sizes) if (each > 0).sum() > 1]
    places = [shuffled_places(sizes[template], draws, rng) for template in compared]

    def worst(scores: Floats) -> WorstPairs:
        templates = [
            _ShuffledTemplate(np.sort(scores[template][~np.isnan(scores[template])])[of], sizes[template])
            for template, of in zip(compared, places, strict=True)
        ]
        if not templates:
            return WorstPairs(distance=np.full(draws, np.nan), share=np.full(draws, np.nan))
        # some pair is at least so far apart
        least = np.max([each.widest for each in templates], axis=0)
        found = [each.worst_and_above(least, epsilon) for each in templates]
        furthest, above = (np.array(part) for part in zip(*found, strict=True))
        pairs = sum(each.pairs for each in templates)
        return WorstPairs(distance=furthest.max(axis=0), share=above.sum(axis=0) / pairs)

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:  # numpy leaves the interpreter to others
        return tuple(pool.map(worst, arrays))


class _ShuffledTemplate:
    """Shuffled scores of one template, (shuffles, samples): value after value, ascending within each."""

    def __init__(self, scores: Floats, sizes: Integers) -> None:
        grid = quantile_grid(sizes[sizes > 0])
        firsts = (np.cumsum(sizes) - sizes)[sizes > 0]
        # the score of each value at each step of the grid: (shuffles, values, steps)
        self._steps, self._widths = scores[:, firsts[:, None] + grid.places], grid.widths
        self._first, self._second = np.triu_indices(len(firsts), 1)
        self.pairs = len(self._first)

    @property
    def widest(self) -> Floats:
        """The largest difference of two means, below which the worst pair never is: (shuffles,)."""
        means: Floats = self._steps @ self._widths
        widest: Floats = means.max(axis=1) - means.min(axis=1)
        return widest

    def worst_and_above(self, least: Floats, epsilon: float) -> tuple[Floats, Integers]:
        """Return the furthest pair where it may be as far apart as `least`, and how many are not below ε.

        By the triangle inequality two values are no further apart than both are from the scores of all together.
        So only the pairs are measured for which that does not settle it.
        """
        middle = np.sort(self._steps, axis=1)[:, self._steps.shape[1] // 2]  # any one distribution would do
        from_it = np.abs(self._steps - middle[:, None]) @ self._widths  # (shuffles, values)
        at_most = from_it[:, self._first] + from_it[:, self._second]
        shuffle, pair = np.nonzero(at_most >= np.minimum(least, epsilon)[:, None] * (1 - _ROUNDING))
        distances = np.zeros(at_most.shape)
        for some in np.array_split(np.arange(len(shuffle)), 1 + len(shuffle) * len(self._widths) // _BATCH):
            rows, one, other = shuffle[some], self._first[pair[some]], self._second[pair[some]]
            apart = np.abs(self._steps[rows, one] - self._steps[rows, other]) @ self._widths
            distances[rows, pair[some]] = apart
        above: Integers = (distances >= epsilon).sum(axis=1)
        return distances.max(axis=1), above
