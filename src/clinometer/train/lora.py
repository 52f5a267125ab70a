"""Low-rank adaptation: a few small matrices are trained beside the weights, and added to them at the end."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import torch

from clinometer.errors import ModelError
from clinometer.train.seeds import own_randomness, seed_at


def add_adapter(model: Any, *, rank: int, seed: int) -> Any:
    """Put low-rank matrices beside every linear layer, in place; they alone are trained. Returns the adapter."""
    if importlib.util.find_spec("peft") is None:
        raise ModelError('low-rank training needs peft: pip install "clinometer[train]"')
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear", bias="none")
    with own_randomness(), warnings.catch_warnings():
        # GPT-2 keeps its matrices transposed; peft sees that, does what is needed, and warns of it
        warnings.filterwarnings("ignore", message="fan_in_fan_out")
        torch.manual_seed(seed_at(seed, "adapter"))
        return get_peft_model(model, config)


def merge_adapter(adapter: Any) -> None:
    """Add the matrices to the weights and take them away, in place: the model is an ordinary one again."""
    adapter.merge_and_unload()
