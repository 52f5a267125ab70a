"""XLNet: the word at a blank, predicted from both sides by permutation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from transformers import XLNetLMHeadModel

from clinometer.models.fills import fill_costs, load_filler, only_fills
from clinometer.models.readout import linear_projection, read_words
from clinometer.models.source import ModelSource
from clinometer.models.text import TextEncoder, pad
from clinometer.models.words import Vocabulary
from clinometer.types import Fill, ModelInfo, ModelSpec, Request, WordAnswer


@final
class PermutedModel:
    """XLNet. The blanks are last in the permutation, so every other word is seen from either side of them."""

    def __init__(self, *, info: ModelInfo, model: Any, tokenizer: Any) -> None:
        self.info = info
        self._model = model
        self._encoder = TextEncoder(tokenizer, window=info.window)
        self._vocabulary = Vocabulary(tokenizer)
        self._mask_id: int = tokenizer.mask_token_id
        self._pad_id: int = tokenizer.pad_token_id

    @classmethod
    def load(cls, source: ModelSource, spec: ModelSpec, device: torch.device) -> PermutedModel:
        """Load the model and its tokenizer on the device."""
        loaded = load_filler(XLNetLMHeadModel, source, spec, device, kind="permuted")
        return cls(info=loaded.info, model=loaded.model, tokenizer=loaded.tokenizer)

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return the length in tokens of each request; raise RequestError for one that cannot be asked."""
        return fill_costs(self._encoder, requests)

    @torch.inference_mode()
    def fill(self, batch: Sequence[Fill]) -> list[WordAnswer]:
        """Answer which words stand at the mask of each text."""
        encoded = self._encoder.fill(only_fills(batch))
        padded = pad([row.ids for row in encoded], pad_id=self._pad_id, left=True)
        rows, width = padded.ids.shape
        segments = np.zeros((rows, width), np.int64)
        end = self._encoder.tokens.end_types
        segments[:, width - len(end) :] = end
        # Nobody sees a blank: XLNet was never trained to read its mask token.
        hidden = np.broadcast_to((padded.ids == self._mask_id)[:, None, :], (rows, width, width))
        target = np.zeros((rows, 1, width), np.float32)
        blanks = [width - len(row.ids) + row.blank for row in encoded]
        target[np.arange(rows), 0, blanks] = 1

        device, dtype = self._model.device, self._model.dtype
        states = self._model.transformer(
            input_ids=torch.from_numpy(padded.ids).to(device),
            attention_mask=torch.from_numpy(padded.attention).to(device, dtype),
            token_type_ids=torch.from_numpy(segments).to(device),
            perm_mask=torch.from_numpy(hidden.astype(np.float32)).to(device, dtype),
            target_mapping=torch.from_numpy(target).to(device, dtype),
            use_mems=False,
        )[0][:, 0]
        matrix = self._model.lm_loss
        projection = linear_projection(states, matrix.weight, matrix.bias)
        return read_words(batch, projection, self._vocabulary, size=matrix.weight.shape[0], device=device)
