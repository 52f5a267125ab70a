"""The layers of BERT and its relatives, run so that nothing is computed which nobody reads.

Of the last layer one position of each row is wanted, the blank. Every position is still looked at (keys and
values), but only the blank looks: one query, one feed-forward pass. Of that layer's work a sixth is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear, Module
from torch.nn.functional import scaled_dot_product_attention


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
        return self.second_norm(self.down(self.activation(self.up(between))) + between)  # type: ignore[no-any-return]


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


class LastLayer(Module):
    """Stands in the place of an encoder's last layer, and gives one position of each row (rows × 1 × size)."""

    def __init__(self, layer: Module, parts: LayerParts) -> None:
        super().__init__()
        self.layer = layer  # keeps its weights in the model: they move and count with it
        self._parts = parts
        self.positions: Tensor | None = None  # which position of each row; set before each pass

    def forward(self, hidden: Tensor, mask: Tensor | None = None, bias: Tensor | None = None, **_: Any) -> Any:
        """Compute the layer at `positions`; `mask` and `bias` are what the encoder gives to every layer."""
        at = (torch.arange(len(hidden), device=hidden.device), self.positions)
        given = hidden[at][:, None]

        def from_there(scores: Tensor) -> Tensor:  # rows × heads × positions × positions, or one row for all
            return scores if scores.shape[2] == 1 else scores[at[0], :, at[1]][:, :, None]

        if mask is not None:
            mask = from_there(mask)
        if bias is not None:
            mask = from_there(bias) if mask is None else from_there(bias) + mask
        parts = self._parts
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


def cut_last_layer(known: KnownLayers) -> LastLayer:
    """Put a `LastLayer` in the place of the last layer, and return it."""
    known.layers[-1] = last = LastLayer(known.layers[-1], known.parts[-1])
    return last
