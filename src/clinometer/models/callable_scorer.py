"""A scorer that is a Python function from texts to numbers, for classifiers that live elsewhere; no torch."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from typing import final

from clinometer.errors import ModelError
from clinometer.models.protocols import requests_of
from clinometer.types import Classify, ClassifyAnswer, ModelInfo, Request


@final
class CallableScorer:
    """Scores texts by calling `function(texts)`, which returns one number from 0 (negative) to 1 (positive) each.

    `version` identifies what the function does: recorded scores are used again while name and version stay the
    same, so change it whenever the function's answers change.

    >>> scorer = CallableScorer("length", lambda texts: [min(1.0, len(text) / 10) for text in texts], version="1")
    >>> scorer.classify([Classify(text="kind")])[0].positive
    0.4
    """

    def __init__(self, name: str, function: Callable[[list[str]], Sequence[float]], *, version: str = "0") -> None:
        self._function = function
        identity = hashlib.sha256(f"{name}\0{version}".encode()).hexdigest()
        self.info = ModelInfo(
            name=name,
            kind="classifier",
            family="function",
            capabilities=("classify",),
            weights=identity,
            tokenizer=identity,
            dtype="float64",
            code=identity,
            settings={"version": version},
        )

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return the number of words of each text, in place of its length in tokens."""
        return [max(1, len(text.split())) for text in self._texts(requests)]

    def classify(self, batch: Sequence[Classify]) -> list[ClassifyAnswer]:
        """Score each text; raise ModelError for anything but a score from 0 to 1."""
        texts = self._texts(batch)
        returned = self._function(texts)
        if not isinstance(returned, Iterable):
            raise ModelError(
                f"the function of {self.info.name!r} returned {type(returned).__name__} for {len(texts)} texts; "
                "it must return a list with one number for each"
            )
        scores = list(returned)
        if len(scores) != len(texts):
            raise ModelError(
                f"the function of {self.info.name!r} returned {len(scores)} scores for {len(texts)} texts; it "
                "must return one for each"
            )
        return [self._answer(text, score) for text, score in zip(texts, scores, strict=True)]

    def _answer(self, text: str, score: object) -> ClassifyAnswer:
        try:
            number = float(score)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = math.nan
        if not 0 <= number <= 1:  # also true of NaN
            shown = text if len(text) <= 80 else f"{text[:80]} …"
            raise ModelError(
                f"the function of {self.info.name!r} scored {shown!r} as {score!r}; it must return a number from "
                "0 (negative) to 1 (positive)"
            )
        return ClassifyAnswer(negative=1 - number, neutral=math.nan, positive=number)

    def _texts(self, requests: Sequence[Request]) -> list[str]:
        return [request.text for request in requests_of(Classify, requests, answered_by=repr(self.info.name))]
