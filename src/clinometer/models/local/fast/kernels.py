"""Triton kernels for a CUDA GPU: attention of one new token a row, and the draw in one pass over the logits."""

# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from clinometer.models.local.fast.draw import BLOCK_LEVELS, NOT_A_NUMBER, levels_of

_BLOCKS = 16  # blocks of the vocabulary that one program sums
_UNUSED_BITS = {torch.float32: 0, torch.float16: 13, torch.bfloat16: 16}  # of a float32 that holds such a number
_TILE = 32  # places of the cache that one program reads at a time


def attend(query: Tensor, key: Tensor, value: Tensor, places: Tensor, *, scale: float) -> Tensor:
    """Return what one query a row (rows × heads × 1 × size) attends to among the places 0 … places[row].

    Keys and values are rows × key heads × places × size; the result is rows × 1 × heads × size. Only the places
    that a row has written are read: no mask, no padding.
    """
    rows, heads, _, size = query.shape
    result = torch.empty(rows, 1, heads, value.shape[3], dtype=query.dtype, device=query.device)
    _attend[(heads, rows)](
        query,
        key,
        value,
        places,
        result,
        scale,
        *(query.stride(0), query.stride(1)),
        *key.stride()[:3],
        *value.stride()[:3],
        heads // key.shape[1],
        heads,
        SIZE=size,
        PADDED=triton.next_power_of_2(size),
        TILE=_TILE,
        num_warps=1,
    )
    return result


def draw(logits: Tensor, numbers: Tensor, *, temperatures: Tensor, floors: Tensor | None = None) -> Tensor:
    """Draw a token for each row, as `draw.draw` does: the same tree, the same numbers."""
    rows, size = logits.shape
    low = min(BLOCK_LEVELS, levels_of(size))
    blocks = -(-size // (1 << low))
    tops = torch.empty(2, rows, blocks, dtype=torch.float32, device=logits.device)
    token = torch.empty(rows, dtype=torch.long, device=logits.device)
    given = (logits, temperatures if floors is None else floors, temperatures, tops[0], tops[1])
    shape: dict[str, Any] = {"CUT": floors is not None, "LOW": low}
    _sum_blocks[(-(-blocks // _BLOCKS), rows)](
        *given, logits.stride(0), size, blocks, **shape, BLOCKS=_BLOCKS, num_warps=4
    )
    high = levels_of(blocks) if blocks > 1 else 0
    _choose[(rows,)](
        *given, numbers, token, logits.stride(0), numbers.stride(0), size, blocks, NOT_A_NUMBER, **shape, HIGH=high
    )
    return token


def floors(logits: Tensor, *, temperatures: Tensor, top_k: Tensor, top_p: Tensor, sort: int = 0) -> Tensor:
    """Return for each row of logits the lowest one that may be drawn: what `draw.floors_of` finds by sorting.

    Here the row is read a few times instead, whatever `sort` says: how much is at or above a cut tells on which
    side of it the floor is.
    """
    rows, size = logits.shape
    result = torch.empty(rows, dtype=torch.float32, device=logits.device)
    block = min(4_096, triton.next_power_of_2(size))
    _floors[(rows,)](
        *(logits, temperatures, top_k, top_p, result, logits.stride(0), size),
        SHIFT=_UNUSED_BITS[logits.dtype],
        BLOCK=block,
        num_warps=8 if block > 512 else 1,
    )
    return result


@triton.jit
def _attend(
    query, key, value, places, result, scale,
    query_row, query_head, key_row, key_head, key_place, value_row, value_head, value_place, share, heads,
    SIZE: tl.constexpr, PADDED: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    column = tl.arange(0, PADDED)
    inside = column < SIZE
    asked = tl.load(query + row * query_row + head * query_head + column, mask=inside, other=0.0)
    asked = asked.to(tl.float32) * scale
    keys = key + row * key_row + (head // share) * key_head
    values = value + row * value_row + (head // share) * value_head
    last = tl.load(places + row)
    top = -float("inf")
    total = 0.0
    sums = tl.zeros([PADDED], tl.float32)
    for start in range(0, last + 1, TILE):
        place = start + tl.arange(0, TILE)
        seen = place <= last
        mask = seen[:, None] & inside[None, :]
        known = tl.load(keys + place[:, None] * key_place + column[None, :], mask=mask, other=0.0)
        held = tl.load(values + place[:, None] * value_place + column[None, :], mask=mask, other=0.0)
        scores = tl.where(seen, tl.sum(known.to(tl.float32) * asked[None, :], axis=1), -float("inf"))
        higher = tl.maximum(top, tl.max(scores, axis=0))
        shares = tl.exp(scores - higher)
        shrink = tl.exp(top - higher)
        sums = sums * shrink + tl.sum(shares[:, None] * held.to(tl.float32), axis=0)
        total = total * shrink + tl.sum(shares, axis=0)
        top = higher
    tl.store(
        result + (row * heads + head) * SIZE + column, (sums / total).to(result.dtype.element_ty), mask=inside
    )


@triton.jit
def _read(logits, floor, where, size, CUT: tl.constexpr):
    """Load logits in float32; −∞ behind the end of the vocabulary and below the floor."""
    read = tl.load(logits + where, mask=where < size, other=-float("inf")).to(tl.float32)
    if CUT:
        read = tl.where(read < floor, -float("inf"), read)
    return read


@triton.jit
def _weights(read, top, temperature):
    """Return exp((logit − top) / temperature); 0 for −∞ whatever the top, NaN for NaN and ∞."""
    return tl.where(read == -float("inf"), 0.0, tl.exp((read - top) / temperature))


@triton.jit
def _sum_blocks(
    logits, floors, temperatures, tops, sums, stride, size, blocks,
    CUT: tl.constexpr, LOW: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1).to(tl.int64)
    block = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS)
    where = block[:, None] * (1 << LOW) + tl.arange(0, 1 << LOW)[None, :]
    read = _read(logits + row * stride, tl.load(floors + row), where, size, CUT)
    temperature = tl.load(temperatures + row)
    temperature = tl.where(temperature == 0, 1.0, temperature)
    top = tl.max(read, axis=1)
    total = tl.sum(_weights(read, top[:, None], temperature), axis=1)
    tl.store(tops + row * blocks + block, top, mask=block < blocks)
    tl.store(sums + row * blocks + block, total, mask=block < blocks)


@triton.jit
def _descend(weights, numbers, LEVELS: tl.constexpr):
    """Choose an entry by halves, the last of the numbers first."""
    entry = tl.arange(0, 1 << LEVELS)
    node = 0
    for step in tl.static_range(LEVELS):
        half = 1 << (LEVELS - 1 - step)
        ahead = tl.where(entry >= node, weights, 0.0)
        whole = tl.sum(tl.where(entry < node + 2 * half, ahead, 0.0), axis=0)
        left = tl.sum(tl.where(entry < node + half, ahead, 0.0), axis=0)
        number = tl.load(numbers + (LEVELS - 1 - step))
        node += tl.where(number * whole >= left, half, 0)
    return node


@triton.jit
def _choose(
    logits, floors, temperatures, tops, sums, numbers, token, stride, per_row, size, blocks, failed,
    CUT: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    block = tl.arange(0, 1 << HIGH)
    top = tl.load(tops + row * blocks + block, mask=block < blocks, other=-float("inf"))
    total = tl.load(sums + row * blocks + block, mask=block < blocks, other=0.0)
    highest = tl.max(top, axis=0)
    temperature = tl.load(temperatures + row)
    greedy = temperature == 0
    temperature = tl.where(greedy, 1.0, temperature)
    weights = total * _weights(top, highest, temperature)
    chosen = tl.where(greedy, tl.argmax(top, axis=0), _descend(weights, numbers + row * per_row + LOW, HIGH))
    where = chosen * (1 << LOW) + tl.arange(0, 1 << LOW)
    read = _read(logits + row * stride, tl.load(floors + row), where, size, CUT)
    inside = _weights(read, tl.max(read, axis=0), temperature)
    found = tl.where(greedy, tl.argmax(read, axis=0), _descend(inside, numbers + row * per_row, LOW))
    mass = tl.sum(weights, axis=0)
    # NaN is not below ∞, and no draw is possible where nothing has any probability
    sound = (mass < float("inf")) & (mass > 0)
    tl.store(token + row, tl.where(sound, chosen * (1 << LOW) + found, failed).to(tl.int64))


@triton.jit
def _order(number, SHIFT: tl.constexpr):
    """Return a whole number for each number, in the same order; `_number` is the way back."""
    bits = number.to(tl.int32, bitcast=True)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)) >> SHIFT


@triton.jit
def _number(order, SHIFT: tl.constexpr):
    bits = (order.to(tl.int32) << SHIFT) | tl.where(order < 0, (1 << SHIFT) - 1, 0)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def _highest_cut(
    logits, size, low, high, share, least, top, temperature,
    COUNT: tl.constexpr, SHIFT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Return the highest cut from `low` to `high` that has enough at or above it, as `low` is known to have.

    Enough are `share` logits (COUNT), or that share of the weight of those from `least` on.
    """
    low, high = low.to(tl.int64), high.to(tl.int64)
    enough = share
    if not COUNT:
        enough = -1.0  # not known yet
    while low < high:
        span = high - low
        first, second, third = low + (span + 3) // 4, low + (span + 1) // 2, low + (3 * span + 3) // 4
        every = tl.zeros([BLOCK], tl.float32)
        some = tl.zeros([BLOCK], tl.float32)
        fewer = tl.zeros([BLOCK], tl.float32)
        fewest = tl.zeros([BLOCK], tl.float32)
        for begin in range(0, size, BLOCK):
            where = begin + tl.arange(0, BLOCK)
            read = tl.load(logits + where, mask=where < size, other=-float("inf")).to(tl.float32)
            order = _order(read, SHIFT)
            if COUNT:
                weight = tl.where(where < size, 1.0, 0.0)
            else:
                weight = tl.where(order >= least, _weights(read, top, temperature), 0.0)
            every += weight
            some += tl.where(order >= first, weight, 0.0)
            fewer += tl.where(order >= second, weight, 0.0)
            fewest += tl.where(order >= third, weight, 0.0)
        if not COUNT:
            enough = share * tl.sum(every, axis=0)
        at_first = tl.sum(some, axis=0) >= enough
        at_second = tl.sum(fewer, axis=0) >= enough
        at_third = tl.sum(fewest, axis=0) >= enough
        high = tl.where(at_third, high, tl.where(at_second, third - 1, tl.where(at_first, second - 1, first - 1)))
        low = tl.where(at_third, third, tl.where(at_second, second, tl.where(at_first, first, low)))
    return low


@triton.jit
def _floors(logits, temperatures, top_k, top_p, floors, stride, size, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits += row * stride
    k = tl.load(top_k + row).to(tl.float32)
    share = tl.load(top_p + row)
    temperature = tl.load(temperatures + row)
    temperature = tl.where(temperature == 0, 1.0, temperature)
    tops = tl.full([BLOCK], -float("inf"), tl.float32)
    for begin in range(0, size, BLOCK):
        where = begin + tl.arange(0, BLOCK)
        tops = tl.maximum(tops, tl.load(logits + where, mask=where < size, other=-float("inf")).to(tl.float32))
    top = tl.max(tops, axis=0)
    highest = _order(top, SHIFT)
    floor = _order(tl.full([], -float("inf"), tl.float32), SHIFT).to(tl.int64)
    if k > 0:
        floor = _highest_cut(
            logits, size, floor, highest, tl.minimum(k, size), floor, top, temperature, True, SHIFT, BLOCK
        )
    if share < 1:
        # below this, all logits together weigh less than what is left out
        lowest = top - temperature * (1.01 * tl.log(size / (1 - share)) + 0.01)
        lowest = tl.maximum(_order(lowest, SHIFT).to(tl.int64), floor)
        lowest = tl.minimum(lowest, highest.to(tl.int64))
        floor = _highest_cut(logits, size, lowest, highest, share, floor, top, temperature, False, SHIFT, BLOCK)
    tl.store(floors + row, _number(floor, SHIFT))
