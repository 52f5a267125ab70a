"""Opens the opinion-word scorer: p/(p + n) over the positive and negative words of a text. Needs no torch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from typing import final

from clinometer.data.sentiment_lexicons import OpinionWords, read_opinion_words, vader_opinion_words
from clinometer.models.protocols import requests_of
from clinometer.types import Classify, ClassifyAnswer, ModelInfo, ModelSpec, Request

NAME = "builtin:opinion-words"

# letters and digits with apostrophes and hyphens inside: "don't", "well-made"
_WORDS = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


@final
class OpinionWordScorers:
    """The provider of `builtin:opinion-words` (VADER's words) and `builtin:opinion-words:FOLDER` (Hu & Liu's)."""

    name = "opinion words"

    def claims(self, name: str) -> bool:
        """Tell whether a name is that of the scorer, with or without a folder."""
        return name == NAME or name.startswith(f"{NAME}:")

    def check(self, spec: ModelSpec) -> None:
        """Raise DataError where the word lists cannot be read."""
        self.load(spec, device="cpu")

    def capabilities(self, spec: ModelSpec) -> tuple[str, ...]:
        """Return what the scorer can be asked."""
        return ("classify",)

    def load(self, spec: ModelSpec, *, device: str) -> OpinionWordModel:
        """Read the word lists; they need no device."""
        folder = spec.name.removeprefix(NAME).removeprefix(":")
        words = read_opinion_words(folder) if folder else vader_opinion_words()
        return OpinionWordModel(words, name=spec.name)


@final
class OpinionWordModel:
    r"""Counts opinion words: positive is p/(p + n), negative n/(p + n); without any, neutral is 1.

    .. math:: s = \frac{p}{p + n}, \quad s = 0.5 \text{ when } p + n = 0

    is `positive + neutral / 2`. Huang et al. 2020, Reducing Sentiment Bias in Language Models via Counterfactual
    Evaluation, §5.1. Negation is not read: "not good" has one positive word.
    """

    def __init__(self, words: OpinionWords, *, name: str = NAME) -> None:
        # +1 or −1 by word, in one table: one look-up for each word of a text
        self._signs = dict.fromkeys(words.positive, 1) | dict.fromkeys(words.negative, -1)
        content = "\n".join(f"{word} {sign}" for word, sign in sorted(self._signs.items()))
        self.info = ModelInfo(
            name=name,
            kind="classifier",
            family="opinion-words",
            capabilities=("classify",),
            weights=hashlib.sha256(content.encode()).hexdigest(),
            tokenizer=hashlib.sha256(_WORDS.pattern.encode()).hexdigest(),
            dtype="float64",
            code="1",  # raised when the same words would be counted otherwise
            settings={"lexicon": words.source},
        )

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return 1 for each text: counting words costs no memory."""
        return [1] * len(requests)

    def classify(self, batch: Sequence[Classify]) -> list[ClassifyAnswer]:
        """Return the shares of positive and negative opinion words in each text."""
        signs = self._signs.get
        answers = []
        for request in requests_of(Classify, batch, answered_by="the opinion-word scorer"):
            found = list(filter(None, map(signs, _WORDS.findall(request.text.lower()))))
            answers.append(_answer(found.count(1), len(found)))
        return answers


@cache
def _answer(positive: int, both: int) -> ClassifyAnswer:
    """Return p/(p + n) and n/(p + n); few pairs of counts occur, so each answer is made once."""
    if not both:
        return ClassifyAnswer(negative=0.0, neutral=1.0, positive=0.0)
    return ClassifyAnswer(negative=(both - positive) / both, neutral=0.0, positive=positive / both)
