"""One thread that gives batches to workers, takes their answers, and replaces workers that die.

Everything that happens is an event in one queue: batches arrived, a worker answered, a worker died, time passed.
One thread reads it, so nothing needs a lock but the waiting lists, which other threads fill.

A worker dies for many reasons, most of which are no fault of the batch that it had. It may also take its last
reply along, so that it is not sure which task it died with. So whatever was in line, a model that was being loaded
too, is tried again alone, with nothing behind it: then it is sure. A batch that was first in line at three deaths,
nodes that went down apart, is given up and named, and everything else goes on.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, final

from clinometer.engine.cluster.choosing import batches_in_a_task, choose, is_late
from clinometer.engine.cluster.hands import Hand, Job, Stream, Task
from clinometer.engine.cluster.settings import ClusterSettings
from clinometer.engine.cluster.worker import Arrived, Origin, Ready, Result
from clinometer.engine.executor import Batch
from clinometer.errors import ClinometerError, ModelError, WorkerError
from clinometer.types import ModelInfo

TRIES = 3  # deaths of workers that one batch may be blamed for
IN_LINE = 2  # tasks that a worker has at once: one it does, one that is there when it is done
KEPT_BYTES = 4 * 2**30  # of weights that one worker keeps
TICK = 0.25  # seconds between two looks at the clock
PATIENCE = 30.0  # seconds before a batch can be late
LOOK_AROUND = 2.0  # seconds between two looks at which nodes there are


@final
class Driver:
    """The workers of one run, and the batches that they have. `start` makes an actor; Ray is behind that."""

    def __init__(self, settings: ClusterSettings, cluster: Any, *, patience: float = PATIENCE) -> None:
        self.settings = settings
        self._cluster = cluster
        self._patience = patience
        self._events: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._hands: list[Hand] = []
        self._streams: list[Stream] = []
        self._loads: dict[str, float] = {}  # how long each model takes to load
        self._load_deaths: dict[str, int] = {}
        self._stillborn = 0  # workers in a row that died before they said a word
        self._numbered = 0
        self._looked = float("-inf")
        self._notes: list[str] = []
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="clinometer-cluster", daemon=True)
        self._thread.start()

    # -- what other threads call

    def open(self, origin: Origin) -> Stream:
        """Begin a stream of batches for one model."""
        stream = Stream(origin)
        self._tell(lambda: self._streams.append(stream))
        return stream

    def put(self, stream: Stream, batch: Batch) -> None:
        """Add a batch."""
        with self._lock:
            stream.waiting.append(Job(stream, batch))
            stream.outstanding += 1
        self._tell(_nothing)

    def close_stream(self, stream: Stream) -> None:
        """Forget a stream: what is still on its way is not waited for."""

        def forget() -> None:
            with self._lock:
                for job in stream.waiting:
                    job.settled = True
                stream.waiting.clear()
            if stream in self._streams:
                self._streams.remove(stream)

        stream.open = False
        self._tell(forget)

    @property
    def ahead(self) -> int:
        """How many batches of one stream may be under way: enough for all workers, and no more in memory."""
        return 8 * (1 + sum(1 for hand in list(self._hands) if not hand.dead))

    def hands(self) -> list[Hand]:
        """Return the workers that are there, or that Ray was asked for."""
        return [hand for hand in list(self._hands) if not hand.dead]

    def sessions(self) -> list[Mapping[str, Any]]:
        """Return what computes, as each worker that has loaded a model said."""
        return [hand.session for hand in self.hands() if hand.session]

    def notes(self) -> list[str]:
        """Return what happened since this was last asked, and a user should know."""
        with self._lock:
            notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        """End the workers; whoever still waits for an answer gets an error."""
        if self._closed:
            return
        self._closed = True
        self._events.put(None)
        self._thread.join(timeout=30)
        for hand in self._hands:
            self._cluster.end(hand.actor)
        for stream in self._streams:
            self._fail(stream, WorkerError("the cluster was closed"))

    # -- the thread

    def _tell(self, event: Callable[[], None]) -> None:
        self._events.put(event)

    def _run(self) -> None:
        while True:
            try:
                event = self._events.get(timeout=TICK)
                if event is None:
                    return
                event()
                for _ in range(self._events.qsize()):  # what came at the same time is handled together
                    event = self._events.get_nowait()
                    if event is None:
                        return
                    event()
            except queue.Empty:
                pass
            try:
                self._look_around()
                self._give()
            except Exception as error:  # a bug here must not leave others waiting for ever
                for stream in list(self._streams):
                    self._fail(stream, error)

    def _look_around(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_AROUND and self._hands:
            self._replace_late(now)
            return
        self._looked = now
        wanted = self.settings.workers or max(1, self.settings.room_in(self._cluster.total()))
        for _ in range(wanted - len(self.hands())):
            self._start()

    def _start(self) -> None:
        self._numbered += 1
        hand = Hand(self._numbered, self._cluster.start())
        self._hands.append(hand)
        self._send(hand, Task("hello", time.monotonic()), self._cluster.hello(hand.actor))

    def _send(self, hand: Hand, task: Task, future: Any) -> None:
        hand.add(task)

        def done(finished: Any) -> None:
            self._tell(lambda: self._finished(hand, task, finished))

        future.add_done_callback(done)

    def _give(self) -> None:
        for hand in self.hands():
            while hand.arrived and not hand.late and len(hand.tasks) < IN_LINE and self._give_to(hand):
                pass

    def _give_to(self, hand: Hand) -> bool:
        if any(task.alone for task in hand.tasks):
            return False
        now = time.monotonic()
        with self._lock:
            streams = [stream for stream in self._streams if stream.error is None]
            demands = [
                stream.demand(
                    holders=sum(1 for each in self.hands() if stream.origin.key in each.models),
                    load_seconds=self._loads.get(stream.origin.key, 0.0),
                    now=now,
                )
                for stream in streams
            ]
            place = choose(demands, has=hand.models, busy=bool(hand.tasks))
            if place is None:
                return False
            stream, demand = streams[place], demands[place]
            origin = stream.origin
            jobs: list[Job] = []
            if origin.key in hand.models:
                if hand.tasks and stream.begins_with_suspect():
                    return False
                jobs = stream.take(batches_in_a_task(demand, workers=len(self.hands())))
                if not jobs:
                    return False
        if origin.key not in hand.models:
            drop = hand.room_for(origin, most=KEPT_BYTES)
            for key in drop:
                del hand.models[key]
            hand.models[origin.key] = origin.size
            task = Task("load", now, origin=origin, alone=origin.key in self._load_deaths)
            self._send(hand, task, self._cluster.load(hand.actor, origin, drop))
            return True
        for job in jobs:
            job.flying += 1
        hand.use(origin.key)
        hand.label = origin.spec.alias or origin.spec.name
        task = Task("answer", now, jobs=jobs, origin=origin, alone=any(job.suspect for job in jobs))
        batches = [job.batch for job in jobs]
        self._send(hand, task, self._cluster.answer(hand.actor, origin.key, batches))
        return True

    # -- what comes back

    def _finished(self, hand: Hand, task: Task, future: Any) -> None:
        now = time.monotonic()
        if hand.dead:  # all that it had was dealt with when it died
            return
        error = future.exception()
        if error is not None and self._cluster.is_death(error):
            self._bury(hand, node_died=self._cluster.is_node_death(error, hand))
            return
        hand.finish(task, now)
        if error is not None:
            self._refused(hand, task, self._cluster.cause(error))
            return
        found = future.result()
        if isinstance(found, Arrived):
            hand.arrived = found
            self._stillborn = 0
        elif isinstance(found, Ready):
            self._loaded(hand, task, found)
        elif isinstance(found, Result):
            self._answered(hand, task, found, now)

    def _loaded(self, hand: Hand, task: Task, ready: Ready) -> None:
        assert task.origin is not None
        key = task.origin.key
        self._loads[key] = ready.seconds
        self._load_deaths.pop(key, None)
        hand.session = ready.session
        if other := _differs(task.origin.expected, ready.info):
            where = hand.arrived.machine if hand.arrived else "a worker"
            name = task.origin.spec.alias or task.origin.spec.name
            self._fail_model(
                key,
                ModelError(
                    f"{name} on {where} is not the model of this run: it has another {other}; put the same "
                    "files and the same release of Clinometer on every node"
                ),
            )

    def _answered(self, hand: Hand, task: Task, result: Result, now: float) -> None:
        for job, answered in zip(task.jobs, result.answered, strict=True):
            job.flying -= 1
            if job.settled:
                continue
            job.settled = True
            with self._lock:
                job.stream.outstanding -= 1
            job.stream.out.put(answered)
        if task.jobs:
            task.jobs[0].stream.learn(result.seconds, len(task.jobs))
        hand.learn(result.seconds, sum(len(job.batch.requests) for job in task.jobs), now)

    def _refused(self, hand: Hand, task: Task, error: BaseException) -> None:
        """A worker is alive and says that it cannot."""
        if _is_broken_device(error):  # the process is of no use any more
            self._note(f"worker {hand.number}: {error}; it is replaced")
            hand.tasks.appendleft(task)
            self._bury(hand, node_died=False)
        elif task.kind == "load" and task.origin is not None:
            hand.models.pop(task.origin.key, None)
            self._fail_model(task.origin.key, error)
        elif task.jobs:
            for job in task.jobs:
                job.flying -= 1
            self._fail(task.jobs[0].stream, error)
        else:
            for stream in list(self._streams):
                self._fail(stream, error)

    # -- deaths

    def _bury(self, hand: Hand, *, node_died: bool) -> None:
        hand.dead = True
        self._hands.remove(hand)
        self._cluster.end(hand.actor)
        self._looked = float("-inf")  # ask for another at once
        first = hand.tasks[0] if hand.tasks else None
        how = "its node went down" if node_died else "it died"
        where = f" on {hand.arrived.machine}" if hand.arrived else ""
        self._note(f"worker {hand.number}{where}: {how}; what it had is given to others")
        if not node_died and first is not None:
            self._blame(first)
        back = [job for task in hand.tasks for job in task.jobs]
        with self._lock:
            for job in reversed(back):
                job.flying -= 1
                job.suspect = job.suspect or not node_died
                if job.settled:
                    continue
                if job.tries >= TRIES:
                    job.settled = True
                    job.stream.outstanding -= 1
                    job.stream.given_up.append(job)
                    job.stream.out.put(None)
                elif not job.flying and job not in job.stream.waiting:
                    job.stream.waiting.appendleft(job)

    def _blame(self, first: Task) -> None:
        """Count a death against what the worker was doing."""
        for job in first.jobs:
            job.tries += 1
        if first.kind == "hello":
            self._stillborn += 1
            if self._stillborn >= TRIES:
                self._fail_all(
                    WorkerError(
                        f"{self._stillborn} workers in a row ended as soon as they began: is this release of "
                        "Clinometer installed on every node? Ray's logs say more (--ray-logs)"
                    )
                )
        elif first.kind == "load" and first.origin is not None:
            key = first.origin.key
            self._load_deaths[key] = self._load_deaths.get(key, 0) + 1
            if self._load_deaths[key] >= TRIES:
                name = first.origin.spec.alias or first.origin.spec.name
                self._fail_model(
                    key,
                    WorkerError(
                        f"{TRIES} workers died while they loaded {name}; most likely it needs more memory than "
                        "they have: give each worker more with --worker-resources"
                    ),
                )

    def _replace_late(self, now: float) -> None:
        """Give what takes far too long to somebody who has nothing to do; end a worker that never comes back."""
        idle = [hand for hand in self.hands() if hand.arrived and not hand.tasks]
        for hand in self.hands():
            first = hand.tasks[0] if hand.tasks else None
            if first is None or first.kind != "answer":
                continue
            usual = first.jobs[0].stream.batch_seconds
            late = is_late(now - first.began, usual=usual, batches=len(first.jobs), patience=self._patience)
            if not late:
                continue
            hand.late = True  # until it answers, it is given nothing more
            if all(job.settled for task in hand.tasks for job in task.jobs):
                self._note(f"worker {hand.number} has not answered for {now - first.began:.0f} s; it is replaced")
                self._bury(hand, node_died=True)  # nobody is to blame
                continue
            late_jobs = [job for task in hand.tasks for job in task.jobs if not job.settled and not job.copied]
            if late_jobs and idle:
                idle.pop()
                count = len(late_jobs)
                batches = "1 batch is" if count == 1 else f"{count} batches are"
                self._note(f"worker {hand.number} is late: {batches} given to another worker, too")
                with self._lock:
                    for job in reversed(late_jobs):
                        job.copied = True
                        job.stream.waiting.appendleft(job)

    # -- failing

    def _fail(self, stream: Stream, error: BaseException) -> None:
        if stream.error is None:
            stream.error = error
            stream.out.put(None)

    def _fail_model(self, key: str, error: BaseException) -> None:
        for stream in list(self._streams):
            if stream.origin.key == key:
                self._fail(stream, error)

    def _fail_all(self, error: ClinometerError) -> None:
        for stream in list(self._streams):
            self._fail(stream, error)

    def _note(self, text: str) -> None:
        with self._lock:
            self._notes.append(text)


def _nothing() -> None:
    """Only wake the thread."""


def _differs(expected: ModelInfo | None, found: ModelInfo) -> str:
    """Return the first thing that tells two models apart; "": they are one."""
    if expected is None:
        return ""
    names = ("weights", "tokenizer", "dtype", "code")
    return next((name for name in names if getattr(expected, name) != getattr(found, name)), "")


def _is_broken_device(error: BaseException) -> bool:
    # after such an error every later pass in the same process fails, too
    return type(error).__name__ == "AcceleratorError" or "CUDA error" in str(error)
