"""What the driver knows of a worker, of a stream of batches, and of each batch on its way."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, final

from clinometer.engine.cluster.choosing import Demand
from clinometer.engine.cluster.worker import Arrived, Origin
from clinometer.engine.executor import Answered, Batch

_KEPT_SECONDS = 30.0  # of a worker's past, for its rate


@dataclass(slots=True, eq=False)
class Job:
    """One batch on its way to an answer. The first answer counts, wherever it comes from."""

    stream: Stream
    batch: Batch
    tries: int = 0  # workers that died while it was first in line
    suspect: bool = False  # in line when a worker died, so that the death may be its doing
    flying: int = 0  # tasks that have it now
    settled: bool = False  # answered, or given up
    copied: bool = False  # given to a second worker because the first is late


@final
class Stream:
    """The batches of one stage: put in by the thread that plans them, taken out as answers by the same thread."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.waiting: deque[Job] = deque()
        self.out: queue.SimpleQueue[Answered | None] = queue.SimpleQueue()  # None: look at what else changed
        self.open = True
        self.outstanding = 0  # put in, and neither answered nor given up
        self.given_up: list[Job] = []
        self.error: BaseException | None = None
        self.batch_seconds = 0.0  # a mean that forgets
        self.empty_since = time.monotonic()

    def demand(self, *, holders: int, load_seconds: float, now: float) -> Demand:
        """Return what the stream asks for, as it is now."""
        return Demand(
            model=self.origin.key,
            waiting=len(self.waiting),
            open=self.open,
            holders=holders,
            batch_seconds=self.batch_seconds,
            load_seconds=load_seconds,
            empty_seconds=0.0 if self.waiting else now - self.empty_since,
        )

    def take(self, count: int) -> list[Job]:
        """Return the next batches; a suspect goes alone, so that it accuses no other."""
        taken: list[Job] = []
        while self.waiting and len(taken) < count:
            if taken and self.waiting[0].suspect:
                break
            job = self.waiting.popleft()
            if job.settled:
                continue
            taken.append(job)
            if job.suspect:
                break
        if not self.waiting:
            self.empty_since = time.monotonic()
        return taken

    def begins_with_suspect(self) -> bool:
        """Tell whether the next batch has to go alone."""
        return next((job.suspect for job in self.waiting if not job.settled), False)

    def learn(self, seconds: float, batches: int) -> None:
        """Remember how long batches take."""
        each = seconds / max(1, batches)
        self.batch_seconds = 0.7 * self.batch_seconds + 0.3 * each if self.batch_seconds else each


@dataclass(slots=True, eq=False)
class Task:
    """One message to a worker that has not been answered."""

    kind: Literal["hello", "load", "answer"]
    sent: float
    jobs: Sequence[Job] = ()
    origin: Origin | None = None
    alone: bool = False  # a worker died with it before: nothing is put behind it
    began: float = 0.0  # when it came to the front


@dataclass(slots=True, eq=False)
class Hand:
    """A worker, seen from the driver: what it has, what it does, how fast it is."""

    number: int
    actor: Any
    arrived: Arrived | None = None  # None: Ray has not started it yet
    dead: bool = False
    late: bool = False  # far longer at work than usual
    models: dict[str, int] = field(default_factory=dict)  # loaded or being loaded, and their bytes
    tasks: deque[Task] = field(default_factory=deque)  # in the order in which it does them
    session: dict[str, Any] = field(default_factory=dict)
    past: deque[tuple[float, int]] = field(default_factory=deque)  # when how many requests were answered
    worked: float = 0.0  # seconds that it spent on answers
    label: str = ""  # of what it works on

    def add(self, task: Task) -> None:
        """Note a message that was sent."""
        if not self.tasks:
            task.began = task.sent
        self.tasks.append(task)

    def finish(self, task: Task, now: float) -> None:
        """Note that a message was answered."""
        if task in self.tasks:
            self.tasks.remove(task)
        self.late = False
        if self.tasks and not self.tasks[0].began:
            self.tasks[0].began = now

    def learn(self, seconds: float, requests: int, now: float) -> None:
        """Remember how much it answered; what is long ago is forgotten here, since nobody may ever ask for it."""
        self.worked += seconds
        self.past.append((now, requests))
        self._forget(now)

    def _forget(self, now: float) -> None:
        while self.past and now - self.past[0][0] > _KEPT_SECONDS:
            self.past.popleft()

    def rate(self, now: float) -> float:
        """Return the requests that it answered in a second, of late."""
        self._forget(now)
        if len(self.past) < 2:
            return 0.0
        return sum(count for _, count in self.past) / max(now - self.past[0][0], 1e-3)

    def room_for(self, origin: Origin, *, most: int) -> list[str]:
        """Return the models to drop, the longest unused first, so that another fits."""
        dropped: list[str] = []
        held = dict(self.models)
        while held and sum(held.values()) + origin.size > most:
            dropped.append(next(iter(held)))
            del held[dropped[-1]]
        return dropped

    def use(self, key: str) -> None:
        """Note that a model is used now: the others have been unused for longer."""
        self.models[key] = self.models.pop(key)
