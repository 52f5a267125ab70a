"""How much another training with another seed would change, and intervals that say so."""

from __future__ import annotations

import math
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
    own: FloatArray  # (arms, measures): of its own trainings alone

    def of(self, arm: int, measure: int) -> tuple[float, float]:
        """Return variance and degrees of freedom of one cell: its own where it has no error to be pooled by."""
        pooled = float(self.variance[arm, measure])
        if math.isfinite(pooled):
            return pooled, self.freedom
        return float(self.own[arm, measure]), self.trainings - 1.0


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
    degrees of freedom for each of A arms with k measures, but no more than correlated (:math:`\rho`) ones give:
    one training moves all measures, one seed many arms, and one control all that is compared with it:

    .. math:: d = (S-1)\, \frac{A^2}{\sum_{aa'} \hat\rho_{aa'}^2} \frac{k^2}{\sum_{cc'} \hat\rho_{cc'}^2}

    Args:
        changes: (arms, measures, trainings), two trainings at least.
        errors: (arms, measures), standard errors from units; without one the variance is not pooled (NaN).

    >>> found = training_noise([[[0.1, 0.3, 0.2]], [[0.2, 0.2, 0.5]]], [[0.1], [0.1]])  # two arms, one measure
    >>> found.variance.round(3).tolist(), round(found.freedom, 6)  # ρ = 0: each arm has two
    ([[0.02], [0.02]], 4.0)
    >>> round(training_noise([[[0.1, 0.3], [0.2, 0.4]]], [[0.1, 0.1]]).freedom, 6)  # two measures that move as one
    1.0
    """
    each, error = np.asarray(changes, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    trainings = each.shape[2]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(error > 0, each.var(axis=2, ddof=1) / error**2, np.nan)
        apart = (each - each.mean(axis=2, keepdims=True)) / error[:, :, None]
    known = np.isfinite(ratio)
    centre = float(ratio[known].mean()) if known.any() else np.nan
    drawn = np.maximum(moderated_variances(ratio.ravel(), trainings - 1)[0].reshape(ratio.shape), centre)
    freedom = (trainings - 1) * _independent(apart) * _independent(apart.transpose(1, 0, 2))
    freedom = min(freedom, float((trainings - 1) * max(int(known.sum()), 1)))
    own = each.var(axis=2, ddof=1)
    return TrainingNoise(variance=drawn * error**2, freedom=freedom, trainings=trainings, own=own)


def _independent(apart: FloatArray) -> float:
    """Return how many independent rows say as much as these do, by how strongly each two are correlated.

    Two rows are compared by what is known of both; what does not move says nothing.
    """
    rows = apart.reshape(len(apart), -1)
    known = np.isfinite(rows)
    moved = np.where(known, rows, 0.0)
    counted = np.abs(moved).max(axis=1, initial=0.0) > 0
    known, moved = known[counted], moved[counted]
    if not len(moved):
        return 1.0
    lengths = moved**2 @ known.T.astype(np.float64)  # of each row, over what is known of the other
    with np.errstate(invalid="ignore", divide="ignore"):
        together = (moved @ moved.T) ** 2 / (lengths * lengths.T)
    # rows of which nothing is known together may move as one
    return len(moved) ** 2 / float(np.where(np.isfinite(together), together, 1.0).sum())


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
    (below, freedom_below), (above, freedom_above) = (
        _with_noise(sure.estimate - limit, noise, freedom) for limit in (sure.low, sure.high)
    )
    low = sure.estimate - stats.t.ppf(0.975, freedom_below) * below
    high = sure.estimate + stats.t.ppf(0.975, freedom_above) * above
    up = sure.estimate > 0
    error, of_side = np.where(up, below, above), np.where(up, freedom_below, freedom_above)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.where(noise > 0, 2 * stats.t.sf(np.abs(sure.estimate) / error, of_side), 0.0)
    return Sure(estimate=sure.estimate, low=low, high=high, p=np.maximum(sure.p, p))


def freedom_with_noise(sure: Sure, variance: ArrayLike, *, freedom: float, trainings: int) -> FloatArray:
    """Return the degrees of freedom of an interval with training noise; of its wider side, infinite without noise.

    >>> one = np.array([1.0])
    >>> given = Sure(estimate=one, low=one - 0.3 * 1.96, high=one + 0.3 * 1.96, p=one)
    >>> freedom_with_noise(given, 3 * 0.16, freedom=4.0, trainings=3).round(2).item()
    9.77
    """
    noise = np.asarray(variance, dtype=np.float64) / trainings
    wider = np.maximum(sure.estimate - sure.low, sure.high - sure.estimate)
    return _with_noise(wider, noise, freedom)[1]


def _with_noise(reach: FloatArray, noise: FloatArray, freedom: float) -> tuple[FloatArray, FloatArray]:
    """Return the standard error of one side of an interval, and its degrees of freedom."""
    error = np.sqrt((reach / _NORMAL) ** 2 + noise)
    with np.errstate(invalid="ignore", divide="ignore"):
        return error, np.where(noise > 0, freedom * (error**2 / noise) ** 2, np.inf)
