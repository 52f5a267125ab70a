"""Length-sorted batches within a token budget."""

from __future__ import annotations

import bisect
import sys
from collections.abc import Sequence

# How many requests are planned together. Memory stays flat however many a probe asks, and identical requests
# within a window are asked once. Windows are cut by position, so a resumed run plans the same batches.
WINDOW = 16_384

# Padded tokens in one batch. A CPU is busy with few; a GPU needs many to be. A batch that does not fit is split.
_CPU_TOKENS = 2_048
_GPU_TOKENS = 262_144
# A batch of so many tokens keeps even a large GPU busy: it ends where the length changes, because rows of one
# length need no padding, and attention without a mask is faster.
_ENOUGH_TOKENS = 32_768
_EVEN_ROWS = 64  # full batches have a multiple of so many rows: they come in few shapes, which devices like


def default_budget(device: str) -> int:
    """Return how many padded tokens a batch may hold on the device ("auto" is a GPU where there is one)."""
    torch = sys.modules.get("torch")  # a model that does without torch runs on the CPU
    on_gpu = device != "cpu" and torch is not None and torch.cuda.is_available()
    return _GPU_TOKENS if on_gpu else _CPU_TOKENS


def plan_batches(costs: Sequence[int], *, budget: int) -> list[list[int]]:
    """Group positions so that each batch, padded to its longest, stays within the budget.

    Longest first, so that a batch that does not fit in memory shows at once; ties keep their order. A request that
    is longer than the budget gets a batch of its own. The plan depends on the costs and the budget alone: a
    resumed run makes the same batches, so its answers have the same bits.

    >>> plan_batches([3, 8, 3, 4], budget=9)
    [[1], [3, 0], [2]]
    """
    order = sorted(range(len(costs)), key=costs.__getitem__, reverse=True)  # stable, also when reversed
    batches: list[list[int]] = []
    first = 0
    while first < len(order):
        longest = max(1, costs[order[first]])
        most = max(1, budget // longest)
        if most >= _EVEN_ROWS:
            most -= most % _EVEN_ROWS
        last = min(first + most, len(order))
        enough = first + -(-_ENOUGH_TOKENS // longest)
        if enough < last:
            shorter = bisect.bisect_right(order, -costs[order[enough - 1]], key=lambda position: -costs[position])
            last = min(last, shorter)
        batches.append(order[first:last])
        first = last
    return batches
