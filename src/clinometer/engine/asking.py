"""A stage that is asked of an endpoint: many calls at once, each reply in the journal as soon as it arrives.

The unit is the call, not the batch: nothing that arrived is lost, whatever happens next. Answers become parts of
records a few thousand at a time.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clinometer.engine.journal import Journal, Place
from clinometer.engine.progress import Progress
from clinometer.errors import AwaitedError, ClinometerError
from clinometer.models.endpoint.faults import Unanswered
from clinometer.models.endpoint.reading import joined
from clinometer.models.endpoint.sending import Sender
from clinometer.models.protocols import Call, CanSend, Reply
from clinometer.store import RecordWriter, Row
from clinometer.types import Answer, Request

PART_ANSWERS = 5_000  # in one part
PART_BYTES = 32 << 20  # of journal, after which a part is written however few answers it has
REMEMBERED_IDS = 20_000  # of replies, to notice one that comes twice

Source = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that lacks an answer, and the rows that the answer will make."""

    key: bytes
    request: Request
    items: int  # how many rows that will be
    rows: Callable[[Answer, Source], Sequence[Row]]


@dataclass(slots=True)
class _Question:
    """A request on its way, and the replies to its calls that are there."""

    asked: list[Asked]  # more than one where two windows ask the same
    replies: list[Reply | None]

    @property
    def present(self) -> list[Reply]:
        return [reply for reply in self.replies if reply is not None]


@dataclass(slots=True)
class EndpointStage:
    """Asks one stage of one model."""

    model: CanSend
    sender: Sender
    journal: Journal
    writer: RecordWriter
    progress: Progress
    learn: Callable[[Mapping[bytes, tuple[Answer, Source]]], None] | None = None  # the shared cache
    who: Source | None = None  # what the endpoint says it is: as the run began, then as the last answer said
    awaited: list[Call] = field(default_factory=list)  # questions that only somebody else can answer
    _left: dict[Place, Reply] = field(default_factory=dict)  # of the journal, not looked at yet
    _open: dict[bytes, _Question] = field(default_factory=dict)  # wait for replies
    _full: dict[bytes, _Question] = field(default_factory=dict)  # wait to be written as a part
    _flying: set[asyncio.Task[None]] = field(default_factory=set)
    _failed: list[ClinometerError] = field(default_factory=list)
    _changes: set[str] = field(default_factory=set)
    _ids: OrderedDict[str, Place] = field(default_factory=OrderedDict)  # of the latest replies
    _tries: Counter[Place] = field(default_factory=Counter)  # attempts whose replies did not count

    async def ask(self, wanted: Iterable[Asked]) -> None:
        """Ask what is wanted; whatever ends this, what arrived is in the journal or in records."""
        self._left = self.journal.read()
        if self.journal.damaged:
            self.progress.note(f"{self.journal.damaged} damaged lines of the journal: those calls are sent again")
        try:
            for place, call in self._calls(wanted):
                while len(self._flying) >= self.sender.pace.most:
                    await asyncio.wait(self._flying, return_when=asyncio.FIRST_COMPLETED)
                if self._failed:
                    break
                self._start(place, call)
            while self._flying:  # what is in the air is paid for: wait for it also after a failure
                await asyncio.wait(self._flying)
        finally:
            for task in self._flying:
                task.cancel()
            await asyncio.gather(*self._flying, return_exceptions=True)
            await self.model.close()
            self._write_part()
            self.journal.close()
        if self._failed:
            raise self._failed[0]
        if self.awaited:
            raise AwaitedError(tuple(self.awaited))

    def _calls(self, wanted: Iterable[Asked]) -> Iterator[tuple[Place, Call]]:
        """Yield the calls that are to be sent; what is in the journal is not asked again."""
        for asked in wanted:
            if asked.key in self._open:
                self._open[asked.key].asked.append(asked)
                continue
            question = _Question([asked], [])
            calls: Sequence[Call] = ()
            while None not in question.replies:
                calls = self.model.calls(asked.request, question.present)
                new = range(len(question.replies), len(calls))
                if not new:
                    break
                question.replies += [self._left.pop(Place(asked.key, number), None) for number in new]
            self._open[asked.key] = question
            if None not in question.replies:
                self._complete(asked.key)
            for number, call in enumerate(calls):
                if question.replies[number] is None:
                    yield Place(asked.key, number), call
        self._left.clear()  # what is still there was recorded before

    def _start(self, place: Place, call: Call) -> None:
        task = asyncio.create_task(self._send(place, call))
        self._flying.add(task)
        task.add_done_callback(self._flying.discard)

    async def _send(self, place: Place, call: Call) -> None:
        try:
            reply = await self.sender.send(call)
            while self._came_before(place, reply):
                self._tries[place] += _tries(reply)
                reply = await self.sender.send(call)
            if earlier := self._tries.pop(place, 0):
                reply = replace(reply, source={**reply.source, "tries": _tries(reply) + earlier})
            self.journal.append(place, reply)
            self._watch(reply.source)
            question = self._open[place.key]
            question.replies[place.call] = reply
            if None in question.replies:
                return
            calls = self.model.calls(question.asked[0].request, question.present)
            first = len(question.replies)
            if len(calls) == first:
                self._complete(place.key)
                return
            question.replies += [None] * (len(calls) - first)
            for number, more in enumerate(calls[first:], start=first):
                await self._send(Place(place.key, number), more)
        except Unanswered:
            self.awaited.append(call)
        except ClinometerError as error:
            self._failed.append(error)

    def _came_before(self, place: Place, reply: Reply) -> bool:
        """Tell whether this very reply came before. To which question it belongs nobody knows: both are asked."""
        name = str(reply.source.get("id", ""))
        if not self.model.unique_ids or not name:
            return False
        before = self._ids.get(name)
        if before is None:
            self._ids[name] = place
            if len(self._ids) > REMEMBERED_IDS:
                self._ids.popitem(last=False)
            return False
        question = self._open.get(before.key) or self._full.get(before.key)
        first = question.replies[before.call] if question is not None else None
        if question is not None and first is not None and first.source.get("id") == name:
            self.journal.append(before, None)
            self._tries[before] += _tries(first)
            call = self.model.calls(question.asked[0].request, question.present)[before.call]
            question.replies[before.call] = None
            if self._full.pop(before.key, None) is not None:
                self._open[before.key] = question
            self._start(before, call)
        return True

    def _complete(self, key: bytes) -> None:
        """All replies to a request are there."""
        question = self._full[key] = self._open.pop(key)
        self.progress.advance(sum(asked.items for asked in question.asked))
        if len(self._full) >= PART_ANSWERS or self.journal.size >= PART_BYTES:
            self._write_part()

    def _write_part(self) -> None:
        """Write what is complete as a part, then drop it from the journal: in this order nothing can be lost."""
        if self._full:
            rows: list[Row] = []
            fresh: dict[bytes, tuple[Answer, Source]] = {}
            for key, question in self._full.items():
                answer = self.model.read(question.asked[0].request, question.present)
                source = joined([reply.source for reply in question.present])
                rows += [row for asked in question.asked for row in asked.rows(answer, source)]
                fresh[key] = (answer, source)
            self.writer.append(rows)
            self.writer.flush()
            self._full.clear()
            if self.learn is not None:
                self.learn(fresh)
        unfinished = {
            Place(key, number): reply
            for key, question in self._open.items()
            for number, reply in enumerate(question.replies)
            if reply is not None
        }
        self.journal.replace({**self._left, **unfinished})

    def _watch(self, source: Source) -> None:
        """Say so when the endpoint says that it is another than before."""
        told = identity_of(source)
        if self.who is not None and told and told != identity_of(self.who) and told not in self._changes:
            self._changes.add(told)
            self.progress.note(f"the endpoint now says it is {told}; before, it said {identity_of(self.who)}")
        if told:
            self.who = source


def _tries(reply: Reply) -> int:
    count = reply.source.get("tries", 1)
    return count if isinstance(count, int) else 1


def identity_of(source: Source) -> str:
    """Return what an endpoint says it is, in one line; "" where it says nothing.

    >>> identity_of({"model": "m-1", "fingerprint": "fp", "tries": 1})
    'm-1, fp'
    """
    return ", ".join(str(source[name]) for name in ("model", "fingerprint", "headers") if source.get(name))
