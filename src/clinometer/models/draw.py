"""Draws a token from logits so that rounding errors hardly ever change which."""

from __future__ import annotations

import math

import torch
from torch import Tensor

BLOCK_LEVELS = 8  # the vocabulary is summed in blocks of 256 tokens; only the block that is drawn is looked into
NOT_A_NUMBER = -1  # stands for a token that could not be drawn


def levels_of(size: int) -> int:
    """Return how many random numbers the draw of one token takes.

    >>> levels_of(8), levels_of(9)
    (3, 4)
    """
    return max(1, math.ceil(math.log2(size)))


def draw(logits: Tensor, numbers: Tensor, *, temperatures: Tensor, floors: Tensor | None = None) -> Tensor:
    """Draw one token for each row of logits (rows × size) from the softmax of logits / temperature.

    `numbers` is rows × `levels_of(size)`, in [0, 1). Where the temperature is 0, the most probable token is taken.
    A token whose logit is below the row's floor is never drawn. Where the logits are no numbers, the token is −1.

    The vocabulary is halved again and again, and each number chooses a half by its share of the probability. One
    number on the cumulative sum of the whole vocabulary would give the same distribution, but a change in the last
    bit of one logit moves every boundary after it, and thousands of rare tokens lie closer together than that: the
    text would then depend on the batch size. Here a token changes only when a number falls within the rounding
    error of one of its few shares.
    """
    logits = logits.float()
    if floors is not None:
        logits = logits.masked_fill(logits < floors[:, None], -torch.inf)
    top, best = logits.max(dim=1, keepdim=True)
    greedy = temperatures == 0
    weights = (logits - top).mul_(1 / torch.where(greedy, 1.0, temperatures)[:, None]).exp_()
    low = min(BLOCK_LEVELS, levels_of(weights.shape[1]))
    weights = torch.nn.functional.pad(weights, (0, -weights.shape[1] % (1 << low)))
    blocks = weights.view(len(weights), -1, 1 << low)
    sums = blocks.sum(dim=2)
    block = _descend(sums, numbers[:, low:])
    inside = blocks[torch.arange(len(blocks), device=blocks.device), block]
    token = torch.where(greedy, best[:, 0], (block << low) + _descend(inside, numbers[:, :low]))
    return torch.where(sums.sum(dim=1).isfinite(), token, NOT_A_NUMBER)


def floors_of(logits: Tensor, *, temperatures: Tensor, top_k: Tensor, top_p: Tensor, sort: int) -> Tensor:
    """Return for each row of logits the lowest one that may be drawn.

    `top_k` (0: all) keeps the k most probable tokens, and those that are as probable as the k-th. Of these,
    `top_p` (1: all) keeps the most probable ones until their softmax at the temperature sums to at least top_p,
    and those that are as probable as the last. `sort` says how many of the largest logits have to be looked at:
    the largest k, or all where a top_p is below 1.
    """
    falling = logits.float().topk(sort, dim=1).values
    kth = falling.gather(1, top_k.clamp(1, sort)[:, None] - 1)
    kth = torch.where(top_k[:, None] > 0, kth, -torch.inf)
    scaled = (falling - falling[:, :1]) / torch.where(temperatures == 0, 1.0, temperatures)[:, None]
    shares = scaled.masked_fill(falling < kth, -torch.inf).softmax(dim=1)
    before = shares.cumsum(dim=1) < top_p[:, None]
    last = falling.gather(1, before.sum(dim=1, keepdim=True).clamp(max=sort - 1))
    return torch.where(top_p[:, None] < 1, torch.maximum(kth, last), kth)[:, 0]


def _descend(sums: Tensor, numbers: Tensor) -> Tensor:
    """Choose a column of each row (rows × width) by halves; numbers is rows × `levels_of(width)`, or more."""
    pyramid = [sums]
    while pyramid[-1].shape[1] > 1:
        if pyramid[-1].shape[1] % 2:
            pyramid[-1] = torch.nn.functional.pad(pyramid[-1], (0, 1))
        pyramid.append(pyramid[-1][:, ::2] + pyramid[-1][:, 1::2])
    node = torch.zeros(len(sums), 1, dtype=torch.long, device=sums.device)
    for level in range(len(pyramid) - 2, -1, -1):
        whole = pyramid[level + 1].gather(1, node)
        left = pyramid[level].gather(1, 2 * node)
        # a half without probability is never entered: the number is below 1, and whole is then exactly the other
        node = 2 * node + (numbers[:, level : level + 1] * whole >= left)
    return node[:, 0]
