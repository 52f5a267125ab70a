"""The model that a training begins with: loading it, adapting it by low-rank matrices, reading its logits."""

from __future__ import annotations

import copy
import importlib.util
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, final

import torch
from torch import Tensor
from torch.nn.functional import linear
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from clinometer.data.corpora import Document
from clinometer.errors import ModelError
from clinometer.models.builtin import PREFIX, entry
from clinometer.models.local.loading import load_tokenizer, load_with, pick_device, torch_dtype
from clinometer.models.local.masked import head_of, load_filler
from clinometer.models.local.text import Tokens
from clinometer.models.providers.local import built_as, resolve
from clinometer.train.randomness import own_randomness, seed_at
from clinometer.types import Dtype, ModelInfo, ModelKind, ModelSpec

_DOCUMENTS_AT_A_TIME = 256

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
    def computes_in(self) -> str:
        """The name of the number format, as a card has it."""
        return str(self.compute).removeprefix("torch.")

    @property
    def kind(self) -> ModelKind:
        """Whether it is a masked or a causal model."""
        return self.info.kind

    @property
    def pad_id(self) -> int:
        """The token that pads short rows; the model's own where it has one (RoBERTa counts positions by it).

        GPT-2 and Llama have none: attention does not look at the padding, so any token will do.
        """
        known = (self.model.config.pad_token_id, self.tokenizer.pad_token_id, 0)
        return int(next(pad for pad in known if pad is not None))


@final
class KeptBase:
    """A model that several trainings begin with: loaded once, and copied for each of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._untouched: BaseModel | None = None

    def copy(self, *, device: str, dtype: Dtype, kinds: tuple[TrainableKind, ...]) -> BaseModel:
        """Return the model as it was loaded, to be changed at will; all copies are for one device and dtype."""
        if self._untouched is None:
            self._untouched = load_base(self.name, device=device, dtype=dtype, kinds=kinds)
            self._untouched.model.to("cpu")
        untouched = self._untouched
        return replace(untouched, model=copy.deepcopy(untouched.model).to(untouched.device))

    def changed_in(self, trained: BaseModel) -> tuple[int, int]:
        """Return how many single weights of a trained copy differ from what they were, and how many there are."""
        before = dict(self._untouched.model.named_parameters()) if self._untouched else {}
        pairs = [(before[name], weight.detach().cpu()) for name, weight in trained.model.named_parameters()]
        return sum(int((was != now).sum()) for was, now in pairs), sum(now.numel() for _, now in pairs)


def load_base(
    name: str | KeptBase, *, device: str, dtype: Dtype, kinds: tuple[TrainableKind, ...] = ("masked",)
) -> BaseModel:
    """Load a model to be trained; ModelError for a kind not wanted, and for what cannot be trained here."""
    if isinstance(name, KeptBase):
        return name.copy(device=device, dtype=dtype, kinds=kinds)
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
    kind = built_as(source)
    if kind not in kinds:
        wanted = " and ".join(_EXAMPLES[one] for one in kinds)
        article = "an" if kind == "encoder" else "a"
        raise ModelError(
            f"{name!r} is {article} {kind} model; only {wanted} can be trained in this way: choose another model"
        )
    spec = ModelSpec(name=name, dtype="float32")
    if kind == "masked":
        loaded = load_filler(AutoModelForMaskedLM, source, spec, where, kind="masked")
    else:
        tokenizer = load_tokenizer(source.folder, trust_remote_code=False)
        loaded = load_with(tokenizer, AutoModelForCausalLM, source, spec, where, kind="causal")
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


def add_adapter(model: Any, *, rank: int, seed: int) -> Any:
    """Put low-rank matrices beside every linear layer, in place; they alone are trained. Returns the adapter."""
    if importlib.util.find_spec("peft") is None:
        raise ModelError('low-rank training needs peft: pip install "clinometer[train]"')
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear", bias="none")
    with own_randomness(), warnings.catch_warnings():
        # GPT-2 keeps its matrices transposed; peft sees that, does what is needed, and warns about it
        warnings.filterwarnings("ignore", message="fan_in_fan_out")
        torch.manual_seed(seed_at(seed, "adapter"))
        return get_peft_model(model, config)


def merge_adapter(adapter: Any) -> None:
    """Add the matrices to the weights and take them away, in place: the model is an ordinary one again."""
    adapter.merge_and_unload()


def logits_at(
    model: Any,
    *,
    ids: Tensor,
    attention: Tensor,
    at: tuple[Tensor, Tensor],
    compute: torch.dtype,
    words: Sequence[int] | None = None,
) -> Tensor:
    """Return the logits (places × words) at places (row, column) for some tokens of the vocabulary (None: all).

    The model is called as the audits call it, so training and audit see the same thing; in particular BART's
    decoder reads the masked text and not the labels.
    """
    options = {"use_cache": False} if model.config.is_encoder_decoder else {}
    head = head_of(model.config.model_type)
    with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=compute == torch.bfloat16):
        if head is None:
            logits = model(input_ids=ids, attention_mask=attention, **options).logits[at]
            return (logits if words is None else logits[:, list(words)]).float()  # type: ignore[no-any-return]
        hidden = head(model, model.base_model(input_ids=ids, attention_mask=attention, **options)[0][at])
        matrix = model.get_output_embeddings()
        bias = model.final_logits_bias[0] if hasattr(model, "final_logits_bias") else matrix.bias
        rows = slice(None) if words is None else list(words)
        return linear(hidden, matrix.weight[rows], None if bias is None else bias[rows]).float()


def token_ids(tokens: Tokens, documents: Sequence[Document]) -> Iterator[list[int]]:
    """Yield the token ids of each document, without special tokens; some hundred are encoded at a time."""
    for first in range(0, len(documents), _DOCUMENTS_AT_A_TIME):
        some = documents[first : first + _DOCUMENTS_AT_A_TIME]
        yield from tokens.first([tokens.as_text(document.text) for document in some])
