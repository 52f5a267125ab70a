"""Products of matrices where tasks already keep every core busy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_ALONE = 500_000  # multiplications that OpenBLAS does without threads of its own
_WIDE = 64  # columns of a tile, at most


def product(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return the product of two matrices, in tiles so small that no other thread is called to help.

    Tasks already keep every core busy: threads of the library would only wait for each other, and how they share
    the work, and so the last bits, would depend on the number of cores.
    """
    (rows, inner), columns = first.shape, second.shape[1]
    if not (rows and inner and columns):
        return np.zeros((rows, columns), dtype=np.result_type(first, second))
    deep, wide = min(inner, max(320, _ALONE // (_WIDE * rows))), min(columns, _WIDE)  # terms and columns of a tile
    fit = _ALONE // (deep * wide)
    high = rows if rows <= fit else fit // 12 * 12  # rows, of which a processor takes twelve at a time
    if high >= rows and deep == inner and wide == columns:
        small: NDArray[Any] = first @ second
        return small
    left = _in_stacks(first, high)[:, None]
    right = np.zeros((inner, -(-columns // wide), wide), dtype=second.dtype)
    right.reshape(inner, -1)[:, :columns] = second
    right = right.transpose(1, 0, 2)
    out = np.empty((len(left), high, len(right), wide), dtype=np.result_type(first, second))
    tiles = out.transpose(0, 2, 1, 3)
    np.matmul(left[..., :deep], right[:, :deep], out=tiles)
    for start in range(deep, inner, deep):
        tiles += np.matmul(left[..., start : start + deep], right[:, start : start + deep])
    return out.reshape(len(left) * high, -1)[:rows, :columns]


def _in_stacks(matrix: NDArray[Any], high: int) -> NDArray[Any]:
    """Cut a matrix into stacks of so many rows; the last one is filled up with nothing."""
    rows, columns = matrix.shape
    if rows % high == 0:
        return matrix.reshape(-1, high, columns)
    out = np.zeros((-(-rows // high), high, columns), dtype=matrix.dtype)
    out.reshape(-1, columns)[:rows] = matrix
    return out
