"""Length-sorted batches within a token budget."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

# How many requests are planned together. Memory use does not grow with what a probe asks, and identical requests
# within a window are asked once. Windows are cut by position, so a resumed run plans the same batches.
WINDOW = 16_384

# Padded tokens in one batch. A CPU needs few to be busy, a GPU many. A batch that does not fit is split.
_CPU_TOKENS = 2_048
_GPU_TOKENS = 262_144
# An eighth of what a batch may hold keeps the device busy, be it a CPU or a large GPU. Such a batch ends where the
# length changes: rows of one length need no padding, and attention without a mask is faster.
_ENOUGH_PART, _ENOUGH_TOKENS = 8, 256
_EVEN_ROWS = 64  # full batches have a multiple of this many rows: few shapes, which devices like


def default_budget(device: str) -> int:
    """Return how many padded tokens a batch may hold on the device ("auto" means a GPU if there is one)."""
    torch = sys.modules.get("torch")  # without torch, the model runs on the CPU
    on_gpu = device != "cpu" and torch is not None and torch.cuda.is_available()
    return tokens_for(gpu=on_gpu)


def tokens_for(*, gpu: bool) -> int:
    """Return how many padded tokens a batch may hold, wherever the device is."""
    return _GPU_TOKENS if gpu else _CPU_TOKENS


def plan_batches(costs: Sequence[int], *, budget: int) -> list[list[int]]:
    """Group positions so that each batch, padded to its longest, stays within the budget.

    Longest first, so that a batch that does not fit in memory shows at once; ties keep their order. A request
    longer than the budget gets its own batch. The plan depends only on the costs and the budget, so a resumed run
    makes the same batches and its answers have the same bits.

    >>> plan_batches([3, 8, 3, 4], budget=9)
    [[1], [3, 0], [2]]
    """
    enough = max(_ENOUGH_TOKENS, budget // _ENOUGH_PART)
    rising = -np.asarray(costs, np.int64)
    order = np.argsort(rising, kind="stable")
    rising = rising[order]
    batches: list[list[int]] = []
    first = 0
    while first < len(order):
        longest = max(1, -int(rising[first]))
        most = max(1, budget // longest)
        if most >= _EVEN_ROWS:
            most -= most % _EVEN_ROWS
        last = min(first + most, len(order))
        least = first + -(-enough // longest)
        if least < last:
            shorter = int(np.searchsorted(rising, rising[least - 1], side="right"))
            last = min(last, shorter)
        batches.append(order[first:last].tolist())
        first = last
    return batches
