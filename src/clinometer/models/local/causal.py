"""Models that continue a text: the next word, the word at a blank, continuations, how probable a text is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from clinometer.errors import RequestError
from clinometer.models.local.continuations import Continuations
from clinometer.models.local.fast.decoder import Decoder, States
from clinometer.models.local.fast.draw import Prompt
from clinometer.models.local.fast.products import speed_up_products
from clinometer.models.local.fast.sampling import Sampler, stop_tokens
from clinometer.models.local.loading import load_tokenizer, load_with
from clinometer.models.local.readout import check_words, read_words
from clinometer.models.local.rescoring import Rescorer
from clinometer.models.local.text import Encoded, Ids, TextEncoder, Vocabulary, pad
from clinometer.models.protocols import METHODS
from clinometer.models.providers.local import ModelSource
from clinometer.types import (
    Answer,
    LogLikelihood,
    LogLikelihoodAnswer,
    ModelInfo,
    ModelSpec,
    NextWord,
    Request,
    Rescore,
    Sample,
    TextAnswer,
    WordAnswer,
)

_MAX_LOGITS = 1 << 25  # what is held at a time when a text is scored: 128 MiB in float32
_MAX_TOKENS = 1 << 13  # what runs at a time when a long text is scored window by window


@final
class CausalModel:
    """GPT-2, Llama and every other model that transformers loads as a causal one.

    A text begins with the token that the tokenizer itself puts there (`<s>` in Llama, nothing in GPT-2). Context
    and text are joined by a space, also where a query says "separator": these models have none.
    """

    def __init__(self, *, info: ModelInfo, model: Any, tokenizer: Any) -> None:
        self.info = info
        self._decoder = Decoder(model)
        self._encoder = TextEncoder(tokenizer, window=info.window)
        self._vocabulary = Vocabulary(tokenizer)
        self._rescorer = Rescorer(Continuations(self._decoder), self._encoder)
        stop = stop_tokens(model, tokenizer)
        self._sampler = Sampler(self._decoder, tokenizer=tokenizer, stop=stop, window=info.window)

    @classmethod
    def load(cls, source: ModelSource, spec: ModelSpec, device: torch.device) -> CausalModel:
        """Load the model and its tokenizer on the device."""
        tokenizer = load_tokenizer(source.tokenizer_folder, trust_remote_code=spec.trust_remote_code)
        loaded = load_with(tokenizer, AutoModelForCausalLM, source, spec, device, kind="causal")
        speed_up_products(loaded.model)
        return cls(info=loaded.info, model=loaded.model, tokenizer=loaded.tokenizer)

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return the tokens of each request; for a `Sample` a quarter of prefix and new tokens, times n.

        For a `Rescore` they are those that run: the part before the blank, and what follows it for each candidate.
        """
        return [self._cost_of(request) for request in requests]

    @torch.inference_mode()
    def next_word(self, batch: Sequence[NextWord]) -> list[WordAnswer]:
        """Answer which words come after each text; spaces at its end belong to the word and are dropped."""
        if not batch:
            return []
        rows = [encoded.ids for encoded in self._prefixes(batch)]
        states = self._run(rows)
        last = torch.tensor([len(row) - 1 for row in rows], device=self._decoder.device)
        return read_words(
            batch,
            lambda some, tokens: states.logits(some, last[some], tokens),
            self._vocabulary,
            size=self._decoder.size,
            device=self._decoder.device,
        )

    def rescore(self, batch: Sequence[Rescore]) -> list[WordAnswer]:
        """Answer which words belong at the blank of each text, by the score of the text with each of them."""
        return self._rescorer.answers(batch)

    def sample(self, batch: Sequence[Sample]) -> list[TextAnswer]:
        """Continue each prefix n times, up to the end of the text; temperature 0 takes the most probable token."""
        return [TextAnswer(texts=texts) for texts in self._sampler.texts([self._prompt(one) for one in batch])]

    @property
    def runs_in_background(self) -> bool:
        """Whether tokens become text while the next batch runs: on a GPU."""
        return self._sampler.on_gpu

    def launch(self, batch: Sequence[Request]) -> Callable[[], Sequence[Answer]]:
        """Answer a batch; the texts of samples are ready when they are read."""
        samples = [self._prompt(request) for request in batch if isinstance(request, Sample)]
        if not samples:
            answers: list[Answer] = getattr(self, METHODS[type(batch[0])])(batch)
            return lambda: answers
        read = self._sampler.begin(samples)
        return lambda: [TextAnswer(texts=texts) for texts in read()]

    @torch.inference_mode()
    def log_likelihood(self, batch: Sequence[LogLikelihood]) -> list[LogLikelihoodAnswer]:
        """Sum the log-probabilities of the tokens of each text, given those before them.

        Where the tokenizer puts no token at the start of a text, the first token is given and not counted. A text
        longer than the model's window is read in windows that overlap by half: every token after the first window
        is predicted from at least half a window of text.
        """
        windows = [
            window for text, one in enumerate(batch) for window in self._windows(text, self._text_ids(one.text))
        ]
        sums = np.zeros(len(batch))
        counts = np.zeros(len(batch), np.int64)
        for some in _within_budget(windows):
            for window, logprob in zip(some, self._score(some), strict=True):
                sums[window.text] += logprob
                counts[window.text] += len(window.ids) - window.first
        return [
            LogLikelihoodAnswer(logprob=float(logprob), tokens=int(count))
            for logprob, count in zip(sums, counts, strict=True)
        ]

    def _cost_of(self, request: Request) -> int:
        if isinstance(request, NextWord):
            return len(self._prefixes([request])[0].ids)
        if isinstance(request, Rescore):
            return self._rescorer.cost(request)
        if isinstance(request, Sample):
            return self._sampler.cost(self._prompt(request))
        if isinstance(request, LogLikelihood):
            return max(1, len(self._text_ids(request.text)))
        raise RequestError(
            f"a causal model answers NextWord, Rescore, Sample and LogLikelihood requests, not"
            f" {type(request).__name__}; choose another model"
        )

    def _prefixes(self, queries: Sequence[NextWord]) -> list[Encoded]:
        plain = []
        for query in queries:
            check_words(query)
            text, context = query.text.rstrip(), query.context
            if not text:  # the context is what is to be continued
                text, context = context.rstrip(), ""
            plain.append(replace(query, text=text, context=context, join="space"))
        rows = self._encoder.prefixes(plain)
        if not all(len(row.ids) for row in rows):
            raise RequestError("an empty text cannot be continued by this model, which has no token to start with")
        return rows

    def _prompt(self, request: Sample) -> Prompt:
        encoded = self._encoder.prefixes([NextWord(text=request.prefix)])[0]
        return Prompt(
            ids=encoded.ids,
            text=request.prefix,
            n=request.n,
            first=request.first,
            max_new_tokens=request.max_new_tokens,
            temperature=request.temperature,
            seed=request.seed,
            top_k=request.top_k,
            top_p=request.top_p,
        )

    def _text_ids(self, text: str) -> Ids:
        tokens = self._encoder.tokens
        return np.asarray([*tokens.start, *tokens.first([tokens.as_text(text)])[0]], np.int32)

    def _windows(self, text: int, ids: Ids) -> list[_Window]:
        first = max(1, len(self._encoder.tokens.start))
        if first >= len(ids):
            return []
        size = self.info.window or len(ids)
        windows = [_Window(text=text, ids=ids[:size], first=first)]
        read = size
        while read < len(ids):
            end = min(read + max(1, size // 2), len(ids))
            windows.append(_Window(text=text, ids=ids[end - size : end], first=size - (end - read)))
            read = end
        return windows

    def _score(self, windows: Sequence[_Window]) -> list[float]:
        device = self._decoder.device
        states = self._run([window.ids for window in windows])
        sums = [0.0] * len(windows)
        step = max(1, _MAX_LOGITS // self._decoder.size)
        for index, window in enumerate(windows):
            ids = torch.from_numpy(window.ids.astype(np.int64)).to(device)
            for begin in range(window.first, len(window.ids), step):
                targets = ids[begin : begin + step]
                places = torch.arange(begin - 1, begin - 1 + len(targets), device=device)
                logits = states.logits(torch.full_like(places, index), places)
                logprobs = logits.gather(1, targets[:, None])[:, 0] - logits.logsumexp(dim=1)
                sums[index] += float(logprobs.sum(dtype=torch.float64))
        return sums

    def _run(self, rows: Sequence[Ids]) -> States:
        padded = pad(rows, pad_id=0)
        device = self._decoder.device
        # without padding there is nothing to mask, and attention without a mask is faster
        attention: Tensor | None = None
        if not padded.attention.all():
            attention = torch.from_numpy(padded.attention).to(device)
        return self._decoder.run(torch.from_numpy(padded.ids).to(device), attention=attention)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """A part of a text that fits the model; the tokens from `first` on are scored in it."""

    text: int
    ids: Ids
    first: int


def _within_budget(windows: Sequence[_Window]) -> list[list[_Window]]:
    """Cut the windows, in order, into groups that can run at once."""
    groups: list[list[_Window]] = []
    longest = 0
    for window in windows:
        longest = max(longest, len(window.ids))
        if groups and (len(groups[-1]) + 1) * longest <= _MAX_TOKENS:
            groups[-1].append(window)
        else:
            groups.append([window])
            longest = len(window.ids)
    return groups
