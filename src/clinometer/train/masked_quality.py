"""How well a masked model still fills in documents that it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch

from clinometer.data.corpora import Document, as_passages
from clinometer.models.local.text import Tokens
from clinometer.train.base import BaseModel
from clinometer.train.progress import TrainingProgress
from clinometer.train.readout import logits_at
from clinometer.train.seeds import rng_at

_TOKENS = 256  # of a document: its beginning


@final
class MaskedTexts:
    """Documents with some of their tokens masked, the same ones before and after a training."""

    def __init__(self, base: BaseModel, documents: Sequence[Document], *, share: float, seed: int) -> None:
        self._base = base
        tokens = Tokens(base.tokenizer)
        size = min(_TOKENS, base.info.window or _TOKENS) - len(tokens.start) - len(tokens.end)
        texts = as_passages(documents).strip("\n").split("\n\n")
        encoded = tokens.first([tokens.as_text(text) for text in texts])
        self._rows = [[*tokens.start, *ids[:size], *tokens.end] for ids in encoded]
        self._asked = []
        for index, row in enumerate(self._rows):
            free = [at for at, token in enumerate(row) if token not in tokens.special]
            drawn = rng_at(seed, "held-out masks", index).random(len(free)) < share
            self._asked.append([at for at, yes in zip(free, drawn, strict=True) if yes])

    @torch.inference_mode()
    def measure(self, progress: TrainingProgress, *, when: str) -> dict[str, list[float]]:
        """Return the log-probability of what was masked in each document, and how many tokens that are."""
        self._base.model.eval()
        logprobs = [self._logprob(row, asked) for row, asked in zip(self._rows, self._asked, strict=True)]
        tokens = [float(len(asked)) for asked in self._asked]
        loss = -sum(logprobs) / max(1.0, sum(tokens))
        progress.note(f"{when}: masked-LM loss {loss:.3f} on {len(tokens):,} held-out documents")
        return {"logprobs": logprobs, "tokens": tokens}

    def _logprob(self, row: list[int], asked: list[int]) -> float:
        if not asked:
            return 0.0
        device = self._base.device
        ids = torch.tensor([row], device=device)
        at = torch.tensor(asked, device=device)
        wanted = ids[0, at]
        ids[0, at] = self._base.tokenizer.mask_token_id
        logits = logits_at(
            self._base.model,
            ids=ids,
            attention=torch.ones_like(ids),
            at=(torch.zeros_like(at), at),
            compute=self._base.compute,
        )
        return float(logits.log_softmax(dim=1).gather(1, wanted[:, None]).sum(dtype=torch.float64))
