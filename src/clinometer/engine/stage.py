"""One stage of an audit: dedupe, look up, batch, ask, record."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from clinometer.engine.batching import plan_batches
from clinometer.engine.cache import AnswerCache
from clinometer.engine.executor import Batch, Executor
from clinometer.engine.identity import RequestIdentity
from clinometer.engine.progress import Progress
from clinometer.models.protocols import Model
from clinometer.store import Done, RecordWriter, Row, RunFolder, StageKey
from clinometer.types import Answer, Item

# How many requests are planned together. Memory stays flat however many a probe asks, and identical requests
# within a window are asked once. Windows are cut by position, so a resumed run plans the same batches.
WINDOW = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A loaded model, who runs its batches, and how many padded tokens a batch may hold."""

    model: Model
    executor: Executor
    batch_tokens: int


@dataclass(frozen=True, slots=True)
class _Window:
    """Consecutive items of a stage, with their keys."""

    first: int
    items: Sequence[Item]
    keys: Sequence[bytes]

    def positions(self) -> dict[bytes, list[int]]:
        """Say at which positions each distinct request stands, in order of first appearance."""
        places: dict[bytes, list[int]] = {}
        for position, key in enumerate(self.keys):
            places.setdefault(key, []).append(position)
        return places

    def missing(self, done: Done) -> set[bytes]:
        return {key for position, key in enumerate(self.keys) if not done.matches(self.first + position, key)}

    def rows(self, positions: Iterable[int], answer: Answer) -> list[Row]:
        return [Row(self.first + at, self.keys[at], self.items[at], answer) for at in positions]


def count_missing(items: Iterable[Item], *, identity: RequestIdentity, done: Done) -> int:
    """Count the requests of a stage whose answers are not yet recorded."""
    return sum(not done.matches(index, identity.key(item.request)) for index, item in enumerate(items))


def run_stage(
    items: Iterable[Item],
    *,
    run: RunFolder,
    key: StageKey,
    identity: RequestIdentity,
    worker: Callable[[], Worker],
    cache: AnswerCache | None,
    progress: Progress,
) -> None:
    """Record an answer for every item that has none yet; `worker` is called only if one is missing."""
    done = run.done(key)
    with run.writer(key) as writer:
        for window in _windows(items, identity):
            missing = window.missing(done)
            if missing:
                _complete(window, missing, worker=worker(), writer=writer, cache=cache, progress=progress)


def _windows(items: Iterable[Item], identity: RequestIdentity) -> Iterator[_Window]:
    remaining = iter(items)
    first = 0
    while some := list(itertools.islice(remaining, WINDOW)):
        yield _Window(first, some, [identity.key(item.request) for item in some])
        first += len(some)


def _complete(
    window: _Window,
    missing: set[bytes],
    *,
    worker: Worker,
    writer: RecordWriter,
    cache: AnswerCache | None,
    progress: Progress,
) -> None:
    places = window.positions()
    keys = list(places)
    requests = {key: window.items[places[key][0]].request for key in keys}

    if cache is not None:
        known = cache.look_up(requests)
        rows = [row for key in missing & known.keys() for row in window.rows(places[key], known[key])]
        writer.append(rows)
        progress.advance(len(rows))
        missing = missing - known.keys()
        keys = [key for key in keys if key not in known]

    # All distinct requests are planned, also those that are done: what is missing then falls into the same batches
    # as in an uninterrupted run, and floating-point answers come out the same to the last bit.
    plan = plan_batches(worker.model.cost([requests[key] for key in keys]), budget=worker.batch_tokens)
    batches = {number: [keys[position] for position in batch] for number, batch in enumerate(plan)}
    wanted = [
        Batch(number, tuple(requests[key] for key in batch))
        for number, batch in batches.items()
        if not missing.isdisjoint(batch)
    ]
    fresh: dict[bytes, Answer] = {}
    for answered in worker.executor.run(wanted):
        batch = batches[answered.number]
        rows = [
            row
            for key, answer in zip(batch, answered.answers, strict=True)
            for row in window.rows(places[key], answer)
        ]
        writer.append(rows)
        progress.advance(sum(len(places[key]) for key in batch if key in missing))
        if cache is not None:
            fresh.update(zip(batch, answered.answers, strict=True))

    if cache is not None:
        # records first: were the cache ahead of them after a crash, the resumed batches would differ
        writer.flush()
        cache.add(list(fresh), fresh.values())
