"""A stage that is asked of an endpoint: many calls at once, each reply in the journal as soon as it arrives.

The unit is the call, not the batch: nothing that arrived is lost, whatever happens next. Answers become parts of
records a few thousand at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from clinometer.engine.journal import Journal, Place
from clinometer.engine.progress import Progress
from clinometer.errors import AwaitedError, ClinometerError
from clinometer.models.endpoint.faults import Unanswered
from clinometer.models.endpoint.reading import joined
from clinometer.models.endpoint.sending import Sender
from clinometer.models.protocols import Call, CanSend, Reply
from clinometer.store import RecordWriter, Row
from clinometer.types import Answer, Request

PART_ROWS = 5_000  # answers in one part
PART_BYTES = 32 << 20  # of journal, after which a part is written whatever its rows

Source = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that lacks an answer, and the rows that the answer will make."""

    key: bytes
    request: Request
    rows: Callable[[Answer, Source], Sequence[Row]]


@dataclass(slots=True)
class _Open:
    """A request some of whose replies are there."""

    asked: list[Asked]  # more than one where two windows ask the same
    replies: list[Reply | None]


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
    _open: dict[bytes, _Open] = field(default_factory=dict)
    _rows: list[Row] = field(default_factory=list)
    _fresh: dict[bytes, tuple[Answer, Source]] = field(default_factory=dict)
    _failed: list[ClinometerError] = field(default_factory=list)
    _changes: set[str] = field(default_factory=set)

    async def ask(self, wanted: Iterable[Asked]) -> None:
        """Ask what is wanted; whatever ends this, what arrived is in the journal or in records."""
        self._left = self.journal.read()
        if self.journal.damaged:
            self.progress.note(f"{self.journal.damaged} damaged lines of the journal: those calls are sent again")
        flying: set[asyncio.Task[None]] = set()
        room = self.sender.pace.most
        try:
            for key, number, call in self._calls(wanted):
                while len(flying) >= room:
                    _, flying = await asyncio.wait(flying, return_when=asyncio.FIRST_COMPLETED)
                if self._failed:
                    break
                flying.add(asyncio.create_task(self._send(key, number, call)))
            if flying:  # what is in the air is paid for: wait for it also after a failure
                await asyncio.wait(flying)
                flying.clear()
        finally:
            for task in flying:
                task.cancel()
            await asyncio.gather(*flying, return_exceptions=True)
            await self.model.close()
            self._write_part()
            self.journal.close()
        if self._failed:
            raise self._failed[0]
        if self.awaited:
            raise AwaitedError(tuple(self.awaited))

    def _calls(self, wanted: Iterable[Asked]) -> Iterator[tuple[bytes, int, Call]]:
        """Yield the calls that are to be sent; what is in the journal is not asked again."""
        for asked in wanted:
            if asked.key in self._open:
                self._open[asked.key].asked.append(asked)
                continue
            replies: list[Reply | None] = []
            calls: Sequence[Call] = ()
            while None not in replies:
                calls = self.model.calls(asked.request, _present(replies))
                if len(calls) == len(replies):
                    break
                new = range(len(replies), len(calls))
                replies += [self._left.pop(Place(asked.key, number), None) for number in new]
            self._open[asked.key] = _Open([asked], replies)
            if None not in replies:
                self._complete(asked.key)
            for number, call in enumerate(calls):
                if replies[number] is None:
                    yield asked.key, number, call
        self._left.clear()  # what is still there was recorded before

    async def _send(self, key: bytes, number: int, call: Call) -> None:
        try:
            reply = await self.sender.send(call)
            self.journal.append(Place(key, number), reply)
            self._watch(reply.source)
            now = self._open[key]
            now.replies[number] = reply
            if None in now.replies:
                return
            calls = self.model.calls(now.asked[0].request, _present(now.replies))
            first = len(now.replies)
            if len(calls) == first:
                return self._complete(key)
            now.replies += [None] * (len(calls) - first)
            for place, more in enumerate(calls[first:], start=first):
                await self._send(key, place, more)
        except Unanswered:
            self.awaited.append(call)
        except ClinometerError as error:
            self._failed.append(error)

    def _complete(self, key: bytes) -> None:
        """All replies to a request are there: make its rows."""
        done = self._open.pop(key)
        replies = _present(done.replies)
        answer = self.model.read(done.asked[0].request, replies)
        source = joined([reply.source for reply in replies])
        rows = [row for asked in done.asked for row in asked.rows(answer, source)]
        self._rows += rows
        if self.learn is not None:
            self._fresh[key] = (answer, source)
        self.progress.advance(len(rows))
        if len(self._rows) >= PART_ROWS or self.journal.size >= PART_BYTES:
            self._write_part()

    def _write_part(self) -> None:
        """Write the waiting rows as a part, then drop them from the journal: in this order nothing can be lost."""
        if self._rows:
            self.writer.append(self._rows)
            self.writer.flush()
            self._rows.clear()
            if self.learn is not None:
                self.learn(self._fresh)
                self._fresh.clear()
        open_replies = {
            Place(key, number): reply
            for key, each in self._open.items()
            for number, reply in enumerate(each.replies)
            if reply is not None
        }
        self.journal.replace({**self._left, **open_replies})

    def _watch(self, source: Source) -> None:
        """Say so when the endpoint says that it is another than before."""
        told = identity_of(source)
        if self.who is not None and told and told != identity_of(self.who) and told not in self._changes:
            self._changes.add(told)
            self.progress.note(f"the endpoint now says it is {told}; before, it said {identity_of(self.who)}")
        if told:
            self.who = source


def _present(replies: Sequence[Reply | None]) -> list[Reply]:
    return [reply for reply in replies if reply is not None]


def identity_of(source: Source) -> str:
    """Return what an endpoint says it is, in one line; "" where it says nothing.

    >>> identity_of({"model": "m-1", "fingerprint": "fp", "tries": 1})
    'm-1, fp'
    """
    return ", ".join(str(source[name]) for name in ("model", "fingerprint", "headers") if source.get(name))
