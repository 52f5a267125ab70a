"""Runs tails after beginnings: each in a row of its own, or many packed into one row.

A pack is a tree of tokens written as one row. Each token looks at those on its way from the root and at no other,
so what texts share runs once, and a tail runs without a copy of the keys and values before it. It takes a model
that accepts a mask and positions as given; `Continuations.packs` finds out by a trial.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clinometer.models.local.fast.decoder import Decoder, States
from clinometer.models.local.text import Ids, pad


class Beginnings(Protocol):
    """Beginnings that have run, and after which tails can run."""

    def run(self, owners: Sequence[int], tails: Sequence[Sequence[int]]) -> tuple[States, Tensor]:
        """Run tails after their owners' beginnings; return the states, and where in them the tokens are.

        That is a row and a column for each token, one tail's after the other's; not yet on the device.
        """
        ...

    def chunks(self, tails: Sequence[Sequence[int]], most: int) -> Iterator[list[int]]:
        """Yield the places of tails that are not empty, as many as may run together, at most `most`."""
        ...


class Rows:
    """Beginnings of one length, each in a row; its keys and values are copied to every tail."""

    def __init__(self, decoder: Decoder, ids: Tensor, cache: Any, *, budget: int) -> None:
        self._decoder = decoder
        self._ids = ids
        self._cache = cache  # None: the model keeps none that serves, and is given the whole text again
        self._budget = budget  # tokens that run at a time, beginnings included

    def chunks(self, tails: Sequence[Sequence[int]], most: int) -> Iterator[list[int]]:
        """Longest first: the rows of a chunk are padded to its longest."""
        order = sorted((index for index, tail in enumerate(tails) if len(tail)), key=lambda at: -len(tails[at]))
        at = 0
        while at < len(order):
            width = len(tails[order[at]]) + self._ids.shape[1]
            rows = min(max(1, self._budget // width), most)
            yield order[at : at + rows]
            at += rows

    @torch.inference_mode()
    def run(self, owners: Sequence[int], tails: Sequence[Sequence[int]]) -> tuple[States, Tensor]:
        """Run each tail in a row; padding is at the right, where no token looks."""
        device = self._ids.device
        padded = torch.from_numpy(pad([np.asarray(tail, np.int32) for tail in tails], pad_id=0).ids).to(device)
        chosen = torch.tensor(owners, device=device)
        if self._cache is None:
            whole = torch.cat([self._ids[chosen], padded], dim=1)
            states, ahead = self._decoder.run(whole), self._ids.shape[1]
        else:
            cache = copy.deepcopy(self._cache)  # a run writes into it
            cache.batch_select_indices(chosen)
            states, ahead = self._decoder.run(padded, cache=cache, keep_cache=True), 0
        lengths = torch.tensor([len(tail) for tail in tails])
        rows = torch.repeat_interleave(torch.arange(len(tails)), lengths)
        begins = torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths)
        return states, torch.stack([rows, torch.arange(len(rows)) - begins + ahead], dim=1)


class Pack:
    """Beginnings of any length in one row."""

    def __init__(self, decoder: Decoder, beginnings: Sequence[Ids], *, budget: int) -> None:
        self._decoder = decoder
        self._budget = budget  # tokens of tails that run at a time
        tree = _Tree()
        self._ends = [tree.grow(-1, ids.tolist())[-1] for ids in beginnings]
        self._depths = tree.depths
        self._seen = torch.from_numpy(tree.sees()).to(decoder.device)  # which token of them sees which
        self._states = self._run(tree, self._seen, cache=None)

    @torch.inference_mode()
    def logits(self) -> Tensor:
        """Return the logits (beginnings × vocabulary) of what comes after each beginning."""
        ends = torch.tensor(self._ends, device=self._decoder.device)
        return self._states.logits(torch.zeros_like(ends), ends)

    def chunks(self, tails: Sequence[Sequence[int]], most: int) -> Iterator[list[int]]:
        """In the order given, so that tails which share tokens run together."""
        some: list[int] = []
        tokens = 0
        for index, tail in enumerate(tails):
            if some and (tokens + len(tail) > self._budget or len(some) == most):
                yield some
                some, tokens = [], 0
            if len(tail):
                some.append(index)
                tokens += len(tail)
        if some:
            yield some

    @torch.inference_mode()
    def run(self, owners: Sequence[int], tails: Sequence[Sequence[int]]) -> tuple[States, Tensor]:
        """Run all tails in one row; those of one owner that begin alike share tokens."""
        tree = _Tree(self._depths)
        nodes: list[int] = []
        for owner, tail in zip(owners, tails, strict=True):
            nodes += tree.grow(self._ends[owner], tail)
        device = self._decoder.device
        before = self._seen[torch.tensor(tree.roots).to(device)]  # what a token sees that its tail begins after
        seen = torch.cat([before, torch.from_numpy(tree.sees()).to(device)], dim=1)
        states = self._run(tree, seen, cache=copy.deepcopy(self._states.cache))  # a run writes into it
        columns = torch.tensor(nodes) - len(self._depths)
        return states, torch.stack([torch.zeros_like(columns), columns], dim=1)

    @torch.inference_mode()
    def _run(self, tree: _Tree, seen: Tensor, *, cache: Any) -> States:
        device, dtype = self._decoder.device, self._decoder.dtype
        # a query without any key would be not a number; every token sees itself
        mask = torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill_(~seen, torch.finfo(dtype).min)
        return self._decoder.run(
            torch.tensor([tree.tokens], device=device),
            attention=mask[None, None],
            positions=torch.tensor([tree.depths[-len(tree.tokens) :]], device=device),
            cache=cache,
            keep_cache=True,
        )


def fitting(beginnings: Sequence[Ids], *, room: int) -> int:
    """Return how many of the first beginnings make a pack of at most that many tokens: at least one."""
    tree = _Tree()
    for count, ids in enumerate(beginnings):
        tree.grow(-1, ids.tolist())
        if count and len(tree.tokens) > room:
            return count
    return len(beginnings)


class _Tree:
    """Tokens in the order in which they are added, each after its parent; perhaps after others that have run."""

    def __init__(self, depths: Sequence[int] = ()) -> None:
        self._first = len(depths)  # nodes before this one have run
        self.tokens: list[int] = []
        self.depths = list(depths)  # of all nodes
        self.roots: list[int] = []  # of each new node, after which of those that have run its way begins; -1: none
        self._parents: list[int] = []
        self._nodes: dict[tuple[int, int], int] = {}

    def grow(self, parent: int, tokens: Sequence[int]) -> list[int]:
        """Add a way that begins after a node that has run (-1: at the root); return its nodes."""
        root, depth = parent, self.depths[parent] + 1 if parent >= 0 else 0
        nodes = []
        for token in tokens:
            node = self._nodes.get((parent, token))
            if node is None:
                node = self._nodes[parent, token] = len(self.depths)
                self.depths.append(depth)
                self.tokens.append(token)
                self.roots.append(root)
                self._parents.append(parent)
            nodes.append(node)
            parent, depth = node, depth + 1
        return nodes

    def sees(self) -> npt.NDArray[np.bool_]:
        """Return which new node (row) sees which (column): itself, and all on the way to it."""
        seen = np.eye(len(self.tokens), dtype=np.bool_)
        for node, parent in enumerate(self._parents):
            if parent >= self._first:
                seen[node] |= seen[parent - self._first]
        return seen
