"""How much another training with another seed would change, and intervals that say so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from clinometer.stats._clusters import FloatArray
from clinometer.stats.error_rates import critical_value, moderated_variances
from clinometer.stats.paired import Sure

_NORMAL = critical_value(0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingNoise:
    """The variance between trainings that differ in their seed alone, for each arm and measure."""

    variance: FloatArray  # (arms, measures)
    freedom: float  # degrees of freedom of each
    trainings: int  # of each arm


def training_noise(changes: ArrayLike, errors: ArrayLike) -> TrainingNoise:
    r"""Estimate the variance between trainings of each arm and measure, drawn to what they have in common.

    Three trainings say little of their variance, but every arm and category of a run says something of it. With
    the change :math:`D_{acs}` of arm a and measure c by training s of S, and :math:`u_{ac}` the standard error
    that it has from its units alone,

    .. math:: s_{ac}^2 = \tfrac{1}{S-1} \sum_s (D_{acs} - \bar D_{ac})^2, \qquad r_{ac} = s_{ac}^2 / u_{ac}^2,
    .. math:: \tilde r_{ac} = (d_0 r_0 + (S-1) r_{ac}) / (d_0 + S - 1), \qquad
        \tau_{ac}^2 = u_{ac}^2 \max(\bar r, \tilde r_{ac})

    Ratios are pooled, because measures differ in scale and small categories vary more in both. How strongly they
    are drawn together (:math:`d_0`) follows from how much they differ (`moderated_variances`, Smyth 2004); none is
    taken for calmer than the mean of all, since so few trainings may agree by chance. :math:`\tau^2` has S − 1
    degrees of freedom for each of A arms with k measures, but no more than correlated measures (:math:`\rho`) can
    give, because one training moves them all:

    .. math:: d = A (S-1)\, k^2 / \textstyle\sum_{cc'} \hat\rho_{cc'}^2

    Args:
        changes: (arms, measures, trainings), two trainings at least.
        errors: (arms, measures), standard errors from units; without one a measure has no noise either (NaN).

    >>> found = training_noise([[[0.1, 0.3]], [[0.2, 0.4]]], [[0.1], [0.1]])  # two arms, one measure
    >>> found.variance.round(3).tolist(), round(found.freedom, 6)
    ([[0.02], [0.02]], 2.0)
    >>> round(training_noise([[[0.1, 0.3], [0.2, 0.4]]], [[0.1, 0.1]]).freedom, 6)  # two measures that move as one
    1.0
    """
    each, error = np.asarray(changes, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    arms, _, trainings = each.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(error > 0, each.var(axis=2, ddof=1) / error**2, np.nan)
        apart = (each - each.mean(axis=2, keepdims=True)) / error[:, :, None]
    known = np.isfinite(ratio)
    centre = float(ratio[known].mean()) if known.any() else np.nan
    drawn = np.maximum(moderated_variances(ratio.ravel(), trainings - 1)[0].reshape(ratio.shape), centre)
    freedom = float((trainings - 1) * max(int(known.sum()), 1))
    of_measure = apart.transpose(1, 0, 2).reshape(each.shape[1], -1)
    of_measure = of_measure[np.isfinite(of_measure).all(axis=1) & (np.abs(of_measure).max(axis=1) > 0)]
    if len(of_measure):
        lengths = np.linalg.norm(of_measure, axis=1)
        together = (of_measure @ of_measure.T / np.outer(lengths, lengths)) ** 2
        most = arms * (trainings - 1) * len(of_measure) ** 2 / float(together.sum())
        freedom = min(freedom, most)
    return TrainingNoise(variance=drawn * error**2, freedom=freedom, trainings=trainings)


def with_training_noise(sure: Sure, variance: ArrayLike, *, freedom: float, trainings: int) -> Sure:
    r"""Widen the interval of a mean over trainings by what other trainings would change; raise p with it.

    .. math:: e^2 = u^2 + \tau^2 / S, \qquad \nu = d\, e^4 / (\tau^2 / S)^2, \qquad L \pm t_\nu e

    u is the half-width of the given interval over 1.96, on each side its own; that of units is taken as known (it
    is studentized already), so the degrees of freedom (Satterthwaite 1946) are those of :math:`\tau^2`, raised by
    its share of :math:`e^2`. p is the larger of the given one and Student's. Without noise nothing moves.

    >>> one = np.array([1.0])
    >>> given = Sure(estimate=one, low=one - 0.3 * 1.96, high=one + 0.3 * 1.96, p=0.001 * one)
    >>> found = with_training_noise(given, 3 * 0.16, freedom=4.0, trainings=3)  # e = 0.5
    >>> found.low.round(3).item(), found.p.round(3).item()  # ν = 4 · 0.0625 / 0.0256 = 9.77, t = 2.24
    (-0.118, 0.074)
    """
    noise = np.asarray(variance, dtype=np.float64) / trainings
    sides = []
    for limit in (sure.low, sure.high):
        error = np.sqrt(((sure.estimate - limit) / _NORMAL) ** 2 + noise)
        with np.errstate(invalid="ignore", divide="ignore"):
            of_side = np.where(noise > 0, freedom * (error**2 / noise) ** 2, np.inf)
        sides.append((error, of_side))
    (below, freedom_below), (above, freedom_above) = sides
    low = sure.estimate - stats.t.ppf(0.975, freedom_below) * below
    high = sure.estimate + stats.t.ppf(0.975, freedom_above) * above
    up = sure.estimate > 0
    error, of_side = np.where(up, below, above), np.where(up, freedom_below, freedom_above)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.where(noise > 0, 2 * stats.t.sf(np.abs(sure.estimate) / error, of_side), 0.0)
    return Sure(estimate=sure.estimate, low=low, high=high, p=np.maximum(sure.p, p))
