"""Next-token training on a corpus: the first of the three steps by which the counterfactual paper mitigates."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from clinometer.data.corpora import Document, Selection, corpus_name, split_corpus
from clinometer.engine.progress import Progress, Silent
from clinometer.errors import DataError, ModelError
from clinometer.models.local.text import Ids, Tokens
from clinometer.train.base import BaseModel, load_base, token_ids, with_random_weights
from clinometer.train.checkpoints import Checkpoint, WorkFolder, finish, finished
from clinometer.train.loop import IGNORED, Batch, Recipe, Row, train
from clinometer.train.processes import join_processes
from clinometer.train.quality import HeldOutTexts, perplexity_figures
from clinometer.train.randomness import rng_at
from clinometer.train.settings import CausalSettings, card_settings


def train_causal(
    model: str,
    corpus: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    out: str | os.PathLike[str],
    settings: CausalSettings | None = None,
    device: str = "auto",
    save_seconds: float = 60.0,
    progress: Progress | None = None,
) -> Checkpoint:
    """Train a causal model on a corpus and save it as a model folder of its own.

    Some documents are held out; the card has their perplexity before and after. With `settings.from_scratch` the
    model begins with random weights: only architecture and tokenizer of `model` are used. Corpora, finished and
    interrupted trainings are treated as `tune_masked` treats them.
    """
    settings, progress = settings or CausalSettings(), progress or Silent()
    place = Path(out)
    paths = [corpus] if isinstance(corpus, (str, os.PathLike)) else list(corpus)
    name = "+".join(corpus_name(path) for path in paths)
    split = split_corpus(
        paths,
        held_out=settings.held_out,
        fraction=settings.fraction,
        seed=settings.seed,
        at_most=settings.at_most,
    )
    join_processes()
    base = load_base(model, device=device, dtype=settings.dtype, kinds=("causal",))
    described: dict[str, str | int | float | bool] = {
        "method": "causal-lm",
        "base": base.info.weights,
        "texts": split.training.digest,
        "held_out_texts": Selection(documents=split.held_out, total=split.training.total).digest,
        "dtype": base.computes_in,
        **card_settings(settings),
        "learning_rate": settings.rate,
    }
    if there := finished(place, described):
        return there
    work = WorkFolder(place)
    with work.hold(described):
        start = with_random_weights(base, seed=settings.seed) if settings.from_scratch else base
        pieces = PackedDocuments(start, split.training.documents, window=settings.window)
        held_out = HeldOutTexts(start, split.held_out)

        @functools.lru_cache(maxsize=2)
        def order_of(epoch: int) -> npt.NDArray[np.int64]:
            return rng_at(settings.seed, "order", epoch).permutation(len(pieces))

        def row_at(place: int) -> Row:
            epoch, index = divmod(place, len(pieces))
            return {"piece": pieces[int(order_of(epoch)[index])]}

        recipe = Recipe(
            label=f"training {place.name}",
            rows=settings.steps * settings.batch or len(pieces) * settings.epochs,
            row_at=row_at,
            collate=functools.partial(collate_pieces, pad_id=start.pad_id),
            loss=lambda network, batch: next_token_loss(network, batch, compute=start.compute),
            batch=settings.batch,
            accumulate=settings.accumulate,
            learning_rate=settings.rate,
            seed=settings.seed,
        )
        history = train(
            start,
            recipe,
            work,
            save_seconds=save_seconds,
            progress=progress,
            measure_before=functools.partial(held_out.measure, progress, when="before training"),
        )
        after = held_out.measure(progress, when="after training")
        predicted = pieces.predicted
        rounds, rest = divmod(recipe.rows, len(pieces))
        share = f"{settings.fraction:g}"
        began = "from random weights" if settings.from_scratch else "further"
        return finish(
            work,
            start,
            title=f"{base.name} trained {began} on {share} of {name}",
            tuning={
                # what began with random weights has no model before it that audits could compare it with
                "base": "" if settings.from_scratch else base.info.weights,
                "method": "causal-lm",
                "data": name,
                "amount": share,
                "seed": str(settings.seed),
            },
            settings=described,
            figures={
                "documents": len(split.training.documents),
                "documents_held_out": len(split.held_out),
                "documents_in_corpus": split.training.total,
                "tokens": len(pieces.stream),
                "pieces": len(pieces),
                "steps": recipe.steps,
                "tokens_read": int(rounds * predicted.sum() + predicted[order_of(rounds)[:rest]].sum()),
                "held_out_perplexity": perplexity_figures(
                    history.before, after, rng=rng_at(settings.seed, "perplexity")
                ),
                **history.loss_figures(),
            },
            limits="Perplexity is that of documents of the same corpus that were not trained on (of long ones,"
            " their first 4,000 characters); low and high are its 95 % interval, by document. What"
            " the model says after this mirrors the training texts as well as what it had read before.",
        )


def next_token_loss(model: Any, batch: Batch, *, compute: torch.dtype) -> Tensor:
    """Return the mean of −ln p(token | tokens before it in its piece) over all tokens of the batch."""
    ids = batch["input_ids"]
    with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=compute == torch.bfloat16):
        logits = model(input_ids=ids, use_cache=False).logits
    return cross_entropy(logits.float().flatten(0, 1), batch["labels"].flatten(), ignore_index=IGNORED)


@final
class PackedDocuments:
    """The documents one after the other, each with the tokenizer's own start token and an end-of-text token.

    A piece is `window` tokens and the one after them: row i reads tokens i·w … i·w + w − 1 and predicts tokens
    i·w + 1 … i·w + w. So every token but the very first is predicted exactly once. Only the last piece is shorter.
    """

    def __init__(self, base: BaseModel, documents: Sequence[Document], *, window: int) -> None:
        tokens = Tokens(base.tokenizer)
        end = _end_of_text(base)
        # some tokenizers (OPT's) begin a text with the token that ends one: once between two texts is enough
        ends = () if end in tokens.start else (end,)
        parts = [np.asarray((*tokens.start, *ids, *ends), np.int32) for ids in token_ids(tokens, documents)]
        if not ends:
            parts.append(np.array([end], np.int32))
        self.stream: Ids = np.concatenate(parts)
        self.window = min(window, base.info.window or window)
        if len(self) < 1:
            raise DataError("none of the documents has a token that the model knows; check the corpus")

    @property
    def predicted(self) -> npt.NDArray[np.int64]:
        """How many tokens each piece predicts."""
        firsts = np.arange(len(self), dtype=np.int64) * self.window
        return np.minimum(self.window, len(self.stream) - 1 - firsts)

    def __len__(self) -> int:
        return math.ceil((len(self.stream) - 1) / self.window)

    def __getitem__(self, index: int) -> Ids:
        first = index * self.window
        return self.stream[first : first + self.window + 1]


def collate_pieces(rows: Sequence[Row], *, pad_id: int) -> Batch:
    """Put pieces into one batch of inputs and labels, both padded at the right.

    No attention mask is needed: a token never sees what comes after it.
    """
    width = max(len(row["piece"]) for row in rows) - 1
    ids = torch.full((len(rows), width), pad_id)
    labels = torch.full_like(ids, IGNORED)
    for index, row in enumerate(rows):
        piece = torch.from_numpy(row["piece"].astype(np.int64))
        ids[index, : len(piece) - 1] = piece[:-1]
        labels[index, : len(piece) - 1] = piece[1:]
    return {"input_ids": ids, "labels": labels}


def _end_of_text(base: BaseModel) -> int:
    found = base.tokenizer.eos_token_id
    if found is None:
        raise ModelError(
            f"the tokenizer of {base.info.name!r} has no end-of-text token to put between documents;"
            " set eos_token in its tokenizer_config.json"
        )
    return int(found)
