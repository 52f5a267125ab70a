"""Sends calls, many at once, as fast as the endpoint likes: patience, pace, and what every attempt costs.

A call is sent until an answer comes. Every attempt is counted before it is sent, so a budget bounds what can be
charged. An endpoint that says it is busy gets half as many calls at a time, and slowly more again.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import Protocol, final

from clinometer.errors import EndpointError
from clinometer.models.endpoint.faults import Busy, Fault, Malformed, Refused, Unanswered
from clinometer.models.endpoint.reading import without_answer
from clinometer.models.protocols import Call, CanSend, Reply

CONCURRENCY = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long is waited for an endpoint."""

    tries: int = 12  # of one call that is answered badly; being told to wait does not count
    first: float = 0.5  # seconds before the second attempt; each further wait is twice as long, give or take half
    longest: float = 60.0  # seconds between attempts, unless the endpoint asks for more
    asked: float = 900.0  # the most that the endpoint may ask for
    silence: float = 900.0  # seconds without any answer after which an endpoint that only says "busy" is given up

    def wait(self, attempt: int, rng: random.Random) -> float:
        """Return how long to wait after an attempt, counted from 1."""
        return min(self.longest, self.first * 2.0 ** min(attempt - 1, 30)) * rng.uniform(0.5, 1.5)


class Meter(Protocol):
    """Counts what is spent; raises StoppedError before an attempt that a budget does not allow."""

    def reserve(self, call: Call) -> None:
        """An attempt is about to be sent: it may cost as much as the call says."""
        ...

    def settle(self, call: Call, reply: Reply | None) -> None:
        """The attempt is over; None: nothing came, and nothing was charged."""
        ...


@final
class Free:
    """Counts nothing."""

    def reserve(self, call: Call) -> None:
        """Allow it."""

    def settle(self, call: Call, reply: Reply | None) -> None:
        """Count nothing."""


@final
class Pace:
    """How many calls are in the air: at most `most`, fewer after the endpoint said that it is busy."""

    def __init__(self, most: int) -> None:
        self.most = max(1, most)
        self.limit = float(self.most)
        self.flying = 0
        self._not_before = 0.0  # what Retry-After said, for everybody
        self._slowed = 0.0
        self._turn: asyncio.Condition | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def enter(self) -> None:
        """Wait for a place."""
        turn = self._condition()
        async with turn:
            await turn.wait_for(lambda: self.flying < max(1, int(self.limit)))
            self.flying += 1
        while (wait := self._not_before - time.monotonic()) > 0:
            await asyncio.sleep(wait)

    async def leave(self, *, answered: bool) -> None:
        """Give the place back."""
        turn = self._condition()
        self.flying -= 1
        if answered:  # one more call at a time after each full round of answers
            self.limit = min(float(self.most), self.limit + 1 / self.limit)
        async with turn:
            turn.notify_all()

    def slow_down(self, wait: float) -> None:
        """Halve the number of calls, once for all that were refused together, and hold the next ones back."""
        now = time.monotonic()
        self._not_before = max(self._not_before, now + wait)
        if now - self._slowed > 1.0:
            self._slowed = now
            self.limit = max(1.0, self.limit / 2)

    def _condition(self) -> asyncio.Condition:
        loop = asyncio.get_running_loop()
        if self._turn is None or self._loop is not loop:  # a run has a loop for each of its stages
            self._turn, self._loop, self.flying = asyncio.Condition(), loop, 0
        return self._turn


@final
@dataclass(slots=True)
class Sender:
    """Sends the calls of one model within one event loop."""

    model: CanSend
    where: str  # what to call the endpoint when it fails
    pace: Pace
    patience: Patience = field(default_factory=Patience)
    meter: Meter = field(default_factory=Free)
    rng: random.Random = field(default_factory=random.Random)  # spreads waits; changes no answer
    resent: int = 0
    _heard: float = field(default_factory=time.monotonic)

    async def send(self, call: Call) -> Reply:
        """Return the answer to a call; raise EndpointError if none will come, StoppedError if none is allowed."""
        tries = attempts = 0
        while True:
            await self.pace.enter()
            answered = False
            try:
                self.meter.reserve(call)
                attempts += 1
                try:
                    reply = await self.model.send(call)
                except Fault as fault:
                    self.meter.settle(call, Reply(content={}) if fault.may_have_cost else None)
                    wait = self._after(fault, tries := tries + (not isinstance(fault, Busy)), attempts)
                    if wait is None:
                        return _counted(without_answer(call, "malformed"), attempts)
                else:
                    answered = True
                    self._heard = time.monotonic()
                    self.meter.settle(call, reply)
                    return _counted(reply, attempts)
            finally:
                await self.pace.leave(answered=answered)
            self.resent += 1
            await asyncio.sleep(wait)

    def _after(self, fault: Fault, tries: int, attempts: int) -> float | None:
        """Return how long to wait before the next attempt; None: record that the answers were malformed."""
        if isinstance(fault, Unanswered):
            raise fault
        if isinstance(fault, Refused):
            raise EndpointError(f"{self.where} refused a question: {fault}") from None
        wait = self.patience.wait(attempts, self.rng)
        if isinstance(fault, Busy):
            silent = time.monotonic() - self._heard
            if fault.wait > self.patience.asked or silent > self.patience.silence:
                asked = f"asks to wait {fault.wait:,.0f} s" if fault.wait else f"only says {fault}"
                raise EndpointError(f"{self.where} {asked}; continue when it has time") from None
            self.pace.slow_down(fault.wait)
            return max(wait if not fault.wait else 0.0, fault.wait)
        if tries < self.patience.tries:
            return wait
        if isinstance(fault, Malformed):
            return None
        raise EndpointError(f"{self.where} gave no answer in {tries} attempts: {fault}") from None


def _counted(reply: Reply, attempts: int) -> Reply:
    return Reply(content=reply.content, source={**reply.source, "tries": attempts})
