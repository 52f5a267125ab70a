"""Sentences with a clear sentiment, as a scorer judges them: what a sentiment projection is trained on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from clinometer.errors import DataError, InputError, ModelError
from clinometer.models.protocols import CanClassify, Model
from clinometer.train.progress import Quiet, TrainingProgress
from clinometer.train.seeds import rng_at
from clinometer.types import Classify, ClassifyAnswer

NEGATIVE, POSITIVE = 0, 1

_WINDOW = 4_096  # sentences that are sorted by length together
_CPU_TOKENS = 2_048  # padded tokens in a batch that keep a CPU busy
_LEAST = 50  # sentences to choose an epoch by, and to measure accuracy on


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Sentences that a scorer calls clearly positive (1) or negative (0), in the order in which they came."""

    texts: tuple[str, ...]
    labels: tuple[int, ...]
    asked: int  # different sentences that were put to the scorer
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
    progress: TrainingProgress | None = None,
) -> Labelled:
    """Ask a classifier for the sentiment of each sentence and keep those whose score is far from 0.

    Huang et al. 2020, appendix B: only sentences with |score| > 0.7 on a scale from −1 to 1, and no neutral ones,
    which made the projection worse. A sentence that is there twice, but for case and spaces, is asked once.

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
    listener = progress or Quiet()
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
