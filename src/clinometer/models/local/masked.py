"""Models that fill a blank from both sides: BERT and its relatives by masking, XLNet by permutation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast, final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import gelu
from transformers import AutoModelForMaskedLM, XLNetLMHeadModel

from clinometer.errors import ModelError
from clinometer.models.local.fast.layers import (
    attention_for,
    compile_layers,
    known_layers,
    own_last_layer,
    own_layers,
)
from clinometer.models.local.fast.products import speed_up_products
from clinometer.models.local.fast.transfers import send
from clinometer.models.local.loading import Loaded, load_tokenizer, load_with
from clinometer.models.local.readout import (
    Pending,
    Projection,
    begin_words,
    check_words,
    linear_projection,
    read_words,
    table_projection,
)
from clinometer.models.local.text import TextEncoder, Vocabulary, pad
from clinometer.models.protocols import requests_of
from clinometer.models.providers.local import ModelSource
from clinometer.questions import Requests
from clinometer.types import Fill, ModelInfo, ModelSpec, Request, WordAnswer


def _roberta_head(model: Any, hidden: Tensor) -> Tensor:
    head = model.lm_head
    return head.layer_norm(gelu(head.dense(hidden)))  # type: ignore[no-any-return]


def _albert_head(model: Any, hidden: Tensor) -> Tensor:
    head = model.predictions
    return head.LayerNorm(head.activation(head.dense(hidden)))  # type: ignore[no-any-return]


# What each family does to a hidden state before the vocabulary matrix. A family that is not here is asked by its
# plain forward pass, which projects every position: slower, and as correct.
_HEADS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "albert": _albert_head,
    "bart": lambda model, hidden: hidden,
    "bert": lambda model, hidden: model.cls.predictions.transform(hidden),
    "camembert": _roberta_head,
    "distilbert": lambda model, hidden: model.vocab_layer_norm(model.activation(model.vocab_transform(hidden))),
    "electra": lambda model, hidden: model.generator_predictions(hidden),
    "modernbert": lambda model, hidden: model.head(hidden),
    "mpnet": _roberta_head,
    "roberta": _roberta_head,
    "xlm-roberta": _roberta_head,
}


def head_of(family: str) -> Callable[[Any, Tensor], Tensor] | None:
    """Return what a family does to a hidden state before the vocabulary matrix; None where we do not know."""
    return _HEADS.get(family)


@final
class MaskedModel:
    """BERT and its relatives. The last layer and the vocabulary projection run at the mask only."""

    def __init__(self, *, info: ModelInfo, model: Any, tokenizer: Any) -> None:
        self.info = info
        self._model = model
        self._head = _HEADS.get(info.family)
        known = known_layers(model) if self._head else None
        self._last_layer = own_last_layer(known) if known else None
        if known and model.device.type == "cuda":
            compile_layers(known)
        elif known:
            own_layers(known)
        self._encoder = TextEncoder(tokenizer, window=info.window)
        self._vocabulary = Vocabulary(tokenizer)
        # the model tells padding by its own id where positions are counted (RoBERTa)
        config_pad = model.config.pad_token_id
        self._pad_id: int = next(pad for pad in (config_pad, tokenizer.pad_token_id, 0) if pad is not None)

    @classmethod
    def load(cls, source: ModelSource, spec: ModelSpec, device: torch.device) -> MaskedModel:
        """Load the model and its tokenizer on the device."""
        loaded = load_filler(AutoModelForMaskedLM, source, spec, device, kind="masked")
        speed_up_products(loaded.model)
        return cls(info=loaded.info, model=loaded.model, tokenizer=loaded.tokenizer)

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return the length in tokens of each request; raise RequestError for one that cannot be asked."""
        return self._encoder.fill_lengths(only_fills(requests))

    @property
    def runs_in_background(self) -> bool:
        """Whether the device goes on by itself while the next batch is prepared."""
        return bool(self._model.device.type == "cuda")

    def fill(self, batch: Sequence[Fill]) -> list[WordAnswer]:
        """Answer which words fit the mask of each text."""
        return list(self.launch(batch)()) if batch else []

    @torch.inference_mode()
    def launch(self, batch: Sequence[Request]) -> Pending:
        """Begin to answer a batch; what is returned waits for the answers."""
        fills = only_fills(batch)
        encoded = self._encoder.fill_matrix(fills, pad_id=self._pad_id)
        device = self._model.device
        # without padding there is nothing to mask, and attention without a mask is faster
        attention = None if encoded.attention is None else send(encoded.attention, device)
        blanks = send(encoded.blanks, device)
        ids = send(encoded.ids, device)
        with attention_for(ids) if self.runs_in_background else contextlib.nullcontext():
            projection, size = self._project(ids, attention, blanks)
        return begin_words(fills, projection, self._vocabulary, size=size, device=device)

    def _project(self, ids: Tensor, attention: Tensor | None, blanks: Tensor) -> tuple[Projection, int]:
        model = self._model
        options = {"use_cache": False} if model.config.is_encoder_decoder else {}
        at = (torch.arange(len(ids), device=ids.device), blanks)
        if self._head is None:
            logits = model(input_ids=ids, attention_mask=attention, **options).logits[at]
            return table_projection(logits), logits.shape[1]
        if self._last_layer is not None:
            self._last_layer.positions = blanks
        states = model.base_model(input_ids=ids, attention_mask=attention, **options)[0]
        hidden = self._head(model, states[at] if self._last_layer is None else states[:, 0])
        matrix = model.get_output_embeddings()
        bias = model.final_logits_bias[0] if hasattr(model, "final_logits_bias") else matrix.bias
        return linear_projection(hidden, matrix.weight, bias), matrix.weight.shape[0]


@final
class PermutedModel:
    """XLNet. The blanks are last in the permutation, so every other word is seen from either side of them."""

    def __init__(self, *, info: ModelInfo, model: Any, tokenizer: Any) -> None:
        self.info = info
        self._model = model
        self._encoder = TextEncoder(tokenizer, window=info.window)
        self._vocabulary = Vocabulary(tokenizer)
        self._mask_id: int = tokenizer.mask_token_id
        self._pad_id: int = tokenizer.pad_token_id

    @classmethod
    def load(cls, source: ModelSource, spec: ModelSpec, device: torch.device) -> PermutedModel:
        """Load the model and its tokenizer on the device."""
        loaded = load_filler(XLNetLMHeadModel, source, spec, device, kind="permuted")
        speed_up_products(loaded.model)
        return cls(info=loaded.info, model=loaded.model, tokenizer=loaded.tokenizer)

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return the length in tokens of each request; raise RequestError for one that cannot be asked."""
        return self._encoder.fill_lengths(only_fills(requests))

    @torch.inference_mode()
    def fill(self, batch: Sequence[Fill]) -> list[WordAnswer]:
        """Answer which words fit the mask of each text."""
        if not batch:
            return []
        encoded = self._encoder.fill(only_fills(batch))
        padded = pad([row.ids for row in encoded], pad_id=self._pad_id, left=True)
        rows, width = padded.ids.shape
        segments = np.zeros((rows, width), np.int64)
        end = self._encoder.tokens.end_types
        segments[:, width - len(end) :] = end
        # Nobody sees a blank: XLNet was never trained to read its mask token.
        hidden = np.broadcast_to((padded.ids == self._mask_id)[:, None, :], (rows, width, width))
        target = np.zeros((rows, 1, width), np.float32)
        blanks = [width - len(row.ids) + row.blank for row in encoded]
        target[np.arange(rows), 0, blanks] = 1

        device, dtype = self._model.device, self._model.dtype
        states = self._model.transformer(
            input_ids=torch.from_numpy(padded.ids).to(device),
            attention_mask=torch.from_numpy(padded.attention).to(device, dtype),
            token_type_ids=torch.from_numpy(segments).to(device),
            perm_mask=torch.from_numpy(hidden.astype(np.float32)).to(device, dtype),
            target_mapping=torch.from_numpy(target).to(device, dtype),
            use_mems=False,
        )[0][:, 0]
        matrix = self._model.lm_loss
        projection = linear_projection(states, matrix.weight, matrix.bias)
        return read_words(batch, projection, self._vocabulary, size=matrix.weight.shape[0], device=device)


def load_filler(
    auto_class: Any,
    source: ModelSource,
    spec: ModelSpec,
    device: torch.device,
    *,
    kind: Literal["masked", "permuted"],
) -> Loaded:
    """Load a model that fills blanks, and its tokenizer, on the device; a tokenizer without a mask is an error."""
    tokenizer = load_tokenizer(source.tokenizer_folder, trust_remote_code=spec.trust_remote_code)
    if tokenizer.mask_token_id is None:
        raise ModelError(f"the tokenizer of {source.name!r} has no mask token; a {kind} model needs one")
    return load_with(tokenizer, auto_class, source, spec, device, kind=kind)


def only_fills(requests: Sequence[Request]) -> Sequence[Fill]:
    """Return the requests, after checking that each is a `Fill` which can be asked."""
    if isinstance(requests, Requests) and requests.kind is Fill:
        asked = [requests.columns[name].values for name in ("words", "top_k", "normalise")]
        if all(len(values) == 1 for values in asked):  # one stands for all
            check_words(cast(Fill, requests[0]))
            return cast(Sequence[Fill], requests)
    fills = requests_of(Fill, requests, answered_by="a masked model")
    for fill in fills:
        check_words(fill)
    return cast(Sequence[Fill], requests) if isinstance(requests, Requests) else fills
