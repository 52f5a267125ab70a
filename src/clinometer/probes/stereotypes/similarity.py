"""How alike the models of a run see the relations between groups: every pair, with intervals and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clinometer.metrics.similarity import has_direction, similarity_matrix, standard_ranks
from clinometer.probes.kit.numbers import Floats, Ints, model_rng
from clinometer.probes.stereotypes.view import View
from clinometer.stats import jackknife_correlation

FEWEST = 5  # groups that a comparison needs
_FEWEST_SHUFFLES = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """Similarity of all pairs of models over the groups of one category; (models, models) each."""

    category: str
    groups: int  # that have a profile in every model
    mean: Floats
    low: Floats
    high: Floats
    chance: Floats  # the mean when the groups of one model are shuffled
    p: Floats


def compare_models(views: Sequence[View], category: str) -> Similarity:
    """Return the similarity of every two models, over the groups that have an emotion profile in all of them."""
    members = views[0].members(category)
    usable = np.all([has_direction(view.vectors[members]) for view in views], axis=0)
    shape = (len(views), len(views))
    nothing = {name: np.full(shape, np.nan) for name in ("mean", "low", "high", "chance", "p")}
    if usable.sum() < FEWEST:
        return Similarity(category=category, groups=int(usable.sum()), **nothing)
    ranks = np.stack(
        [
            standard_ranks(
                similarity_matrix(view.vectors[members[usable]]), self_similarity=view.options.self_similarity
            )
            for view in views
        ]
    )
    found = nothing
    for a in range(len(views)):
        for b in range(a, len(views)):
            pair = mean_and_interval(ranks[a], ranks[b], self_similarity=views[0].options.self_similarity)
            for name, value in zip(("mean", "low", "high"), pair, strict=True):
                found[name][a, b] = found[name][b, a] = value
    pairs = len(views) * (len(views) - 1) // 2
    shuffles = max(_FEWEST_SHUFFLES, 20 * pairs)
    rng = model_rng(views[0].plan.seed, f"similarity of models: {category}")
    shuffled = shuffled_groups(ranks, rng=rng, shuffles=shuffles)
    found |= {"p": shuffled.p, "chance": shuffled.chance}
    return Similarity(category=category, groups=int(usable.sum()), **found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled:
    """What shuffling groups comes to, for all pairs of models: (models, models) each."""

    p: Floats
    chance: Floats


def mean_and_interval(a: Floats, b: Floats, *, self_similarity: bool) -> Floats:
    r"""Return mean, low and high of the similarity of two models, given their standard ranks (groups, groups).

    The interval leaves out one group at a time: its row, and its column in the other groups' rows. With rows of
    mean 0 and length 1, m values each, the correlation of row i without column g is

    .. math:: \frac{\rho_i - c\,a_{ig} b_{ig}}{\sqrt{(1 - c\,a_{ig}^2)(1 - c\,b_{ig}^2)}}, \quad c = \frac{m}{m-1}
    """
    rho = (a * b).sum(axis=1)
    if np.isnan(rho).all():
        return np.full(3, np.nan)
    m = len(a) if self_similarity else len(a) - 1
    c = m / (m - 1)
    spread = (1 - c * a**2) * (1 - c * b**2)
    with np.errstate(invalid="ignore", divide="ignore"):  # what is left of a row may not vary at all
        without = (rho[:, None] - c * a * b) / np.sqrt(np.where(spread > 1e-12, spread, np.nan))
    np.fill_diagonal(without, np.nan)  # a group that is left out has no row either
    present = ~np.isnan(without)
    sums, counts = np.where(present, without, 0.0).sum(axis=0), present.sum(axis=0)
    left_out = np.divide(sums, counts, out=np.full(len(a), np.nan), where=counts > 0)
    mean = float(np.clip(np.nanmean(rho), -1.0, 1.0))
    interval = jackknife_correlation(mean, left_out)
    return np.array([mean, interval.low, interval.high])


def shuffled_groups(ranks: Floats, *, rng: np.random.Generator, shuffles: int) -> Shuffled:
    """Return p of "the groups have nothing to do with each other" and the mean by chance, for all pairs of models.

    `ranks` are standard ranks (models, groups, groups). The groups of the second model are renamed at random, rows
    and columns together; p counts how often they then agree as well as they do, and is one-sided.
    """
    # a row that does not vary is missing: it counts as 0, the same in every shuffle
    flat = np.nan_to_num(ranks).astype(np.float32).reshape(len(ranks), -1)
    groups = ranks.shape[1]
    observed = flat @ flat.T / groups
    above, total = np.ones(observed.shape), np.zeros(observed.shape)
    for _ in range(shuffles):
        order = rng.permutation(groups)
        places = (order[:, None] * groups + order).ravel()
        drawn = flat @ np.take(flat, places, axis=1).T / groups
        above += drawn >= observed - 1e-5
        total += drawn
    return Shuffled(p=_mirrored(above / (shuffles + 1)), chance=_mirrored(total / shuffles))


def _mirrored(pairs: Floats) -> Floats:
    """Return the upper half for both halves: which of two models is shuffled makes no difference."""
    return np.asarray(np.triu(pairs) + np.triu(pairs, k=1).T)


def pairs_of(models: int) -> Ints:
    """Return the numbers of all unordered pairs of models: (pairs, 2).

    >>> pairs_of(3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    return np.stack(np.triu_indices(models, k=1), axis=1)
