"""Reads the words that were asked for off a vocabulary projection, and computes no more of it than they need."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from clinometer.errors import RequestError
from clinometer.models.local.fast.products import product
from clinometer.models.local.fast.transfers import fetch, send
from clinometer.models.local.text import Vocabulary
from clinometer.questions import Requests, WordAnswers
from clinometer.types import WordAnswer, WordQuery

# Logits for some rows of a batch, in order, and some tokens (None: the whole vocabulary), in float32.
Projection = Callable[[Tensor, Tensor | None], Tensor]
# What waits for a device and then gives the answers to some queries.
Pending = Callable[[], Sequence[WordAnswer]]

_MAX_LOGITS = 1 << 25  # what is held at a time: 128 MiB in float32


def linear_projection(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Projection:
    """Project hidden states (rows × size) on the rows of the vocabulary matrix that are needed."""

    def project(rows: Tensor, tokens: Tensor | None) -> Tensor:
        some = hidden if len(rows) == len(hidden) else hidden[rows]
        some_weight = weight if tokens is None else weight[tokens]
        some_bias = bias if tokens is None or bias is None else bias[tokens]
        return product(some, some_weight, some_bias).float()

    return project


def table_projection(logits: Tensor) -> Projection:
    """Look up logits (rows × vocabulary) that a model has already computed."""
    return lambda rows, tokens: (logits[rows] if tokens is None else logits[rows][:, tokens]).float()


def check_words(query: WordQuery) -> None:
    """Raise RequestError unless the query asks for given words or for the top k."""
    if bool(query.words) == (query.top_k > 0):
        raise RequestError(f"give either words or top_k (at least 1), not both and not neither: {query.text!r}")
    if query.normalise == "words" and not query.words:
        raise RequestError(f"normalise='words' needs words: {query.text!r}")


def read_words(
    queries: Sequence[WordQuery],
    projection: Projection,
    vocabulary: Vocabulary,
    *,
    size: int,
    device: torch.device,
) -> list[WordAnswer]:
    """Answer each query from its row of the projection; `size` is the number of rows of the vocabulary matrix."""
    return list(begin_words(queries, projection, vocabulary, size=size, device=device)())


def begin_words(
    queries: Sequence[WordQuery],
    projection: Projection,
    vocabulary: Vocabulary,
    *,
    size: int,
    device: torch.device,
) -> Pending:
    """Begin what `read_words` does; what is returned waits for the device and gives the answers."""
    if (words := _only_words(queries)) is not None:
        wanted = _Wanted(words, vocabulary, device)
        every = torch.arange(len(queries), device=device)
        return wanted.answers(projection(every, wanted.tokens).log_softmax(dim=1))
    pending: list[tuple[list[int], Pending]] = []
    over_words: dict[tuple[str, ...], list[int]] = {}
    over_vocabulary: list[int] = []
    for row, query in enumerate(queries):
        if query.normalise == "words":
            over_words.setdefault(query.words, []).append(row)
        else:
            over_vocabulary.append(row)

    for words, rows in over_words.items():
        wanted = _Wanted(words, vocabulary, device)
        logprobs = projection(send(rows, device), wanted.tokens).log_softmax(dim=1)
        pending.append((rows, wanted.answers(logprobs)))
    step = max(1, _MAX_LOGITS // size)
    for at in range(0, len(over_vocabulary), step):
        rows = over_vocabulary[at : at + step]
        logits = projection(send(rows, device), None)
        pending += _over_vocabulary(queries, rows, logits, vocabulary)

    def answers() -> list[WordAnswer]:
        found: dict[int, WordAnswer] = {}
        for rows, some in pending:
            found.update(zip(rows, some(), strict=True))
        return [found[row] for row in range(len(queries))]

    return answers


def _only_words(queries: Sequence[WordQuery]) -> tuple[str, ...] | None:
    """Return the words that all of these compare with each other, if that can be seen without reading each."""
    if not isinstance(queries, Requests):
        return None
    words, normalise = queries.columns["words"].values, queries.columns["normalise"].values
    return words[0] if len(words) == 1 and normalise == ("words",) else None


class _Wanted:
    """Given words and their distinct tokens: two spellings may be one token, and count once."""

    def __init__(self, words: tuple[str, ...], vocabulary: Vocabulary, device: torch.device) -> None:
        self.words = words
        ids = vocabulary.ids_of(words)
        distinct = list(dict.fromkeys(token for token in ids if token is not None))
        places = {token: place for place, token in enumerate(distinct)}
        self._found = [at for at, token in enumerate(ids) if token is not None]
        self._column = [places[token] for token in ids if token is not None]
        self.tokens = send(distinct, device)

    def answers(self, logprobs: Tensor) -> Pending:
        values = fetch(logprobs)

        def answers() -> WordAnswers:
            table = np.full((len(logprobs), len(self.words)), math.nan, np.float32)
            table[:, self._found] = values().numpy()[:, self._column]
            return WordAnswers(self.words, table)

        return answers


def _over_vocabulary(
    queries: Sequence[WordQuery], rows: Sequence[int], logits: Tensor, vocabulary: Vocabulary
) -> list[tuple[list[int], Pending]]:
    """Answer the queries of these rows, whose logits are given in that order."""
    total = logits.logsumexp(dim=1, keepdim=True)
    pending: list[tuple[list[int], Pending]] = []
    groups: dict[tuple[tuple[str, ...], int], list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault((queries[row].words, queries[row].top_k), []).append(place)
    for (words, top_k), places in groups.items():
        some, some_total = logits, total
        if len(places) < len(rows):
            index = send(places, logits.device)
            some, some_total = logits[index], total[index]
        if words:
            wanted = _Wanted(words, vocabulary, logits.device)
            found = wanted.answers(some[:, wanted.tokens] - some_total)
        else:
            found = _top(some, some_total, top_k, vocabulary)
        pending.append(([rows[place] for place in places], found))
    return pending


def _top(logits: Tensor, total: Tensor, k: int, vocabulary: Vocabulary) -> Pending:
    """Return the k most probable tokens of each row, equal ones by token id; special tokens are left out."""
    logits = logits[:, : vocabulary.size].clone()
    special = [token for token in vocabulary.special if token < logits.shape[1]]
    logits[:, special] = -math.inf
    most = logits.shape[1] - len(special)
    k = min(k, most)
    values, tokens = logits.topk(min(k + 1, most), dim=1)
    # topk takes any of several equal ones: where the next has the last value, too, the row is sorted in full
    crowded = (values[:, k:] == values[:, k - 1 : k]).nonzero()[:, 0]
    values, tokens = values[:, :k], tokens[:, :k]
    if len(crowded):
        values[crowded], tokens[crowded] = (
            part[:, :k] for part in logits[crowded].sort(descending=True, stable=True)
        )
    tokens, by_id = tokens.sort(dim=1)
    values, by_value = values.gather(1, by_id).sort(dim=1, descending=True, stable=True)
    tokens = tokens.gather(1, by_value)
    chosen, logprobs = fetch(tokens), fetch(values - total)
    return lambda: [
        WordAnswer(words=tuple(vocabulary.names_of(row)), logprobs=tuple(some))
        for row, some in zip(chosen().tolist(), logprobs().tolist(), strict=True)
    ]
