"""Draws continuations whose every token depends on (seed, prompt, sample index, step) alone."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clinometer.errors import ModelError, RequestError
from clinometer.models.decoder import Decoder
from clinometer.models.text import Ids

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Token ids to be continued `n` times; the draw depends on `text`, seed, sample index and step."""

    ids: Ids
    text: str
    n: int
    first: int
    max_new_tokens: int
    temperature: float
    seed: int


def uniforms(*, seed: int, text: str, samples: range, steps: int, levels: int) -> Floats:
    """Return random numbers in [0, 1), samples × steps × levels, each a function of its own coordinates.

    The generator counts (Philox): its key is made of seed and text, and sample *i* is the stream that begins at
    (0, *i*). Asking for fewer samples, or fewer steps, gives the same numbers.
    """
    digest = hashlib.blake2b(f"{seed}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    key = np.frombuffer(digest, "<u8").astype(np.uint64)
    # 24 bits: what a float32 holds exactly
    raw = [
        np.random.Philox(key=key, counter=[0, index, 0, 0]).random_raw(steps * levels) >> 40 for index in samples
    ]
    return (np.stack(raw).astype(np.float32) * np.float32(2.0**-24)).reshape(len(samples), steps, levels)


def levels_of(size: int) -> int:
    """Return how many random numbers the draw of one token takes.

    >>> levels_of(8), levels_of(9)
    (3, 4)
    """
    return max(1, math.ceil(math.log2(size)))


def draw(logits: Tensor, numbers: Tensor) -> Tensor:
    """Draw one token for each row of logits (rows × size) from their softmax; numbers is rows × `levels_of(size)`.

    The vocabulary is halved again and again, and each number chooses a half by its share of the probability. One
    number on the cumulative sum of the whole vocabulary would give the same distribution, but a change in the last
    bit of one logit moves every boundary after it, and thousands of rare tokens lie closer together than that: the
    text would then depend on the batch size. Here a token changes only when a number falls within the rounding
    error of one of its few shares.
    """
    sums = [(logits - logits.amax(dim=1, keepdim=True)).exp()]
    while sums[-1].shape[1] > 1:
        if sums[-1].shape[1] % 2:
            sums[-1] = torch.nn.functional.pad(sums[-1], (0, 1))
        sums.append(sums[-1][:, ::2] + sums[-1][:, 1::2])
    if not bool(sums[-1].isfinite().all()):
        raise ModelError("the model's logits are not numbers; load it with dtype 'float32' (or 'bfloat16')")
    node = torch.zeros(len(logits), 1, dtype=torch.long, device=logits.device)
    for level in range(len(sums) - 2, -1, -1):
        whole = sums[level + 1].gather(1, node)
        left = sums[level].gather(1, 2 * node)
        # a half without probability is never entered: the number is below 1, and whole is then exactly the other
        node = 2 * node + (numbers[:, level : level + 1] * whole >= left)
    return node[:, 0]


class Sampler:
    """Continues prompts with one model: the cache of a prompt is computed once and shared by its samples."""

    def __init__(self, decoder: Decoder, *, tokenizer: Any, stop: frozenset[int], window: int) -> None:
        self._decoder = decoder
        self._tokenizer = tokenizer
        self._stop = torch.tensor(sorted(stop), dtype=torch.long, device=decoder.device)
        self._window = window

    def check(self, prompt: Prompt) -> int:
        """Return how many tokens the prompt and its samples take; raise RequestError if it cannot be asked."""
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
        length = len(prompt.ids) + prompt.max_new_tokens
        if self._window and length > self._window:
            raise RequestError(
                f"{len(prompt.ids)} tokens of {quoted} and {prompt.max_new_tokens} new ones exceed the model's"
                f" window of {self._window}; shorten the text or lower max_new_tokens"
            )
        return length * prompt.n

    def texts(self, prompts: Sequence[Prompt]) -> list[tuple[str, ...]]:
        """Return the continuations of each prompt, without the prompt, up to the end-of-text token."""
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        for index, prompt in enumerate(prompts):
            self.check(prompt)
            by_length[len(prompt.ids)].append(index)
        texts: dict[int, tuple[str, ...]] = {}
        for indices in by_length.values():  # prompts of one length need no padding, whatever the family
            some = [prompts[index] for index in indices]
            for index, prompt, rows in zip(indices, some, self._continue(some), strict=True):
                texts[index] = self._decode(prompt, rows)
        return [texts[index] for index in range(len(prompts))]

    @torch.inference_mode()
    def _continue(self, prompts: Sequence[Prompt]) -> list[list[list[int]]]:
        decoder, device = self._decoder, self._decoder.device
        distinct = {prompt.ids.tobytes(): prompt.ids for prompt in prompts}
        place = {key: row for row, key in enumerate(distinct)}
        owner = torch.tensor([place[p.ids.tobytes()] for p in prompts for _ in range(p.n)], device=device)
        numbers, temperatures, limits = self._plan(prompts)

        ids = torch.from_numpy(np.stack(list(distinct.values())).astype(np.int64)).to(device)
        states = decoder.run(ids, keep_cache=True)
        logits = states.last(ids)[owner]
        ids, cache = ids[owner], states.cache
        if cache is not None:
            cache.batch_select_indices(owner)

        written: list[list[int]] = [[] for _ in owner]
        alive = torch.arange(len(owner), device=device)  # which sample each row of the batch is
        for step in range(numbers.shape[1]):
            tokens = _choose(logits, numbers[alive, step], temperatures[alive])
            ended = torch.isin(tokens, self._stop)
            for sample, token, end in zip(alive.tolist(), tokens.tolist(), ended.tolist(), strict=True):
                if not end:
                    written[sample].append(token)
            going = (~ended & (step + 1 < limits[alive])).nonzero()[:, 0]
            if not len(going):
                break
            if len(going) < len(alive):
                alive, tokens, ids = alive[going], tokens[going], ids[going]
                if cache is not None:
                    cache.batch_select_indices(going)
            if cache is None:
                ids = torch.cat([ids, tokens[:, None]], dim=1)
            fresh = ids if cache is None else tokens[:, None]
            states = decoder.run(fresh, cache=cache, keep_cache=True)
            logits, cache = states.last(fresh), states.cache
        samples = iter(written)
        return [[next(samples) for _ in range(prompt.n)] for prompt in prompts]

    def _plan(self, prompts: Sequence[Prompt]) -> tuple[Tensor, Tensor, Tensor]:
        """Return for each sample its random numbers (samples × steps × levels), temperature and length limit."""
        device, steps = self._decoder.device, max(prompt.max_new_tokens for prompt in prompts)
        numbers = np.concatenate(
            [
                uniforms(
                    seed=prompt.seed,
                    text=prompt.text,
                    samples=range(prompt.first, prompt.first + prompt.n),
                    steps=steps,
                    levels=levels_of(self._decoder.size),
                )
                for prompt in prompts
            ]
        )
        counts = [prompt.n for prompt in prompts]
        temperatures = np.repeat(np.asarray([prompt.temperature for prompt in prompts], np.float32), counts)
        limits = np.repeat(np.asarray([prompt.max_new_tokens for prompt in prompts], np.int64), counts)
        return (
            torch.from_numpy(numbers).to(device),
            torch.from_numpy(temperatures).to(device),
            torch.from_numpy(limits).to(device),
        )

    def _decode(self, prompt: Prompt, rows: Sequence[Sequence[int]]) -> tuple[str, ...]:
        # Behind the prompt's last token: many tokenizers drop the space of a token that comes first.
        before = [int(prompt.ids[-1])]
        anchor, *texts = (
            str(self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))
            for ids in (before, *([*before, *row] for row in rows))
        )
        return tuple(text.removeprefix(anchor) for text in texts)


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


def _choose(logits: Tensor, numbers: Tensor, temperatures: Tensor) -> Tensor:
    """Draw a token for each row; where the temperature is 0, take the most probable."""
    greedy = temperatures == 0
    best = logits.argmax(dim=1)
    if bool(greedy.all()):
        return best
    drawn = draw(logits / torch.where(greedy, 1.0, temperatures)[:, None], numbers)
    return torch.where(greedy, best, drawn)
