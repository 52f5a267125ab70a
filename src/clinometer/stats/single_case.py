"""Does a single case lie outside what a few controls show?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from clinometer.stats._clusters import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleCase:
    """How far each case lies from the controls' mean; each field has one entry for each case."""

    estimate: FloatArray  # case minus the mean of its controls
    p: FloatArray
    n: IntArray  # controls


def single_case_test(cases: ArrayLike, controls: ArrayLike) -> SingleCase:
    """Test whether each case could be one of the controls, two-sided.

        t = (x − m) / (s · √(1 + 1/n)),   n − 1 degrees of freedom

    with m and s the mean and standard deviation (n − 1) of the n controls. The yardstick is how much the controls
    differ among each other, so that a case is not singled out merely because no two are quite alike. Exact for
    normal controls; for skewed ones p is too small on the side of the long tail. Crawford & Howell, Comparing an
    individual's test score against norms derived from small samples (Clinical Neuropsychologist 12, 1998).

    NaN is missing. p is NaN with fewer than two controls or when these do not differ at all.

    Args:
        cases: (cases,).
        controls: (controls,).

    The controls 1, 2, 3 have m = 2, s = 1: t of the case 6 is 4/√(4/3) = 3.46 with 2 degrees of freedom.

    >>> found = single_case_test([6.0, 2.0], [1.0, 2.0, 3.0])
    >>> found.estimate.tolist(), found.p.round(3).tolist()
    ([4.0, 0.0], [0.074, 1.0])
    """
    x, known = np.asarray(cases, dtype=np.float64), np.asarray(controls, dtype=np.float64)
    known = known[~np.isnan(known)]
    n = len(known)
    estimate: FloatArray = x - (known.mean() if n else np.nan)
    spread = known.std(ddof=1) if n > 1 else np.nan
    if not spread > 1e-13 * np.abs(known).max(initial=0.0):  # rounding is not spread
        p: FloatArray = np.full(x.shape, np.nan)
    else:
        p = 2 * stats.t.sf(np.abs(estimate) / (spread * np.sqrt(1 + 1 / n)), n - 1)
    return SingleCase(estimate=estimate, p=p, n=np.where(np.isnan(estimate), 0, n))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A rising function of numbers from 0 to 1, and its inverse."""

    to: Callable[[FloatArray], FloatArray]
    back: Callable[[FloatArray], FloatArray]


_EDGE = 1e-3  # a logarithm needs something: nearer to 0 or 1 than this counts as this near
SCALES = (
    Scale(to=lambda x: x, back=lambda y: y),
    Scale(to=lambda x: np.arcsin(np.sqrt(np.clip(x, 0, 1))), back=lambda y: np.sin(np.clip(y, 0, np.pi / 2)) ** 2),
    Scale(to=lambda x: np.log(np.clip(x, _EDGE, 1)), back=np.exp),
    Scale(to=lambda x: -np.log(1 - np.clip(x, 0, 1 - _EDGE)), back=lambda y: 1 - np.exp(-y)),
    Scale(to=lambda x: special.logit(np.clip(x, _EDGE, 1 - _EDGE)), back=special.expit),
)
LOOKS_NORMAL = 0.2  # p of Shapiro and Wilk's test from which a scale is taken


def normal_on(controls: FloatArray) -> list[Scale]:
    """Return the scales on which controls between 0 and 1 look normal; NaN is missing."""
    known = controls[~np.isnan(controls)]
    return [scale for scale in SCALES if stats.shapiro(scale.to(known)).pvalue >= LOOKS_NORMAL]


def detectable_case(
    controls: FloatArray, scales: Sequence[Scale], *, tests: int, alpha: float, power: float
) -> float:
    """Return how far above the controls' mean one case of so many must be; the largest of the scales counts.

    NaN without a scale.
    """
    known = controls[~np.isnan(controls)]
    n = len(known)
    if n < 2 or not scales:
        return float("nan")
    needed = stats.t.ppf(1 - alpha / (2 * tests), n - 1) + stats.norm.ppf(power)
    reached = []
    for scale in scales:
        on = scale.to(known)
        reached.append(float(scale.back(on.mean() + needed * on.std(ddof=1) * np.sqrt(1 + 1 / n)) - known.mean()))
    return max(reached)
