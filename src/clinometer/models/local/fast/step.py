"""One new token of many rows through the layers of GPT-2, Llama and their relatives, for a CUDA GPU.

As transformers runs it, a step reads and writes its hidden states again and again between the matrix products of a
layer. Here three kernels of our own (`step_kernels.py`) do what is between them. Whether a model can be run this
way is read off its modules, and then tried: `StaticSampler` compares the logits with the model's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers.pytorch_utils import Conv1D

from clinometer.models.local.fast import step_kernels as kernels


class UnknownLayersError(Exception):
    """A model whose layers are not among those that a step knows."""


@dataclass(frozen=True, slots=True)
class _Norm:
    weight: Tensor
    bias: Tensor | None
    eps: float
    centred: bool

    @classmethod
    def of(cls, module: Any) -> _Norm:
        if type(module) is nn.LayerNorm:
            return cls(module.weight, module.bias, module.eps, centred=True)
        if type(module).__name__.endswith("RMSNorm") and hasattr(module, "variance_epsilon"):
            return cls(module.weight, None, module.variance_epsilon, centred=False)
        raise UnknownLayersError(f"a norm of {type(module).__name__}")

    def __call__(self, hidden: Tensor, more: Tensor | None) -> Tensor:
        """Add what a part of a layer found to the hidden states, in place, and return them normed."""
        return kernels.add_norm(hidden, more, self.weight, self.bias, eps=self.eps, centred=self.centred)


@dataclass(frozen=True, slots=True)
class _Layer:
    first_norm: _Norm
    project: Callable[[Tensor], Tensor]  # to queries, keys and values
    heads: int
    scale: float
    attended: Callable[[Tensor], Tensor]
    second_norm: _Norm
    widen: Callable[[Tensor], Tensor]
    narrow: Callable[[Tensor], Tensor]


class Step:
    """Runs a model one token further, from the cache of every row."""

    def __init__(self, model: Any) -> None:
        if len({tensor.device for tensor in model.parameters()}) > 1:
            raise UnknownLayersError("layers on several devices")
        base = model.base_model
        if hasattr(base, "h"):
            self._words, self._positions, self._turns = base.wte, base.wpe, None
            self._layers = [_gpt2(layer) for layer in base.h]
            self._norm = _Norm.of(base.ln_f)
        elif hasattr(base, "layers") and hasattr(base, "rotary_emb"):
            self._words, self._positions, self._turns = base.embed_tokens, None, base.rotary_emb
            self._layers = [_llama(layer) for layer in base.layers]
            self._norm = _Norm.of(base.norm)
        else:
            raise UnknownLayersError(f"the layers of {type(base).__name__}")
        if type(self._words) is not nn.Embedding:
            raise UnknownLayersError(f"embeddings of {type(self._words).__name__}")

    def run(self, tokens: Tensor, places: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> Tensor:
        """Return the hidden states (rows × size) of the tokens, ready for the head; keep their keys and values."""
        hidden = self._words(tokens)
        if self._positions is not None:
            hidden = hidden + self._positions(places)
        turn = None
        if self._turns is not None:
            cosines, sines = self._turns(hidden[:, None], places[:, None])
            turn = cosines[:, 0].contiguous(), sines[:, 0].contiguous()
        more = None
        for layer, key, value in zip(self._layers, keys, values, strict=True):
            projected = layer.project(layer.first_norm(hidden, more))
            found = kernels.write_and_attend(
                projected, turn, key, value, places, heads=layer.heads, scale=layer.scale
            )
            more = layer.narrow(layer.widen(layer.second_norm(hidden, layer.attended(found))))
        return self._norm(hidden, more)


def _gpt2(layer: Any) -> _Layer:
    attention, feed = layer.attn, layer.mlp
    for module in (attention.c_attn, attention.c_proj, feed.c_fc, feed.c_proj):
        if type(module) is not Conv1D:
            raise UnknownLayersError(f"a projection of {type(module).__name__}")
    if type(feed.act) is not nn.GELU or feed.act.approximate != "tanh":
        raise UnknownLayersError(f"an activation of {type(feed.act).__name__}")
    bias, weight = feed.c_fc.bias, feed.c_fc.weight

    def widen(hidden: Tensor) -> Tensor:  # one pass: the activation is part of the matrix product
        return torch._addmm_activation(bias, hidden, weight, use_gelu=True)

    return _Layer(
        first_norm=_Norm.of(layer.ln_1),
        project=attention.c_attn,
        heads=attention.num_heads,
        scale=attention.head_dim**-0.5,
        attended=attention.c_proj,
        second_norm=_Norm.of(layer.ln_2),
        widen=widen,
        narrow=feed.c_proj,
    )


def _llama(layer: Any) -> _Layer:
    attention, feed = layer.self_attn, layer.mlp
    if type(feed.act_fn).__name__ not in ("SiLU", "SiLUActivation") or hasattr(attention, "q_norm"):
        raise UnknownLayersError(f"{type(layer).__name__}")
    project = _joined(attention.q_proj, attention.k_proj, attention.v_proj)
    open_and_up = _joined(feed.gate_proj, feed.up_proj)
    size: int = attention.head_dim
    return _Layer(
        first_norm=_Norm.of(layer.input_layernorm),
        project=project,
        heads=attention.q_proj.out_features // size,
        scale=attention.scaling,
        attended=attention.o_proj,
        second_norm=_Norm.of(layer.post_attention_layernorm),
        widen=lambda hidden: kernels.gate(open_and_up(hidden)),
        narrow=feed.down_proj,
    )


def _joined(*modules: Any) -> Callable[[Tensor], Tensor]:
    """Return one matrix product for several; the modules keep parts of its matrix, so that it is held once."""
    for module in modules:
        if type(module) is not nn.Linear:
            raise UnknownLayersError(f"a projection of {type(module).__name__}")
    sizes = [module.out_features for module in modules]
    weight = torch.cat([module.weight.detach() for module in modules])
    for module, part in zip(modules, torch.split(weight, sizes), strict=True):
        module.weight = nn.Parameter(part, requires_grad=False)
    biases = [module.bias for module in modules]
    bias = None if biases[0] is None else torch.cat([one.detach() for one in biases])
    return lambda hidden: linear(hidden, weight, bias)
