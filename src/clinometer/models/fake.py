"""A model that is a Python function: for tests of probes, and to audit anything that can answer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, cast, final

from clinometer.errors import ModelError, RequestError, nearest
from clinometer.models.protocols import ANSWERS, METHODS
from clinometer.types import (
    Answer,
    AnswerWord,
    Ask,
    Classify,
    ClassifyAnswer,
    Embed,
    EmbedAnswer,
    Fill,
    LogLikelihood,
    LogLikelihoodAnswer,
    ModelInfo,
    ModelKind,
    NextWord,
    Request,
    Rescore,
    Sample,
    TextAnswer,
    WordAnswer,
)


@final
class FakeModel:
    """Answers every request by calling `answer(request)`; needs no torch.

    `version` identifies what the function does: recorded answers are used again while it stays the same, so
    change it whenever the function's answers change.

    >>> from clinometer.types import Fill, WordAnswer
    >>> def answer(request):
    ...     return WordAnswer(words=request.words, logprobs=(-1.0,) * len(request.words))
    >>> model = FakeModel(answer=answer)
    >>> model.fill([Fill(text="The [MASK] works.", words=("man", "woman"))])[0].logprobs
    (-1.0, -1.0)
    """

    def __init__(
        self,
        *,
        answer: Callable[[Any], Answer],
        version: str = "0",
        name: str = "fake",
        kind: ModelKind = "masked",
        capabilities: tuple[str, ...] = ("fill",),
    ) -> None:
        for capability in capabilities:
            if capability not in METHODS.values():
                raise ModelError(f"no capability {capability!r}; {nearest(capability, METHODS.values())}")
        self._answer = answer
        identity = hashlib.sha256(f"{name}\0{version}".encode()).hexdigest()
        self.info = ModelInfo(
            name=name,
            kind=kind,
            family="fake",
            capabilities=capabilities,
            weights=identity,
            tokenizer=identity,
            dtype="float64",
            code=identity,
        )

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return the number of words of each request, in place of its length in tokens."""
        for request in requests:
            self._check(request)
        return [max(1, len(str(request).split())) for request in requests]

    def fill(self, batch: Sequence[Fill]) -> list[WordAnswer]:
        """Answer which words fit the mask of each text."""
        return cast(list[WordAnswer], self._answers(batch))

    def next_word(self, batch: Sequence[NextWord]) -> list[WordAnswer]:
        """Answer which words come after each text."""
        return cast(list[WordAnswer], self._answers(batch))

    def rescore(self, batch: Sequence[Rescore]) -> list[WordAnswer]:
        """Answer which words belong at the blank of each text."""
        return cast(list[WordAnswer], self._answers(batch))

    def sample(self, batch: Sequence[Sample]) -> list[TextAnswer]:
        """Continue each prefix."""
        return cast(list[TextAnswer], self._answers(batch))

    def log_likelihood(self, batch: Sequence[LogLikelihood]) -> list[LogLikelihoodAnswer]:
        """Answer how probable each text is."""
        return cast(list[LogLikelihoodAnswer], self._answers(batch))

    def classify(self, batch: Sequence[Classify]) -> list[ClassifyAnswer]:
        """Answer whether each text is negative, neutral or positive."""
        return cast(list[ClassifyAnswer], self._answers(batch))

    def embed(self, batch: Sequence[Embed]) -> list[EmbedAnswer]:
        """Answer which vector represents each text."""
        return cast(list[EmbedAnswer], self._answers(batch))

    def ask(self, batch: Sequence[Ask]) -> list[TextAnswer]:
        """Answer each conversation."""
        return cast(list[TextAnswer], self._answers(batch))

    def answer_word(self, batch: Sequence[AnswerWord]) -> list[WordAnswer]:
        """Answer with which words the answer to each conversation begins."""
        return cast(list[WordAnswer], self._answers(batch))

    def _answers(self, batch: Sequence[Request]) -> list[Answer]:
        answers = []
        for request in batch:
            self._check(request)
            answer = self._answer(request)
            expected = ANSWERS[type(request)]
            if not isinstance(answer, expected):
                raise ModelError(
                    f"the function of {self.info.name!r} answered {type(request).__name__} with"
                    f" {type(answer).__name__}; it must return {expected.__name__}"
                )
            answers.append(answer)
        return answers

    def _check(self, request: Request) -> None:
        capability = METHODS[type(request)]
        if capability not in self.info.capabilities:
            raise RequestError(
                f"{self.info.name!r} does not answer {type(request).__name__}; it offers"
                f" {', '.join(self.info.capabilities)}"
            )
