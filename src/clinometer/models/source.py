"""Where a model comes from: a folder, the hub or a built-in name; and what identifies the files found there."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoConfig, PretrainedConfig

from clinometer.errors import ModelError, nearest
from clinometer.models.builtin import PREFIX, folder_of, known_checksum
from clinometer.models.reasons import reason
from clinometer.models.tuning import tuning_of
from clinometer.types import Dtype, ModelInfo, ModelKind, ModelSpec

# What is fetched from the hub. Pickled weights are never fetched; Python files only with the user's permission.
_HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.codes", "*.tiktoken", "*.jinja"]
_WEIGHTS, _WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
_PICKLED = (".bin", ".pt", ".pth", ".ckpt")
_VOCABULARY_FILES = re.compile(r"(tokenizer|tekken)\.json|(vocab|merges).*|.*\.(model|codes|tiktoken)")
_TOKENIZER_SETTINGS = re.compile(r"(tokenizer_config|special_tokens|added_tokens|chat_template).*")
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """A model's files on this machine, and the configuration read from them."""

    name: str
    folder: Path
    config: PretrainedConfig


def resolve(spec: ModelSpec) -> ModelSource:
    """Find the files of a model and check that they can be loaded safely; nothing is loaded yet."""
    folder = _folder_of(spec)
    try:
        _require_safe_weights(folder, spec.name)
    except OSError as error:
        raise ModelError(f"{str(folder)!r} cannot be read: {error.strerror}; make it readable") from error
    return ModelSource(name=spec.name, folder=folder, config=_read_config(folder, spec))


def weight_files(folder: Path) -> list[Path]:
    """Return the files that a model's weights are loaded from, by name.

    That is model.safetensors; or the parts that model.safetensors.index.json names; or, in a folder with neither,
    every .safetensors file. What lies in folders below (earlier checkpoints, exports) is not loaded.
    """
    whole, index = folder / _WEIGHTS, folder / _WEIGHTS_INDEX
    if whole.is_file():
        return [whole]
    if not index.is_file():
        return sorted(folder.glob("*.safetensors"))
    try:
        names = {str(name) for name in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{str(index)!r} does not say in which files the weights are ({reason(error)}); save the model again"
        ) from error
    return [folder / name for name in sorted(names)]


def weights_checksum(folder: Path) -> str:
    """Return the SHA-256 of the weights: of `weight_files`, one after the other."""
    files = weight_files(folder)
    known = known_checksum(files[0]) if len(files) == 1 else ""
    return known or _sha256(files)


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the files that a model's tokenizer is loaded from, by name."""
    patterns = (_VOCABULARY_FILES, _TOKENIZER_SETTINGS)
    files = [path for path in folder.iterdir() if any(pattern.fullmatch(path.name) for pattern in patterns)]
    return sorted(path for path in files if path.is_file())


def tokenizer_checksum(folder: Path) -> str:
    """Return the SHA-256 of the tokenizer files, names included."""
    return _sha256(tokenizer_files(folder), names=True)


def has_vocabulary(folder: Path) -> bool:
    """Tell whether a tokenizer's vocabulary is there; without one transformers makes up an empty tokenizer."""
    return any(_VOCABULARY_FILES.fullmatch(path.name) and path.is_file() for path in folder.iterdir())


def config_checksum(folder: Path) -> str:
    """Return the SHA-256 of config.json: the same weights answer otherwise with another number of heads."""
    return _sha256([folder / "config.json"])


@functools.cache
def code_checksum() -> str:
    """Return the SHA-256 of the source of this room: other adapters may answer otherwise."""
    return _sha256(sorted(Path(__file__).parent.glob("*.py")), names=True)


def describe(
    source: ModelSource,
    *,
    kind: ModelKind,
    capabilities: tuple[str, ...],
    dtype: torch.dtype,
    parameters: int,
    window: int,
    settings: Mapping[str, str] | None = None,
) -> ModelInfo:
    """Return what identifies a loaded model, checksums included."""
    return ModelInfo(
        name=source.name,
        kind=kind,
        family=source.config.model_type,
        capabilities=capabilities,
        weights=weights_checksum(source.folder),
        tokenizer=tokenizer_checksum(source.folder),
        dtype=str(dtype).removeprefix("torch."),
        code=code_checksum(),
        parameters=parameters,
        window=window,
        settings={"config": config_checksum(source.folder), **(settings or {})},
        tuning=tuning_of(source.folder),
    )


def torch_dtype(dtype: Dtype, device: torch.device) -> torch.dtype:
    """Return the number format to compute in; "auto" is bfloat16 on a GPU and float32 on a CPU."""
    if dtype == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if dtype not in _DTYPES:
        raise ModelError(f"no number format {dtype!r}; {nearest(dtype, ['auto', *_DTYPES])}")
    return _DTYPES[dtype]


def pick_device(device: str) -> torch.device:
    """Return the device of that name; "auto" is the first GPU where there is one, else the CPU."""
    available = ["cpu"]
    if torch.cuda.is_available():
        available += ["cuda", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        available.append("mps")
    if device == "auto":
        return torch.device("cuda" if "cuda" in available else "cpu")
    if device not in available:
        raise ModelError(f"no device {device!r} on this machine; {nearest(device, ['auto', *available])}")
    return torch.device(device)


def _folder_of(spec: ModelSpec) -> Path:
    if spec.name.startswith(PREFIX):
        return folder_of(spec.name)
    folder = Path(spec.name).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_file():
        raise ModelError(f"{spec.name!r} is a file; give the folder that holds config.json and model.safetensors")
    if not _HUB_ID.fullmatch(spec.name) or spec.name.startswith("."):
        raise ModelError(
            f"no model {spec.name!r}: there is no such folder; give a folder, a hub id such as"
            " 'google-bert/bert-base-uncased', or a built-in name such as 'builtin:causal'"
        )
    return _download(spec)


def _download(spec: ModelSpec) -> Path:
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    patterns = [*_HUB_FILES, "*.py"] if spec.trust_remote_code else _HUB_FILES
    try:
        return Path(snapshot_download(spec.name, allow_patterns=patterns))
    except LocalEntryNotFoundError as error:
        reason = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else "the hub cannot be reached"
        raise ModelError(
            f"no model {spec.name!r}: it is neither a folder here nor in the hub cache, and {reason};"
            " copy the model to this machine and give its folder"
        ) from error
    except GatedRepoError as error:
        raise ModelError(
            f"the hub gives {spec.name!r} only to who accepts its terms: do so on its page, then `hf auth login`"
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ModelError(
            f"no model {spec.name!r}: there is no such folder here and no such public model on the hub"
        ) from error
    except HfHubHTTPError as error:
        raise ModelError(f"the hub refused {spec.name!r}: {error}; try again, or give a folder") from error


def _require_safe_weights(folder: Path, name: str) -> None:
    if (folder / "adapter_config.json").exists():  # transformers would fetch and load the model it was made for
        raise ModelError(
            f"{name!r} is an adapter (it has adapter_config.json), not a whole model;"
            " merge it with peft's merge_and_unload(), save the result and give that folder"
        )
    if not (folder / "config.json").exists():
        raise ModelError(
            f"no model in {name!r}: there is no config.json in that folder;"
            " expected what save_pretrained() writes: config.json, model.safetensors and the tokenizer"
        )
    if any((folder / file).is_file() for file in (_WEIGHTS, _WEIGHTS_INDEX)):
        return
    if named := sorted(path.name for path in folder.glob("*.safetensors") if path.is_file()):
        raise ModelError(
            f"no weights for {name!r} under the name that is loaded: found {', '.join(named)};"
            f" expected {_WEIGHTS}, or {_WEIGHTS_INDEX} and the parts that it names"
        )
    pickled = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLED)
    found = (
        f"only pickled weights ({', '.join(pickled)}), which can run code when they are read"
        if pickled
        else "none"
    )
    raise ModelError(
        f"no safetensors weights for {name!r}: found {found};"
        " if you trust it, convert it once and give the new folder:"
        ' python -c "from transformers import AutoModelForMaskedLM as M, AutoTokenizer as T;'
        f" [part.from_pretrained({name!r}).save_pretrained('converted') for part in (M, T)]\""
        " (with AutoModelForCausalLM for a causal model)"
    )


def _read_config(folder: Path, spec: ModelSpec) -> PretrainedConfig:
    try:
        raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(
            f"config.json of {spec.name!r} cannot be read: {error.strerror}; make it a readable file"
        ) from error
    except ValueError as error:
        raise ModelError(f"config.json of {spec.name!r} is not JSON: {error}; save the model again") from error
    fields: dict[str, Any] = raw if isinstance(raw, dict) else {}
    if fields.get("transformers_weights"):  # transformers would load that file, whatever it is
        raise ModelError(
            f"config.json of {spec.name!r} names its own weight file, {fields['transformers_weights']!r};"
            " expected model.safetensors: rename it, and take transformers_weights out of config.json"
        )
    model_type = fields.get("model_type")
    known = isinstance(model_type, str) and model_type in CONFIG_MAPPING
    if not known and "auto_map" in fields and not spec.trust_remote_code:
        raise ModelError(
            f"{spec.name!r} brings its own Python code, which would be run on this machine;"
            " read it, and allow it for this model with trust_remote_code if you trust it"
        )
    if not known and "auto_map" not in fields:
        raise ModelError(
            f"config.json of {spec.name!r} has model_type {model_type!r}, which this transformers does not know;"
            " upgrade transformers or choose another model"
        )
    try:
        return AutoConfig.from_pretrained(folder, trust_remote_code=spec.trust_remote_code)
    except Exception as error:  # a wrong value makes transformers raise anything
        raise ModelError(
            f"config.json of {spec.name!r} has a value that transformers refuses ({reason(error)});"
            " correct it, or save the model again"
        ) from error


def _sha256(files: Iterable[Path], *, names: bool = False) -> str:
    digest = hashlib.sha256()
    for path in files:
        if names:
            digest.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
