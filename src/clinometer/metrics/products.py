"""Products of matrices where tasks already keep every core busy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_ALONE = 500_000  # multiplications that OpenBLAS does without threads of its own


def product(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return the product of two matrices, in tiles so small that no other thread is called to help.

    Tasks already keep every core busy: threads of the library would only wait for each other, and how they share
    the work, and so the last bits, would depend on the number of cores.
    """
    (rows, inner), columns = first.shape, second.shape[1]
    if not (rows and inner and columns):
        return np.zeros((rows, columns), dtype=np.result_type(first, second))
    deep, wide = min(inner, 320), min(columns, 64)  # terms and columns of a tile …
    high = _ALONE // (deep * wide) // 12 * 12  # … and rows, of which a processor takes twelve at a time
    if high >= rows and deep == inner and wide == columns:
        small: NDArray[Any] = first @ second
        return small
    left = np.zeros((-(-rows // high), 1, high, inner), dtype=first.dtype)
    left.reshape(-1, inner)[:rows] = first
    right = np.zeros((inner, -(-columns // wide), wide), dtype=second.dtype)
    right.reshape(inner, -1)[:, :columns] = second
    right = right.transpose(1, 0, 2)
    out = np.empty((len(left), high, len(right), wide), dtype=np.result_type(first, second))
    tiles = out.transpose(0, 2, 1, 3)
    np.matmul(left[..., :deep], right[:, :deep], out=tiles)
    for start in range(deep, inner, deep):
        tiles += np.matmul(left[..., start : start + deep], right[:, start : start + deep])
    return out.reshape(len(left) * high, -1)[:rows, :columns]
