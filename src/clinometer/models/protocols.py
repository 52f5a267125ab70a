"""What a model can be asked. No torch here: probes, engine and fakes share these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from clinometer.errors import RequestError
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
    NextWord,
    Request,
    Rescore,
    Sample,
    TextAnswer,
    WordAnswer,
)


class Model(Protocol):
    """Every adapter: who it is, and what a request costs.

    The capability methods below take one batch, requests of one kind that fit in memory, and answer it in order. A
    batch may be any Sequence: a list, a tuple, or columns that make each request when it is read. Sorting,
    batching, splitting and retrying are up to the engine.
    """

    @property
    def info(self) -> ModelInfo: ...

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return the length in tokens of each request; raise RequestError for one that cannot be asked."""
        ...


@runtime_checkable
class CanLaunch(Protocol):
    """Adapters that can begin a batch before the answers to the previous one are read."""

    @property
    def runs_in_background(self) -> bool:
        """Whether the device computes by itself after `launch` (a GPU); if not, `launch` does all the work."""
        ...

    def launch(self, batch: Sequence[Request]) -> Callable[[], Sequence[Answer]]:
        """Begin a batch; the function that is returned waits for its answers."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One message to an endpoint. A request is one call, or several where the endpoint gives one answer a call."""

    path: str  # "/chat/completions" or "/completions"
    body: Mapping[str, Any]  # plain JSON
    reads: Literal["texts", "words", "score"]  # what of the answer is kept
    words: tuple[str, ...] = ()  # of the most probable tokens, those that are kept; none: all
    span: tuple[int, int] = (0, 0)  # where in a prompt that is scored the word is that is asked about
    tokens: int = 0  # the most that it can cost: those of the prompt, estimated, and those of the answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back on one call, as plain JSON, and what the endpoint said of itself."""

    content: Mapping[str, Any]
    source: Mapping[str, str | int] = field(default_factory=dict)


@runtime_checkable
class CanSend(Protocol):
    """Models behind an address: a request is sent as calls, many at once, and each reply is kept as it arrives.

    What is recorded is a pure function of request and replies, so replies can come from a journal or a file.
    """

    @property
    def unique_ids(self) -> bool:
        """Whether every reply has an id of its own, so that one that comes twice is noticed."""
        ...

    def calls(self, request: Request, replies: Sequence[Reply] = ()) -> Sequence[Call]:
        """Return what is sent for a request, as far as it is known from the replies to its first calls.

        The same calls each time; when there is a reply to each, the request is answered.
        """
        ...

    async def send(self, call: Call) -> Reply:
        """Send a call once; raise one of `models.endpoint.faults` where no answer came that can be used."""
        ...

    def read(self, request: Request, replies: Sequence[Reply]) -> Answer:
        """Make the answer of the replies to the calls of a request, in their order."""
        ...

    async def close(self) -> None:
        """Close the connections; called in the event loop in which calls were sent."""
        ...


@runtime_checkable
class CanFill(Protocol):
    """Masked models: the word at the one mask of a text."""

    def fill(self, batch: Sequence[Fill]) -> list[WordAnswer]: ...


@runtime_checkable
class CanContinue(Protocol):
    """Causal models: the word after a prefix."""

    def next_word(self, batch: Sequence[NextWord]) -> list[WordAnswer]: ...


@runtime_checkable
class CanRescore(Protocol):
    """Causal models: the word at a blank, by the score of the whole text."""

    def rescore(self, batch: Sequence[Rescore]) -> list[WordAnswer]: ...


@runtime_checkable
class CanSample(Protocol):
    """Causal models: continuations of a prefix."""

    def sample(self, batch: Sequence[Sample]) -> list[TextAnswer]: ...


@runtime_checkable
class CanScore(Protocol):
    """Causal models: summed token log-probabilities."""

    def log_likelihood(self, batch: Sequence[LogLikelihood]) -> list[LogLikelihoodAnswer]: ...


@runtime_checkable
class CanClassify(Protocol):
    """Classifiers: negative, neutral, positive."""

    def classify(self, batch: Sequence[Classify]) -> list[ClassifyAnswer]: ...


@runtime_checkable
class CanEmbed(Protocol):
    """Encoders: a sentence vector."""

    def embed(self, batch: Sequence[Embed]) -> list[EmbedAnswer]: ...


@runtime_checkable
class CanAsk(Protocol):
    """Chat models: answers to a conversation."""

    def ask(self, batch: Sequence[Ask]) -> list[TextAnswer]: ...


@runtime_checkable
class CanAnswerWord(Protocol):
    """Chat models: the probabilities of the first word of an answer."""

    def answer_word(self, batch: Sequence[AnswerWord]) -> list[WordAnswer]: ...


# Which method answers which request, and with what: the one place that knows.
METHODS: dict[type, str] = {
    Fill: "fill",
    NextWord: "next_word",
    Rescore: "rescore",
    Sample: "sample",
    LogLikelihood: "log_likelihood",
    Classify: "classify",
    Embed: "embed",
    Ask: "ask",
    AnswerWord: "answer_word",
}

ANSWERS: dict[type, type] = {
    Fill: WordAnswer,
    NextWord: WordAnswer,
    Rescore: WordAnswer,
    Sample: TextAnswer,
    LogLikelihood: LogLikelihoodAnswer,
    Classify: ClassifyAnswer,
    Embed: EmbedAnswer,
    Ask: TextAnswer,
    AnswerWord: WordAnswer,
}

Kind = TypeVar("Kind", bound=Request)


def requests_of(kind: type[Kind], requests: Sequence[Request], *, answered_by: str) -> list[Kind]:
    """Return the requests, after checking that all are of the one kind that a model answers."""
    found: list[Kind] = []
    for request in requests:
        if not isinstance(request, kind):
            asked = type(request).__name__
            raise RequestError(
                f"{answered_by} answers {kind.__name__} requests, not {asked}; choose another model"
            )
        found.append(request)
    return found
