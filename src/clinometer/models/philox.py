"""Random numbers that count: each is a function of its own coordinates, and the same on every device."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

_LOW = 0xFFFFFFFF
_PER_BLOCK = 4  # words that one counter gives
_BLOCKS_PER_STEP = 8  # room for 32 numbers a step: no vocabulary needs more


def key_of(*, seed: int, text: str) -> tuple[int, int, int, int]:
    """Return four 32-bit words that stand for a seed and a text."""
    digest = hashlib.blake2b(f"{seed}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    a, b, c, d = (int.from_bytes(digest[at : at + 4], "little") for at in range(0, 16, 4))
    return a, b, c, d


def uniforms(keys: Tensor, samples: Tensor, *, steps: range, levels: int) -> Tensor:
    """Return random numbers in [0, 1), float32, rows × steps × levels.

    Each row has a key (rows × 4, from `key_of`) and a sample index. A number depends on key, sample, step and
    level alone: asking for other rows, other steps or more levels beside it changes nothing.
    """
    blocks = torch.arange(-(-levels // _PER_BLOCK), device=keys.device)
    counted = torch.arange(steps.start, steps.stop, device=keys.device)[:, None] * _BLOCKS_PER_STEP + blocks
    first, second, third, fourth = keys[:, :, None, None].unbind(1)
    words = philox((counted[None], samples[:, None, None], third, fourth), (first, second))
    # 24 bits: what a float32 holds exactly
    numbers = torch.stack([(word >> 8).float() for word in words], dim=-1) * 2.0**-24
    return numbers.flatten(2)[:, :, :levels]


def philox(counter: Sequence[Tensor], key: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return four random 32-bit words for each counter (four words) and key (two), all as int64.

    Philox 4×32 with ten rounds: J. K. Salmon and others, "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    (a, b, c, d), (left, right) = counter, key
    for _ in range(10):
        # the product of two words may wrap around to a negative number, whose bits are the right ones
        one, other = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = ((other >> 32) & _LOW) ^ b ^ left, other & _LOW, ((one >> 32) & _LOW) ^ d ^ right, one & _LOW
        left, right = (left + 0x9E3779B9) & _LOW, (right + 0xBB67AE85) & _LOW
    return a, b, c, d
