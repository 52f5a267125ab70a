"""Continues prompts: every token depends on (seed, prompt, sample index, step) alone."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clinometer.errors import ModelError, RequestError
from clinometer.models.local.fast.decoder import Decoder
from clinometer.models.local.fast.draw import (
    NOT_A_NUMBER,
    Prompt,
    Rows,
    distinct,
    draw,
    levels_of,
    pieces_of,
    sort_of,
)
from clinometer.models.local.fast.static import StaticSampler
from clinometer.models.local.fast.transfers import fetch
from clinometer.models.reasoning import BEGIN, END

_ROWS = {"cpu": 128}  # samples that run at a time the plain way
_ROWS_ELSEWHERE = 1_024


class Sampler:
    """Continues prompts with one model: the cache of a prompt is computed once and shared by its samples."""

    def __init__(self, decoder: Decoder, *, tokenizer: Any, stop: frozenset[int], window: int) -> None:
        self._decoder = decoder
        self._tokenizer = tokenizer
        # a token that could not be drawn ends a sample, too
        self._ends = torch.tensor([*sorted(stop), NOT_A_NUMBER], dtype=torch.long)
        self._window = window
        self._decoding = ThreadPoolExecutor(1)
        known = tokenizer.get_vocab()
        special = frozenset(tokenizer.all_special_ids) | {
            token for token, added in tokenizer.added_tokens_decoder.items() if added.special
        }
        self._marks = {known[mark]: mark for mark in (BEGIN, END) if known.get(mark) in special}

    def cost(self, prompt: Prompt) -> int:
        """Return what the samples of a prompt cost a batch, in tokens; raise RequestError if it cannot be asked.

        A quarter of all tokens: only one token of each sample runs at a time, the others are only kept. So batches
        are large enough to keep a device busy at every step; `texts` cuts what does not fit in its memory.
        """
        quoted = repr(prompt.text if len(prompt.text) <= 80 else f"{prompt.text[:80]} …")
        if not len(prompt.ids):
            raise RequestError("an empty text cannot be continued by this model, which has no token to start with")
        if prompt.n < 1 or prompt.max_new_tokens < 1 or prompt.first < 0:
            raise RequestError(
                f"n = {prompt.n}, max_new_tokens = {prompt.max_new_tokens}, first = {prompt.first} for {quoted}:"
                " expected n and max_new_tokens of at least 1, and first of at least 0"
            )
        if not 0 <= prompt.temperature < math.inf:
            raise RequestError(f"temperature {prompt.temperature} for {quoted}: expected 0 (greedy) or more")
        if prompt.top_k < 0 or not 0 < prompt.top_p <= 1:
            raise RequestError(
                f"top_k = {prompt.top_k}, top_p = {prompt.top_p} for {quoted}:"
                " expected top_k of at least 0 (off) and top_p above 0 and at most 1 (off)"
            )
        length = len(prompt.ids) + prompt.max_new_tokens
        if self._window and length > self._window:
            raise RequestError(
                f"{len(prompt.ids)} tokens of {quoted} and {prompt.max_new_tokens} new ones exceed the model's"
                f" window of {self._window}; shorten the text or lower max_new_tokens"
            )
        return -(-length * prompt.n // 4)

    @property
    def on_gpu(self) -> bool:
        """Whether the model runs on a GPU, so that this process can turn tokens into text meanwhile."""
        return self._decoder.device.type == "cuda"

    def texts(self, prompts: Sequence[Prompt]) -> list[tuple[str, ...]]:
        """Return the continuations of each prompt, without the prompt, up to the end-of-text token."""
        return self.begin(prompts)()

    def begin(self, prompts: Sequence[Prompt]) -> Callable[[], list[tuple[str, ...]]]:
        """Draw the tokens of all continuations; what is returned waits for their texts."""
        for prompt in prompts:
            self.cost(prompt)
        static = self._static
        order: list[int] = []
        parts: list[Future[list[str]]] = []
        with _quick_turns() if self.on_gpu else contextlib.nullcontext():
            for indices in [[*range(len(prompts))]] if static else _of_one_length(prompts):
                some = [prompts[index] for index in indices]
                most = static.most_rows(some) if static else _ROWS.get(self._decoder.device.type, _ROWS_ELSEWHERE)
                for piece in pieces_of(some, limit=most):
                    tokens = static.run(piece) if static else self._run_plainly(piece)
                    parts.append(self._decoding.submit(self._decode, piece, tokens))
                order += indices

        def read() -> list[tuple[str, ...]]:
            texts = itertools.chain.from_iterable(part.result() for part in parts)
            found = {index: tuple(itertools.islice(texts, prompts[index].n)) for index in order}
            return [found[index] for index in range(len(prompts))]

        return read

    @functools.cached_property
    def _static(self) -> StaticSampler | None:
        return StaticSampler.of(self._decoder, self._ends.to(self._decoder.device))

    @torch.inference_mode()
    def _run_plainly(self, prompts: Sequence[Prompt]) -> Callable[[], Tensor]:
        """Continue prompts of one length with the model's own cache, or without one: tokens, samples × steps."""
        decoder, device = self._decoder, self._decoder.device
        prefixes, ends = distinct(prompts), self._ends.to(device)
        rows, sort = Rows.of(prompts, prefixes, device), sort_of(prompts, decoder.size)
        levels, steps = levels_of(decoder.size), max(prompt.max_new_tokens for prompt in prompts)

        ids = torch.from_numpy(np.stack(prefixes).astype(np.int64)).to(device)
        states = decoder.run(ids, keep_cache=True)
        logits = states.last(ids)[rows.owners]
        ids, cache = ids[rows.owners], states.cache
        if cache is not None:
            cache.batch_select_indices(rows.owners)

        written = torch.zeros(len(rows), steps, dtype=torch.long, device=device)
        alive = torch.arange(len(rows), device=device)  # which sample each row of the batch is
        for step in range(steps):
            floors = rows.floors(logits, sort)
            numbers = rows.numbers(range(step, step + 1), levels)[:, 0]
            tokens = draw(logits, numbers, temperatures=rows.temperatures, floors=floors)
            written[alive, step] = tokens
            going = (~torch.isin(tokens, ends) & (step + 1 < rows.limits)).nonzero()[:, 0]
            if not len(going):
                break
            if len(going) < len(alive):
                alive, tokens, ids, rows = alive[going], tokens[going], ids[going], rows.select(going)
                if cache is not None:
                    cache.batch_select_indices(going)
            if cache is None:
                ids = torch.cat([ids, tokens[:, None]], dim=1)
            fresh = ids if cache is None else tokens[:, None]
            states = decoder.run(fresh, cache=cache, keep_cache=True)
            logits, cache = states.last(fresh), states.cache
        return fetch(written)

    def _decode(self, prompts: Sequence[Prompt], drawn: Callable[[], Tensor]) -> list[str]:
        """Wait for the tokens (samples × steps), and return the text of every sample up to its end."""
        tokens: npt.NDArray[np.int64] = drawn().numpy()
        limits = np.repeat([prompt.max_new_tokens for prompt in prompts], [prompt.n for prompt in prompts])
        ends = np.isin(tokens, self._ends.numpy())
        lengths = np.where(ends.any(axis=1), ends.argmax(axis=1), limits).clip(max=limits)
        read = np.arange(tokens.shape[1]) <= lengths[:, None]
        broken = ((tokens == NOT_A_NUMBER) & read).any(axis=1)
        if broken.any() and self._decoder.dtype == torch.float16:
            raise ModelError("the model's logits are not numbers; load it with dtype 'float32' (or 'bfloat16')")
        lengths = np.where(broken, 0, lengths)  # in any other format nothing helps: such a model writes nothing
        # Behind the prompt's last token: many tokenizers drop the space of a token that comes first.
        before = [int(prompt.ids[-1]) for prompt in prompts for _ in range(prompt.n)]
        rows = [
            [token, *row[:length]] for token, row, length in zip(before, tokens.tolist(), lengths, strict=True)
        ]
        known = sorted(set(before))
        anchors = dict(zip(known, self._texts_of([[token] for token in known]), strict=True))
        texts = self._texts_of(rows)
        return [text.removeprefix(anchors[token]) for token, text in zip(before, texts, strict=True)]

    def _texts_of(self, rows: list[list[int]]) -> list[str]:
        """Turn tokens into text; of special tokens only those are written that part a thought from an answer."""
        if not self._marks or self._marks.keys().isdisjoint(itertools.chain.from_iterable(rows)):
            return self._plain_texts_of(rows)
        texts = []
        for row in rows:
            cuts = [at for at, token in enumerate(row) if token in self._marks]
            bounds = zip([0, *(at + 1 for at in cuts)], [*cuts, len(row)], strict=True)
            pieces = self._plain_texts_of([row[first:last] for first, last in bounds])
            marks = [self._marks[row[at]] for at in cuts]
            texts.append(
                "".join(itertools.chain.from_iterable(itertools.zip_longest(pieces, marks, fillvalue="")))
            )
        return texts

    def _plain_texts_of(self, rows: list[list[int]]) -> list[str]:
        if self._tokenizer.is_fast:  # all rows at once, on every core
            texts: list[str] = self._tokenizer.backend_tokenizer.decode_batch(rows, skip_special_tokens=True)
            return texts
        return [
            str(self._tokenizer.decode(row, skip_special_tokens=True, clean_up_tokenization_spaces=False))
            for row in rows
        ]


@contextlib.contextmanager
def _quick_turns() -> Iterator[None]:
    """Let the threads of this process take turns ten times as often.

    A thread that waited for a GPU gets its next turn 5 ms later where another turns tokens into text: on an H200 a
    batch of samples took 410 ms instead of 356.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, 5e-4))
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def stop_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Return the tokens at which a text ends, from the model's and the tokenizer's own settings."""
    found: set[int] = set()
    for given in (
        getattr(model.generation_config, "eos_token_id", None),
        model.config.get_text_config().eos_token_id,
        tokenizer.eos_token_id,
    ):
        if given is not None:
            found.update(given if isinstance(given, (list, tuple)) else [given])
    return frozenset(found)


def _of_one_length(prompts: Sequence[Prompt]) -> list[list[int]]:
    """Group prompts by their length: those of one length need no padding, whatever the family."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for index, prompt in enumerate(prompts):
        groups[len(prompt.ids)].append(index)
    return list(groups.values())
