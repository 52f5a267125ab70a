"""h̄, by which the counterfactual paper compares two prefixes: the mean of the vectors of the last two layers.

Taken is what the layers themselves give. What transformers calls the last hidden state has gone through one more
normalisation in most families: in SmolLM2 it is then 15 times shorter than that of the layer before, and a mean of
the two would be a matter of that other layer alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from clinometer.errors import ModelError


@contextlib.contextmanager
def caught_layers(model: Any) -> Iterator[list[Tensor]]:
    """Catch what the last two layers give while the model is called: each rows × places × width."""
    caught: list[Tensor] = []

    def catch(_layer: nn.Module, _given: Any, result: Any) -> None:
        caught.append(result[0] if isinstance(result, tuple) else result)

    handles = [layer.register_forward_hook(catch) for layer in layers_of(model)[-2:]]
    try:
        yield caught
    finally:
        for handle in handles:
            handle.remove()


def mean_of_last_two(caught: list[Tensor], at: Tensor) -> Tensor:
    """Return h̄ at one place of each row, in float32 (rows × width)."""
    before, last = caught
    rows = torch.arange(len(at), device=at.device)
    return (before[rows, at].float() + last[rows, at].float()) / 2


def layers_of(model: Any) -> nn.ModuleList:
    """Return the layers of a model, in order: a list as long as its config says."""
    config = model.config.get_text_config()
    for module in () if config.is_encoder_decoder else model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == config.num_hidden_layers >= 2:
            return module
    raise ModelError(
        f"the layers of this {config.model_type} model cannot be told apart (it has fewer than two, uses one"
        " several times, or encodes and decodes); choose another model to mitigate"
    )
