"""Documents as one stream of tokens, cut into pieces of one length: how causal models are trained on a corpus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np
import numpy.typing as npt
import torch

from clinometer.data.corpora import Document
from clinometer.errors import DataError, ModelError
from clinometer.models.local.text import Ids, Tokens
from clinometer.train.base import BaseModel
from clinometer.train.loop import IGNORED, Batch, Row

_DOCUMENTS_AT_A_TIME = 256


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
        parts = []
        for first in range(0, len(documents), _DOCUMENTS_AT_A_TIME):
            texts = [tokens.as_text(document.text) for document in documents[first : first + _DOCUMENTS_AT_A_TIME]]
            joined = [token for ids in tokens.first(texts) for token in (*tokens.start, *ids, *ends)]
            parts.append(np.asarray(joined, np.int32))
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
