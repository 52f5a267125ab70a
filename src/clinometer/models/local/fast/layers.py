"""The layers of BERT and its relatives, computing only what is read.

Of the last layer one position of each row is wanted, the blank. Every position is still looked at (keys and
values), but only the blank looks: one query, one feed-forward pass. Of that layer's work a sixth is left.

On a CPU every layer is computed here, because its activation can be had with the product before it.

On a CUDA GPU the other layers run as one compiled function, with one projection for query, key and value. Between
the matrix products a layer is bound by memory, and the compiler reads and writes it once where separate steps do
so several times. Only large batches go this way: whether one does depends on its size alone, so that a resumed run
computes it as the run before would have.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._dynamo import maybe_mark_dynamic
from torch.nn import Linear, Module
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention
from transformers.activations import GELUActivation

from clinometer.errors import reason
from clinometer.models.local.fast.products import is_plain, product

logger = logging.getLogger("clinometer")

_LARGE = 16_384  # tokens in a batch; below, a GPU waits for Python and not for its memory
_FULL = 131_072
_UNPLANNED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParts:
    """What a layer consists of: attention, a norm, two projections with an activation between, a norm."""

    query: Linear
    key: Linear
    value: Linear
    heads: int
    attended: Linear
    first_norm: torch.nn.LayerNorm
    up: Linear
    activation: Callable[[Tensor], Tensor]
    down: Linear
    second_norm: torch.nn.LayerNorm
    in_a_tuple: bool = False  # how the encoder expects a layer's outcome

    def finish(self, attended: Tensor, given: Tensor) -> Tensor:
        """Compute a layer's outcome from what attention found and what the layer was given."""
        between = self.first_norm(self.attended(attended) + given)
        return self.second_norm(self.down(self._wide(between)) + between)  # type: ignore[no-any-return]

    def _wide(self, between: Tensor) -> Tensor:
        if isinstance(self.activation, GELUActivation) and is_plain(self.up):
            return product(between, self.up.weight, self.up.bias, then_gelu=True)
        return self.activation(self.up(between))


def _bert(layer: Any) -> LayerParts:
    attention = layer.attention.self
    return LayerParts(
        query=attention.query,
        key=attention.key,
        value=attention.value,
        heads=attention.num_attention_heads,
        attended=layer.attention.output.dense,
        first_norm=layer.attention.output.LayerNorm,
        up=layer.intermediate.dense,
        activation=layer.intermediate.intermediate_act_fn,
        down=layer.output.dense,
        second_norm=layer.output.LayerNorm,
    )


def _distilbert(layer: Any) -> LayerParts:
    attention = layer.attention
    return LayerParts(
        query=attention.q_lin,
        key=attention.k_lin,
        value=attention.v_lin,
        heads=attention.n_heads,
        attended=attention.out_lin,
        first_norm=layer.sa_layer_norm,
        up=layer.ffn.lin1,
        activation=layer.ffn.activation,
        down=layer.ffn.lin2,
        second_norm=layer.output_layer_norm,
    )


def _mpnet(layer: Any) -> LayerParts:
    attention = layer.attention.attn
    return LayerParts(
        query=attention.q,
        key=attention.k,
        value=attention.v,
        heads=attention.num_attention_heads,
        attended=attention.o,
        first_norm=layer.attention.LayerNorm,
        up=layer.intermediate.dense,
        activation=layer.intermediate.intermediate_act_fn,
        down=layer.output.dense,
        second_norm=layer.output.LayerNorm,
        in_a_tuple=True,
    )


# Families whose layers are known. Any other runs as transformers has it: slower, and as correct.
_FAMILIES: dict[str, Callable[[Any], LayerParts]] = {
    "bert": _bert,
    "camembert": _bert,
    "distilbert": _distilbert,
    "electra": _bert,
    "mpnet": _mpnet,
    "roberta": _bert,
    "xlm-roberta": _bert,
}


class OwnLayer(Module):
    """Stands in the place of an encoder's layer; gives every position, or one of each row (rows × 1 × size)."""

    def __init__(self, layer: Module, parts: LayerParts) -> None:
        super().__init__()
        self.layer = layer  # keeps its weights in the model: they move and count with it
        self._parts = parts
        self.positions: Tensor | None = None  # which position of each row, set before each pass; None: every one

    def forward(self, hidden: Tensor, mask: Tensor | None = None, bias: Tensor | None = None, **_: Any) -> Any:
        """Compute the layer; `mask` and `bias` are what the encoder gives to every layer."""
        rows, there, parts = torch.arange(len(hidden), device=hidden.device), self.positions, self._parts
        given = hidden if there is None else hidden[rows, there][:, None]

        def from_there(scores: Tensor) -> Tensor:  # rows × heads × positions × positions, or one row for all
            return scores if there is None or scores.shape[2] == 1 else scores[rows, :, there][:, :, None]

        if mask is not None:
            mask = from_there(mask)
        if bias is not None:
            mask = from_there(bias) if mask is None else from_there(bias) + mask
        query, key, value = (
            projected.view(*projected.shape[:2], parts.heads, -1).transpose(1, 2)
            for projected in (parts.query(given), parts.key(hidden), parts.value(hidden))
        )
        attended = scaled_dot_product_attention(query, key, value, attn_mask=mask)
        outcome = parts.finish(attended.transpose(1, 2).flatten(2), given)
        return (outcome,) if parts.in_a_tuple else outcome


@dataclass(frozen=True, slots=True)
class KnownLayers:
    """The layers of an encoder, which may be replaced one by one, and what each consists of."""

    embeddings: Module
    layers: torch.nn.ModuleList
    parts: list[LayerParts]


def known_layers(model: Any) -> KnownLayers | None:
    """Return the layers of an encoder; None for a model of another family."""
    # a decoder's layers look back only, and may be told so by no mask
    if model.config.model_type not in _FAMILIES or getattr(model.config, "is_decoder", False):
        return None
    base = model.base_model
    layers = (base.transformer if hasattr(base, "transformer") else base.encoder).layer
    return KnownLayers(base.embeddings, layers, [_FAMILIES[model.config.model_type](layer) for layer in layers])


def own_last_layer(known: KnownLayers) -> OwnLayer:
    """Put a layer of our own in the place of the last one, and return it: it can be told what is read."""
    known.layers[-1] = last = OwnLayer(known.layers[-1], known.parts[-1])
    return last


def own_layers(known: KnownLayers) -> None:
    """Put layers of our own in the place of the others."""
    for place, parts in enumerate(known.parts[:-1]):
        known.layers[place] = OwnLayer(known.layers[place], parts)


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
        # one function for batches of every shape, but only for this model's sizes: that makes faster kernels
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
    """Let the large batches of a model on a CUDA GPU run through compiled code, except in the last layer."""
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


def _layer(hidden: Tensor, *weights: Tensor, heads: int, eps: tuple[float, float], full: bool) -> Tensor:
    """Compute one layer; the weights are those of `CompiledLayer`, each with its bias, in that order."""
    qkv_weight, qkv_bias, attended_weight, attended_bias, first_weight, first_bias, *others = weights
    up_weight, up_bias, down_weight, down_bias, second_weight, second_bias = others
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
    if between.dtype == torch.bfloat16:
        wide = _up_with_gelu(between, up_weight, up_bias)
    else:
        wide = _gelu(linear(between, up_weight, up_bias))
    outcome = linear(wide, down_weight, down_bias) + between
    return layer_norm(outcome, (size,), second_weight, second_bias, eps[1])


@torch.library.custom_op("clinometer::up_with_gelu", mutates_args=())
def _up_with_gelu(values: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return GELU of the projection: on a GPU while a value is still at hand, so that it is not read once more.

    There it is GELU by tanh, at most 5e-4 off: bfloat16 rounds more than that off any value above 0.25, and the
    drift from float32 is the same with both. It is an operation of its own so that the compiler leaves it whole.
    """
    joined = torch._addmm_activation(bias, values.flatten(0, 1), weight.t(), use_gelu=True)
    return joined.view(*values.shape[:2], -1)


@_up_with_gelu.register_fake
def _(values: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return values.new_empty(*values.shape[:2], weight.shape[0])


# log2 of the odds of Φ(x), divided by x, as a polynomial in x². The error of x·Φ(x), at x and at −x, is at most a
# seventh of what float16 rounds off (or 2e-7 where that is less).
_LOG_ODDS = (
    *(2.3018165164904354, 0.10540968543401125, -3.457033516198338e-4, -1.1198399554266671e-4),
    *(7.10260996504962e-6, -1.957751440387042e-7, 2.0991937021699834e-9),
)


def _gelu(values: Tensor) -> Tensor:
    """Return x·Φ(x), in half precision by a polynomial.

    The library's error function costs a GPU more time than reading and writing the values does.
    """
    if values.dtype == torch.float32:
        return gelu(values)
    wide = values.float()
    square = wide * wide
    per_value = torch.full_like(square, _LOG_ODDS[-1])
    for term in reversed(_LOG_ODDS[:-1]):
        per_value = per_value * square + term
    return (wide / (1 + torch.exp2(-wide * per_value))).to(values.dtype)
