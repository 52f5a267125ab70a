"""Sentence encoders: a vector of length 1 for each text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor
from transformers import AutoModel

from clinometer.errors import ModelError, reason
from clinometer.limits import parse_json, read_limited
from clinometer.models.local.fast.products import speed_up_products
from clinometer.models.local.loading import describe, load_tokenizer, load_weights
from clinometer.models.local.text import Tokens, window_of
from clinometer.models.protocols import requests_of
from clinometer.models.providers.local import ModelSource
from clinometer.types import Embed, EmbedAnswer, ModelInfo, ModelSpec, Request


def mean_of_tokens(hidden: Tensor, attention: Tensor) -> Tensor:
    """Return the mean vector of the tokens of each row; padding does not count."""
    weights = attention[:, :, None].to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1)


def _first(hidden: Tensor, attention: Tensor) -> Tensor:
    return hidden[:, 0]


def _last(hidden: Tensor, attention: Tensor) -> Tensor:
    return hidden[torch.arange(len(hidden), device=hidden.device), attention.sum(dim=1) - 1]


# How the vectors of the tokens become one, by the name that sentence-transformers gives it.
_POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": mean_of_tokens,
    "cls": _first,
    "lasttoken": _last,
}
_FLAGS = {"mean_tokens": "mean", "cls_token": "cls"}  # the names in older config files


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a folder of sentence-transformers says about its use: pooling, window (0: not said), letter case."""

    pooling: str = "mean"
    window: int = 0
    lower: bool = False


@final
class EncoderModel:
    """Any encoder, pooled as its folder says: over the mean of its tokens, or on the first or last one.

    A text that is longer than the model's window is cut at its end.
    """

    def __init__(self, *, info: ModelInfo, model: Any, tokenizer: Any, recipe: Recipe) -> None:
        self.info = info
        self._model = model
        self._tokens = Tokens(tokenizer)
        self._recipe = recipe
        if tokenizer.pad_token is None:  # what follows the text is masked: any token will do
            tokenizer.pad_token = tokenizer.eos_token

    @classmethod
    def load(cls, source: ModelSource, spec: ModelSpec, device: torch.device) -> EncoderModel:
        """Load the model and its tokenizer on the device."""
        recipe = recipe_of(source.folder, model=source.name)
        tokenizer = load_tokenizer(source.folder, trust_remote_code=spec.trust_remote_code)
        model = load_weights(_WithoutPooler, source, spec, device)
        if source.config.is_encoder_decoder:
            model = model.get_encoder()
        limits = [limit for limit in (window_of(tokenizer, source.config), recipe.window) if limit]
        info = describe(
            source,
            kind="encoder",
            capabilities=("embed",),
            dtype=model.dtype,
            parameters=model.num_parameters(),
            window=min(limits, default=0),
            settings={"pooling": recipe.pooling, "lower_case": str(recipe.lower).lower()},
        )
        speed_up_products(model)
        return cls(info=info, model=model, tokenizer=tokenizer, recipe=recipe)

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return the length in tokens of each text, after the cut at the window."""
        return [len(ids) for ids in self._encode(requests)["input_ids"]]

    @torch.inference_mode()
    def embed(self, batch: Sequence[Embed]) -> list[EmbedAnswer]:
        """Return a vector of length 1 for each text."""
        if not batch:
            return []
        encoded = self._encode(batch, padding=True, padding_side="right", return_tensors="pt").to(
            self._model.device
        )
        hidden = self._model(**encoded).last_hidden_state.float()
        vectors = _POOLINGS[self._recipe.pooling](hidden, encoded["attention_mask"])
        vectors = torch.nn.functional.normalize(vectors, dim=1)
        return [EmbedAnswer(vector=tuple(vector)) for vector in vectors.tolist()]

    def _encode(self, requests: Sequence[Request], **options: Any) -> Any:
        asked = requests_of(Embed, requests, answered_by="an encoder")
        texts = [self._tokens.as_text(request.text).strip() for request in asked]
        if self._recipe.lower:
            texts = [text.lower() for text in texts]
        limit = {"truncation": True, "max_length": self.info.window} if self.info.window else {}
        return self._tokens.tokenizer(texts, return_attention_mask=True, **limit, **options)


def recipe_of(folder: Path, *, model: str) -> Recipe:
    """Read how a folder of sentence-transformers wants its model used; a bare encoder is pooled by the mean."""
    try:
        return _recipe(folder, model=model)
    except (OSError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise ModelError(
            f"how {model!r} is to be pooled cannot be read from its modules.json, sentence_bert_config.json or"
            f" pooling config.json ({reason(error)}); copy or save the model again"
        ) from error


def _recipe(folder: Path, *, model: str) -> Recipe:
    pooling = "mean"
    for module in _read(folder / "modules.json", []):
        kind = str(module["type"]).rsplit(".", 1)[-1]
        if kind == "Pooling":
            pooling = _pooling_of(_read(folder / module["path"] / "config.json", {}), model=model)
        elif kind not in ("Transformer", "Normalize"):
            raise ModelError(
                f"{model!r} has a layer {kind!r} after its encoder, which is not supported;"
                " expected Transformer, Pooling and Normalize only"
            )
    settings = _read(folder / "sentence_bert_config.json", {})
    return Recipe(
        pooling=pooling,
        window=int(settings.get("max_seq_length") or 0),
        lower=bool(settings.get("do_lower_case", False)),
    )


def _pooling_of(config: dict[str, Any], *, model: str) -> str:
    flags = [
        name.removeprefix("pooling_mode_")
        for name, on in config.items()
        if name.startswith("pooling_mode_") and on
    ]
    named = config.get("pooling_mode")
    modes = [str(named)] if named else [_FLAGS.get(flag, flag) for flag in flags]
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        raise ModelError(
            f"{model!r} pools its tokens by {' and '.join(modes) or 'nothing'};"
            f" expected one of {', '.join(_POOLINGS)}"
        )
    return modes[0]


def _read(path: Path, otherwise: Any) -> Any:
    return parse_json(read_limited(path)) if path.is_file() else otherwise


class _WithoutPooler:
    """`AutoModel`, except that a pooler may be missing: it comes after the vectors that are read here."""

    @staticmethod
    def from_pretrained(folder: Path, **options: Any) -> tuple[Any, dict[str, Any]]:
        model, report = AutoModel.from_pretrained(folder, **options)
        report["missing_keys"] = [key for key in report["missing_keys"] if not key.startswith("pooler.")]
        return model, report
