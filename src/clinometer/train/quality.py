"""What a training is measured by: perplexity, masked tokens filled in, reviews judged correctly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch

from clinometer.data.corpora import Document, as_passages
from clinometer.engine.progress import Progress
from clinometer.models.local.causal import CausalModel
from clinometer.models.local.text import Tokens
from clinometer.stats import cluster_bootstrap, share_interval
from clinometer.train.base import BaseModel, logits_at
from clinometer.train.randomness import rng_at
from clinometer.types import LogLikelihood

Floats = npt.NDArray[np.float64]

_TEXTS_AT_A_TIME = 16
_TOKENS = 256  # of a document: its beginning


@final
class HeldOutTexts:
    r"""Documents that a causal model is measured on before and after its training; of long ones their beginning.

    .. math:: \mathrm{PPL} = \exp(-\sum_d \log p(d) / \sum_d \mathrm{tokens}(d))
    """

    def __init__(self, base: BaseModel, documents: Sequence[Document]) -> None:
        self._base = base
        # as audits that measure perplexity read them
        self._texts = as_passages(documents).strip("\n").split("\n\n")
        # Reading puts a faster activation into some models (GPT-2's), which rounds a little differently. So it is
        # done here, once for every training: also for one that is resumed and measures nothing before.
        self._reader()

    def measure(self, progress: Progress, *, when: str) -> dict[str, list[float]]:
        """Return the log-probability of each document and its number of tokens, counted as audits count them."""
        self._base.model.eval()
        reader, compute = self._reader(), self._base.compute
        answers = []
        with torch.autocast(self._base.device.type, dtype=torch.bfloat16, enabled=compute == torch.bfloat16):
            for first in range(0, len(self._texts), _TEXTS_AT_A_TIME):
                some = self._texts[first : first + _TEXTS_AT_A_TIME]
                answers += reader.log_likelihood([LogLikelihood(text=text) for text in some])
        tokens = [float(answer.tokens) for answer in answers]
        logprobs = [answer.logprob for answer in answers]
        perplexity = np.exp(-sum(logprobs) / max(1.0, sum(tokens)))
        progress.note(f"{when}: perplexity {perplexity:,.2f} on {len(answers):,} held-out documents")
        return {"logprobs": logprobs, "tokens": tokens}

    def _reader(self) -> CausalModel:
        base = self._base
        return CausalModel(info=base.info, model=base.model, tokenizer=base.tokenizer)


def perplexity_figures(
    before: Mapping[str, Any], after: Mapping[str, Any], *, rng: np.random.Generator
) -> dict[str, dict[str, float]]:
    """Return both perplexities, and their ratio (after/before), each with its 95 % interval.

    Logarithms of perplexities are resampled by document, the same documents before and after. A single document
    has no interval (NaN).

    >>> before = {"logprobs": [-20.0, -42.0, -28.0], "tokens": [10, 20, 15]}
    >>> after = {"logprobs": [-10.0, -21.0, -14.0], "tokens": [10, 20, 15]}
    >>> found = perplexity_figures(before, after, rng=np.random.default_rng(0))
    >>> {name: round(figure["estimate"], 3) for name, figure in found.items()}  # exp(90/45), exp(1), exp(1 − 2)
    {'before': 7.389, 'after': 2.718, 'ratio': 0.368}
    """
    sums = np.array([before["logprobs"], after["logprobs"], before["tokens"]], np.float64).T
    found = cluster_bootstrap(sums[sums[:, 2] > 0], statistic=_log_perplexities, rng=rng)
    limits = np.exp(np.stack([found.estimate, found.low, found.high], axis=1))
    return {
        name: {"estimate": float(estimate), "low": float(low), "high": float(high)}
        for name, (estimate, low, high) in zip(("before", "after", "ratio"), limits, strict=True)
    }


def _log_perplexities(means: Floats) -> Floats:
    before, after = -means[:, 0] / means[:, 2], -means[:, 1] / means[:, 2]
    return np.stack([before, after, after - before], axis=1)


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
    def measure(self, progress: Progress, *, when: str) -> dict[str, list[float]]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """How many are right, out of how many."""

    right: int
    n: int

    @property
    def share(self) -> float:
        """The share that is right."""
        return self.right / self.n

    def figures(self) -> dict[str, float]:
        """Return the share with its 95 % Wilson interval, as a card holds it.

        >>> {name: round(value, 3) for name, value in Accuracy(right=8, n=10).figures().items()}
        {'accuracy': 0.8, 'low': 0.49, 'high': 0.943, 'n': 10}
        """
        interval = share_interval(self.share, self.n)
        return {"accuracy": self.share, "low": float(interval.low), "high": float(interval.high), "n": self.n}
