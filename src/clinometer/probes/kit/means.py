"""Means of what is present: NaN is missing, and the mean of nothing is NaN."""

from __future__ import annotations

import numpy as np

from clinometer.probes.kit.numbers import Floats, Ints


def present_mean(values: Floats, *, axis: int | tuple[int, ...] = 0) -> Floats:
    """Return the mean of the values that are not NaN along an axis.

    >>> present_mean(np.array([[1.0, np.nan], [3.0, np.nan]])).tolist()
    [2.0, nan]
    """
    present = ~np.isnan(values)
    return _divide(np.where(present, values, 0.0).sum(axis=axis), present.sum(axis=axis))


def group_means(values: Floats, group: Ints, groups: int) -> Floats:
    """Return the mean of each group's rows, (rows, ...) -> (groups, ...); `group` numbers the group of each row.

    >>> group_means(np.array([1.0, 3.0, np.nan, 5.0]), np.array([0, 0, 1, 2]), 3).tolist()
    [2.0, nan, 5.0]
    """
    present = ~np.isnan(values)
    sums, counts = (np.zeros((groups, *values.shape[1:])) for _ in range(2))
    np.add.at(sums, group, np.where(present, values, 0.0))
    np.add.at(counts, group, present)
    return _divide(sums, counts)


def _divide(sums: Floats, counts: Floats) -> Floats:
    means: Floats = np.divide(sums, counts, out=np.full(np.shape(sums), np.nan), where=counts > 0)
    return means
