"""The counterfactual paper's second step: a projection of a model's vectors to what they say about sentiment."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clinometer.models.load import load_model
from clinometer.models.local.text import Tokens, pad
from clinometer.train.base import BaseModel, load_base
from clinometer.train.labelling import LabelledPart, label_sentences, split_labelled
from clinometer.train.last_layers import caught_layers, mean_of_last_two
from clinometer.train.material import Material
from clinometer.train.processes import is_main_process, wait_for_all
from clinometer.train.progress import Quiet, TrainingProgress
from clinometer.train.projection import Projection
from clinometer.train.projection_files import load_projection, save_projection
from clinometer.train.projection_training import Examples, train_projection
from clinometer.train.work import refuse_other_settings
from clinometer.types import Dtype, ModelSpec

_LONGEST = 256  # tokens of a sentence; what comes after is not read
_TOKENS = {"cpu": 2_048, "cuda": 65_536}  # in one batch


@dataclass(frozen=True, slots=True, kw_only=True)
class LabellingSettings:
    """Which sentences the projection learns from."""

    scorer: str = "builtin:sentiment"
    sentences: int = 10_000  # to put to the scorer, drawn from the training documents
    threshold: float = 0.7  # on a scale from −1 to 1; what is nearer to 0 is left out
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SentimentProjection:
    """A fixed projection, of which model it was made, and how good it is."""

    projection: Projection
    base: str  # the checksum of the model's weights
    digest: str
    figures: Mapping[str, Any]

    def on(self, device: torch.device) -> Callable[[Tensor], Tensor]:
        """Return the hidden layer, which the regulariser compares, as a function on that device."""
        return self.projection.to(device).hidden


def fit_projection(
    model: str,
    material: Material,
    *,
    out: str | os.PathLike[str],
    settings: LabellingSettings | None = None,
    device: str = "auto",
    dtype: Dtype = "auto",
    progress: TrainingProgress | None = None,
) -> SentimentProjection:
    """Train the projection of a causal model and write it to the file `out`, or read it where it is there.

    Sentences of the training documents are labelled by a scorer; those it is sure about become examples, each with
    h̄ at its last token. DataError where one class has too few of them.
    """
    place, settings, progress = Path(out), settings or LabellingSettings(), progress or Quiet()
    base = load_base(model, device=device, dtype=dtype, kinds=("causal",))
    described: dict[str, str | int | float | bool] = {
        "base": base.info.weights,
        "corpus": material.split.training.digest,
        "dtype": str(base.compute).removeprefix("torch."),
        **asdict(settings),
    }
    if not place.exists() and is_main_process():
        _fit(base, material, settings, out=place, described=described, device=device, progress=progress)
    wait_for_all()
    saved = load_projection(place)
    refuse_other_settings(described, saved.notes["settings"], place=place, state="the projection was made")
    return SentimentProjection(
        projection=saved.projection,
        base=base.info.weights,
        digest=hashlib.sha256(place.read_bytes()).hexdigest(),
        figures=saved.notes["figures"],
    )


def _fit(
    base: BaseModel,
    material: Material,
    settings: LabellingSettings,
    *,
    out: Path,
    described: Mapping[str, str | int | float | bool],
    device: str,
    progress: TrainingProgress,
) -> None:
    scorer = load_model(ModelSpec(name=settings.scorer), device=device)
    labelled = label_sentences(
        material.any_sentences(at_most=settings.sentences, seed=settings.seed),
        scorer,
        threshold=settings.threshold,
        budget=_TOKENS[base.device.type],
        progress=progress,
    )
    split = split_labelled(labelled, seed=settings.seed)
    progress.note(
        f"{labelled.scorer} is sure about {labelled.positive:,} positive and {labelled.negative:,} negative of"
        f" {labelled.asked:,} sentences"
    )
    parts = [_examples(base, part, progress) for part in (split.training, split.validation, split.test)]
    trained = train_projection(parts[0], parts[1], parts[2], seed=settings.seed)
    figures = {**trained.figures, "scorer": labelled.scorer, "asked": labelled.asked}
    save_projection(out, trained.projection, {"settings": dict(described), "figures": figures})
    progress.note(f"sentiment projection: {figures['accuracy']:.1%} right on {figures['n']:,} held-out sentences")


def _examples(base: BaseModel, part: LabelledPart, progress: TrainingProgress) -> Examples:
    states = sentence_vectors(base, part.texts, progress)
    return Examples(states=states, labels=torch.tensor(part.labels))


@torch.inference_mode()
def sentence_vectors(base: BaseModel, texts: Sequence[str], progress: TrainingProgress) -> Tensor:
    """Return h̄ of each text at its last token (texts × width), on the CPU."""
    tokens = Tokens(base.tokenizer)
    encoded = tokens.first([tokens.as_text(text) for text in texts])
    longest = min(_LONGEST, base.info.window or _LONGEST)
    rows = [np.asarray([*tokens.start, *ids][:longest], np.int32) for ids in encoded]
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    progress.begin(f"vectors of {base.name}", total=len(rows), done=0, unit="sentence")
    vectors: list[Tensor] = [torch.empty(0)] * len(rows)
    first = 0
    while first < len(order):
        some = order[first:]
        fitting = sum(
            len(rows[index]) * (count + 1) <= _TOKENS[base.device.type] for count, index in enumerate(some)
        )
        some = some[: max(1, fitting)]  # lengths rise, and so do rows × longest
        for index, vector in zip(some, _vectors(base, [rows[index] for index in some]), strict=True):
            vectors[index] = vector
        progress.advance(len(some))
        first += len(some)
    progress.end()
    return torch.stack(vectors)


def _vectors(base: BaseModel, rows: Sequence[np.ndarray[Any, np.dtype[np.int32]]]) -> Tensor:
    padded = pad(rows, pad_id=base.pad_id)
    ids, attention = (torch.from_numpy(part).to(base.device) for part in (padded.ids, padded.attention))
    last = torch.tensor([len(row) - 1 for row in rows], device=base.device)
    in_bfloat16 = torch.autocast(base.device.type, torch.bfloat16, enabled=base.compute == torch.bfloat16)
    with in_bfloat16, caught_layers(base.model) as caught:
        base.model.base_model(input_ids=ids, attention_mask=attention, use_cache=False)
    return mean_of_last_two(caught, last).cpu()
