"""Triton kernels for what a step does between its matrix products: each reads and writes its rows once."""

# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_TILE = {False: 32, True: 64}  # places of the cache that one program reads at a time: one query head, or several
_WARPS = {False: 1, True: 2}
_DOT_ROWS = 16  # the fewest rows that a GPU's matrix unit takes


def add_norm(
    hidden: Tensor, more: Tensor | None, weight: Tensor, bias: Tensor | None, *, eps: float, centred: bool
) -> Tensor:
    """Add `more` to the hidden states (rows × size) in place, and return them normed.

    `centred` is a layer norm; without it, the root mean square is divided by, and rounded as in Llama.
    """
    rows, size = hidden.shape
    result = torch.empty_like(hidden)
    _add_norm[(rows,)](
        hidden,
        hidden if more is None else more,
        weight,
        weight if bias is None else bias,
        result,
        size,
        eps,
        ADD=more is not None,
        CENTRED=centred,
        BIAS=bias is not None,
        BLOCK=triton.next_power_of_2(size),
        num_warps=4 if size > 512 else 1,
    )
    return result


def gate(gated: Tensor) -> Tensor:
    """Return silu(left half) · right half of each row."""
    rows, both = gated.shape
    result = torch.empty(rows, both // 2, dtype=gated.dtype, device=gated.device)
    block = 1024
    _gate[(triton.cdiv(both // 2, block), rows)](gated, result, both // 2, BLOCK=block, num_warps=4)
    return result


def write_and_attend(
    projected: Tensor,
    turn: tuple[Tensor, Tensor] | None,
    keys: Tensor,
    values: Tensor,
    places: Tensor,
    *,
    heads: int,
    scale: float,
) -> Tensor:
    """Write the new key and value of each row at its place, and return what its queries attend to up to there.

    `projected` is rows × (heads + 2 key heads) · size: queries, keys, values. `turn` holds cosines and sines
    (rows × size) of rotary positions. Keys and values are rows × key heads × places × size; the result is
    rows × heads · size.
    """
    rows, key_heads, _, size = keys.shape
    result = torch.empty(rows, heads * size, dtype=projected.dtype, device=projected.device)
    cosines, sines = turn or (projected, projected)
    several = heads > key_heads
    (_attend_several if several else _attend_alone)[(key_heads, rows)](
        projected,
        cosines,
        sines,
        keys,
        values,
        places,
        result,
        scale,
        projected.stride(0),
        cosines.stride(0),
        *keys.stride()[:3],
        *values.stride()[:3],
        HEADS=heads,
        KEY_HEADS=key_heads,
        TURNED=turn is not None,
        SIZE=size,
        PADDED=max(16, triton.next_power_of_2(size)),
        TILE=_TILE[several],
        GROUP=max(_DOT_ROWS, triton.next_power_of_2(heads // key_heads)),
        num_warps=_WARPS[several],
    )
    return result


@triton.jit
def _add_norm(
    hidden, more, weight, bias, result, size, eps,
    ADD: tl.constexpr, CENTRED: tl.constexpr, BIAS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < size
    at = row * size + column
    read = tl.load(hidden + at, mask=inside, other=0.0)
    if ADD:
        added = tl.load(more + at, mask=inside, other=0.0)
        read = (read.to(tl.float32) + added.to(tl.float32)).to(result.dtype.element_ty)
        tl.store(hidden + at, read, mask=inside)
    wide = read.to(tl.float32)
    scale = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    if CENTRED:
        wide = tl.where(inside, wide - tl.sum(wide, axis=0) / size, 0.0)
    wide = wide / tl.sqrt_rn(tl.sum(wide * wide, axis=0) / size + eps)
    if CENTRED:
        wide = wide * scale
        if BIAS:
            wide += tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    else:  # Llama rounds before it scales
        wide = wide.to(result.dtype.element_ty).to(tl.float32) * scale
    tl.store(result + at, wide.to(result.dtype.element_ty), mask=inside)


@triton.jit
def _gate(gated, result, size, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < size
    left = tl.load(gated + row * 2 * size + column, mask=inside, other=0.0).to(tl.float32)
    right = tl.load(gated + row * 2 * size + size + column, mask=inside, other=0.0).to(tl.float32)
    kind = result.dtype.element_ty
    opened = (left / (1.0 + tl.exp(-left))).to(kind).to(tl.float32)
    tl.store(result + row * size + column, (opened * right).to(kind), mask=inside)


@triton.jit
def _turned(start, cosines, sines, column, inside, SIZE: tl.constexpr, TURNED: tl.constexpr):
    """Load a vector, or several, and turn it by rotary positions: each half is the other's sine part."""
    read = tl.load(start + column, mask=inside, other=0.0).to(tl.float32)
    if TURNED:
        other = tl.where(column < SIZE // 2, column + SIZE // 2, column - SIZE // 2)
        across = tl.load(start + other, mask=inside, other=0.0).to(tl.float32)
        across = tl.where(column < SIZE // 2, -across, across)
        read = read * tl.load(cosines + column, mask=inside, other=0.0).to(tl.float32)
        read += across * tl.load(sines + column, mask=inside, other=0.0).to(tl.float32)
    return read


@triton.jit
def _attend_alone(
    projected, cosines, sines, keys, values, places, result, scale,
    per_row, per_turn, key_row, key_head, key_place, value_row, value_head, value_place,
    HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, TURNED: tl.constexpr, SIZE: tl.constexpr, PADDED: tl.constexpr,
    TILE: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    column = tl.arange(0, PADDED)
    inside = column < SIZE
    kind = result.dtype.element_ty
    start = projected + row * per_row + head * SIZE
    cosines += row * per_turn
    sines += row * per_turn
    asked = _turned(start, cosines, sines, column, inside, SIZE, TURNED).to(kind).to(tl.float32) * scale
    own = _turned(start + HEADS * SIZE, cosines, sines, column, inside, SIZE, TURNED).to(kind)
    told = tl.load(start + (HEADS + KEY_HEADS) * SIZE + column, mask=inside, other=0.0)
    keys += row * key_row + head * key_head
    values += row * value_row + head * value_head
    last = tl.load(places + row)
    tl.store(keys + last * key_place + column, own, mask=inside)
    tl.store(values + last * value_place + column, told, mask=inside)
    # the new token is in hand: it is not read back from where another thread may still be writing it
    top = tl.sum(own.to(tl.float32) * asked, axis=0)
    total = 1.0
    sums = told.to(tl.float32)
    for begin in range(0, last, TILE):
        place = begin + tl.arange(0, TILE)
        seen = place < last
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
    tl.store(result + (row * HEADS + head) * SIZE + column, (sums / total).to(kind), mask=inside)


@triton.jit
def _attend_several(
    projected, cosines, sines, keys, values, places, result, scale,
    per_row, per_turn, key_row, key_head, key_place, value_row, value_head, value_place,
    HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, TURNED: tl.constexpr, SIZE: tl.constexpr, PADDED: tl.constexpr,
    TILE: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The query heads that share a key head are the rows of one matrix product: keys and values are read once."""
    head = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    SHARE: tl.constexpr = HEADS // KEY_HEADS
    column = tl.arange(0, PADDED)
    inside = column < SIZE
    kind = result.dtype.element_ty
    member = tl.arange(0, GROUP)
    both = (member < SHARE)[:, None] & inside[None, :]
    start = projected + row * per_row
    cosines += row * per_turn
    sines += row * per_turn
    queries = start + (head * SHARE + member[:, None]) * SIZE
    asked = _turned(queries, cosines, sines, column[None, :], both, SIZE, TURNED).to(kind)
    own = _turned(start + (HEADS + head) * SIZE, cosines, sines, column, inside, SIZE, TURNED).to(kind)
    told = tl.load(start + (HEADS + KEY_HEADS + head) * SIZE + column, mask=inside, other=0.0)
    keys += row * key_row + head * key_head
    values += row * value_row + head * value_head
    last = tl.load(places + row)
    tl.store(keys + last * key_place + column, own, mask=inside)
    tl.store(values + last * value_place + column, told, mask=inside)
    top = tl.sum(asked.to(tl.float32) * own.to(tl.float32)[None, :], axis=1) * scale
    total = tl.full([GROUP], 1.0, tl.float32)
    sums = tl.zeros([GROUP, PADDED], tl.float32) + told.to(tl.float32)[None, :]
    for begin in range(0, last, TILE):
        place = begin + tl.arange(0, TILE)
        seen = place < last
        mask = seen[:, None] & inside[None, :]
        known = tl.load(keys + place[:, None] * key_place + column[None, :], mask=mask, other=0.0)
        held = tl.load(values + place[:, None] * value_place + column[None, :], mask=mask, other=0.0)
        scores = tl.dot(asked, tl.trans(known), input_precision="ieee") * scale
        scores = tl.where(seen[None, :], scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, axis=1))
        shares = tl.exp(scores - higher[:, None])
        shrink = tl.exp(top - higher)
        sums = sums * shrink[:, None] + tl.dot(shares.to(kind), held, input_precision="ieee")
        total = total * shrink + tl.sum(shares, axis=1)
        top = higher
    found = result + (row * HEADS + head * SHARE + member[:, None]) * SIZE + column[None, :]
    tl.store(found, (sums / total[:, None]).to(kind), mask=both)
