"""Opens `corpus:FILE`: a text corpus, asked as if it were a model.

A blank is filled by the words that share sentences with the other words of the text:

    P(w | c1 … cn) ∝ P(w) · Π P(ci | w),   P(c | w) = (n(w, c) + A · P(c)) / (n(w) + A)

where n counts sentences. Word order is not read. So an audit shows the lean of the corpus itself: the baseline for
a model that was trained on it.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import numpy as np

from clinometer.data.corpora import read_corpus
from clinometer.models.files import checksum
from clinometer.models.word_model import WordModel
from clinometer.types import ModelSpec, WordQuery

PREFIX = "corpus:"
SMOOTHING = 5.0  # A: the sentences of evidence that weigh as much as "c is as frequent with w as elsewhere"
WORD, BLANK = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*"), re.compile(r"\[(?:MASK|HIDDEN)[^\]]*\]")


class CorpusProvider:
    """What Clinometer asks about a name, and how the model of that name is opened."""

    name = "corpus"

    def claims(self, name: str) -> bool:
        return name.startswith(PREFIX)

    def check(self, spec: ModelSpec) -> None:
        next(read_corpus([spec.name.removeprefix(PREFIX)]))  # DataError says what is wrong with the file

    def capabilities(self, spec: ModelSpec) -> tuple[str, ...]:
        return WordModel.capabilities

    def load(self, spec: ModelSpec, *, device: str) -> WordModel:
        path = spec.name.removeprefix(PREFIX)
        words, logprobs = count(document.text for document in read_corpus([path]))
        return WordModel(spec.name, words, logprobs, weights=checksum(Path(path)), version="1")


def count(texts: Iterable[str]) -> tuple[list[str], Callable[[WordQuery], np.ndarray]]:
    """Return the words of a corpus, and the function from a query to their log-probabilities."""
    found = (set(WORD.findall(part)) for text in texts for part in re.split(r"[.!?\n]", text.lower()))
    sentences = [words for words in found if words]
    words = sorted(set().union(*sentences))
    ids = {word: number for number, word in enumerate(words)}
    tokens = np.array([ids[word] for sentence in sentences for word in sentence])
    places = np.repeat(np.arange(len(sentences)), [len(sentence) for sentence in sentences])
    counts = np.bincount(tokens)

    @cache
    def evidence(word: int) -> np.ndarray:
        """Return log P(word | w) − log P(word) for every word w."""
        together = np.bincount(tokens[np.isin(places, places[tokens == word])], minlength=len(words))
        gain = np.log((together * len(sentences) / counts[word] + SMOOTHING) / (counts + SMOOTHING))
        gain[word] = 0.0  # that a word shares sentences with itself says nothing
        return gain

    def logprobs(query: WordQuery) -> np.ndarray:
        around = WORD.findall(f"{query.context} {BLANK.sub(' ', query.text)}".lower())
        scores = np.log(counts) + sum(evidence(ids[word]) for word in around if word in ids)
        return scores - np.logaddexp.reduce(scores)

    return words, logprobs
