"""What is to be sampled: prompts, and the rows of a batch that they become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from clinometer.models.draw import floors_of
from clinometer.models.philox import key_of, uniforms
from clinometer.models.text import Ids


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
        place = {ids.tobytes(): number for number, ids in enumerate(prefixes)}
        counts = torch.tensor([prompt.n for prompt in prompts])

        def each(values: Sequence[float | tuple[int, ...]], dtype: torch.dtype) -> Tensor:
            return torch.tensor(values, dtype=dtype).repeat_interleave(counts, dim=0).to(device)

        samples = np.concatenate([np.arange(one.first, one.first + one.n) for one in prompts])
        return cls(
            owners=each([place[one.ids.tobytes()] for one in prompts], torch.long),
            keys=each([key_of(seed=one.seed, text=one.text) for one in prompts], torch.long),
            samples=torch.from_numpy(samples).to(device),
            limits=each([one.max_new_tokens for one in prompts], torch.long),
            temperatures=each([one.temperature for one in prompts], torch.float32),
            top_k=each([one.top_k for one in prompts], torch.long),
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
