"""One stage of an audit: drop duplicates, look up, batch, ask, record."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from clinometer.engine.batching import WINDOW, plan_batches
from clinometer.engine.cache import AnswerCache
from clinometer.engine.executor import Batch, Executor
from clinometer.engine.identity import RequestIdentity
from clinometer.engine.progress import Progress
from clinometer.models.protocols import Model
from clinometer.store import Done, RecordWriter, Row, RunFolder, StageKey
from clinometer.types import Answer, Item, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A loaded model, the executor of its batches, and how many padded tokens a batch may hold."""

    model: Model
    executor: Executor
    batch_tokens: int


@dataclass(frozen=True, slots=True)
class _Window:
    """Consecutive items of a stage with their keys; a repeated request counts once."""

    first: int
    items: Sequence[Item]
    places: Mapping[bytes, int]  # each distinct request, in order of first appearance -> its position
    again: Mapping[bytes, Sequence[int]]  # the further positions of repeated requests
    missing: Set[bytes]  # requests not recorded at all of their positions

    @classmethod
    def of(cls, first: int, items: Sequence[Item], identity: RequestIdentity, done: Done) -> _Window:
        keys = [identity.key(item.request) for item in items]
        places: dict[bytes, int] = {}
        again: dict[bytes, list[int]] = {}
        for position, key in enumerate(keys):
            if places.setdefault(key, position) != position:
                again.setdefault(key, []).append(position)
        if not len(done):
            return cls(first, items, places, again, places.keys())
        missing = {key for position, key in enumerate(keys) if not done.matches(first + position, key)}
        return cls(first, items, places, again, missing)

    def rows(self, keys: Sequence[bytes], answers: Iterable[Answer]) -> list[Row]:
        """Return a row for every item that asks one of these requests."""
        rows = []
        for key, answer in zip(keys, answers, strict=True):
            for at in (self.places[key], *self.again.get(key, ())):
                rows.append(Row(self.first + at, key, self.items[at], answer))
        return rows


@dataclass(frozen=True, slots=True)
class _Asked:
    """A batch that waits for its answers, and the window it is from."""

    window: _Window
    keys: Sequence[bytes]
    requests: Sequence[Request]


def count_missing(items: Iterable[Item], *, identity: RequestIdentity, done: Done) -> int:
    """Count the requests of a stage whose answers are not yet recorded."""
    return sum(not done.matches(index, identity.key(item.request)) for index, item in enumerate(items))


def run_stage(
    items: Iterable[Item],
    *,
    run: RunFolder,
    key: StageKey,
    done: Done,
    identity: RequestIdentity,
    worker: Callable[[], Worker],
    cache: AnswerCache | None,
    progress: Progress,
) -> None:
    """Record an answer for every item that is not in `done`; `worker` is called only if one is missing."""
    windows = (window for window in _windows(items, identity, done) if window.missing)
    with run.writer(key) as writer:
        recorder = _Recorder(writer, progress)
        if cache is None:
            # one stream: a device gets the first batches of a window before it has finished the window before
            asked = (batch for window in windows for batch in _planned(window, worker()))
            for batch, answers in _answered(asked, worker):
                recorder.record(batch.window, batch.keys, answers)
            return
        for window in windows:
            # one window at a time: what the next one finds in the cache must not depend on the device's speed
            _complete_with_cache(window, cache, worker=worker, recorder=recorder)


@dataclass(frozen=True, slots=True)
class _Recorder:
    """Records answers and reports progress."""

    writer: RecordWriter
    progress: Progress

    def record(self, window: _Window, keys: Sequence[bytes], answers: Iterable[Answer]) -> None:
        self.writer.append(window.rows(keys, answers))
        self.progress.advance(sum(1 + len(window.again.get(key, ())) for key in keys if key in window.missing))


def _windows(items: Iterable[Item], identity: RequestIdentity, done: Done) -> Iterator[_Window]:
    remaining = iter(items)
    first = 0
    while some := list(itertools.islice(remaining, WINDOW)):
        yield _Window.of(first, some, identity, done)
        first += len(some)


def _planned(window: _Window, worker: Worker, *, known: Set[bytes] = frozenset()) -> Iterator[_Asked]:
    """Yield the batches of a window that lack an answer; `known` requests are left out of the plan."""
    # All distinct requests are planned, including those that are done: what is missing then falls into the same
    # batches as in an uninterrupted run, and floating-point answers are the same to the last bit.
    keys = [key for key in window.places if key not in known]
    requests = [window.items[window.places[key]].request for key in keys]
    for batch in plan_batches(worker.model.cost(requests), budget=worker.batch_tokens):
        some = [keys[position] for position in batch]
        if not window.missing.isdisjoint(some):
            yield _Asked(window, some, [requests[position] for position in batch])


def _answered(
    asked: Iterable[_Asked], worker: Callable[[], Worker]
) -> Iterator[tuple[_Asked, tuple[Answer, ...]]]:
    """Give batches to the executor, and yield each with its answers."""
    awaited: dict[int, _Asked] = {}

    def batches() -> Iterator[Batch]:
        for number, batch in enumerate(asked):
            awaited[number] = batch
            yield Batch(number, batch.requests)

    numbered = batches()
    for first in numbered:  # load nothing if nothing is asked
        for answered in worker().executor.run(itertools.chain([first], numbered)):
            yield awaited.pop(answered.number), answered.answers


def _complete_with_cache(
    window: _Window, cache: AnswerCache, *, worker: Callable[[], Worker], recorder: _Recorder
) -> None:
    known = cache.look_up({key: window.items[at].request for key, at in window.places.items()})
    found = [key for key in window.missing if key in known]
    recorder.record(window, found, [known[key] for key in found])
    if len(found) == len(window.missing):
        return
    fresh: dict[bytes, Answer] = {}
    for batch, answers in _answered(_planned(window, worker(), known=known.keys()), worker):
        recorder.record(window, batch.keys, answers)
        fresh.update(zip(batch.keys, answers, strict=True))
    # records first: if a crash left the cache ahead of them, the resumed batches would differ
    recorder.writer.flush()
    cache.add(list(fresh), fresh.values())
