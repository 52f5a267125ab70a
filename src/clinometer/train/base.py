"""The model that a training begins with."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForMaskedLM

from clinometer.errors import ModelError
from clinometer.models.builtin import PREFIX, entry
from clinometer.models.fills import load_filler
from clinometer.models.load import kind_of
from clinometer.models.source import pick_device, resolve, torch_dtype
from clinometer.types import Dtype, ModelInfo, ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModel:
    """A masked model in float32, ready to be trained, and how it is computed.

    `compute` is float32 or, with bfloat16, autocast: the weights themselves are always trained in float32.
    """

    info: ModelInfo
    folder: Path
    model: Any
    tokenizer: Any
    device: torch.device
    compute: torch.dtype
    licence: str

    @property
    def name(self) -> str:
        """What to call the model: a folder by its last part, so that the name does not depend on the place."""
        return self.info.name if self.info.name.startswith(PREFIX) else Path(self.info.name).name

    @property
    def pad_id(self) -> int:
        """The token that fills up short rows; the model's own where it has one (RoBERTa counts by it)."""
        known = (self.model.config.pad_token_id, self.tokenizer.pad_token_id, 0)
        return int(next(pad for pad in known if pad is not None))


def load_base(name: str, *, device: str, dtype: Dtype) -> BaseModel:
    """Load a masked model to be trained; ModelError for any other kind, and for what cannot be trained here."""
    if importlib.util.find_spec("accelerate") is None:
        raise ModelError('training needs accelerate: pip install "clinometer[train]"')
    where = pick_device(device)
    if where.type == "cuda" and where.index:
        raise ModelError(
            f"training runs on the first GPU, not on {device};"
            f" set CUDA_VISIBLE_DEVICES={where.index} and give --device cuda"
        )
    compute = torch_dtype(dtype, where)
    if compute == torch.float16:
        raise ModelError("float16 cannot be trained without loss scaling; choose float32 or bfloat16")
    source = resolve(ModelSpec(name=name))
    kind = kind_of(source)
    if kind != "masked":
        raise ModelError(
            f"{name!r} is a {kind} model; only masked models (BERT and its relatives) can be tuned so,"
            " such as builtin:masked"
        )
    loaded = load_filler(AutoModelForMaskedLM, source, ModelSpec(name=name, dtype="float32"), where, kind="masked")
    licence = (
        f"{entry(name).licence} (of the weights it began with)"
        if name.startswith(PREFIX)
        else "as the model it began with (see there)"
    )
    return BaseModel(
        info=loaded.info,
        folder=source.folder,
        model=loaded.model,
        tokenizer=loaded.tokenizer,
        device=where,
        compute=compute,
        licence=licence,
    )
