"""Masked-LM fine-tuning on a corpus, as the stereotypes paper does it on news sources."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import DataCollatorForLanguageModeling

from clinometer.data.corpora import Document, choose_documents, corpus_name
from clinometer.engine.progress import Progress, Silent
from clinometer.errors import DataError
from clinometer.models.local.text import Tokens
from clinometer.train.base import BaseModel, KeptBase, load_base, logits_at, token_ids
from clinometer.train.checkpoints import Checkpoint, WorkFolder, finish, finished
from clinometer.train.loop import IGNORED, Batch, Recipe, Row, train
from clinometer.train.randomness import batched_order, rng_at, seed_at
from clinometer.train.settings import MaskedSettings, card_settings


def tune_masked(
    model: str | KeptBase,
    corpus: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    out: str | os.PathLike[str],
    settings: MaskedSettings | None = None,
    device: str = "auto",
    save_seconds: float = 60.0,
    progress: Progress | None = None,
) -> Checkpoint:
    """Fine-tune a masked model on a corpus and save it as a model folder of its own.

    `model` is a hub id, a folder or a built-in name, `corpus` one file or several that are one corpus. A
    checkpoint that is there already is returned as it is; an interrupted training is resumed, and on a CPU it ends
    in the same bytes as an undisturbed one. `save_seconds` is how often to save.
    """
    settings, progress = settings or MaskedSettings(), progress or Silent()
    place = Path(out)
    paths = [corpus] if isinstance(corpus, (str, os.PathLike)) else list(corpus)
    chosen = choose_documents(paths, fraction=settings.fraction, seed=settings.seed, at_most=settings.at_most)
    name = "+".join(corpus_name(path) for path in paths)
    base = load_base(model, device=device, dtype=settings.dtype)
    described: dict[str, str | int | float | bool] = {
        "method": "masked-lm",
        "base": base.info.weights,
        "texts": chosen.digest,
        "dtype": base.computes_in,
        **card_settings(settings),
    }
    if there := finished(place, described):
        return there
    work = WorkFolder(place)
    with work.hold(described):
        pieces = _Pieces(base, chosen.documents, window=settings.window)
        masker = _Masker(base, settings)
        order = [
            batched_order(pieces.lengths, batch=settings.batch, rng=rng_at(settings.seed, "order", epoch))
            for epoch in range(settings.epochs)
        ]

        def row_at(place: int) -> Row:
            epoch, index = divmod(place, len(pieces))
            return {"place": place, "input_ids": pieces[int(order[epoch][index])]}

        recipe = Recipe(
            label=f"training {place.name}",
            rows=len(pieces) * settings.epochs,
            row_at=row_at,
            collate=masker,
            loss=lambda network, batch: masked_loss(network, batch, compute=base.compute),
            batch=settings.batch,
            learning_rate=settings.learning_rate,
            seed=settings.seed,
        )
        history = train(base, recipe, work, save_seconds=save_seconds, progress=progress)
        share = f"{settings.fraction:g}"
        return finish(
            work,
            base,
            title=f"{base.name} after masked-LM fine-tuning on {share} of {name}",
            tuning={
                "base": base.info.weights,
                "method": "masked-lm",
                "data": name,
                "amount": share,
                "seed": str(settings.seed),
            },
            settings=described,
            figures={
                "documents": len(chosen.documents),
                "documents_in_corpus": chosen.total,
                "pieces": len(pieces),
                "tokens": int(pieces.lengths.sum()),
                "steps": recipe.steps,
                **history.loss_figures(),
            },
            limits="The losses are those of the training texts themselves. What the model says after this mirrors"
            " those texts as well as what it had read before.",
        )


def masked_loss(model: Any, batch: Batch, *, compute: torch.dtype) -> Tensor:
    """Return the mean of −ln p(token) over the tokens that are asked for."""
    at = torch.nonzero(batch["labels"] != IGNORED, as_tuple=True)
    logits = logits_at(
        model, ids=batch["input_ids"], attention=batch["attention_mask"], at=(at[0], at[1]), compute=compute
    )
    return cross_entropy(logits, batch["labels"][at])


@final
class _Pieces:
    """The documents as rows of token ids, each cut into pieces that fit; never two documents in one row."""

    def __init__(self, base: BaseModel, documents: Sequence[Document], *, window: int) -> None:
        tokens = Tokens(base.tokenizer)
        self._start, self._end = tokens.start, tokens.end
        limit = min(window, base.info.window or window)
        size = limit - len(self._start) - len(self._end)
        encoded: list[npt.NDArray[np.int32]] = []
        for ids in token_ids(tokens, documents):
            encoded += [np.asarray(ids[at : at + size], np.int32) for at in range(0, len(ids), size)]
        if not encoded:
            raise DataError("none of the documents has a token that the model knows; check the corpus")
        self._pieces = encoded
        self.lengths = np.array([len(piece) for piece in encoded])

    def __len__(self) -> int:
        return len(self._pieces)

    def __getitem__(self, index: int) -> list[int]:
        return [*self._start, *self._pieces[index].tolist(), *self._end]


@final
class _Masker:
    """The masking of transformers' collator, drawn anew at every place of the training and the same at each."""

    def __init__(self, base: BaseModel, settings: MaskedSettings) -> None:
        self._collator = DataCollatorForLanguageModeling(base.tokenizer, mlm_probability=settings.masked_share)
        self._seed, self._pad = settings.seed, base.pad_id
        self._mask: int = base.tokenizer.mask_token_id
        special = set(base.tokenizer.all_special_ids) - {base.tokenizer.unk_token_id}
        self._special = torch.tensor(sorted(special))

    def __call__(self, rows: Sequence[Row]) -> Batch:
        width = max(len(row["input_ids"]) for row in rows)
        ids = torch.full((len(rows), width), self._pad)
        attention = torch.zeros_like(ids)
        for index, row in enumerate(rows):
            ids[index, : len(row["input_ids"])] = torch.tensor(row["input_ids"])
            attention[index, : len(row["input_ids"])] = 1
        fixed = torch.isin(ids, self._special) | (attention == 0)
        self._collator.generator = torch.Generator().manual_seed(seed_at(self._seed, "masks", rows[0]["place"]))
        inputs, labels = self._collator.torch_mask_tokens(ids.clone(), special_tokens_mask=fixed)
        if bool((labels == IGNORED).all()):  # a few short rows: a mean over nothing would be NaN
            line, column = (int(at[0]) for at in torch.nonzero(~fixed, as_tuple=True))
            labels[line, column], inputs[line, column] = ids[line, column], self._mask
        return {"input_ids": inputs, "attention_mask": attention, "labels": labels}
