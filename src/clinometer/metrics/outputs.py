"""How far apart the texts about two values are as texts, whatever their sentiment (counterfactual audit)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from clinometer.metrics.means import Floats

Ints = NDArray[np.int64]
_BATCH = 4_000_000  # cosines held at a time


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
    each = np.array([_cosines(cosines, labels) for cosines, labels in templates])  # (templates, 2)
    differences = each[:, 0] - each[:, 1]
    difference = float(differences.mean())
    shuffled = np.mean([_shuffled(*template, rng=rng, draws=draws) for template in templates], axis=0)
    as_large = int((shuffled >= difference - 1e-12).sum())
    reach = float("nan")
    if len(templates) > 2:
        error = differences.std(ddof=1) / np.sqrt(len(templates))
        reach = float(stats.t.ppf((1 + level) / 2, len(templates) - 1) * error)
    return OutputDifference(
        within=float(each[:, 0].mean()),
        between=float(each[:, 1].mean()),
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        p=(1 + as_large) / (1 + draws),
        texts=sum(len(labels) for _, labels in templates),
    )


def _templates(vectors: Floats) -> Iterator[tuple[Floats, Ints]]:
    """The cosines of all texts of a template, and their values: those with two texts or more."""
    for template in vectors:
        present = ~np.isnan(template[:, :, 0])
        used = np.flatnonzero(present.sum(axis=1) > 1)
        if len(used) > 1:
            labels = np.repeat(np.arange(len(used)), present[used].sum(axis=1))
            flat = template[used][present[used]]
            yield flat @ flat.T, labels


def _shuffled(cosines: Floats, labels: Ints, *, rng: np.random.Generator, draws: int) -> Floats:
    """What a template has when its texts are dealt anew to the values: (draws,)."""
    sizes = np.bincount(labels)
    many = rng.permuted(np.tile(np.arange(len(labels)), (draws, 1)), axis=1)
    if len(set(sizes.tolist())) > 1:
        # texts in a new order are labels in a new order
        pairs = (_cosines(cosines, labels[order]) for order in many)
        return np.array([within - between for within, between in pairs])
    # of values with as many texts each, what is not within is between: only the former is looked up
    values, size = len(sizes), int(sizes[0])
    order = many.reshape(draws, values, size)
    own, total = np.trace(cosines), cosines.sum()
    batch = max(1, _BATCH // (values * size * size))
    sums = np.concatenate(
        [
            cosines[some[..., :, None], some[..., None, :]].sum(axis=(1, 2, 3))
            for some in (order[done : done + batch] for done in range(0, draws, batch))
        ]
    )
    within = (sums - own) / (values * size * (size - 1))
    between = (total - sums) / (values * (values - 1) * size * size)
    return np.asarray(within - between)


def _cosines(cosines: Floats, labels: Ints) -> tuple[float, float]:
    """Mean cosine of two texts about one value, and of two about different ones: each value, or pair, alike."""
    values = int(labels.max()) + 1
    member = np.zeros((len(labels), values))
    member[np.arange(len(labels)), labels] = 1.0
    sizes = member.sum(axis=0)
    sums = member.T @ cosines @ member
    within = (np.diag(sums) - member.T @ np.diag(cosines)) / (sizes * (sizes - 1))
    first, second = np.triu_indices(values, 1)
    between = sums[first, second] / (sizes[first] * sizes[second])
    return float(within.mean()), float(between.mean())
