"""Whether every two values are nearer than ε in every template, and whether shuffled ones would be."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from clinometer.metrics.fairness import every_pair, pairwise_wasserstein
from clinometer.metrics.means import Floats
from clinometer.metrics.value_means import shuffled_scores

WORST_DRAWS = 199  # shuffles behind the verdict: a mean and a rough p are enough for it
_TIE = 1e-12


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


def epsilon_verdict(scores: Floats, *, epsilon: float, rng: np.random.Generator | None = None) -> EpsilonVerdict:
    """Tell whether every pair in every template is below ε, and whether the same values shuffled would be.

    Without `rng` nothing is shuffled: of single scores, chance has the same worst pair.
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
    if rng is None:
        return found
    by_chance = np.array(
        [
            every_pair(shuffled)
            for batch in shuffled_scores(scores, rng=rng, draws=WORST_DRAWS)
            for shuffled in batch
        ]
    )  # (draws, pairs)
    worst = by_chance.max(axis=1)
    return replace(
        found,
        worst_null=float(worst.mean()),
        worst_p=float((1 + (worst >= observed.worst - _TIE).sum()) / (1 + WORST_DRAWS)),
        share_null=float((by_chance >= epsilon).mean()),
    )
