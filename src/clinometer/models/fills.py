"""What the two kinds of model that fill a blank share: how they are loaded, what they are asked, what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from clinometer.errors import ModelError, RequestError
from clinometer.models.readout import check_words
from clinometer.models.source import ModelSource, describe
from clinometer.models.text import TextEncoder, window_of
from clinometer.models.tokens import load_tokenizer
from clinometer.models.weights import load_weights
from clinometer.types import Fill, ModelInfo, ModelSpec, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model and its tokenizer, and what identifies them."""

    info: ModelInfo
    model: Any
    tokenizer: Any


def load_filler(
    auto_class: Any,
    source: ModelSource,
    spec: ModelSpec,
    device: torch.device,
    *,
    kind: Literal["masked", "permuted"],
) -> Loaded:
    """Load a model that fills blanks, and its tokenizer, on the device; a tokenizer without a mask is an error."""
    tokenizer = load_tokenizer(source.folder, trust_remote_code=spec.trust_remote_code)
    if tokenizer.mask_token_id is None:
        raise ModelError(f"the tokenizer of {source.name!r} has no mask token; a {kind} model needs one")
    model = load_weights(auto_class, source, spec, device)
    info = describe(
        source,
        kind=kind,
        capabilities=("fill",),
        dtype=model.dtype,
        parameters=model.num_parameters(),
        window=window_of(tokenizer, source.config),
    )
    return Loaded(info=info, model=model, tokenizer=tokenizer)


def fill_costs(encoder: TextEncoder, requests: Sequence[Request]) -> list[int]:
    """Return the length in tokens of each request; raise RequestError for one that cannot be asked."""
    return encoder.fill_lengths(only_fills(requests))


def only_fills(requests: Sequence[Request]) -> list[Fill]:
    """Return the requests, after checking that each is a `Fill` which can be asked."""
    fills = []
    for request in requests:
        if not isinstance(request, Fill):
            raise RequestError(
                f"a masked model answers Fill requests, not {type(request).__name__}; choose another model"
            )
        check_words(request)
        fills.append(request)
    return fills
