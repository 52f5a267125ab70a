"""Merges a LoRA adapter into the model that it was made for."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from safetensors import safe_open

from clinometer.errors import ModelError, reason
from clinometer.models.providers.adapters import WEIGHTS


def merge_adapter(model: Any, folder: Path, name: str) -> Any:
    """Return the model with the adapter's matrices added to its own.

    A matrix that the file lacks would be left as peft begins it, which changes nothing and would pass for the
    adapter; one that finds no place would be dropped. Both are errors here.
    """
    from peft import PeftModel, get_peft_model_state_dict

    with safe_open(folder / WEIGHTS, framework="pt") as file:
        saved = set(file.keys())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters in them is compared below
            adapted = PeftModel.from_pretrained(model, str(folder))
            wanted = set(get_peft_model_state_dict(adapted))
    except MemoryError:
        raise
    except Exception as error:  # peft raises anything for settings that do not fit the model
        raise ModelError(
            f"the adapter {name!r} does not fit its base model ({reason(error)});"
            " check that base_model_name_or_path in its adapter_config.json names the right one"
        ) from error
    if saved != wanted:
        lacking, idle = sorted(wanted - saved), sorted(saved - wanted)
        raise ModelError(
            f"the adapter {name!r} does not fit its base model: {len(lacking)} parts are missing from {WEIGHTS},"
            f" and {len(idle)} find no place ({', '.join([*lacking, *idle][:3])}, …);"
            " check that base_model_name_or_path in its adapter_config.json names the right one"
        )
    return adapted.merge_and_unload()
