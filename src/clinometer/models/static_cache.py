"""A cache of fixed places: every row has its own line and writes each new token at its own next place.

So rows of different length stand side by side without padding, and nothing is copied from step to step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.cache_utils import Cache, DynamicLayer

from clinometer.models.rows import Rows

# steps between two looks at which samples have ended: on a GPU, to look is to wait for it
LEG = {"cuda": 16, "cpu": 4}
_ATTENTION = "clinometer_places"


@dataclass(frozen=True, slots=True)
class _Layer:
    """Keys and values of one layer (rows × heads × places × size), as transformers asks a cache for them."""

    keys: Tensor
    values: Tensor
    rows: Tensor
    places: Tensor  # where each row writes
    width: int  # how many places are handed out
    is_initialized: bool = True
    is_sliding: bool = False
    is_compileable: bool = False

    def update(self, key: Tensor, value: Tensor, *_args: Any, **_options: Any) -> tuple[Tensor, Tensor]:
        self.keys[self.rows, :, self.places] = key[:, :, 0]
        self.values[self.rows, :, self.places] = value[:, :, 0]
        return self.keys[:, :, : self.width], self.values[:, :, : self.width]

    def get_mask_sizes(self, *_args: Any) -> tuple[int, int]:
        return self.width, 0

    def get_seq_length(self, *_args: Any) -> int:
        return self.width


class Storage:
    """Everything that a step reads and writes, for at most so many rows and places."""

    def __init__(self, layers: Sequence[DynamicLayer], *, rows: int, width: int, levels: int) -> None:
        device = layers[0].keys.device

        def held(like: Tensor) -> Tensor:
            return torch.zeros(rows, like.shape[1], width, like.shape[3], dtype=like.dtype, device=device)

        def long(*shape: int) -> Tensor:
            return torch.zeros(*shape, dtype=torch.long, device=device)

        self.rows, self.width, self.leg = rows, width, LEG[device.type]
        self.keys = [held(layer.keys) for layer in layers]
        self.values = [held(layer.values) for layer in layers]
        self.index = torch.arange(rows, device=device)
        self.tokens, self.places, self.ends = long(rows), long(rows), long(rows)
        self.top_k, self.top_p = long(rows), torch.zeros(rows, device=device)
        self.temperatures = torch.zeros(rows, device=device)
        self.numbers = torch.zeros(self.leg, rows, levels, device=device)
        self.written = long(self.leg, rows)
        self.step = long(1)
        self.graphs: dict[tuple[int, int], torch.cuda.CUDAGraph | None] = {}
        # One graph runs at a time and leaves nothing in its own memory that another reads: they can share it.
        self.pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None

    def cache(self, rows: int, width: int) -> Cache:
        """Return the first rows as a cache of transformers."""
        index, places = self.index[:rows], self.places[:rows]
        return Cache(
            layers=[
                _Layer(keys[:rows], values[:rows], index, places, width)
                for keys, values in zip(self.keys, self.values, strict=True)
            ]
        )

    def keep(self, index: Tensor) -> None:
        """Move some rows to the front."""
        for held in (*self.keys, *self.values, self.tokens, self.places, self.ends):
            held[: len(index)] = held.index_select(0, index)

    def load(self, rows: Rows) -> None:
        """Take over how each row is drawn."""
        for name in ("temperatures", "top_k", "top_p"):
            getattr(self, name)[: len(rows)] = getattr(rows, name)


@contextlib.contextmanager
def attention_by_place(config: Any) -> Iterator[None]:
    """Let the layers of the model with this configuration attend by `_attend`."""
    usual = config._attn_implementation
    config._attn_implementation = _ATTENTION
    try:
        yield
    finally:
        config._attn_implementation = usual


def _attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor, **options: Any
) -> tuple[Tensor, None]:
    """Attend from one new token a row to the places up to its own, which stand where a mask would."""
    for name in ("softcap", "sliding_window", "s_aux", "position_bias", "head_mask"):
        if options.get(name) is not None:
            raise NotImplementedError(f"attention with {name}")
    if key.shape[3] != value.shape[3]:
        raise NotImplementedError("attention with keys and values of different size")
    places = attention_mask[:, 0, 0, 0]
    scale = options.get("scaling")
    scale = query.shape[3] ** -0.5 if scale is None else scale
    if query.is_cuda:
        from clinometer.models import kernels  # needs Triton, which is there where torch has CUDA

        return kernels.attend(query, key, value, places, scale=scale), None
    rows, heads, _, size = query.shape
    seen = torch.arange(key.shape[2], device=key.device) <= places[:, None]
    # the query heads that share a key head are to it like several queries
    shared = query.reshape(rows, key.shape[1], -1, size)
    found = scaled_dot_product_attention(shared, key, value, attn_mask=seen[:, None, None], scale=scale)
    return found.reshape(rows, 1, heads, -1), None


AttentionInterface.register(_ATTENTION, _attend)
