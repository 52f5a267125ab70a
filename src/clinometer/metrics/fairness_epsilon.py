"""Whether every two values are nearer than ε in every template, and whether shuffled ones would be."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

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
    templates = [_Template(at, each) for at, each in enumerate(sizes) if (each > 0).sum() > 1]
    if not templates:
        nothing = np.full(draws, np.nan)
        return tuple(WorstPairs(distance=nothing, share=nothing) for _ in arrays)
    ordered = [[np.sort(each[t.number][~np.isnan(each[t.number])]) for t in templates] for each in arrays]
    found: list[list[tuple[Floats, Integers]]] = [[] for _ in arrays]
    few = max(1, _BATCH // sum(template.steps for template in templates))
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:  # numpy leaves the interpreter to others
        for done in range(0, draws, few):
            places = [shuffled_places(sizes[t.number], min(few, draws - done), rng) for t in templates]
            measured = pool.map(
                partial(_worst_and_above, templates=templates, places=places, epsilon=epsilon), ordered
            )
            for mine, part in zip(found, measured, strict=True):
                mine.append(part)
    pairs = sum(len(template.first) for template in templates)
    worst = [tuple(map(np.concatenate, zip(*parts, strict=True))) for parts in found]
    return tuple(WorstPairs(distance=distance, share=above / pairs) for distance, above in worst)


class _Template:
    """Which values of a template have samples, and the steps at which two of them are compared."""

    def __init__(self, number: int, sizes: Integers) -> None:
        self.number = number
        grid = quantile_grid(sizes[sizes > 0])
        firsts = (np.cumsum(sizes) - sizes)[sizes > 0]
        self.at, self.widths = firsts[:, None] + grid.places, grid.widths  # (values, steps), (steps,)
        self.steps = self.at.size
        self.first, self.second = np.triu_indices(len(firsts), 1)
        # the sorted score of the whole template in the middle of each step
        middles = np.cumsum(grid.widths) - grid.widths / 2
        self.of_whole = (middles * sizes.sum()).astype(np.int64)


def _worst_and_above(
    ordered: Sequence[Floats], *, templates: Sequence[_Template], places: Sequence[Integers], epsilon: float
) -> tuple[Floats, Integers]:
    """Return the worst pair of some shuffles of sorted scores, and how many are not below ε: (shuffles,) each.

    By the triangle inequality two values are no further apart than both together are from a third distribution,
    that of all values together. And the worst pair is at least as far apart as two means are. So only the pairs
    are measured for which this does not settle it.
    """
    # the score of each value at each step: (shuffles, values, steps)
    steps = [
        np.take(scores, of[:, t.at], mode="clip") for scores, of, t in zip(ordered, places, templates, strict=True)
    ]
    means = [each @ t.widths for each, t in zip(steps, templates, strict=True)]
    least = np.minimum(np.max([each.max(axis=1) - each.min(axis=1) for each in means], axis=0), epsilon)
    worst, above = np.zeros(len(least)), np.zeros(len(least), dtype=np.int64)
    for each, scores, t in zip(steps, ordered, templates, strict=True):
        from_it = np.abs(each - scores[t.of_whole]) @ t.widths  # (shuffles, values)
        at_most = from_it[:, t.first] + from_it[:, t.second]
        shuffle, pair = np.nonzero(at_most >= least[:, None] * (1 - _ROUNDING))
        distances = np.zeros(at_most.shape)
        for some in np.array_split(np.arange(len(shuffle)), 1 + len(shuffle) * len(t.widths) // _BATCH):
            rows, one, other = shuffle[some], t.first[pair[some]], t.second[pair[some]]
            distances[rows, pair[some]] = np.abs(each[rows, one] - each[rows, other]) @ t.widths
        worst = np.maximum(worst, distances.max(axis=1))
        # a distance of exactly ε counts, however it was summed
        above += (distances >= epsilon * (1 - _ROUNDING)).sum(axis=1)
    return worst, above
