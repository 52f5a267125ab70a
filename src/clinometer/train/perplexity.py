r"""How well a causal model predicts documents that it was not trained on.

.. math:: \mathrm{PPL} = \exp(-\sum_d \log p(d) / \sum_d \mathrm{tokens}(d))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch

from clinometer.data.corpora import Document, as_passages
from clinometer.models.local.causal import CausalModel
from clinometer.stats import cluster_bootstrap
from clinometer.train.base import BaseModel
from clinometer.train.progress import TrainingProgress
from clinometer.types import LogLikelihood

Floats = npt.NDArray[np.float64]

_TEXTS_AT_A_TIME = 16


@final
class HeldOutTexts:
    """Documents that a model is measured on before and after its training; of long ones their beginning."""

    def __init__(self, base: BaseModel, documents: Sequence[Document]) -> None:
        self._base = base
        # as audits that measure perplexity read them
        self._texts = as_passages(documents).strip("\n").split("\n\n")
        # Reading puts a faster activation into some models (GPT-2's), which rounds a little differently. So it is
        # done here, once for every training: also for one that goes on and measures nothing before.
        self._reader()

    def measure(self, progress: TrainingProgress, *, when: str) -> dict[str, list[float]]:
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
    """Return both perplexities, and how many times the first one the second is, each with its 95 % interval.

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
