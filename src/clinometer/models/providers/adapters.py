"""LoRA adapters on disk: a few matrices that belong to a base model, and name it. No torch here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clinometer.errors import ModelError
from clinometer.limits import parse_json, read_limited
from clinometer.models.builtin import absent_packages
from clinometer.models.files import (
    checksum,
    has_vocabulary,
    identifying_settings,
    tokenizer_checksum,
    weight_files,
    weights_checksum,
)

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"


def is_adapter(folder: Path) -> bool:
    """Tell whether a folder holds an adapter instead of a whole model."""
    return (folder / CONFIG).exists()


def base_of(folder: Path, name: str) -> str:
    """Return the name of the model that an adapter was made for; ModelError for one that cannot be used safely."""
    fields = _config(folder, name)
    if (kind := fields.get("peft_type")) != "LORA":
        raise ModelError(
            f"{name!r} is an adapter of type {kind!r}; only LoRA adapters are merged here: merge it with peft's"
            " merge_and_unload(), save the result and give that folder"
        )
    if not (folder / WEIGHTS).is_file():
        pickled = sorted(path.name for path in folder.glob("adapter_model.*") if path.suffix != ".safetensors")
        found = f"only {', '.join(pickled)}, which can run code when it is read" if pickled else "none"
        raise ModelError(
            f"no safetensors weights for the adapter {name!r}: found {found};"
            " if you trust it, load it once with peft and save it again with save_pretrained()"
        )
    base = fields.get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise ModelError(f"{name!r} is an adapter whose {CONFIG} does not name its base model; write it there")
    if absent_packages("peft"):
        raise ModelError(
            f'{name!r} is an adapter, for which peft is needed and not installed: pip install "clinometer[train]"'
        )
    beside = folder / Path(base).expanduser()  # a relative path, as seen from the adapter
    return str(beside) if beside.is_dir() else base


def _config(folder: Path, name: str) -> dict[str, Any]:
    try:
        fields = parse_json(read_limited(folder / CONFIG))
    except (OSError, ValueError) as error:
        raise ModelError(f"{CONFIG} of {name!r} cannot be read: {error}; save the adapter again") from error
    if not isinstance(fields, dict):
        raise ModelError(f"{CONFIG} of {name!r} is not a table of settings; save the adapter again")
    return fields


def files_identity(folder: Path, adapter: Path | None, *, own_code: bool) -> dict[str, Any]:
    """Return those fields of a model's `ModelInfo` that its files tell; of a LoRA adapter, with its base's."""
    settings = identifying_settings(folder, own_code=own_code)
    if adapter is None:
        return {
            "weights": weights_checksum(folder),
            "tokenizer": tokenizer_checksum(folder),
            "settings": settings,
        }
    return {
        "weights": checksum(*weight_files(folder), adapter / WEIGHTS),
        "tokenizer": tokenizer_checksum(adapter if has_vocabulary(adapter) else folder),
        "settings": {**settings, "adapter": checksum(adapter / CONFIG)},
    }
