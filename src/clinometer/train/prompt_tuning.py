"""Prompt-based fine-tuning with demonstrations in the manner of LM-BFF (Gao, Fisch & Chen, ACL 2021)."""

from __future__ import annotations

import collections
import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from clinometer.data.reviews import Review, Verdict, choose_reviews
from clinometer.engine.progress import Progress, Silent
from clinometer.errors import DataError, ModelError
from clinometer.models.local.text import Encoded, TextEncoder, Vocabulary, pad
from clinometer.train.base import BaseModel, KeptBase, load_base, logits_at
from clinometer.train.checkpoints import Checkpoint, WorkFolder, finish, finished
from clinometer.train.loop import Batch, Recipe, Row, train
from clinometer.train.quality import Accuracy
from clinometer.train.randomness import rng_at
from clinometer.train.settings import PromptSettings, card_settings
from clinometer.types import MASK, Fill, NextWord

_EVALUATED_AT_A_TIME = 16
_RESERVED = 2000  # per class: as many as the sentiment-words audit asks about at the paper's size
_RESERVED_SEED = 0  # the seed of audits, unless one is given
# in the order of LM-BFF's labels 0 and 1: demonstrations and logits come in this order
VERDICTS: tuple[Verdict, ...] = ("negative", "positive")


def tune_prompt(
    model: str | KeptBase,
    reviews: Sequence[Review],
    *,
    out: str | os.PathLike[str],
    data: str = "reviews",
    settings: PromptSettings | None = None,
    device: str = "auto",
    save_seconds: float = 60.0,
    progress: Progress | None = None,
) -> Checkpoint:
    """Fine-tune a masked model on a few reviews per class and save it as a model folder of its own.

    The loss is the cross-entropy over the two label words at the mask. Every `score_every` steps the weights are
    scored on the development reviews; the best are kept, the first of equals. `data` is what the card calls the
    reviews. Finished and interrupted trainings are treated as `tune_masked` treats them.
    """
    settings, progress = settings or PromptSettings(), progress or Silent()
    place = Path(out)
    shots = choose_shots(reviews, shots=settings.shots, test=settings.test_reviews, seed=settings.seed)
    base = load_base(model, device=device, dtype=settings.dtype)
    task = _Task(base, shots, settings)
    described: dict[str, str | int | float | bool] = {
        "method": "prompt",
        "base": base.info.weights,
        "texts": _digest(shots),
        "dtype": base.computes_in,
        **card_settings(settings),
    }
    if there := finished(place, described):
        return there
    work = WorkFolder(place)
    with work.hold(described):
        recipe = Recipe(
            label=f"training {place.name}",
            rows=settings.steps * settings.batch,
            row_at=task.row_at,
            collate=task.collate,
            loss=task.loss,
            batch=settings.batch,
            learning_rate=settings.learning_rate,
            seed=settings.seed,
            score=lambda network: task.accuracy(network, shots.development, settings.demonstrations).share,
            score_every=settings.score_every,
        )
        history = train(
            base,
            recipe,
            work,
            save_seconds=save_seconds,
            progress=progress,
            measure_before=functools.partial(task.figures, progress, when="before training"),
        )
        after = task.figures(progress, when="after training")
        return finish(
            work,
            base,
            title=f"{base.name} after prompt-based fine-tuning on {settings.shots} reviews per class ({data})",
            tuning={
                "base": base.info.weights,
                "method": "prompt",
                "data": data,
                "amount": str(settings.shots),
                "seed": str(settings.seed),
            },
            settings=described,
            figures={
                "before": history.before,
                "after": after,
                "kept_step": history.best_step,
                "development_accuracy": [history.scores[step] for step in sorted(history.scores)],
                **history.loss_figures(),
            },
            limits="Accuracy is on reviews that were neither trained on nor used to choose the step; low and high"
            " are the 95 % Wilson interval. A few dozen reviews decide this model: expect other seeds to differ.",
        )


@final
class _Task:
    """The few-shot task for one model: its rows, its loss, its accuracy."""

    def __init__(self, base: BaseModel, shots: Shots, settings: PromptSettings) -> None:
        self._base, self._shots, self._settings = base, shots, settings
        self._prompts = Prompts(base.tokenizer, window=base.info.window, settings=settings)
        self._plain = functools.cache(self._prompts.plain)

    def row_at(self, place: int) -> Row:
        """Return the training input at a place: a new order at each turn, each input with fresh examples."""
        seed, training = self._settings.seed, self._shots.training
        turn, index = divmod(place, len(training))
        review = training[int(rng_at(seed, "order", turn).permutation(len(training))[index])]
        if not self._settings.demonstrations:
            return {"encoded": self._plain(review), "label": VERDICTS.index(review.label)}
        examples = self._examples(review, rng_at(seed, "demonstrations", place))
        return {
            "encoded": self._prompts.demonstrated(review, examples),
            "label": VERDICTS.index(review.label),
        }

    def collate(self, rows: Sequence[Row]) -> Batch:
        """Put rows into one batch."""
        encoded: list[Encoded] = [row["encoded"] for row in rows]
        padded = pad([row.ids for row in encoded], pad_id=self._base.pad_id)
        return {
            "input_ids": torch.from_numpy(padded.ids),
            "attention_mask": torch.from_numpy(padded.attention),
            "blank": torch.tensor([row.blank for row in encoded]),
            "labels": torch.tensor([row["label"] for row in rows]),
        }

    def loss(self, network: Any, batch: Batch) -> Tensor:
        """Return the cross-entropy over the label words at the mask."""
        return cross_entropy(self._logits(network, batch), batch["labels"])

    @torch.inference_mode()
    def accuracy(self, network: Any, reviews: Sequence[Review], demonstrations: bool) -> Accuracy:
        """Return the share of reviews whose own label word is the more probable one."""
        rows: list[Row] = []
        for index, review in enumerate(reviews):
            if demonstrations:
                examples = self._examples(review, rng_at(self._settings.seed, "evaluation", index))
                encoded = self._prompts.demonstrated(review, examples)
            else:
                encoded = self._plain(review)
            rows.append({"encoded": encoded, "label": VERDICTS.index(review.label)})
        rows.sort(key=lambda row: len(row["encoded"].ids))  # neighbours of one length need little padding
        right = 0
        for first in range(0, len(rows), _EVALUATED_AT_A_TIME):
            batch = self.collate(rows[first : first + _EVALUATED_AT_A_TIME])
            batch = {name: tensor.to(self._base.device) for name, tensor in batch.items()}
            logits = self._logits(network, batch)
            positive = logits[:, 1] > logits[:, 0]  # as the audit calls a review: P(great) > P(terrible)
            right += int((positive == batch["labels"].bool()).sum())
        return Accuracy(right=right, n=len(rows))

    def figures(self, progress: Progress, *, when: str) -> dict[str, Any]:
        """Measure the accuracy on the test reviews as the model is now, and say so."""
        found = {}
        kinds = {"plain": False} | ({"with_demonstrations": True} if self._settings.demonstrations else {})
        self._base.model.eval()
        for name, demonstrations in kinds.items():
            accuracy = self.accuracy(self._base.model, self._shots.test, demonstrations)
            found[name] = accuracy.figures()
            progress.note(f"{when}, {name.replace('_', ' ')}: {accuracy.share:.1%} of held-out reviews right")
        return found

    def _examples(self, review: Review, rng: np.random.Generator) -> list[Review]:
        """Choose one training review of each class, never the input itself."""
        shelves = [
            [other for other in self._shots.training if other.label == verdict and other.text != review.text]
            for verdict in VERDICTS
        ]
        return [shelf[int(rng.integers(len(shelf)))] for shelf in shelves]

    def _logits(self, network: Any, batch: Batch) -> Tensor:
        """Return the logits (rows × 2) of the label words at the masks."""
        rows = torch.arange(len(batch["blank"]), device=batch["blank"].device)
        return logits_at(
            network,
            ids=batch["input_ids"],
            attention=batch["attention_mask"],
            at=(rows, batch["blank"]),
            compute=self._base.compute,
            words=self._prompts.words,
        )


def _digest(shots: Shots) -> str:
    digest = hashlib.sha256()
    for reviews in (shots.training, shots.development, shots.test):
        for review in reviews:
            digest.update(f"{review.label}\0{review.text}\0".encode())
    return digest.hexdigest()


@final
class Prompts:
    """Writes reviews as token ids for one model.

    With demonstrations a row is `review It was [MASK].` and, behind the model's separator token each, one review
    of each class with its label word in place of the blank. The input gets half of the length, a demonstration a
    quarter. What is cut is always a review, from its beginning, as in the audits; never prompt, mask or label.
    """

    def __init__(self, tokenizer: Any, *, window: int, settings: PromptSettings) -> None:
        self._prompt = settings.prompt
        self._words: Mapping[Verdict, str] = {"negative": settings.negative, "positive": settings.positive}
        length = min(settings.length, window or settings.length)
        share = length // (2 * len(VERDICTS))
        self._alone = TextEncoder(tokenizer, window=length)
        self._first = TextEncoder(tokenizer, window=length - share * len(VERDICTS))
        tokens = self._alone.tokens
        self._start, self._end = len(tokens.start), np.asarray(tokens.end, np.int32)
        # a demonstration has no special tokens before it, and those of the end behind it
        self._behind = TextEncoder(tokenizer, window=share + self._start - len(tokens.end))
        self.words = self._single_tokens(Vocabulary(tokenizer))

    def plain(self, review: Review) -> Encoded:
        """Return a review with the prompt."""
        return self._alone.fill([Fill(context=review.text, text=self._prompt)])[0]

    def demonstrated(self, review: Review, examples: Sequence[Review]) -> Encoded:
        """Return a review with the prompt and the filled prompts of the examples behind it."""
        first = self._first.fill([Fill(context=review.text, text=self._prompt)])[0]
        filled = [
            NextWord(context=example.text, text=self._prompt.replace(MASK, self._words[example.label]))
            for example in examples
        ]
        parts = [first.ids]
        for encoded in self._behind.prefixes(filled):
            parts += [encoded.ids[self._start :], self._end]
        return Encoded(ids=np.concatenate(parts), blank=first.blank)

    def _single_tokens(self, vocabulary: Vocabulary) -> tuple[int, ...]:
        """Return the token of each label word, in the order of `VERDICTS`."""
        found = {verdict: vocabulary.id_of(self._words[verdict]) for verdict in VERDICTS}
        for verdict, token in found.items():
            if token is None:
                raise ModelError(
                    f"the {verdict} label word {self._words[verdict]!r} is not one token of this model;"
                    " choose another with --labels positive/negative"
                )
        return tuple(token for token in found.values() if token is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shots:
    """Reviews of both classes in equal numbers; no text is in two of the three."""

    training: tuple[Review, ...]
    development: tuple[Review, ...]
    test: tuple[Review, ...]


def choose_shots(reviews: Sequence[Review], *, shots: int, test: int, seed: int) -> Shots:
    """Choose `shots` reviews per class to train on, as many to choose the checkpoint, and at most `test` to test.

    Up to 2,000 of each class, and never more than half of them, are reserved: those that an audit with seed 0
    chooses first. So the audit does not ask about what the model was trained on, and every seed is tested alike.
    """
    texts = collections.Counter(label for label, _ in {(review.label, review.text) for review in reviews})
    available = min(texts[verdict] for verdict in VERDICTS)
    if available < 2 * shots + 1:
        found = ", ".join(f"{texts[verdict]:,} {verdict}" for verdict in VERDICTS)
        raise DataError(
            f"found {found} reviews with distinct texts; {shots} shots need {2 * shots + 1} of each: {shots} to"
            f" train on, {shots} to choose the checkpoint and 1 to test; give more reviews or fewer --shots"
        )
    reserve = min(_RESERVED, max(1, min(available // 2, available - 2 * shots)))
    reserved = choose_reviews(reviews, per_class=reserve, seed=_RESERVED_SEED)
    held = {review.text for review in reserved}
    free = [review for review in reviews if review.text not in held]
    chosen = choose_reviews(free, per_class=2 * shots, seed=seed)
    order = np.random.default_rng(seed).permutation(
        2 * shots
    )  # choose_reviews has the sources one after the other
    halves: tuple[list[Review], list[Review]] = ([], [])
    for verdict in VERDICTS:
        of_class = [review for review in chosen if review.label == verdict]
        for place, index in enumerate(order):
            halves[place // shots].append(of_class[index])
    return Shots(
        training=tuple(halves[0]),
        development=tuple(halves[1]),
        test=choose_reviews(reserved, per_class=min(test, reserve), seed=_RESERVED_SEED),
    )
