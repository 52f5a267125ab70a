"""Sentiment classifiers: how negative, neutral and positive a text is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from transformers import AutoModelForSequenceClassification

from clinometer.errors import ModelError, nearest
from clinometer.models.local.fast.products import speed_up_products
from clinometer.models.local.loading import load_tokenizer, load_with
from clinometer.models.local.text import Tokens
from clinometer.models.protocols import requests_of
from clinometer.models.providers.local import ModelSource
from clinometer.types import Classify, ClassifyAnswer, ModelInfo, ModelSpec, Request

CLASSES = ("negative", "neutral", "positive")

_SHORT = {"neg": "negative", "neu": "neutral", "pos": "positive"}


@final
class ClassifierModel:
    """Any sequence classifier whose labels are known to mean negative, neutral or positive.

    A text that is longer than the model's window is cut at its end.
    """

    def __init__(self, *, info: ModelInfo, model: Any, tokenizer: Any, classes: Sequence[str]) -> None:
        self.info = info
        self._model = model
        self._tokens = Tokens(tokenizer)
        self._columns = {name: [at for at, one in enumerate(classes) if one == name] for name in CLASSES}

    @classmethod
    def load(cls, source: ModelSource, spec: ModelSpec, device: torch.device) -> ClassifierModel:
        """Load the model and its tokenizer on the device; labels of unknown meaning are an error."""
        labels = [str(source.config.id2label[at]) for at in range(source.config.num_labels)]
        classes = classes_of(labels, spec.label_map, model=source.name)
        if source.config.problem_type == "multi_label_classification":
            raise ModelError(
                f"{source.name!r} judges each label on its own; expected labels that exclude each other"
            )
        tokenizer = load_tokenizer(source.tokenizer_folder, trust_remote_code=spec.trust_remote_code)
        settings = {"label_map": ", ".join(f"{a}={b}" for a, b in zip(labels, classes, strict=True))}
        loaded = load_with(
            tokenizer,
            AutoModelForSequenceClassification,
            source,
            spec,
            device,
            kind="classifier",
            settings=settings,
        )
        speed_up_products(loaded.model)
        if tokenizer.pad_token is None:  # GPT-like: any token will do, what follows the text is not read …
            tokenizer.pad_token = tokenizer.eos_token
        if loaded.model.config.pad_token_id is None:  # … as long as the model knows where the text ends
            loaded.model.config.pad_token_id = tokenizer.pad_token_id
        return cls(info=loaded.info, model=loaded.model, tokenizer=tokenizer, classes=classes)

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return the length in tokens of each text, after the cut at the window."""
        return [len(ids) for ids in self._encode(requests)["input_ids"]]

    @torch.inference_mode()
    def classify(self, batch: Sequence[Classify]) -> list[ClassifyAnswer]:
        """Return the probabilities of the three classes; NaN for one that has no label."""
        if not batch:
            return []
        encoded = self._encode(batch, padding=True, padding_side="right", return_tensors="pt")
        logits = self._model(**encoded.to(self._model.device)).logits
        return [self._answer(row) for row in logits.float().softmax(dim=1).tolist()]

    def _encode(self, requests: Sequence[Request], **options: Any) -> Any:
        asked = requests_of(Classify, requests, answered_by="a classifier")
        texts = [self._tokens.as_text(request.text) for request in asked]
        limit = {"truncation": True, "max_length": self.info.window} if self.info.window else {}
        return self._tokens.tokenizer(texts, **limit, **options)

    def _answer(self, row: Sequence[float]) -> ClassifyAnswer:
        # several labels may mean one class: one and two stars are both negative
        sums = {name: sum(row[at] for at in ats) if ats else math.nan for name, ats in self._columns.items()}
        return ClassifyAnswer(**sums)


def classes_of(labels: Sequence[str], label_map: Mapping[str, str], *, model: str) -> list[str]:
    """Return the class of each label: by the user's map, or by the labels' own names where those leave no doubt.

    >>> classes_of(["NEG", "POS"], {}, model="m")
    ['negative', 'positive']
    >>> classes_of(["1 star", "2 stars"], {"1 star": "negative", "2 stars": "positive"}, model="m")
    ['negative', 'positive']
    """
    if not label_map:
        names = [_SHORT.get(label.lower(), label.lower()) for label in labels]
        if {"negative", "positive"} <= set(names) <= set(CLASSES) and len(set(names)) == len(names):
            return names
        example = ",".join(f"{label}={_by_order(at, len(labels))}" for at, label in enumerate(labels))
        raise ModelError(
            f"the labels of {model!r} are {', '.join(labels)}, and what they mean is not known; say it: if they"
            f" rise from worst to best, with --label-map '{model}:{example}' (label_map in a spec)"
        )
    for label, name in label_map.items():
        if label not in labels:
            raise ModelError(f"the label map of {model!r} names {label!r}; {nearest(label, labels)}")
        if name not in CLASSES:
            raise ModelError(f"the label map of {model!r} maps {label!r} to {name!r}; {nearest(name, CLASSES)}")
    if absent := [label for label in labels if label not in label_map]:
        raise ModelError(f"the label map of {model!r} leaves out {', '.join(absent)}; map every label")
    if len(set(label_map.values())) < 2:
        raise ModelError(
            f"the label map of {model!r} maps every label to one class; expected at least two classes"
        )
    return [label_map[label] for label in labels]


def _by_order(place: int, labels: int) -> str:
    """Return the class of a label among labels that rise from worst to best, as stars do.

    >>> [_by_order(star, 5) for star in range(5)]
    ['negative', 'negative', 'neutral', 'positive', 'positive']
    >>> [_by_order(label, 2) for label in range(2)]
    ['negative', 'positive']
    """
    middle = (labels - 1) / 2
    return "neutral" if place == middle else "negative" if place < middle else "positive"
