"""Opens a file of answers that somebody else got: `answers:FILE`. What it lacks is written down to be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import final

from clinometer.errors import DataError
from clinometer.models.endpoint.asking import prompt_tokens
from clinometer.models.endpoint.faults import Unanswered
from clinometer.models.endpoint.model import Reader, capabilities_of, endpoint_info
from clinometer.models.endpoint.offer import CHAT, PLAIN, Offer, Way
from clinometer.models.endpoint.reading import without_answer
from clinometer.models.endpoint.written import Answers
from clinometer.models.protocols import Call, Reply
from clinometer.types import Answer, AskedAs, ModelInfo, ModelSpec, Request

PREFIX = "answers:"
_MANY = 128  # answers to one question: as many as OpenAI gives at once

# What whoever answers is asked for: few log-probabilities, because no interface that people pay for gives more.
_OFFER = Offer(
    chat=Way(path=CHAT, top=20, many=_MANY, seed="taken"), plain=Way(path=PLAIN, top=5, many=_MANY, seed="taken")
)


@final
class AnswerFiles:
    """The provider of `answers:FILE`."""

    name = "files of answers"

    def claims(self, name: str) -> bool:
        """Tell whether a name begins with `answers:`."""
        return name.startswith(PREFIX)

    def check(self, spec: ModelSpec) -> None:
        """Raise DataError where the file cannot be read."""
        path = file_of(spec)
        if not path.is_file():
            raise DataError(
                f"no file {str(path)!r}; write the questions with `clinometer questions`, and the answers there"
            )

    def capabilities(self, spec: ModelSpec) -> tuple[str, ...]:
        """Return what is asked: a chat, unless the spec says otherwise."""
        return capabilities_of(_OFFER.asked_as(spec.kind))

    def load(self, spec: ModelSpec, *, device: str) -> AnswersModel:
        """Read the file."""
        self.check(spec)
        return AnswersModel(spec, Answers.read(file_of(spec)))


@final
class AnswersModel:
    """A model whose answers are in a file."""

    def __init__(self, spec: ModelSpec, answers: Answers) -> None:
        self.offer = _OFFER.asked_as(spec.kind)
        self.answers = answers
        self.unique_ids = False  # whoever writes a file may leave them out
        self.accepts_missing = False  # whether an audit concludes without the answers that are not there
        self.file = file_of(spec)
        self.where = str(self.file)
        self._reader = Reader(self.offer, served="MODEL")
        self.info = _info(spec, self.offer, answers)

    def calls(self, request: Request, replies: Sequence[Reply] = ()) -> Sequence[Call]:
        """Return the questions of a request."""
        return self._reader.calls(request, replies)

    async def send(self, call: Call) -> Reply:
        """Look the answer up; raise Unanswered where there is none."""
        reply = self.answers.reply(call)
        if reply is None:
            if self.accepts_missing:
                return without_answer(call, "missing")
            raise Unanswered("not in the file")
        return reply

    def read(self, request: Request, replies: Sequence[Reply]) -> Answer:
        """Make the answer of the replies."""
        return self._reader.read(request, replies)

    async def close(self) -> None:
        """Nothing is open."""

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return the estimated tokens of each question; RequestError for one that cannot be asked."""
        return [sum(prompt_tokens(call.body) for call in self.calls(request)) for request in requests]


def file_of(spec: ModelSpec) -> Path:
    """Return the file that a spec names."""
    return Path(spec.name.removeprefix(PREFIX)).expanduser()


def unanswered(kind: AskedAs = "") -> AnswersModel:
    """Return a model that has answered nothing yet, to see what it would be asked."""
    return AnswersModel(ModelSpec(name=f"{PREFIX}none", kind=kind), Answers())


def _info(spec: ModelSpec, offer: Offer, answers: Answers) -> ModelInfo:
    # who answers is known by the answers, wherever the file is; a run goes on with those that it began with when
    # the file has grown
    info = endpoint_info(spec.name, served="MODEL", where="answers", offer=offer, weights=answers.digest())
    return replace(info, family="answers", told={"model": file_of(spec).name})
