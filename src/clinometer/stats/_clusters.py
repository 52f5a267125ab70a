"""Items that belong together: the shapes and clusters that all tests and intervals here share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Labels = Sequence[Any] | NDArray[Any]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which items belong to which cluster: `order` lists the items cluster by cluster."""

    order: IntArray  # (items,)
    starts: IntArray  # (clusters,): where each cluster begins in `order`
    sizes: IntArray  # (clusters,)

    def sums(self, columns: FloatArray) -> FloatArray:
        """Sum the rows of each cluster: (items, c) -> (clusters, c)."""
        if len(self.starts) == len(self.order):
            return columns[self.order]
        sums: FloatArray = np.add.reduceat(columns[self.order], self.starts, axis=0)
        return sums


def group_items(clusters: Labels | None, items: int) -> Grouping:
    """Group items by their label; without labels each item is its own cluster.

    Clusters are numbered in the order in which they appear: renaming them changes no result.
    """
    if clusters is None:
        every = np.arange(items)
        return Grouping(every, every, np.ones(items, dtype=np.int64))
    labels = np.asarray(clusters)
    if labels.shape != (items,):
        raise ValueError(f"found labels of shape {labels.shape} for {items} items; give one label for each item")
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(first))[codes]
    sizes = np.bincount(codes, minlength=len(first))
    return Grouping(np.argsort(codes, kind="stable"), np.cumsum(sizes) - sizes, sizes)


def as_columns(values: ArrayLike) -> FloatArray:
    """Return the values as a float matrix, items × statistics."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[0] == 0:
        raise ValueError(f"found values of shape {array.shape}; give at least one item along the first axis")
    if np.isinf(array).any():
        raise ValueError("found an infinite value; give finite numbers, and NaN where one is missing")
    return array.reshape(array.shape[0], -1)


def one_row_each(values: ArrayLike, rows: int, *, of: str) -> FloatArray:
    """Return what a statistic returned for some rows; raise ValueError unless it has one row for each."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape[:1] != (rows,):
        raise ValueError(
            f"the statistic returned shape {array.shape} for {rows} rows of {of}; return one row for each"
        )
    return array
