"""The error rates of tests: correction for many tests, and the effect that a test of this size finds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special, stats

from clinometer.stats._clusters import FloatArray, Labels, as_columns, group_items


def benjamini_hochberg(p: ArrayLike) -> FloatArray:
    """Turn p-values into q-values: calling everything with q ≤ α keeps the false-discovery rate at α.

        q_(i) = min over j ≥ i of  m · p_(j) / j,   p_(1) ≤ … ≤ p_(m)

    Of any shape, corrected over all of it. NaN stays NaN and is not counted in m. Valid for independent and for
    positively dependent tests. Benjamini & Hochberg (1995).

    Three tests: 3 · 0.01/1 = 0.03, 3 · 0.02/2 = 0.03, 3 · 0.5/3 = 0.5.

    >>> benjamini_hochberg([0.02, float("nan"), 0.5, 0.01])
    array([0.03,  nan, 0.5 , 0.03])
    """
    values = np.asarray(p, dtype=np.float64)
    q = np.full(values.shape, np.nan)
    asked = ~np.isnan(values)
    if asked.any():
        q[asked] = stats.false_discovery_control(values[asked], method="bh")
    return q


def minimum_detectable_effect(
    differences: ArrayLike, *, clusters: Labels | None = None, alpha: float = 0.05, power: float = 0.8
) -> FloatArray:
    """Return the mean difference that a two-sided test on data like these finds with the given power.

        MDE = δ · s,   P(|T_{G−1}(δ)| > t_{1−α/2, G−1}) = power,   s² = G/(G−1) · Σ_g (S_g − m_g · mean)² / N²

    with G clusters of m_g items and sum S_g, N items in all, and T(δ) Student's t with non-centrality δ. Without
    clusters s is the usual standard error of the mean. Sign flips need about the same effect from 10 clusters on.
    NaN if fewer than two clusters have values. Cohen, Statistical Power Analysis (1988), §2.

    Args:
        differences: (items,) or (items, ...); NaN is missing. Their mean does not matter, their spread does.
        clusters: a label for each item.
        alpha: false-positive rate of the test.
        power: how often an effect of that size should be found.

    For 16 items with standard deviation 1, s = ¼ and δ = 2.99 (2.80 for very many items):

    >>> ups_and_downs = np.tile([1.0, -1.0], 8) * np.sqrt(15 / 16)
    >>> round(float(minimum_detectable_effect(ups_and_downs)), 3)
    0.749
    """
    if not 0 < alpha < power < 1:
        raise ValueError(f"found alpha={alpha}, power={power}; give 0 < alpha < power < 1")
    columns = as_columns(differences)
    present = ~np.isnan(columns)
    grouping = group_items(clusters, len(columns))
    sizes = grouping.sums(present.astype(np.float64))
    sums = grouping.sums(np.where(present, columns, 0.0))
    groups = (sizes > 0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):  # nothing present, or one cluster: NaN
        n = sizes.sum(axis=0)
        spread = ((sums - sizes * (sums.sum(axis=0) / n)) ** 2).sum(axis=0)
        error = np.sqrt(groups / (groups - 1.0) * spread) / n
    shift = {int(g): _noncentrality(int(g) - 1, alpha=alpha, power=power) for g in np.unique(groups)}
    effect: FloatArray = error * np.array([shift[int(g)] for g in groups])
    return effect.reshape(np.shape(differences)[1:])[()]


def detectable_from_interval(
    low: float,
    high: float,
    *,
    tests: int = 1,
    level: float = 0.95,
    alpha: float = 0.05,
    power: float = 0.8,
    freedom: float = math.inf,
) -> float:
    """Return the effect that a two-sided test finds with the given power, from the width of its interval.

        s = (high − low) / 2 z_{(1+level)/2},   MDE = (z_{1−α/2m} + z_power) · s

    for one lean among m tests that are corrected together (Benjamini and Hochberg's first step is Bonferroni's).
    With degrees of freedom, quantiles are Student's: far tails of few units are long. NaN without an
    interval, and for one of width 0.

    With an interval of ±1.96 standard errors and one test it is the usual 2.80 of them:

    >>> round(detectable_from_interval(-1.96, 1.96), 2), round(detectable_from_interval(-1.96, 1.96, tests=5), 2)
    (2.8, 3.42)
    """
    width = high - low
    if not width > 0 or tests < 1:
        return math.nan
    student = stats.t(df=freedom)
    error = width / (2 * student.ppf((1 + level) / 2))
    return float(error * (student.ppf(1 - alpha / (2 * tests)) + student.ppf(power)))


def detectable_change(
    exchanged: int, *, items: int, tests: int = 1, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Return the change of a share of items that a sign test finds with the given power.

        d = (z_{1−α/2m} + z_power) · √(e + d),   as a share d/n of the n items

    with e items that have the property only before or only after without any change of the share, and m tests
    corrected together. Every item that is gained makes the test less sure by one more sign, which the width of an
    interval does not show. At most 1; NaN without items.

    With nothing exchanged d = 2.80² = 7.85 items: eight gains are found four times in five, since six of six are
    needed.

    >>> round(detectable_change(0, items=100), 4), round(detectable_change(6, items=100), 4)
    (0.0785, 0.1183)
    """
    if items < 1:
        return math.nan
    needed = float(stats.norm.ppf(1 - alpha / (2 * tests)) + stats.norm.ppf(power)) ** 2
    return min(1.0, (needed + math.sqrt(needed**2 + 4 * needed * exchanged)) / 2 / items)


def _noncentrality(freedom: int, *, alpha: float, power: float) -> float:
    if freedom < 1:
        return math.nan
    critical = stats.f.isf(alpha, 1, freedom)

    def surplus(shift: float) -> float:
        # T² is non-central F: both tails at once, and finite where the far tail of scipy's non-central t is not
        return float(stats.ncf.sf(critical, 1, freedom, shift**2) - power)

    enough = 1.0
    while surplus(enough) < 0:
        enough *= 2
    return float(optimize.brentq(surplus, 0.0, enough))


def moderated_variances(variances: ArrayLike, freedom: float) -> tuple[FloatArray, float]:
    """Return variances of few repetitions each, drawn to their common centre, and their degrees of freedom.

        s̃² = (d₀ s₀² + d s²) / (d₀ + d),   with d₀ + d degrees of freedom

    d₀ is large where the variances differ by chance only, and small where they differ in truth: it is estimated
    from the spread of their logarithms. Smyth, Linear Models and Empirical Bayes Methods (2004), §6.2.

    >>> moderated_variances([1.0, 1.0, 1.0], 4.0)[0].tolist()
    [1.0, 1.0, 1.0]
    """
    own = np.asarray(variances, dtype=np.float64)
    known = own[np.isfinite(own)]
    centre = float(known.mean()) if len(known) else math.nan
    if len(known) < 2 or not centre > 0:
        return np.where(np.isfinite(own), centre, np.nan), freedom * max(len(known), 1)
    logs = np.log(np.maximum(known, 1e-5 * np.median(known[known > 0])))
    excess = float(logs.var(ddof=1)) - float(special.polygamma(1, freedom / 2))
    if excess <= float(special.polygamma(1, 5e3)):  # no more spread than chance gives: one variance for all
        return np.where(np.isfinite(own), centre, np.nan), freedom * len(known)
    prior = float(optimize.brentq(lambda d: float(special.polygamma(1, d / 2)) - excess, 1e-3, 1e4))
    shift = special.digamma(prior / 2) - math.log(prior / 2) - special.digamma(freedom / 2) + math.log(freedom / 2)
    common = math.exp(float(logs.mean()) + float(shift))
    return (prior * common + freedom * own) / (prior + freedom), prior + freedom


def two_sided_p(distance: ArrayLike, *, freedom: float = math.inf) -> FloatArray:
    """Return how often Student's t, or the normal distribution, lies as far from 0 as so many standard errors.

    >>> round(float(two_sided_p(1.96)), 3), round(float(two_sided_p(-1.96, freedom=5)), 3)
    (0.05, 0.107)
    """
    p: FloatArray = 2 * stats.t.sf(np.abs(np.asarray(distance, dtype=np.float64)), freedom)
    return p


def critical_value(share: float, *, freedom: float = math.inf) -> float:
    """Return below how many standard errors Student's t, or the normal distribution, lies in so many cases.

    >>> round(critical_value(0.975), 2), round(critical_value(0.975, freedom=5), 2)
    (1.96, 2.57)
    """
    return float(stats.t.ppf(share, freedom))
