"""Loads a model's weights and tokenizer, safely and completely, and describes what was loaded."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoTokenizer
from transformers.utils import logging

from clinometer.errors import ModelError, nearest, reason
from clinometer.models.code import code_checksum
from clinometer.models.files import (
    has_vocabulary,
    tuning_of,
    weight_files,
)
from clinometer.models.local.fitting import require_fitting_size
from clinometer.models.local.lora import merge_adapter
from clinometer.models.local.text import window_of
from clinometer.models.providers.adapters import files_identity
from clinometer.models.providers.local import ADAPTERS, CAPABILITIES, ModelSource
from clinometer.types import Dtype, ModelInfo, ModelKind, ModelSpec

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model and its tokenizer, and what identifies them."""

    info: ModelInfo
    model: Any
    tokenizer: Any


def load_with(
    tokenizer: Any,
    auto_class: Any,
    source: ModelSource,
    spec: ModelSpec,
    device: torch.device,
    *,
    kind: ModelKind,
    settings: Mapping[str, str] | None = None,
) -> Loaded:
    """Load the model that belongs to a tokenizer, and describe both."""
    model = load_weights(auto_class, source, spec, device)
    info = describe(
        source,
        kind=kind,
        capabilities=CAPABILITIES[kind],
        dtype=model.dtype,
        parameters=model.num_parameters(),
        window=window_of(tokenizer, source.config),
        settings=settings,
    )
    return Loaded(info=info, model=model, tokenizer=tokenizer)


def _placed(device: torch.device, *, quantised: bool, spread: bool) -> dict[str, Any]:
    """Say where weights are put as they are read; elsewhere they are moved afterwards."""
    if device.type == "meta":
        return {"device_map": "meta"}
    if spread:
        return {"device_map": "auto"}
    return {"device_map": {"": device}} if quantised else {}


def load_weights(auto_class: Any, source: ModelSource, spec: ModelSpec, device: torch.device) -> Any:
    """Load a model with all of its weights, ready to be asked on the device.

    A weight that the files do not have, or have in another shape, would be filled with random numbers: that is an
    error here. On the device "meta" the same is checked, and no weight is read.
    """
    dtype = torch_dtype(spec.dtype, device)
    _require_sound_files(source)
    # a quantised model is put on its device as it is read, and may not be moved afterwards
    quantised = bool(getattr(source.config, "quantization_config", None))
    try:
        with quiet():
            require_fitting_size(auto_class, source, trust_remote_code=spec.trust_remote_code)
            model, report = auto_class.from_pretrained(
                source.folder,
                config=source.config,
                dtype=dtype,
                trust_remote_code=spec.trust_remote_code,
                use_safetensors=True,
                ignore_mismatched_sizes=True,  # they are in the report, by name
                output_loading_info=True,
                **_placed(device, quantised=quantised, spread=source.spread),
            )
    except (MemoryError, ModelError):
        raise
    except Exception as error:  # transformers raises anything for a configuration that describes no model
        raise ModelError(
            f"no model can be made of config.json and the weights of {source.name!r} ({reason(error)});"
            " check that config.json is the one that was saved with the weights"
        ) from error
    if misfits := sorted(report["mismatched_keys"]):
        shapes = [f"{name}: {_shape(saved)}, not {_shape(wanted)}" for name, saved, wanted in misfits[:3]]
        raise ModelError(
            f"config.json of {source.name!r} does not fit the weights, {len(misfits)} of which have another shape"
            f" than it says ({'; '.join(shapes)}{'; …' if len(misfits) > 3 else ''});"
            " put back the config.json that was saved with them"
        )
    if missing := sorted(report["missing_keys"]):
        raise ModelError(
            f"the weights of {source.name!r} lack {len(missing)} parts that {type(model).__name__} needs"
            f" ({', '.join(missing[:3])}{', …' if len(missing) > 3 else ''});"
            " choose a model that was saved with this head"
        )
    if source.adapter is not None:
        model = merge_adapter(model, source.adapter, source.name)
    return model.eval() if quantised or source.spread else model.to(device).eval()


def load_tokenizer(folder: Path, *, trust_remote_code: bool) -> Any:
    """Load the tokenizer of a model folder; a folder without a sound one is an error."""
    if not has_vocabulary(folder) and not trust_remote_code:
        raise ModelError(
            f"no tokenizer in {str(folder)!r}: expected tokenizer.json, vocab.txt or a sentencepiece .model;"
            " save it there with save_pretrained()"
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
        if not isinstance(tokenizer.model_max_length, int | float):
            raise ValueError(f"its model_max_length is {tokenizer.model_max_length!r}, which is not a number")
    except Exception as error:  # damaged files make the libraries raise anything, even a bare Exception
        raise ModelError(
            f"no tokenizer can be loaded from {str(folder)!r} ({reason(error)});"
            " save it there with save_pretrained()"
        ) from error
    return tokenizer


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
    files = files_identity(source.folder, source.adapter, own_code=source.own_code)
    return ModelInfo(
        name=source.name,
        kind=kind,
        family=source.config.model_type,
        capabilities=capabilities,
        weights=files["weights"],
        tokenizer=files["tokenizer"],
        dtype=str(dtype).removeprefix("torch."),
        code=code_checksum(ADAPTERS[kind][0]),
        parameters=parameters,
        window=window,
        settings={**files["settings"], **(settings or {})},
        tuning=tuning_of(source.adapter or source.folder),
    )


def torch_dtype(dtype: Dtype, device: torch.device) -> torch.dtype:
    """Return the number format to compute in; "auto" is bfloat16 on a GPU and float32 on a CPU."""
    if dtype == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if dtype not in _DTYPES:
        raise ModelError(f"no number format {dtype!r}; {nearest(dtype, ['auto', *_DTYPES])}")
    return _DTYPES[dtype]


def pick_device(device: str) -> torch.device:
    """Return the device of that name; "auto" is the first GPU where there is one, else the CPU.

    "gpus" is all GPUs that this process sees; the first of them reads the questions.
    """
    available = ["cpu"]
    if torch.cuda.is_available():
        available += ["cuda", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        available.append("mps")
    if device == "auto":
        return torch.device("cuda" if "cuda" in available else "cpu")
    if device in ("gpu", "gpus"):
        if available == ["cpu"]:
            raise ModelError("torch finds no GPU on this machine; leave --device out, or give --device cpu")
        device = available[1]
    if device not in available:
        raise ModelError(f"no device {device!r} on this machine; {nearest(device, ['auto', *available])}")
    return torch.device(device)


def _require_sound_files(source: ModelSource) -> None:
    """Read the header of every file, so that one that is cut short is named."""
    for path in weight_files(source.folder):
        try:
            with safe_open(path, framework="pt"):
                pass
        except (SafetensorError, OSError) as error:
            raise ModelError(
                f"the weights of {source.name!r} cannot be read: {path.name} is missing, cut short or damaged"
                f" ({reason(error)}); copy or download the model again"
            ) from error


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from printing bars and logs of its own; what matters in them is raised as an error."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
