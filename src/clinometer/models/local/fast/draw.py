"""What is drawn: prompts as rows of a batch, random numbers by their coordinates, and a token from its logits.

A random number is a function of its own coordinates (seed, prompt, sample, step), the same on every device. The
draw is such that rounding errors hardly ever change the token.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from clinometer.models.local.fast.transfers import send
from clinometer.models.local.text import Ids

BLOCK_LEVELS = 8  # the vocabulary is summed in blocks of 256 tokens; only the block that is drawn is looked into
NOT_A_NUMBER = -1  # in place of a token that could not be drawn
_LOW = 0xFFFFFFFF
_PER_BLOCK = 4  # words that one counter gives
_BLOCKS_PER_STEP = 8  # room for 32 numbers a step: no vocabulary needs more


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Token ids to be continued `n` times; the draw depends on `text`, seed, sample index and step."""

    ids: Ids
    text: str
    n: int
    first: int
    max_new_tokens: int
    temperature: float
    seed: int
    top_k: int = 0
    top_p: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The samples of a batch, one row each; every tensor has one entry for each row."""

    owners: Tensor  # which of the distinct prefixes a row continues
    keys: Tensor
    samples: Tensor
    limits: Tensor  # new tokens at most
    temperatures: Tensor
    top_k: Tensor
    top_p: Tensor

    @classmethod
    def of(cls, prompts: Sequence[Prompt], prefixes: Sequence[Ids], device: torch.device) -> Rows:
        """Return the rows of the prompts, whose ids are among the prefixes."""
        counts = [prompt.n for prompt in prompts]
        total = sum(counts)
        # each value travels once for a prompt, and not once for each of its samples
        whose = torch.arange(len(prompts), device=device).repeat_interleave(
            send(counts, device), output_size=total
        )

        def each(values: Sequence[float | tuple[int, ...]], dtype: torch.dtype = torch.long) -> Tensor:
            return send(values, device, dtype)[whose]

        begin = list(itertools.accumulate(counts, initial=0))[:-1]
        firsts = [prompt.first - start for prompt, start in zip(prompts, begin, strict=True)]
        return cls(
            owners=each(owners_of(prompts, prefixes)),
            keys=each([key_of(seed=one.seed, text=one.text) for one in prompts]),
            samples=each(firsts) + torch.arange(total, device=device),
            limits=each([one.max_new_tokens for one in prompts]),
            temperatures=each([one.temperature for one in prompts], torch.float32),
            top_k=each([one.top_k for one in prompts]),
            top_p=each([one.top_p for one in prompts], torch.float32),
        )

    def __len__(self) -> int:
        return len(self.owners)

    def select(self, index: Tensor) -> Rows:
        """Return some of the rows."""
        return Rows(**{field.name: getattr(self, field.name)[index] for field in fields(self)})

    def numbers(self, steps: range, levels: int) -> Tensor:
        """Return the random numbers of the rows, rows × steps × levels."""
        return uniforms(self.keys, self.samples, steps=steps, levels=levels)

    def floors(self, logits: Tensor, sort: int) -> Tensor | None:
        """Return the lowest logit of each row that may be drawn; None where any may."""
        if not sort:
            return None
        return floors_of(logits, temperatures=self.temperatures, top_k=self.top_k, top_p=self.top_p, sort=sort)


def owners_of(prompts: Sequence[Prompt], prefixes: Sequence[Ids]) -> list[int]:
    """Return which of the distinct prefixes each prompt continues."""
    place = {ids.tobytes(): number for number, ids in enumerate(prefixes)}
    return [place[prompt.ids.tobytes()] for prompt in prompts]


def sort_of(prompts: Sequence[Prompt], size: int) -> int:
    """Return how many of the largest logits `top_k` and `top_p` look at; 0: none."""
    if any(prompt.top_p < 1 for prompt in prompts):
        return size
    if any(prompt.top_k for prompt in prompts):
        return min(size, max(prompt.top_k for prompt in prompts))
    return 0


def distinct(prompts: Sequence[Prompt]) -> list[Ids]:
    """Return the prefixes of the prompts, each once."""
    return list({prompt.ids.tobytes(): prompt.ids for prompt in prompts}.values())


def pieces_of(prompts: Sequence[Prompt], *, limit: int) -> Iterator[list[Prompt]]:
    """Cut prompts, in order, into pieces of about equal size with at most `limit` samples each.

    The samples of one prompt may fall into several pieces.
    """
    total = sum(prompt.n for prompt in prompts)
    size = -(-total // max(1, -(-total // limit)))
    piece: list[Prompt] = []
    room = size
    for prompt in prompts:
        done = 0
        while done < prompt.n:
            count = min(room, prompt.n - done)
            piece.append(replace(prompt, first=prompt.first + done, n=count))
            done, room = done + count, room - count
            if not room:
                yield piece
                piece, room = [], size
    if piece:
        yield piece


def key_of(*, seed: int, text: str) -> tuple[int, int, int, int]:
    """Return four 32-bit words that identify a seed and a text."""
    digest = hashlib.blake2b(f"{seed}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    a, b, c, d = (int.from_bytes(digest[at : at + 4], "little") for at in range(0, 16, 4))
    return a, b, c, d


def uniforms(keys: Tensor, samples: Tensor, *, steps: range, levels: int) -> Tensor:
    """Return random numbers in [0, 1), float32, rows × steps × levels.

    Each row has a key (rows × 4, from `key_of`) and a sample index. A number depends on key, sample, step and
    level alone: asking for other rows, other steps or more levels as well changes nothing.
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


def levels_of(size: int) -> int:
    """Return how many random numbers the draw of one token takes.

    >>> levels_of(8), levels_of(9)
    (3, 4)
    """
    return max(1, math.ceil(math.log2(size)))


def draw(logits: Tensor, numbers: Tensor, *, temperatures: Tensor, floors: Tensor | None = None) -> Tensor:
    """Draw one token for each row of logits (rows × size) from the softmax of logits / temperature.

    `numbers` is rows × `levels_of(size)`, in [0, 1). Where the temperature is 0, the most probable token is taken.
    A token whose logit is below the row's floor is never drawn. Where the logits are not numbers, the token is −1.

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
