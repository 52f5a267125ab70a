"""How probable continuations are, token by token, when many of them share a beginning.

A beginning runs once. Its keys and values serve every continuation, and only the tokens that differ run again
(`packing.py`).
"""

from __future__ import annotations

import copy
import functools
import itertools
import logging
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clinometer.models.local.fast.decoder import Decoder, States
from clinometer.models.local.packing import Beginnings, Pack, Rows, fitting
from clinometer.models.local.text import Ids

logger = logging.getLogger("clinometer")

Logprobs = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

_MAX_LOGITS = 1 << 25  # what is held at a time: 128 MiB in float32
# Tokens that run at a time, beginnings included: a CPU needs few to be busy, a GPU many.
_TOKENS = {"cpu": 1 << 12}
_TOKENS_ELSEWHERE = 1 << 17
# Tokens of a pack, and of what runs after it at a time. A larger pack shares more, but each of its tokens looks at
# all others, most of them masked.
_PACK = {"cpu": 1 << 9}
_PACK_ELSEWHERE = 1 << 11
_TRIAL = 24  # tokens of the trials that tell whether a model's cache serves, and whether it takes packs
# Fields of a config by which a token sees only some of those before it; a mask of ours would undo that.
_REACHES = ("sliding_window", "attention_chunk_size", "local_attention")
_UNFIT = (AttributeError, IndexError, NotImplementedError, TypeError, ValueError, RuntimeError)


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
        budget = _TOKENS.get(self.decoder.device.type, _TOKENS_ELSEWHERE)
        rows = Rows(self.decoder, ids, states.cache if self.shares else None, budget=budget)
        return Begun(rows, states.last(ids).log_softmax(dim=1))

    def together(self, beginnings: Sequence[Ids]) -> Iterator[tuple[list[int], Begun]]:
        """Run beginnings of any length; yield which of them have run together, by place, and how they have."""
        fit = {index for index, ids in enumerate(beginnings) if self._may_pack(ids)}
        # neighbours in the order of their tokens share most
        waiting = sorted(fit, key=lambda index: (beginnings[index].tolist(), index))
        while waiting:
            count = min(fitting([beginnings[index] for index in waiting], room=self._room), self._most)
            some, waiting = waiting[:count], waiting[count:]
            pack = Pack(self.decoder, [beginnings[index] for index in some], budget=self._room)
            yield some, Begun(pack, pack.logits().log_softmax(dim=1))
        rest = [index for index in range(len(beginnings)) if index not in fit]
        for group in self.groups([beginnings[index] for index in rest]):
            some = [rest[at] for at in group]
            yield some, self.begin([beginnings[index] for index in some])

    def groups(self, beginnings: Sequence[Ids]) -> list[list[int]]:
        """Return which beginnings may run together: of one length, and no more than memory holds."""
        by_length: dict[int, list[int]] = {}
        for index, ids in enumerate(beginnings):
            by_length.setdefault(len(ids), []).append(index)
        most = self._most
        return [some[at : at + most] for some in by_length.values() for at in range(0, len(some), most)]

    @property
    def _most(self) -> int:
        """How many rows of logits are held at a time."""
        return max(1, _MAX_LOGITS // self.size)

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
        except _UNFIT as error:
            logger.debug("rescoring without a cache: %s", error)
            return False
        return _alike(whole.expand(2, -1), parted)

    def _may_pack(self, ids: Ids) -> bool:
        config = self.decoder.config.get_text_config()
        reaches = [reach for name in _REACHES if isinstance(reach := getattr(config, name, None), int)]
        # a cache that forgets counts all tokens of a pack and of its tails, not those on the way to one of them
        return self.packs and len(ids) + 2 * self._room <= min(reaches, default=1 << 30)

    @property
    def _room(self) -> int:
        """Tokens of a pack, and of the tails that run after it at a time."""
        return _PACK.get(self.decoder.device.type, _PACK_ELSEWHERE)

    @functools.cached_property
    def packs(self) -> bool:
        """Whether texts that run in one row, parted by a mask, give what each gives alone; tried once."""
        if not self.shares:
            return False
        decoder, tails = self.decoder, [(1, 2, 3), (1, 3, 2), (3,)]
        every = [np.arange(_TRIAL, dtype=np.int32) * step % decoder.vocabulary for step in (1, 2)]
        every.append(every[0][: _TRIAL // 2])  # a part of another one
        try:
            pack = Pack(decoder, every, budget=_TRIAL)
            states, places = pack.run(range(len(tails)), tails)
            last = places[_lasts(tails)].to(decoder.device)
            for ids, tail, *packed in zip(every, tails, pack.logits(), states.logits(*last.T), strict=True):
                whole = torch.tensor([[*ids.tolist(), *tail]], device=decoder.device)
                for text, logits in zip((whole[:, : len(ids)], whole), packed, strict=True):
                    if not _alike(decoder.run(text).last(text, as_computed=True)[0], logits):
                        return False
        except _UNFIT as error:
            logger.debug("texts run in rows of one length: %s", error)
            return False
        return True


def share_of(tokens: Tensor, shares: Tensor) -> Tensor:
    """Return which share of each row falls on some tokens, given as truth values; always more than 0.

    The shares (rows × vocabulary) are used up. As a product with a vector this would lose four more digits.
    """
    return shares.mul_(tokens).sum(dim=1).clamp_min(torch.finfo(shares.dtype).tiny)


def _lasts(tails: Sequence[Sequence[int]]) -> Counts:
    """Return where each tail has its last token, if all are written one after the other."""
    return np.cumsum([len(tail) for tail in tails]) - 1


def _each(starts: Counts, counts: Counts) -> Counts:
    """Return so many numbers from each start on, one after the other.

    >>> _each(np.array([5, 20]), np.array([3, 2])).tolist()
    [5, 6, 7, 20, 21]
    """
    return np.repeat(starts - counts.cumsum() + counts, counts) + np.arange(counts.sum())


def _alike(logits: Tensor, others: Tensor) -> bool:
    """Tell whether logits are the same but for rounding; what does not serve gives quite other ones."""
    rounding = 1e-3 if logits.dtype == torch.float32 else 0.25
    return bool(torch.allclose(logits.float(), others.float(), rtol=rounding, atol=rounding))


class Begun:
    """Beginnings that have run; `logprobs` (beginnings × vocabulary) are of what comes next."""

    def __init__(self, beginnings: Beginnings, logprobs: Tensor) -> None:
        self._beginnings = beginnings
        self.logprobs = logprobs
        self._most = max(1, _MAX_LOGITS // logprobs.shape[1])

    def firsts(self, owners: Counts, tokens: Counts) -> Logprobs:
        """Return the log-probability of each token right after its owner's beginning."""
        device = self.logprobs.device
        rows, columns = torch.from_numpy(owners).to(device), torch.from_numpy(tokens).to(device)
        return self.logprobs[rows, columns].cpu().numpy().astype(np.float64)

    def score(
        self, owners: Sequence[int], tails: Sequence[Sequence[int]], *, ends: Tensor | None = None
    ) -> list[Logprobs]:
        """Return the log-probability of every token of each tail after its owner's beginning.

        With `ends` (one truth value per token of the vocabulary), one number more: the log-probability that such a
        token comes next.
        """
        values, firsts = self._scores(owners, tails, ends)
        return np.split(values, firsts[1:]) if len(tails) else []

    def totals(
        self, owners: Sequence[int], tails: Sequence[Sequence[int]], *, ends: Tensor | None = None
    ) -> Logprobs:
        """Return the sum of each tail's scores: the log-probability of all of it."""
        values, firsts = self._scores(owners, tails, ends)
        return np.add.reduceat(values, firsts) if len(tails) else values

    @torch.inference_mode()
    def _scores(
        self, owners: Sequence[int], tails: Sequence[Sequence[int]], ends: Tensor | None
    ) -> tuple[Logprobs, Counts]:
        """Return the scores of all tails, one tail's after the other's, and where each tail's begin."""
        tokens = np.fromiter(itertools.chain(*tails, (0,)), dtype=np.int64)  # and one more, which stands in below
        sizes = np.fromiter(map(len, tails), dtype=np.int64, count=len(tails))
        begins = sizes.cumsum() - sizes
        # the last token is only predicted, unless what comes after it is asked for
        runs = [tail if ends is not None else tail[:-1] for tail in tails]
        ran = sizes - (ends is None)
        firsts = begins + (np.arange(len(tails)) if ends is not None else 0)
        values = np.zeros(int((ran + 1).sum()))
        if len(tails):
            values[firsts] = self.firsts(np.asarray(owners), tokens[begins])
        for some in self._beginnings.chunks(runs, len(runs)):
            states, places = self._beginnings.run([owners[at] for at in some], [runs[at] for at in some])
            # nothing comes after the last token of a tail; any token stands in for it
            following = torch.from_numpy(tokens[_each(begins[some] + 1, ran[some])])
            last = ran[some].cumsum() - 1  # of each tail, where it has run to its end
            values[_each(firsts[some] + 1, ran[some])] = self._read(states, places, following, ends, last)
        return values, firsts

    @torch.inference_mode()
    def after(
        self, owners: Sequence[int], tails: Sequence[Sequence[int]]
    ) -> Iterator[tuple[Sequence[int], Tensor]]:
        """Yield some of the tails, by place, with the log-probabilities (tails × vocabulary) of what follows.

        They are the receiver's, who may write into them.
        """
        for some in self._beginnings.chunks(tails, self._most):
            tried = [tails[at] for at in some]
            states, places = self._beginnings.run([owners[at] for at in some], tried)
            last = places[_lasts(tried)].to(self.logprobs.device)
            yield some, states.logits(*last.T).log_softmax(dim=1)

    def _read(
        self, states: States, places: Tensor, following: Tensor, ends: Tensor | None, last: Counts
    ) -> Logprobs:
        """Return what the states say at every token that has run: of the token that follows, or of the end."""
        total = len(places)
        device = self.logprobs.device
        # all that is sent to the device is sent before anything is computed, and all is read at once: a GPU that
        # is asked for numbers in between stands still
        places, following = places.to(device), following.to(device)
        values = torch.empty(total, device=device)
        for first in range(0, total, self._most):
            some = slice(first, first + self._most)
            logits = states.logits(*places[some].T)
            chosen = logits.gather(1, following[some, None])[:, 0]
            # in its place: another array of this size costs a CPU more than what is computed in it
            top = logits.amax(dim=1, keepdim=True)
            shares = logits.sub_(top).exp_()
            sums = shares.sum(dim=1)
            values[some] = chosen - top[:, 0] - sums.log()
            if ends is not None:
                at = torch.from_numpy(last[(last >= first) & (last < first + self._most)] - first).to(device)
                values[first + at] = (share_of(ends, shares).log() - sums.log())[at]
        return values.cpu().numpy().astype(np.float64)
