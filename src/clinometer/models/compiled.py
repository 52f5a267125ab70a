"""On a CUDA GPU: layers as one compiled function, with one projection for query, key and value.

Between the matrix products a layer is bound by memory, and the compiler reads and writes it once where separate
steps do so several times. Only large batches go this way: whether one does depends on its size alone, so that a
resumed run computes it as the run before would have.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from torch._dynamo import maybe_mark_dynamic
from torch.nn import Module
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention
from transformers.activations import GELUActivation

from clinometer.models.layers import KnownLayers, LayerParts
from clinometer.models.reasons import reason

logger = logging.getLogger("clinometer")

_LARGE = 16_384  # tokens in a batch; below, a GPU waits for Python and not for its memory
_FULL = 131_072
_UNPLANNED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class _Compiled:
    """A function of a batch, compiled when it is first called; given up for good where that cannot be done."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        from torch._inductor import config  # slow to import

        # no kernel is chosen by its speed on the day: another one may round otherwise
        options: dict[str, Any] | None = {"deterministic": True} if hasattr(config, "deterministic") else None
        self._run: Callable[..., Tensor] | None = torch.compile(function, options=options)

    def __call__(self, batch: Tensor, *others: Any, **options: Any) -> Tensor | None:
        """Return the outcome; None for a batch that is small, and where nothing can be compiled."""
        if self._run is None or batch.shape[0] * batch.shape[1] < _LARGE:
            return None
        # one function for batches of every shape, but for this model's sizes: those make faster kernels
        maybe_mark_dynamic(batch, (0, 1))
        try:
            return self._run(batch, *others, **options)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # no C compiler, no Triton, an old driver: the compiler raises anything
            logger.warning("layers cannot be compiled here; large batches are slower for it (%s)", reason(error))
            self._run = None
            return None


def is_full(batch: Tensor) -> bool:
    """Tell whether a batch (rows × length …) is one of those full ones that come in few shapes."""
    return batch.shape[0] * batch.shape[1] >= _FULL and batch.shape[0] % 16 == 0


def attention_for(batch: Tensor) -> AbstractContextManager[None]:
    """Choose the attention for a batch: cuDNN's is the fastest, but takes a batch's time to plan a new shape."""
    return contextlib.nullcontext() if is_full(batch) else sdpa_kernel(_UNPLANNED)


class CompiledLayer(Module):
    """Stands in the place of an encoder's layer; a batch that is small or padded goes through the layer itself."""

    def __init__(self, layer: Module, parts: LayerParts, compiled: _Compiled) -> None:
        super().__init__()
        self.layer = layer
        self._compiled = compiled
        self._settings = {"heads": parts.heads, "eps": (parts.first_norm.eps, parts.second_norm.eps)}
        joined = [parts.query, parts.key, parts.value]
        self._weights = (
            torch.cat([module.weight.detach() for module in joined]),
            torch.cat([module.bias.detach() for module in joined]),
            *(
                tensor.detach()
                for module in (parts.attended, parts.first_norm, parts.up, parts.down, parts.second_norm)
                for tensor in (module.weight, module.bias)
            ),
        )

    def forward(self, hidden: Tensor, mask: Tensor | None = None, *others: Any, **options: Any) -> Any:
        """Compute the layer."""
        outcome = None
        if mask is None:
            outcome = self._compiled(hidden, *self._weights, **self._settings, full=is_full(hidden))
        return self.layer(hidden, mask, *others, **options) if outcome is None else outcome


def compile_layers(known: KnownLayers) -> None:
    """Let the large batches of a model on a CUDA GPU run through compiled code, but for the last layer."""
    compiled = _Compiled(_layer)
    for place, parts in enumerate(known.parts[:-1]):
        if not parts.in_a_tuple and isinstance(parts.activation, GELUActivation):
            known.layers[place] = CompiledLayer(known.layers[place], parts, compiled)
    plain = known.embeddings.forward
    compiled_embeddings = _Compiled(plain)

    def embed(input_ids: Tensor, *others: Any, **options: Any) -> Tensor:
        outcome = compiled_embeddings(input_ids, *others, **options)
        return plain(input_ids, *others, **options) if outcome is None else outcome

    known.embeddings.forward = embed


def _layer(
    hidden: Tensor,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    attended_weight: Tensor,
    attended_bias: Tensor,
    first_weight: Tensor,
    first_bias: Tensor,
    up_weight: Tensor,
    up_bias: Tensor,
    down_weight: Tensor,
    down_bias: Tensor,
    second_weight: Tensor,
    second_bias: Tensor,
    *,
    heads: int,
    eps: tuple[float, float],
    full: bool,
) -> Tensor:
    rows, length, size = hidden.shape
    qkv = linear(hidden, qkv_weight, qkv_bias).view(rows, length, 3, heads, -1)
    query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    if full:  # compiled apart: which attention is called is settled when the function is compiled
        attended = scaled_dot_product_attention(query, key, value)
    else:
        with sdpa_kernel(_UNPLANNED):
            attended = scaled_dot_product_attention(query, key, value)
    attended = attended.transpose(1, 2).reshape(rows, length, size)
    between = linear(attended, attended_weight, attended_bias) + hidden
    between = layer_norm(between, (size,), first_weight, first_bias, eps[0])
    outcome = linear(_gelu(linear(between, up_weight, up_bias)), down_weight, down_bias) + between
    return layer_norm(outcome, (size,), second_weight, second_bias, eps[1])


def _gelu(values: Tensor) -> Tensor:
    """Return x·Φ(x). In half precision Φ is that of Abramowitz and Stegun, 7.1.26, whose error is below 1e-7.

    The library's error function costs a GPU more time than reading and writing the values does.
    """
    if values.dtype == torch.float32:
        return gelu(values)
    wide = values.float()
    size = wide.abs() * math.sqrt(0.5)
    share = 1 / (1 + 0.3275911 * size)
    series = 0.254829592 + share * (
        -0.284496736 + share * (1.421413741 + share * (-1.453152027 + share * 1.061405429))
    )
    tail = 0.5 * share * series * torch.exp(-size * size)
    return (wide * torch.where(wide < 0, tail, 1 - tail)).to(values.dtype)
