"""Means of what is present: NaN is missing, and the mean of nothing is NaN."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def present_mean(values: Floats, *, axis: int | tuple[int, ...] | None = 0) -> Floats:
    """Return the mean of the values that are not NaN along an axis, or of all with `axis=None`.

    >>> present_mean(np.array([[1.0, np.nan], [3.0, np.nan]])).tolist()
    [2.0, nan]
    """
    present = ~np.isnan(values)
    if present.all():  # nearly always, and three times as fast
        return divide_or_nan(values.sum(axis=axis), present.sum(axis=axis))
    return divide_or_nan(np.where(present, values, 0.0).sum(axis=axis), present.sum(axis=axis))


def group_means(values: Floats, group: NDArray[np.int64], groups: int) -> Floats:
    """Return the mean of each group's rows, (rows, ...) -> (groups, ...); `group` numbers the group of each row.

    >>> group_means(np.array([1.0, 3.0, np.nan, 5.0]), np.array([0, 0, 1, 2]), 3).tolist()
    [2.0, nan, 5.0]
    """
    present = ~np.isnan(values)
    sums, counts = (np.zeros((groups, *values.shape[1:])) for _ in range(2))
    np.add.at(sums, group, np.where(present, values, 0.0))
    np.add.at(counts, group, present)
    return divide_or_nan(sums, counts)


def divide_or_nan(sums: Floats, counts: Floats) -> Floats:
    """Return sums / counts, and NaN where a count is 0; a scalar for scalars.

    >>> divide_or_nan(np.array([3.0, 0.0]), np.array([2, 0])).tolist()
    [1.5, nan]
    """
    positive = np.greater(counts, 0)
    if positive.all():  # nearly always, and several times as fast
        means: Floats = np.divide(sums, counts)
    else:
        means = np.divide(sums, counts, out=np.full(np.shape(sums), np.nan), where=positive)[()]
    return means
