"""The model that a training begins with."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from clinometer.errors import ModelError
from clinometer.models.builtin import PREFIX, entry
from clinometer.models.load import CAPABILITIES, kind_of
from clinometer.models.local.loading import (
    Loaded,
    describe,
    load_tokenizer,
    load_weights,
    pick_device,
    torch_dtype,
)
from clinometer.models.local.masked import load_filler
from clinometer.models.local.text import window_of
from clinometer.models.providers.local import ModelSource, resolve
from clinometer.train.seeds import own_randomness, seed_at
from clinometer.types import Dtype, ModelInfo, ModelKind, ModelSpec

TrainableKind = Literal["masked", "causal"]

_EXAMPLES: dict[TrainableKind, str] = {
    "masked": "masked models (BERT and its relatives, such as builtin:masked)",
    "causal": "causal models (GPT-2, Llama and the like, such as builtin:causal)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModel:
    """A masked or causal model in float32, ready to be trained, and how it is computed.

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
    def kind(self) -> ModelKind:
        """Whether it is a masked or a causal model."""
        return self.info.kind

    @property
    def pad_id(self) -> int:
        """The token that fills up short rows; the model's own where it has one (RoBERTa counts by it).

        GPT-2 and Llama have none: attention does not look at what fills up, so that any token serves.
        """
        known = (self.model.config.pad_token_id, self.tokenizer.pad_token_id, 0)
        return int(next(pad for pad in known if pad is not None))


def load_base(
    name: str, *, device: str, dtype: Dtype, kinds: tuple[TrainableKind, ...] = ("masked",)
) -> BaseModel:
    """Load a model to be trained; ModelError for a kind not wanted, and for what cannot be trained here."""
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
    if kind not in kinds:
        wanted = " and ".join(_EXAMPLES[one] for one in kinds)
        article = "an" if kind == "encoder" else "a"
        raise ModelError(
            f"{name!r} is {article} {kind} model; only {wanted} can be trained so: choose another model"
        )
    spec = ModelSpec(name=name, dtype="float32")
    if kind == "masked":
        loaded = load_filler(AutoModelForMaskedLM, source, spec, where, kind="masked")
    else:
        loaded = _load_causal(source, spec, where)
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


def with_random_weights(base: BaseModel, *, seed: int) -> BaseModel:
    """Return a causal model of the same architecture with random weights, as before any training."""
    with own_randomness():
        torch.manual_seed(seed_at(seed, "weights"))
        fresh = AutoModelForCausalLM.from_config(base.model.config, dtype=torch.float32)
    fresh.generation_config = base.model.generation_config
    licence = f"weights that began as random numbers; tokenizer and configuration of {base.name}: see there"
    return replace(base, model=fresh.to(base.device).eval(), licence=licence)


def _load_causal(source: ModelSource, spec: ModelSpec, device: torch.device) -> Loaded:
    tokenizer = load_tokenizer(source.folder, trust_remote_code=spec.trust_remote_code)
    model = load_weights(AutoModelForCausalLM, source, spec, device)
    info = describe(
        source,
        kind="causal",
        capabilities=CAPABILITIES["causal"],
        dtype=model.dtype,
        parameters=model.num_parameters(),
        window=window_of(tokenizer, source.config),
    )
    return Loaded(info=info, model=model, tokenizer=tokenizer)
