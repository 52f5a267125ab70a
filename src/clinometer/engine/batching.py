"""Length-sorted batches within a token budget."""

from __future__ import annotations

import sys
from collections.abc import Sequence

# Padded tokens in one batch. A CPU is busy with few; a GPU needs many to be. A batch that does not fit is split.
_CPU_TOKENS = 2_048
_GPU_TOKENS = 131_072


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
    order = sorted(range(len(costs)), key=lambda position: (-costs[position], position))
    batches: list[list[int]] = []
    longest = 0
    for position in order:
        if batches and longest * (len(batches[-1]) + 1) <= budget:
            batches[-1].append(position)
        else:
            batches.append([position])
            longest = max(1, costs[position])
    return batches
