"""A model that is a function from texts to the probabilities of its words, for providers; no torch."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from clinometer.errors import RequestError
from clinometer.types import MASK, Fill, ModelInfo, Request, WordAnswer, WordQuery


@final
class WordModel:
    """Fills blanks and continues texts with the words of a vocabulary of its own.

    `logprobs(query)` returns the log-probability of every one of the `words`, in their order. A word that is asked
    for and not there is looked up in lower case. `weights` is a
    checksum of what the function knows, and `version` says what it does with that: recorded answers are used again
    while both stay the same.

    >>> model = WordModel("even", ["man", "woman"], lambda query: np.log([0.5, 0.5]), weights="0", version="1")
    >>> model.fill([Fill(text="The [MASK] works.", words=("woman", "robot"))])[0].logprobs
    (-0.6931471805599453, nan)
    """

    capabilities = ("fill", "next_word")

    def __init__(
        self,
        name: str,
        words: Sequence[str],
        logprobs: Callable[[WordQuery], NDArray[np.float64]],
        *,
        weights: str,
        version: str,
    ) -> None:
        self._words, self._logprobs = words, logprobs
        self._places = {word: place for place, word in enumerate(words)}
        self.info = ModelInfo(
            name=name,
            kind="masked",
            family="words",
            capabilities=self.capabilities,
            weights=weights,
            tokenizer=hashlib.sha256("\n".join(words).encode()).hexdigest(),
            dtype="float64",
            code=version,
        )

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return 1 for each request: how many are asked at once needs no more memory."""
        return [1] * len(requests)

    def fill(self, batch: Sequence[WordQuery]) -> list[WordAnswer]:
        """Answer which words fit each text; NaN for a word that the vocabulary does not have."""
        return [self._answer(query) for query in batch]

    next_word = fill

    def _answer(self, query: WordQuery) -> WordAnswer:
        if isinstance(query, Fill) and query.text.count(MASK) != 1:
            raise RequestError(f"expected one {MASK}, found {query.text.count(MASK)}: {query.text!r}")
        logprobs = self._logprobs(query)
        if query.top_k:
            best = np.argsort(-logprobs, kind="stable")[: query.top_k]
            return WordAnswer(
                words=tuple(self._words[place] for place in best), logprobs=tuple(logprobs[best].tolist())
            )
        places = [self._places.get(word, self._places.get(word.lower())) for word in query.words]
        if query.normalise == "words":
            known = sorted({place for place in places if place is not None})
            logprobs = logprobs - np.logaddexp.reduce(logprobs[known])
        found = tuple(math.nan if place is None else float(logprobs[place]) for place in places)
        return WordAnswer(words=query.words, logprobs=found)
