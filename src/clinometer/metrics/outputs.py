"""How far apart the texts about two values are as texts, whatever their sentiment (counterfactual audit)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from clinometer.metrics.means import Floats, Integers
from clinometer.metrics.products import product

_BATCH = 250_000  # cosines that are looked up at a time: what a processor's cache holds
_TIE = 1e-12  # of differences of cosines


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDifference:
    """Mean cosines of texts about one value and of two, and by how much the former is larger."""

    within: float
    between: float
    difference: float  # within − between: 0 where the value does not matter
    low: float  # of the difference, over templates; NaN for fewer than three
    high: float
    p: float  # one-sided: labels shuffled within each template
    texts: int


def output_difference(
    vectors: Floats, *, rng: np.random.Generator, draws: int = 999, level: float = 0.95
) -> OutputDifference:
    r"""Compare texts about two values with texts about one and the same, by the cosines of their vectors.

    .. math:: \frac{2}{V(V-1)} \sum_{v<w} \Bigl( \tfrac12 (\bar c_{vv} + \bar c_{ww}) - \bar c_{vw} \Bigr)

    with :math:`\bar c_{vw}` the mean cosine of a text about v and one about w, of different texts where v = w;
    mean over templates. It is half the squared distance between the mean vectors, without bias: 0 on average where
    nothing is there, however few texts there are.

    Args:
        vectors: templates × values × samples × dimensions, of length 1; NaN is missing.
        rng: where the shuffles come from.
        draws: how many.
        level: share of intervals that should contain the truth.

    Two values with opposite texts: cosines of 1 within, of −1 between.

    >>> vectors = np.array([[[[1.0, 0.0]] * 3, [[-1.0, 0.0]] * 3]])
    >>> found = output_difference(vectors, rng=np.random.default_rng(0), draws=99)
    >>> found.within, found.between, found.difference, found.texts
    (1.0, -1.0, 2.0, 6)
    """
    templates = list(_templates(vectors))
    if not templates:
        nothing = float("nan")
        return OutputDifference(
            within=nothing, between=nothing, difference=nothing, low=nothing, high=nothing, p=nothing, texts=0
        )
    # first as given, then dealt anew: (templates, 2, 1 + draws)
    found = np.array([_dealt(*template, rng=rng, draws=draws) for template in templates])
    within, between = found[:, :, 0].mean(axis=0)
    differences = found[:, 0] - found[:, 1]
    shuffled = differences.mean(axis=0)
    difference = float(shuffled[0])
    as_large = int((shuffled[1:] >= difference - _TIE).sum())
    reach = float("nan")
    if len(templates) > 2:
        error = differences[:, 0].std(ddof=1) / np.sqrt(len(templates))
        reach = float(stats.t.ppf((1 + level) / 2, len(templates) - 1) * error)
    return OutputDifference(
        within=float(within),
        between=float(between),
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        p=(1 + as_large) / (1 + draws),
        texts=sum(int(sizes.sum()) for _, sizes in templates),
    )


def _templates(vectors: Floats) -> Iterator[tuple[Floats, Integers]]:
    """The vectors of a template, value after value, and how many each value has: those with two texts or more."""
    for template in vectors:
        present = ~np.isnan(template).all(axis=2)  # of no dimensions, where no text has a vector: none
        sizes = present.sum(axis=1)
        used = np.flatnonzero(sizes > 1)
        if len(used) > 1:
            yield template[used][present[used]], sizes[used]


def _dealt(vectors: Floats, sizes: Integers, *, rng: np.random.Generator, draws: int) -> Floats:
    """Mean cosine of two texts about one value, and of two about different ones: (2, 1 + draws).

    Each value, or pair, counts alike. First the texts as given, then dealt anew to the values.
    """
    values, texts = len(sizes), len(vectors)
    vectors = vectors.astype(np.float64, copy=False)  # single precision is coarser than a tie
    cosines = product(vectors, np.ascontiguousarray(vectors.T))
    order = np.tile(np.arange(texts), (1 + draws, 1))
    order[1:] = rng.permuted(order[1:], axis=1)
    sums = np.empty((1 + draws, values))  # of the cosines of two different texts about a value
    firsts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes).tolist():
        alike = np.flatnonzero(sizes == size)
        one, other = np.triu_indices(size, 1)
        batch = max(1, _BATCH // (len(alike) * len(one)))
        for done in range(0, 1 + draws, batch):
            mine = order[done : done + batch, firsts[alike, None] + np.arange(size)]
            both = np.take(cosines, mine[..., one] * texts + mine[..., other], mode="clip")
            sums[done : done + batch, alike] = 2 * both.sum(axis=2)
    within = (sums / (sizes * (sizes - 1))).mean(axis=1)
    # With a weight of 1/n for each text about a value with n, all pairs of texts are the pairs of two values and
    # those of each value with itself.
    weights = np.empty((1 + draws, texts))
    np.put_along_axis(weights, order, np.repeat(1 / sizes, sizes)[None], axis=1)
    if len(set(sizes.tolist())) == 1:
        whole = np.full(1 + draws, cosines.sum() / sizes[0] ** 2)  # however they are dealt
    else:
        whole = (product(weights, cosines) * weights).sum(axis=1)
    itself = np.add.reduceat(np.diag(cosines)[order], firsts, axis=1)
    between = (whole - ((sums + itself) / sizes**2).sum(axis=1)) / (values * (values - 1))
    return np.stack([within, between])
