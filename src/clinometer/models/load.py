"""Opens a model by name: finds its files and picks the adapter that fits."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from clinometer.errors import ModelError
from clinometer.models.builtin import folder_of
from clinometer.models.opinion_words import NAME as OPINION_WORDS
from clinometer.models.opinion_words import OpinionWordModel
from clinometer.types import ModelKind, ModelSpec

if TYPE_CHECKING:
    from clinometer.models.protocols import Model
    from clinometer.models.source import ModelSource

_ADAPTERS: dict[ModelKind, tuple[str, str]] = {
    "masked": ("masked", "MaskedModel"),
    "permuted": ("permuted", "PermutedModel"),
    "causal": ("causal", "CausalModel"),
    "classifier": ("classifier", "ClassifierModel"),
    "encoder": ("encoder", "EncoderModel"),
    "chat": ("chat", "ChatModel"),
}

# what the adapter of each kind offers
CAPABILITIES: dict[ModelKind, tuple[str, ...]] = {
    "masked": ("fill",),
    "permuted": ("fill",),
    "causal": ("next_word", "sample", "log_likelihood"),
    "classifier": ("classify",),
    "encoder": ("embed",),
    "chat": ("ask",),
}

# How an architecture's name ends tells its head; the first that fits decides.
_ENDINGS: dict[tuple[str, ...], ModelKind] = {
    ("XLNetLMHeadModel",): "permuted",
    ("ForMaskedLM", "BertForPreTraining", "AlbertForPreTraining"): "masked",
    ("ForCausalLM", "LMHeadModel"): "causal",
    ("ForSequenceClassification",): "classifier",
    ("Model",): "encoder",
}
# BART's published files name the bare model; its head is tied to the embeddings, so nothing is missing.
_BART = ("BartModel", "BartForConditionalGeneration")
_EXPECTED = (
    "…ForMaskedLM, XLNetLMHeadModel, …ForCausalLM, …LMHeadModel, …ForSequenceClassification or a bare …Model"
)


def load_model(spec: ModelSpec | str, *, device: str = "auto") -> Model:
    """Load a model: a hub id, a folder or a built-in name, with the adapter that its configuration calls for."""
    if isinstance(spec, str):
        spec = ModelSpec(name=spec)
    if _counts_words(spec):
        return OpinionWordModel.open(spec)

    from clinometer.models.source import pick_device, resolve

    where = pick_device(device)
    if spec.name == "builtin:sentiment":
        from clinometer.models.sentiment import SentimentModel

        return SentimentModel.open(spec, where)
    source = resolve(spec)
    module, adapter = _ADAPTERS[kind_of(source)]
    model: Model = getattr(importlib.import_module(f"clinometer.models.{module}"), adapter).load(
        source, spec, where
    )
    return model


def check_model(spec: ModelSpec) -> None:
    """Raise ModelError or DataError for a model that is not there or cannot be loaded safely; loads no weights."""
    if _counts_words(spec):
        OpinionWordModel.open(spec)
    elif spec.name == "builtin:sentiment":
        for name in (spec.name, "builtin:encoder"):
            folder_of(name)
    else:
        from clinometer.models.source import resolve

        resolve(spec)


def capabilities_of(spec: ModelSpec) -> tuple[str, ...]:
    """Return what a model will offer once it is loaded; loads no weights."""
    if _counts_words(spec) or spec.name == "builtin:sentiment":
        return CAPABILITIES["classifier"]
    from clinometer.models.source import resolve

    return CAPABILITIES[kind_of(resolve(spec))]


def _counts_words(spec: ModelSpec) -> bool:
    return spec.name == OPINION_WORDS or spec.name.startswith(f"{OPINION_WORDS}:")


def kind_of(source: ModelSource) -> ModelKind:
    """Return which adapter a model needs; the `architectures` field of its config.json decides."""
    if source.name == "builtin:chat":
        return "chat"
    # sentence-transformers leaves the architecture it started from in config.json, even where the head is gone
    if (source.folder / "modules.json").is_file():
        return "encoder"
    architecture = _architecture(source)
    if source.config.model_type == "bart" and architecture in _BART:
        return "masked"
    for endings, kind in _ENDINGS.items():
        if architecture.endswith(endings):
            return kind
    hint = (
        "; for ELECTRA take the generator, not the discriminator" if source.config.model_type == "electra" else ""
    )
    raise ModelError(
        f"config.json of {source.name!r} names the architecture {architecture!r}; expected {_EXPECTED}{hint}"
    )


def _architecture(source: ModelSource) -> str:
    named: object = source.config.architectures
    match named:
        case [str(first), *_]:
            return first
        case None | []:
            found = "names no architecture"
        case _:
            found = f"has {named!r} as architectures, which is no list of names"
    raise ModelError(
        f'config.json of {source.name!r} {found}; expected "architectures": [one name], with {_EXPECTED}'
    )
