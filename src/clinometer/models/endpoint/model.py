"""A model behind an address, or behind anything else that speaks as such an endpoint does."""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, final

from clinometer.errors import RequestError
from clinometer.models.endpoint.asking import calls_of, prompt_tokens
from clinometer.models.endpoint.faults import Refused
from clinometer.models.endpoint.offer import Offer
from clinometer.models.endpoint.reading import read_reply, without_answer
from clinometer.models.endpoint.sending import CONCURRENCY, Pace, Sender
from clinometer.models.endpoint.transport import Transport
from clinometer.models.endpoint.words import first_word, next_word, rescored
from clinometer.models.protocols import Call, Reply
from clinometer.types import (
    Answer,
    AnswerWord,
    Ask,
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

CODE = "1"  # raised when the same reply would be read otherwise

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class Reader:
    """Puts requests into calls, and replies into answers: all of a model that is not its connection."""

    offer: Offer
    served: str  # what the endpoint calls the model

    def calls(self, request: Request, replies: Sequence[Reply] = ()) -> Sequence[Call]:
        """Return what is sent for a request."""
        return calls_of(request, replies, offer=self.offer, model=self.served)

    def read(self, request: Request, replies: Sequence[Reply]) -> Answer:
        """Make the answer of the replies to the calls of a request."""
        contents = [reply.content for reply in replies]
        match request:
            case Ask() | Sample():
                return _texts(contents)
            case NextWord():
                return next_word(request, contents)
            case AnswerWord():
                return first_word(request, contents)
            case Rescore():
                return rescored(request, replies)
            case LogLikelihood():
                (content,) = contents
                return LogLikelihoodAnswer(logprob=content["logprob"], tokens=content["tokens"])
            case _:
                raise RequestError(f"this endpoint does not answer {type(request).__name__}")


@final
class EndpointModel:
    """Asks an endpoint for texts and words, in exactly the ways that it was found to offer."""

    def __init__(self, *, info: ModelInfo, transport: Transport, offer: Offer, served: str, where: str) -> None:
        self.info = info
        self.offer = offer
        self.where = where
        self._transport = transport
        self._reader = Reader(offer, served)
        ways = [way for way in (offer.chat, offer.plain) if way is not None]
        self.unique_ids = all(way.unique_ids for way in ways)

    # -- how the engine asks

    def calls(self, request: Request, replies: Sequence[Reply] = ()) -> Sequence[Call]:
        """Return what is sent for a request."""
        return self._reader.calls(request, replies)

    async def send(self, call: Call) -> Reply:
        """Send a call once. What a filter for content objects to is recorded as that."""
        try:
            arrived = await self._transport.post(call.path, call.body)
        except Refused as refusal:
            if not refusal.filtered:
                raise
            return without_answer(call, "content filter")
        return read_reply(call, arrived.body, arrived.headers)

    def read(self, request: Request, replies: Sequence[Reply]) -> Answer:
        """Make the answer of the replies to the calls of a request."""
        return self._reader.read(request, replies)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    # -- how anybody else asks

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return the estimated tokens of each question; RequestError for one that cannot be asked."""
        return [sum(prompt_tokens(call.body) for call in self.calls(request)) for request in requests]

    def ask(self, batch: Sequence[Ask]) -> list[TextAnswer]:
        """Answer each conversation n times."""
        return self._answers(batch)

    def sample(self, batch: Sequence[Sample]) -> list[TextAnswer]:
        """Continue each prefix n times."""
        return self._answers(batch)

    def next_word(self, batch: Sequence[NextWord]) -> list[WordAnswer]:
        """Answer which words come after each text."""
        return self._answers(batch)

    def answer_word(self, batch: Sequence[AnswerWord]) -> list[WordAnswer]:
        """Answer with which words an answer begins."""
        return self._answers(batch)

    def rescore(self, batch: Sequence[Rescore]) -> list[WordAnswer]:
        """Answer which words belong at the blank of each text."""
        return self._answers(batch)

    def log_likelihood(self, batch: Sequence[LogLikelihood]) -> list[LogLikelihoodAnswer]:
        """Answer how probable each text is."""
        return self._answers(batch)

    def _answers(self, batch: Sequence[Request]) -> list[Any]:
        async def ask() -> list[Answer]:
            sender = Sender(self, self.where, Pace(CONCURRENCY))
            try:
                return await asyncio.gather(*(self._answer(request, sender) for request in batch))
            finally:
                await self.close()

        return run_in_loop(ask())

    async def _answer(self, request: Request, sender: Sender) -> Answer:
        replies: list[Reply] = []
        while calls := self.calls(request, replies)[len(replies) :]:
            replies += await asyncio.gather(*(sender.send(call) for call in calls))
        return self.read(request, replies)


def endpoint_info(name: str, *, served: str, where: str, offer: Offer, weights: str = "") -> ModelInfo:
    """Say who a model behind an address is. Where its weights cannot be seen, address and name stand for them."""
    identity = weights or hashlib.sha256(f"{where}\0{served}".encode()).hexdigest()
    return ModelInfo(
        name=name,
        kind="chat" if offer.chat is not None else "causal",
        family="endpoint",
        capabilities=capabilities_of(offer),
        weights=identity,
        tokenizer=identity,
        dtype="unknown",
        code=CODE,
        settings=offer.settings,
        told=offer.told,
    )


def capabilities_of(offer: Offer) -> tuple[str, ...]:
    """Return what can be asked of an endpoint: what its paths are good for, and no more.

    One that gives the same text each time cannot be sampled, and words that it does not tell cannot be drawn.
    """
    found: list[str] = []
    if offer.chat is not None:
        found += ["ask", *["answer_word"] * (offer.chat.top > 0 or offer.chat.draws)]
    if offer.plain is not None:
        found += ["next_word"] * (offer.plain.top > 0 or offer.plain.draws) + ["sample"] * offer.plain.draws
    return (*found, *["log_likelihood", "rescore"] * offer.scores)


def _texts(contents: Sequence[Mapping[str, Any]]) -> TextAnswer:
    def of(name: str) -> tuple[str, ...]:
        return tuple(text for content in contents for text in content[name])

    return TextAnswer(texts=of("texts"), endings=of("endings"), reasoning=of("reasoning"))


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where a notebook's event loop is running in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
