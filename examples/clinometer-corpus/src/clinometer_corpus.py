"""Opens `corpus:FILE`: a text corpus, asked as if it were a model.

A blank is filled by the words that share sentences with the other words of the text:

    P(w | c1 … cn) ∝ P(w) · Π P(ci | w),   P(c | w) = (n(w, c) + A · P(c)) / (n(w) + A)

where n counts sentences. Word order is not read. So an audit shows the lean of the corpus itself: the baseline for
a model that was trained on it.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from clinometer.data.corpora import read_corpus
from clinometer.errors import RequestError
from clinometer.models.files import checksum
from clinometer.types import MASK, Fill, ModelInfo, ModelSpec, Request, WordAnswer, WordQuery

PREFIX = "corpus:"
CAPABILITIES = ("fill", "next_word")
SMOOTHING = 5.0  # A: the sentences of evidence that weigh as much as "c is as frequent with w as elsewhere"
WORD, BLANK = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*"), re.compile(r"\[(?:MASK|HIDDEN)[^\]]*\]")


class CorpusProvider:
    """What Clinometer asks about a name, and how the model of that name is opened."""

    name = "corpus"

    def claims(self, name: str) -> bool:
        """Tell whether a model of this name belongs here."""
        return name.startswith(PREFIX)

    def check(self, spec: ModelSpec) -> None:
        """Read the first document; DataError says what is wrong with a file that is not a corpus."""
        next(read_corpus([spec.name.removeprefix(PREFIX)]))

    def capabilities(self, spec: ModelSpec) -> tuple[str, ...]:
        """Return what a corpus can be asked."""
        return CAPABILITIES

    def load(self, spec: ModelSpec, *, device: str) -> CorpusModel:
        """Count the words of the corpus; it needs no device."""
        return CorpusModel(spec.name)


class CorpusModel:
    """Answers which word belongs to the other words of a text."""

    def __init__(self, name: str) -> None:
        path = name.removeprefix(PREFIX)
        texts = (document.text for document in read_corpus([path]))
        found = (set(WORD.findall(part)) for text in texts for part in re.split(r"[.!?\n]", text.lower()))
        sentences = [words for words in found if words]
        self._words = sorted(set().union(*sentences))
        self._ids = {word: number for number, word in enumerate(self._words)}
        self._tokens = np.array([self._ids[word] for words in sentences for word in words])
        self._sentence = np.repeat(np.arange(len(sentences)), [len(words) for words in sentences])
        self._counts = np.bincount(self._tokens)
        self._known: dict[int, np.ndarray] = {}  # the evidence of words that were asked about before
        self.info = ModelInfo(
            name=name,
            kind="masked",
            family="corpus",
            capabilities=CAPABILITIES,
            weights=checksum(Path(path)),
            tokenizer=hashlib.sha256(WORD.pattern.encode()).hexdigest(),
            dtype="float64",
            code="1",  # raise it when the same corpus would answer otherwise: recorded answers are then not reused
        )

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return what each request adds to a batch: counting costs no memory."""
        return [1] * len(requests)

    def fill(self, batch: Sequence[WordQuery]) -> list[WordAnswer]:
        """Answer which words fit the other words of each text; NaN for a word that the corpus does not have."""
        return [self._answer(query) for query in batch]

    next_word = fill  # word order is not read, so a blank at the end is a blank like any other

    def _answer(self, query: WordQuery) -> WordAnswer:
        if isinstance(query, Fill) and query.text.count(MASK) != 1:
            raise RequestError(f"expected one {MASK}, found {query.text.count(MASK)}: {query.text!r}")
        logprobs = self._logprobs(f"{query.context} {BLANK.sub(' ', query.text)}")
        if query.top_k:
            best = np.argsort(-logprobs, kind="stable")[: query.top_k]
            return WordAnswer(words=tuple(self._words[at] for at in best), logprobs=tuple(logprobs[best].tolist()))
        ids = [self._ids.get(word.lower()) for word in query.words]
        if query.normalise == "words":
            logprobs = logprobs - np.logaddexp.reduce(logprobs[[at for at in set(ids) if at is not None]])
        found = tuple(math.nan if at is None else float(logprobs[at]) for at in ids)
        return WordAnswer(words=query.words, logprobs=found)

    def _logprobs(self, text: str) -> np.ndarray:
        """Return the log-probability of every word of the corpus, given the words of a text."""
        around = [self._ids[word] for word in WORD.findall(text.lower()) if word in self._ids]
        scores = np.log(self._counts) + sum(map(self._evidence, around), np.zeros(len(self._words)))
        return scores - np.logaddexp.reduce(scores)

    def _evidence(self, word: int) -> np.ndarray:
        """Return log P(word | w) − log P(word) for every word w of the corpus."""
        if word not in self._known:
            chosen = np.isin(self._sentence, self._sentence[self._tokens == word])
            together = np.bincount(self._tokens[chosen], minlength=len(self._words))
            share = self._counts[word] / (self._sentence[-1] + 1)
            evidence = np.log((together / share + SMOOTHING) / (self._counts + SMOOTHING))
            evidence[word] = 0.0  # that a word shares sentences with itself says nothing
            self._known[word] = evidence
        return self._known[word]
