"""The counterfactual paper's second step: a projection of a model's vectors to what they say about sentiment."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clinometer.engine.progress import Progress, Silent
from clinometer.errors import DataError, InputError, ModelError
from clinometer.models.load import load_model
from clinometer.models.local.text import Tokens, pad
from clinometer.models.protocols import CanClassify, Model
from clinometer.train.base import BaseModel, KeptBase, load_base
from clinometer.train.checkpoints import refuse_other_settings
from clinometer.train.material import Material
from clinometer.train.processes import is_main_process, wait_for_all
from clinometer.train.projection import Examples, Projection, load_projection, save_projection, train_projection
from clinometer.train.randomness import rng_at
from clinometer.train.regularisers import caught_layers, mean_of_last_two
from clinometer.train.settings import LabellingSettings
from clinometer.types import Classify, ClassifyAnswer, Dtype, ModelSpec

_LONGEST = 256  # tokens of a sentence; what comes after is not read
_TOKENS = {"cpu": 2_048, "cuda": 65_536}  # in one batch
NEGATIVE, POSITIVE = 0, 1
_WINDOW = 4_096  # sentences that are sorted by length together
_CPU_TOKENS = 2_048  # padded tokens in a batch that keep a CPU busy
_LEAST = 50  # sentences to choose an epoch by, and to measure accuracy on


@dataclass(frozen=True, slots=True, kw_only=True)
class SentimentProjection:
    """A fixed projection, the model it belongs to, and how good it is."""

    projection: Projection
    base: str  # the checksum of the model's weights
    digest: str
    figures: Mapping[str, Any]

    def on(self, device: torch.device) -> Callable[[Tensor], Tensor]:
        """Return the hidden layer, which the regulariser compares, as a function on that device."""
        return self.projection.to(device).hidden


def fit_projection(
    model: str | KeptBase,
    material: Material,
    *,
    out: str | os.PathLike[str],
    settings: LabellingSettings | None = None,
    device: str = "auto",
    dtype: Dtype = "auto",
    progress: Progress | None = None,
) -> SentimentProjection:
    """Train the projection of a causal model and write it to the file `out`, or read it if it is there.

    Sentences of the training documents are labelled by a scorer; those it is sure about become examples, each with
    h̄ at its last token. DataError where one class has too few of them.
    """
    place, settings, progress = Path(out), settings or LabellingSettings(), progress or Silent()
    base = load_base(model, device=device, dtype=dtype, kinds=("causal",))
    described: dict[str, str | int | float | bool] = {
        "base": base.info.weights,
        "corpus": material.split.training.digest,
        "dtype": base.computes_in,
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
    progress: Progress,
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


def _examples(base: BaseModel, part: LabelledPart, progress: Progress) -> Examples:
    states = sentence_vectors(base, part.texts, progress)
    return Examples(states=states, labels=torch.tensor(part.labels))


@torch.inference_mode()
def sentence_vectors(base: BaseModel, texts: Sequence[str], progress: Progress) -> Tensor:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Sentences that a scorer calls clearly positive (1) or negative (0), in the order in which they came."""

    texts: tuple[str, ...]
    labels: tuple[int, ...]
    asked: int  # different sentences that the scorer was asked about
    scorer: str
    threshold: float

    @property
    def positive(self) -> int:
        """How many are positive."""
        return self.labels.count(POSITIVE)

    @property
    def negative(self) -> int:
        """How many are negative."""
        return self.labels.count(NEGATIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPart:
    """A part of the labelled sentences, with as many positive (1) as negative (0) ones."""

    texts: tuple[str, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSplit:
    """Sentences to train on, to choose the best epoch by and to measure accuracy on; no text is in two parts."""

    training: LabelledPart
    validation: LabelledPart
    test: LabelledPart


def label_sentences(
    sentences: Sequence[str],
    scorer: Model,
    *,
    threshold: float = 0.7,
    budget: int = _CPU_TOKENS,
    progress: Progress | None = None,
) -> Labelled:
    """Ask a classifier for the sentiment of each sentence and keep those whose score is far from 0.

    Huang et al. 2020, appendix B: only sentences with |score| > 0.7 on a scale from −1 to 1, and no neutral ones,
    which made the projection worse. Sentences that differ only in case and spaces are asked once.

    Args:
        sentences: of any number.
        scorer: any model that can classify.
        threshold: the score must be further from 0 than this.
        budget: padded tokens in one batch; a GPU wants many more than a CPU.
        progress: hears of every batch.
    """
    if not 0 <= threshold < 1:
        raise InputError(f"threshold = {threshold} is not valid; expected 0 or more and less than 1")
    if not (isinstance(scorer, CanClassify) and "classify" in scorer.info.capabilities):
        raise ModelError(
            f"{scorer.info.name!r} cannot judge sentiment; expected a classifier such as builtin:sentiment"
        )
    distinct = _without_repeats(sentences)
    listener = progress or Silent()
    listener.begin(f"labels by {scorer.info.name}", total=len(distinct), done=0, unit="sentence")
    texts: list[str] = []
    labels: list[int] = []
    for first in range(0, len(distinct), _WINDOW):
        window = distinct[first : first + _WINDOW]
        requests = [Classify(text=text) for text in window]
        scores = np.full(len(window), np.nan)
        for batch in _batches(scorer.cost(requests), budget=budget):
            answers = scorer.classify([requests[at] for at in batch])
            scores[batch] = [sentiment_score(answer) for answer in answers]
            listener.advance(len(batch))
        clear = np.flatnonzero(np.abs(scores) > threshold)  # not true of NaN
        texts += [window[at] for at in clear]
        labels += [POSITIVE if scores[at] > 0 else NEGATIVE for at in clear]
    listener.end()
    return Labelled(
        texts=tuple(texts), labels=tuple(labels), asked=len(distinct), scorer=scorer.info.name, threshold=threshold
    )


def sentiment_score(answer: ClassifyAnswer) -> float:
    """Return (positive − negative) / (positive + neutral + negative), from −1 to 1; NaN where that is 0/0.

    A class that the classifier does not have counts as 0.

    >>> sentiment_score(ClassifyAnswer(negative=0.25, neutral=0.25, positive=0.5))
    0.25
    >>> sentiment_score(ClassifyAnswer(negative=0.875, neutral=float("nan"), positive=0.125))
    -0.75
    """
    negative, neutral, positive = np.nan_to_num([answer.negative, answer.neutral, answer.positive])
    mass = negative + neutral + positive
    return float((positive - negative) / mass) if mass > 0 else float("nan")


def split_labelled(labelled: Labelled, *, seed: int) -> LabelledSplit:
    """Draw as many of the larger class as the smaller one has, and split both into training, validation and test.

    Validation and test have a tenth of the sentences each, but 50 at least, half of them positive. DataError where
    a class has fewer than 100 sentences: then less would be left to train on than to measure with.
    """
    smaller = min(labelled.positive, labelled.negative)
    if smaller < 2 * _LEAST:
        raise DataError(
            f"{labelled.scorer} calls {labelled.positive:,} of {labelled.asked:,} sentences positive and"
            f" {labelled.negative:,} negative with a score further from 0 than {labelled.threshold}; expected at"
            f" least {2 * _LEAST} of each: give a larger corpus, a lower threshold or another scorer"
        )
    held = max(smaller // 10, _LEAST // 2)  # of each class
    labels = np.array(labelled.labels)
    rng = rng_at(seed, "labelled sentences")
    drawn = [rng.permutation(np.flatnonzero(labels == label))[:smaller] for label in (NEGATIVE, POSITIVE)]

    def part(first: int, last: int) -> LabelledPart:
        chosen = np.sort(np.concatenate([places[first:last] for places in drawn]))
        return LabelledPart(
            texts=tuple(labelled.texts[at] for at in chosen), labels=tuple(labels[chosen].tolist())
        )

    return LabelledSplit(training=part(2 * held, smaller), validation=part(0, held), test=part(held, 2 * held))


def _without_repeats(sentences: Sequence[str]) -> list[str]:
    first: dict[str, str] = {}
    for text in sentences:
        first.setdefault(" ".join(text.casefold().split()), text)
    return list(first.values())


def _batches(costs: Sequence[int], *, budget: int) -> Iterator[list[int]]:
    """Group places by length, longest first; each group, padded to its longest, stays within the budget."""
    order = sorted(range(len(costs)), key=costs.__getitem__, reverse=True)  # stable: ties keep their order
    first = 0
    while first < len(order):
        rows = max(1, budget // max(1, costs[order[first]]))
        yield order[first : first + rows]
        first += rows
