"""The built-in sentiment classifier: the packaged encoder, our low-rank changes to it, and a calibrated head."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import gelu, linear
from transformers import BertModel

from clinometer.models.builtin import folder_of
from clinometer.models.code import code_checksum
from clinometer.models.files import config_checksum, tokenizer_checksum, weights_checksum
from clinometer.models.local.encoder import mean_of_tokens
from clinometer.models.local.fast.products import speed_up_products
from clinometer.models.local.loading import load_tokenizer, load_weights
from clinometer.models.local.text import Tokens, pad
from clinometer.models.protocols import requests_of
from clinometer.models.providers.local import ModelSource, resolve
from clinometer.types import Classify, ClassifyAnswer, ModelInfo, ModelSpec, Request

NAME = "builtin:sentiment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How the adapter is to be used; its config.json."""

    front: int  # tokens kept from the start of a text that is too long; the rest of the window is from its end
    length: int
    scale: float  # calibration: p = sigmoid(scale · logit + shift)
    shift: float
    neutral_band: tuple[float, float]

    @classmethod
    def read(cls, folder: Path) -> Recipe:
        """Read it from the adapter's folder."""
        values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        low, high = values["neutral_band"]
        return cls(
            front=values["front"],
            length=values["length"],
            scale=values["calibration"]["scale"],
            shift=values["calibration"]["shift"],
            neutral_band=(low, high),
        )


@final
class SentimentModel:
    """Positive or negative, with calibrated probabilities; trained on film reviews, English, lower case.

    A binary classifier: `neutral` is NaN, and `info.settings` states the band of the positive probability within
    which a text should be called neither. Of a text longer than the window the middle is left out: reviews open
    with what the film is and close with the verdict.
    """

    def __init__(
        self, *, info: ModelInfo, encoder: Any, head: dict[str, Tensor], tokenizer: Any, recipe: Recipe
    ) -> None:
        self.info = info
        self._encoder = encoder
        self._head = head
        self._tokens = Tokens(tokenizer)
        self._recipe = recipe

    @classmethod
    def open(cls, spec: ModelSpec, device: torch.device) -> SentimentModel:
        """Load the packaged encoder, merge the adapter into it, and put both on the device."""
        folder = folder_of(NAME)
        recipe = Recipe.read(folder)
        # "auto" is float32 on a GPU, too: it is a small model
        encoder_spec = ModelSpec(name="builtin:encoder", dtype="float32" if spec.dtype == "auto" else spec.dtype)
        source = resolve(encoder_spec)
        has_weights = device.type != "meta"
        encoder = load_weights(_Encoder, source, encoder_spec, torch.device("cpu") if has_weights else device)
        dtype = encoder.dtype
        adapter = {name: tensor.float() for name, tensor in load_file(folder / "adapter.safetensors").items()}
        encoder.float()
        head = _merge(encoder, adapter) if has_weights else {}
        encoder.to(device=device, dtype=dtype)
        speed_up_products(encoder)
        return cls(
            info=_info(source, folder, encoder, recipe),
            encoder=encoder,
            head={name: tensor.to(device=device, dtype=dtype) for name, tensor in head.items()},
            tokenizer=load_tokenizer(source.folder, trust_remote_code=False),
            recipe=recipe,
        )

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return the length in tokens of each text, after the middle of a long one is left out."""
        return [len(ids) for ids in self._encode(requests)]

    @torch.inference_mode()
    def classify(self, batch: Sequence[Classify]) -> list[ClassifyAnswer]:
        """Return the calibrated probabilities of negative and positive."""
        if not batch:
            return []
        padded = pad(self._encode(batch), pad_id=self._tokens.tokenizer.pad_token_id)
        device = self._encoder.device
        attention = torch.from_numpy(padded.attention).to(device)
        hidden = self._encoder(
            input_ids=torch.from_numpy(padded.ids).to(device), attention_mask=attention
        ).last_hidden_state
        mean = mean_of_tokens(hidden, attention)
        inner = gelu(linear(mean, self._head["inner.weight"], self._head["inner.bias"]))
        logits = linear(inner, self._head["outer.weight"], self._head["outer.bias"])[:, 0].double()
        positive = torch.sigmoid(self._recipe.scale * logits + self._recipe.shift)
        return [ClassifyAnswer(negative=1.0 - p, neutral=math.nan, positive=p) for p in positive.tolist()]

    def _encode(self, requests: Sequence[Request]) -> list[NDArray[np.int32]]:
        asked = requests_of(Classify, requests, answered_by="a classifier")
        texts = [self._tokens.as_text(request.text) for request in asked]
        tokenizer = self._tokens.tokenizer
        room = self._recipe.length - 2
        front = self._recipe.front
        framed = []
        for ids in tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]:
            kept = ids if len(ids) <= room else ids[:front] + ids[front - room :]
            framed.append(np.array([tokenizer.cls_token_id, *kept, tokenizer.sep_token_id], dtype=np.int32))
        return framed


class _Encoder:
    """`BertModel` without the pooler that the sentence encoder does not have."""

    @staticmethod
    def from_pretrained(folder: Path, **options: Any) -> Any:
        return BertModel.from_pretrained(folder, add_pooling_layer=False, **options)


def _merge(encoder: Any, adapter: dict[str, Tensor]) -> dict[str, Tensor]:
    """Put the trained changes into the encoder's weights; return what is left: the head.

    `….up` (rows, rank) and `….down` (rank, columns) mean that up · down is added to the weight of that name; every
    other `encoder.` tensor replaces the encoder's own.
    """
    state = encoder.state_dict()
    for name, tensor in adapter.items():
        target = name.removeprefix("encoder.")
        if name.endswith(".up"):
            weight = target.removesuffix("up") + "weight"
            state[weight] = state[weight] + tensor @ adapter[name.removesuffix("up") + "down"]
        elif name.startswith("encoder.") and not name.endswith(".down"):
            state[target] = tensor
    encoder.load_state_dict(state, strict=True)
    return {name: tensor for name, tensor in adapter.items() if not name.startswith("encoder.")}


def _info(source: ModelSource, folder: Path, encoder: Any, recipe: Recipe) -> ModelInfo:
    both = weights_checksum(source.folder) + weights_checksum(folder)
    return ModelInfo(
        name=NAME,
        kind="classifier",
        family="bert",
        capabilities=("classify",),
        weights=hashlib.sha256(both.encode()).hexdigest(),
        tokenizer=tokenizer_checksum(source.folder),
        dtype=str(encoder.dtype).removeprefix("torch."),
        code=code_checksum("sentiment"),
        parameters=encoder.num_parameters(),
        window=recipe.length,
        settings={"config": config_checksum(folder), "neutral_band": "{:g} to {:g}".format(*recipe.neutral_band)},
    )
