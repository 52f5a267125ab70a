"""How probable continuations are, token by token, when many of them share a beginning.

A beginning runs once. Its keys and values are handed to every continuation, and only the tokens that differ run
again. Continuations are padded at the right, where no token looks, so nothing has to be masked.
"""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clinometer.models.local.fast.decoder import Decoder, States
from clinometer.models.local.text import Ids, pad

logger = logging.getLogger("clinometer")

Logprobs = npt.NDArray[np.float64]

_MAX_LOGITS = 1 << 25  # what is held at a time: 128 MiB in float32
# Tokens that run at a time, beginnings included: a CPU needs few to be busy, a GPU many.
_TOKENS = {"cpu": 1 << 12}
_TOKENS_ELSEWHERE = 1 << 17
_TRIAL = 24  # tokens of the trial that tells whether a model's cache serves


class Continuations:
    """Scores continuations with one causal model, whatever its family."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.size = decoder.size  # of the vocabulary, as the model counts it

    @torch.inference_mode()
    def begin(self, beginnings: Sequence[Ids]) -> Begun:
        """Run beginnings of one length, at least one token long."""
        ids = torch.from_numpy(np.stack(beginnings).astype(np.int64)).to(self.decoder.device)
        states = self.decoder.run(ids, keep_cache=self.shares)
        return Begun(self, ids, states.cache if self.shares else None, states.last(ids).log_softmax(dim=1))

    def groups(self, beginnings: Sequence[Ids]) -> list[list[int]]:
        """Return which beginnings may run together: of one length, and no more than memory holds."""
        by_length: dict[int, list[int]] = {}
        for index, ids in enumerate(beginnings):
            by_length.setdefault(len(ids), []).append(index)
        most = max(1, _MAX_LOGITS // self.size)
        return [some[at : at + most] for some in by_length.values() for at in range(0, len(some), most)]

    @functools.cached_property
    def shares(self) -> bool:
        """Whether the model's cache gives what a run over the whole text gives; tried once."""
        decoder = self.decoder
        ids = (torch.arange(_TRIAL, device=decoder.device) % decoder.vocabulary)[None]
        middle = _TRIAL - 4
        try:
            whole = decoder.run(ids).last(ids, as_computed=True)
            cache = decoder.run(ids[:, :middle], keep_cache=True).cache
            if cache is None:
                return False
            again = copy.deepcopy(cache)
            again.batch_select_indices(torch.zeros(2, dtype=torch.long, device=decoder.device))
            rest = ids[:, middle:].expand(2, -1)
            parted = decoder.run(rest, cache=again, keep_cache=True).last(rest, as_computed=True)
        except (AttributeError, NotImplementedError, TypeError, ValueError, RuntimeError) as error:
            logger.debug("rescoring without a cache: %s", error)
            return False
        # a cache that does not serve gives quite other logits; those of 16 bits differ a little in any case
        rounding = 1e-3 if whole.dtype == torch.float32 else 0.25
        return bool(torch.allclose(whole.expand(2, -1), parted, rtol=rounding, atol=rounding))


class Begun:
    """Beginnings of one length that have run; `logprobs` (beginnings × vocabulary) are of what comes next."""

    def __init__(self, parent: Continuations, ids: Tensor, cache: Any, logprobs: Tensor) -> None:
        self._parent = parent
        self._ids = ids
        self._cache = cache  # None: the model keeps none that serves, and is given the whole text again
        self.logprobs = logprobs

    @torch.inference_mode()
    def score(
        self, owners: Sequence[int], tails: Sequence[Sequence[int]], *, ends: Tensor | None = None
    ) -> list[Logprobs]:
        """Return the log-probability of every token of each tail after its owner's beginning.

        With `ends` (one truth value per token of the vocabulary), one number more: the log-probability that such a
        token comes next.
        """
        found = [np.zeros(len(tail) + (ends is not None)) for tail in tails]
        if not tails:
            return found
        device = self._ids.device
        firsts = self.logprobs[
            torch.tensor(owners, device=device), torch.tensor([tail[0] for tail in tails], device=device)
        ].tolist()
        for row, first in zip(found, firsts, strict=True):
            row[0] = first
        # the last token is only predicted, unless what comes after it is asked for
        runs = [tail if ends is not None else tail[:-1] for tail in tails]
        for some in self._chunks(runs):
            states, ahead = self._run([owners[index] for index in some], [runs[index] for index in some])
            reads = [(at, place) for at, index in enumerate(some) for place in range(len(runs[index]))]
            step = max(1, _MAX_LOGITS // self._parent.size)
            for begin in range(0, len(reads), step):
                part = reads[begin : begin + step]
                self._read(part, some, tails, states, ahead, ends, found)
        return found

    @torch.inference_mode()
    def after(
        self, owners: Sequence[int], tails: Sequence[Sequence[int]]
    ) -> Iterator[tuple[Sequence[int], Tensor]]:
        """Yield some of the tails, by place, with the log-probabilities (tails × vocabulary) of what follows."""
        for some in self._chunks(tails, most=max(1, _MAX_LOGITS // self._parent.size)):
            states, ahead = self._run([owners[index] for index in some], [tails[index] for index in some])
            rows = torch.arange(len(some), device=self._ids.device)
            last = torch.tensor([len(tails[index]) - 1 + ahead for index in some], device=self._ids.device)
            yield some, states.logits(rows, last).log_softmax(dim=1)

    def _read(
        self,
        reads: Sequence[tuple[int, int]],
        some: Sequence[int],
        tails: Sequence[Sequence[int]],
        states: States,
        ahead: int,
        ends: Tensor | None,
        found: list[Logprobs],
    ) -> None:
        """Put what the states say at some (row, place) into `found`: the next token of the tail, or its end."""
        device = self._ids.device
        rows = torch.tensor([at for at, _ in reads], device=device)
        places = torch.tensor([place + ahead for _, place in reads], device=device)
        logits = states.logits(rows, places)
        total = logits.logsumexp(dim=1)
        # nothing comes after the last token of a tail; any token stands in for it
        following = [(*tails[some[at]], 0)[place + 1] for at, place in reads]
        values = logits.gather(1, torch.tensor(following, device=device)[:, None])[:, 0] - total
        if ends is not None:
            last = torch.tensor([place + 1 == len(tails[some[at]]) for at, place in reads], device=device)
            values[last] = logits[last].masked_fill(~ends, -torch.inf).logsumexp(dim=1) - total[last]
        for (at, place), value in zip(reads, values.tolist(), strict=True):
            found[some[at]][place + 1] = value

    def _chunks(self, runs: Sequence[Sequence[int]], most: int = 1 << 30) -> Iterator[list[int]]:
        """Yield the places of runs that are not empty, longest first, as many as may run together."""
        order = sorted((index for index, run in enumerate(runs) if len(run)), key=lambda index: -len(runs[index]))
        budget = _TOKENS.get(self._ids.device.type, _TOKENS_ELSEWHERE)
        at = 0
        while at < len(order):
            width = len(runs[order[at]]) + self._ids.shape[1]
            rows = min(max(1, budget // width), most)
            yield order[at : at + rows]
            at += rows

    @torch.inference_mode()
    def _run(self, owners: Sequence[int], runs: Sequence[Sequence[int]]) -> tuple[States, int]:
        """Run tails after their beginnings: the states, and at which place of a row its tail begins."""
        device = self._ids.device
        padded = torch.from_numpy(pad([np.asarray(run, np.int32) for run in runs], pad_id=0).ids).to(device)
        chosen = torch.tensor(owners, device=device)
        if self._cache is None:
            whole = torch.cat([self._ids[chosen], padded], dim=1)
            return self._parent.decoder.run(whole), self._ids.shape[1]
        cache = copy.deepcopy(self._cache)  # a run writes into it
        cache.batch_select_indices(chosen)
        return self._parent.decoder.run(padded, cache=cache, keep_cache=True), 0
