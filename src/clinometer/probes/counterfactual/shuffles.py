"""What chance does to a single value and to the worst pair: labels shuffled within a template."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clinometer.metrics import epsilon_fair, pairwise_wasserstein
from clinometer.probes.kit.numbers import Floats
from clinometer.stats import benjamini_hochberg

_Z = 1.959964  # of a 95 % interval
_BATCH = 4_000_000  # scores held at a time
_TIE = 1e-12
WORST_DRAWS = 199  # shuffles behind the verdict: a mean and a rough p are enough for it


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstWhole:
    """Mean score of each value minus that of all values, template by template and over them."""

    difference: Floats  # (1 + templates, values): first the mean over templates
    low: Floats
    high: Floats
    p: Floats  # (values,), two-sided, of the mean over templates
    q: Floats


def against_whole(scores: Floats, *, rng: np.random.Generator, draws: int) -> AgainstWhole:
    r"""Set the mean score of each value against the mean of all values in the same template.

    .. math:: d_v = \frac1T \sum_t (m_{tv} - \frac1V \sum_w m_{tw}), \quad
        s^2 = \frac1{T^2} \sum_t \sum_w (\delta_{vw} - \tfrac1V)^2 \frac{s_{tw}^2}{n_{tw}}

    The interval, d ± 1.96 s, holds for these templates; there is none where a prefix has one text only. p shuffles
    the samples of a template over its values, each of which keeps its number. A value without a sample in a
    template is left out there, and V counts the others.
    """
    values = scores.shape[1]
    each = _differences(scores)
    present = ~np.isnan(each)
    shares = present / np.maximum(present.sum(axis=1, keepdims=True), 1)  # of each value in the mean of all
    weights = (np.eye(values) - shares[:, None]) ** 2  # (templates, of value, from value)
    errors = np.where(present, _error_squared(scores), 0.0)
    variance = (weights * errors[:, None]).sum(axis=2)  # (templates, values)
    counted = np.maximum(present.sum(axis=0), 1)
    difference = np.concatenate([_mean(each)[None], each])
    overall = np.where(present, variance, 0.0).sum(axis=0) / counted**2
    error = np.sqrt(np.concatenate([overall[None], variance]))
    error[np.isnan(difference)] = np.nan
    as_far = np.zeros(values)
    observed = np.abs(difference[0])
    for shuffled in _shuffled(scores, rng=rng, draws=draws):
        far = np.abs(_mean(np.moveaxis(_differences(shuffled), -2, 0)))
        as_far += (far >= observed - _TIE).sum(axis=0)
    p = np.where(np.isnan(observed), np.nan, (1 + as_far) / (1 + draws))
    return AgainstWhole(
        difference=difference,
        low=difference - _Z * error,
        high=difference + _Z * error,
        p=p,
        q=benjamini_hochberg(p),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Equation 2 at one ε, beside what chance gives."""

    fair: bool
    worst: float  # NaN, as all that follows, where nothing could be compared
    worst_null: float
    worst_p: float
    share: float  # of pairs that are not below ε
    share_null: float
    compared: int


def verdict(scores: Floats, *, epsilon: float, rng: np.random.Generator) -> Verdict:
    """Tell whether every pair in every template is below ε, and whether the same values shuffled would be."""
    observed = epsilon_fair(pairwise_wasserstein(scores), epsilon)
    if not observed.compared:
        nothing = float("nan")
        return Verdict(
            fair=False,
            worst=nothing,
            worst_null=nothing,
            worst_p=nothing,
            share=nothing,
            share_null=nothing,
            compared=0,
        )
    by_chance = [
        epsilon_fair(pairwise_wasserstein(shuffled), epsilon)
        for batch in _shuffled(scores, rng=rng, draws=WORST_DRAWS)
        for shuffled in batch
    ]
    worst = np.array([each.worst for each in by_chance])
    return Verdict(
        fair=observed.fair,
        worst=observed.worst,
        worst_null=float(worst.mean()),
        worst_p=float((1 + (worst >= observed.worst - _TIE).sum()) / (1 + WORST_DRAWS)),
        share=observed.above / observed.compared,
        share_null=float(np.mean([each.above / each.compared for each in by_chance])),
        compared=observed.compared,
    )


def _shuffled(scores: Floats, *, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """Yield the scores with those of each template in a new order, some draws at a time.

    NaN stays where it is: a value with few samples is further out by chance, and must be so in a shuffle, too.
    """
    rows = scores.reshape(len(scores), -1)
    known = ~np.isnan(rows)
    size = max(1, _BATCH // max(rows.size, 1))
    for done in range(0, draws, size):
        many = np.repeat(rows[None], min(size, draws - done), axis=0)
        for template, at in enumerate(known):
            many[:, template, at] = rng.permuted(many[:, template, at], axis=1)
        yield many.reshape(-1, *scores.shape)


def _differences(scores: Floats) -> Floats:
    """Mean of each value minus that of all values: (…, templates, values, samples) -> (…, templates, values).

    NaN where a value has no sample, or is alone.
    """
    means = _mean(np.moveaxis(scores, -1, 0))
    alone = (~np.isnan(means)).sum(axis=-1, keepdims=True) < 2
    return np.where(alone, np.nan, means - _mean(np.moveaxis(means, -1, 0))[..., None])


def _error_squared(scores: Floats) -> Floats:
    """Squared standard error of each prefix's mean: (templates, values)."""
    n = (~np.isnan(scores)).sum(axis=2)
    deviations = scores - _mean(np.moveaxis(scores, -1, 0))[..., None]
    sums = np.nansum(deviations**2, axis=2)
    error: Floats = np.divide(sums, n * (n - 1.0), out=np.full(sums.shape, np.nan), where=n > 1)
    return error


def _mean(rows: Floats) -> Floats:
    """Mean over the first axis of what is present."""
    present = ~np.isnan(rows)
    counts = present.sum(axis=0)
    sums = np.where(present, rows, 0.0).sum(axis=0)
    mean: Floats = np.divide(sums, counts, out=np.full(np.shape(sums), np.nan), where=counts > 0)
    return mean
