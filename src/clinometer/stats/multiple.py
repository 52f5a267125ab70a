"""Correction for asking many questions at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from clinometer.stats._clusters import FloatArray


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
