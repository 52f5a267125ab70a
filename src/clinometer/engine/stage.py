"""One stage of an audit: drop duplicates, look up, batch, ask, record."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from clinometer.engine.ahead import ahead
from clinometer.engine.asking import Asked, EndpointStage, Source, identity_of
from clinometer.engine.batching import WINDOW, plan_batches
from clinometer.engine.cache import AnswerCache
from clinometer.engine.executor import Batch, Executor
from clinometer.engine.identity import RequestIdentity
from clinometer.engine.journal import Journal
from clinometer.engine.progress import Progress
from clinometer.errors import RecordsError
from clinometer.models.endpoint.model import run_in_loop
from clinometer.models.endpoint.sending import CONCURRENCY, Free, Meter, Pace, Patience, Sender
from clinometer.models.protocols import ANSWERS, CanLaunch, CanSend, Model
from clinometer.questions import Items, Requests, as_answers, in_windows
from clinometer.store import Done, Recorded, RecordWriter, Row, RunFolder, StageKey, digests_of_tags
from clinometer.types import Answer, Block, Item

_WINDOWS_AHEAD = 2  # that are made and planned before the device asks for them


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A loaded model, the executor of its batches, and how many padded tokens a batch may hold.

    A model behind an address has no batches: it has a pace, and a meter that counts what is spent.
    """

    model: Model
    executor: Executor
    batch_tokens: int
    pace: Pace = field(default_factory=lambda: Pace(CONCURRENCY))
    meter: Meter = field(default_factory=Free)
    patience: Patience = field(default_factory=Patience)

    @property
    def where(self) -> str:
        """What to call an endpoint when it fails."""
        return str(getattr(self.model, "where", self.model.info.name))


Positions = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class _Window:
    """Consecutive items of a stage with their keys; a repeated request counts once."""

    first: int
    items: Items
    keys: Sequence[bytes]
    places: Mapping[bytes, int]  # each distinct request, in order of first appearance -> its position
    again: Mapping[int, Sequence[int]]  # the further positions of requests that are repeated, by the first
    missing: npt.NDArray[np.bool_]  # which positions have a request that is not recorded wherever it is asked
    relabelled: Sequence[int] = ()  # positions of recorded answers whose tags are no longer those of the item

    @classmethod
    def of(cls, first: int, items: Items, identity: RequestIdentity, done: Done) -> _Window:
        keys = identity.keys(items.requests)
        places: dict[bytes, int] = dict(zip(keys, range(len(keys)), strict=True))
        again: dict[int, list[int]] = {}
        if len(places) < len(keys):
            places = {}
            for position, key in enumerate(keys):
                if (first_place := places.setdefault(key, position)) != position:
                    again.setdefault(first_place, []).append(position)
        missing = np.ones(len(keys), np.bool_)
        relabelled: list[int] = []
        if len(done):
            missing = ~done.matching(first, keys)
            for position, others in again.items():
                everywhere = [position, *others]
                missing[everywhere] = missing[everywhere].any()
            if not missing.all():
                tagged = done.tagged_as(first, digests_of_tags(items.tags, len(items)))
                relabelled = np.flatnonzero(~missing & ~tagged).tolist()
        return cls(
            first=first,
            items=items,
            keys=keys,
            places=places,
            again=again,
            missing=missing,
            relabelled=relabelled,
        )

    @functools.cached_property
    def digests(self) -> list[bytes]:
        """The digest of each item's tags."""
        return digests_of_tags(self.items.tags, len(self.items))

    def everywhere(self, position: int) -> tuple[int, ...]:
        """Return every position of a request, by its first."""
        return (position, *self.again.get(position, ()))

    def recorded(self, positions: Positions, answers: Sequence[Answer]) -> Recorded:
        """Return what is recorded once these requests, by their first positions, are answered."""
        if self.again:
            turns = [(turn, at) for turn, first in enumerate(positions.tolist()) for at in self.everywhere(first)]
            answers = as_answers(answers, [turn for turn, _ in turns])
            positions = np.asarray([at for _, at in turns], np.intp)
        chosen = positions.tolist()
        return Recorded(
            indices=self.first + positions.astype(np.int64),
            keys=[self.keys[at] for at in chosen],
            items=self.items.take(positions),
            digests=[self.digests[at] for at in chosen],
            answers=answers,
        )

    def rows_of(self, key: bytes, answer: Answer, source: Source) -> list[Row]:
        """Return a row for every item that asks this request."""
        places = self.everywhere(self.places[key])
        return [Row(self.first + at, key, self.items[at], answer, source) for at in places]

    def lacking(self) -> Iterator[tuple[bytes, int]]:
        """Yield key and first position of every request that lacks an answer."""
        for key, at in self.places.items():
            if self.missing[at]:
                yield key, at


@dataclass(frozen=True, slots=True)
class _Asked:
    """A batch that waits for its answers, and the window it is from."""

    window: _Window
    positions: Positions
    requests: Requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """How the records of a stage compare with what it asks."""

    asked: int
    missing: int  # requests without an answer
    relabelled: int  # answers recorded under other tags than the item has
    extra: int  # indices that are recorded, at most, and not asked

    @property
    def whole(self) -> bool:
        """Whether the records are those that the stage asks for."""
        return not (self.missing or self.relabelled or self.extra)


def check_stage(questions: Iterable[Item | Block], *, identity: RequestIdentity, done: Done) -> Checked:
    """Compare the records of a stage with its questions."""
    asked = missing = relabelled = 0
    for items in in_windows(questions, WINDOW):
        recorded = done.matching(asked, identity.keys(items.requests))
        missing += int((~recorded).sum())
        if recorded.any():
            tagged = done.tagged_as(asked, digests_of_tags(items.tags, len(items)))
            relabelled += int((recorded & ~tagged).sum())
        asked += len(items)
    return Checked(asked=asked, missing=missing, relabelled=relabelled, extra=max(0, done.size - asked))


def run_stage(
    questions: Iterable[Item | Block | Items],
    *,
    run: RunFolder,
    key: StageKey,
    done: Done,
    identity: RequestIdentity,
    worker: Callable[[], Worker],
    cache: AnswerCache | None,
    progress: Progress,
    by: Callable[[], Mapping[str, Any]] | None = None,
) -> None:
    """Record an answer for every question that is not in `done`; `worker` is called only if one is missing.

    An answer whose item has other tags by now is recorded again under these; nothing is asked twice. `by` says who
    computes.
    """
    with run.writer(key, by=by) as writer:
        recorder = _Recorder(run, key, writer, progress, Journal(run.stage_folder(key), run=run.path))
        windows = _windows(questions, identity, done)
        first = next(filter(recorder.lacks, windows), None)
        wanted = itertools.chain([] if first is None else [first], filter(recorder.lacks, windows))
        if first is None:
            recorder.journal.replace({})  # all of it is recorded
        elif cache is not None:
            for window in wanted:
                # one window at a time: what the next one finds in the cache must not depend on the device's speed
                _complete_with_cache(window, cache, worker=worker, recorder=recorder, told=identity.told)
        elif isinstance(worker().model, CanSend):
            _ask_endpoint(wanted, worker(), recorder=recorder)
        else:
            with contextlib.closing(_plans(first, windows, worker())) as plans:
                # one stream: a device gets the first batches of a window before it has finished the window before
                asked = (batch for window, plan in plans if recorder.lacks(window) for batch in plan)
                for batch, answers in _answered(asked, worker):
                    recorder.record(batch, answers)
    if recorder.seen < done.size:
        raise RecordsError(
            f"{key}: {done.size:,} answers are recorded, but {recorder.seen:,} questions are asked: records were "
            "added that are not of this audit; start a new run with `clinometer audit`"
        )


@dataclass(slots=True)
class _Recorder:
    """Records answers and reports progress."""

    run: RunFolder
    key: StageKey
    writer: RecordWriter
    progress: Progress
    journal: Journal
    seen: int = 0  # items of the stage so far

    def lacks(self, window: _Window) -> bool:
        """Tell whether a window lacks an answer; what only has other tags by now is recorded anew, once."""
        new = window.first >= self.seen
        self.seen = window.first + len(window.items)
        if new and window.relabelled:
            self.writer.relabel(_relabelled(window, self.run, self.key))
            count = len(window.relabelled)
            self.progress.note(
                f"{self.key}: {count:,} answers have other tags now: recorded anew, not asked again"
            )
        return bool(window.missing.any())

    def record(self, batch: _Asked, answers: Sequence[Answer]) -> None:
        """Record the answers to a batch."""
        recorded = batch.window.recorded(batch.positions, answers)
        self.writer.append(recorded)
        self.progress.advance(int(batch.window.missing[recorded.indices - batch.window.first].sum()))


def _relabelled(window: _Window, run: RunFolder, key: StageKey) -> list[Row]:
    """Return recorded answers as rows with the tags that their items have now."""
    answered_with = ANSWERS[window.items.requests.kind]
    names = [field.name for field in dataclasses.fields(answered_with)]
    columns = ["index", "key", *(f"got_{name}" for name in names)]
    indices = [window.first + at for at in window.relabelled]
    rows = []
    for index, recorded_key, *values in run.table(key, columns=columns, indices=indices).iter_rows():
        plain = [tuple(value) if isinstance(value, list) else value for value in values]
        answer: Answer = answered_with(**dict(zip(names, plain, strict=True)))
        rows.append(Row(index, recorded_key, window.items[index - window.first], answer))
    return rows


def _windows(
    questions: Iterable[Item | Block | Items], identity: RequestIdentity, done: Done
) -> Iterator[_Window]:
    first = 0
    for items in in_windows(questions, WINDOW):
        yield _Window.of(first, items, identity, done)
        first += len(items)


def _planned(window: _Window, worker: Worker, *, known: Set[bytes] = frozenset()) -> Iterator[_Asked]:
    """Yield the batches of a window that lack an answer; `known` requests are left out of the plan."""
    # All distinct requests are planned, including those that are done: what is missing then falls into the same
    # batches as in an uninterrupted run, and floating-point answers are the same to the last bit.
    distinct = np.asarray([at for key, at in window.places.items() if key not in known], np.intp)
    requests = window.items.requests
    if len(distinct) < len(requests):
        requests = requests.take(distinct)
    for batch in plan_batches(worker.model.cost(requests), budget=worker.batch_tokens):
        chosen = np.asarray(batch, np.intp)
        positions = distinct[chosen]
        if window.missing[positions].any():
            yield _Asked(window, positions, requests.take(chosen))


def _plans(
    first: _Window, windows: Iterator[_Window], worker: Worker
) -> Generator[tuple[_Window, Iterable[_Asked]], None, None]:
    """Yield windows with their batches; for a device that works by itself, they are planned ahead in a thread."""
    model = worker.model
    every = itertools.chain([first], windows)
    if not (isinstance(model, CanLaunch) and model.runs_in_background):
        yield from ((window, _planned(window, worker)) for window in every)
        return
    # a window that lacks nothing is not planned
    plans = ((window, list(_planned(window, worker)) if window.missing.any() else []) for window in every)
    with contextlib.closing(ahead(plans, by=_WINDOWS_AHEAD)) as planned:
        yield from planned


def _answered(asked: Iterable[_Asked], worker: Callable[[], Worker]) -> Iterator[tuple[_Asked, Sequence[Answer]]]:
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
    window: _Window, cache: AnswerCache, *, worker: Callable[[], Worker], recorder: _Recorder, told: Source
) -> None:
    requests = window.items.requests.take(list(window.places.values()))
    known = cache.look_up(dict(zip(window.places, requests, strict=True)))
    lacking = [key for key, _ in window.lacking()]
    found = [key for key in lacking if key in known]
    rows = [row for key in found for row in window.rows_of(key, *known[key])]
    recorder.writer.append(rows)
    recorder.progress.advance(len(rows))
    for other in sorted({identity_of(known[key][1]) for key in found} - {identity_of(told), ""}):
        now = identity_of(told)
        recorder.progress.note(f"the cache has answers of an endpoint that said it was {other}; now it says {now}")
    if len(found) == len(lacking):
        return
    if isinstance(worker().model, CanSend):
        return _ask_endpoint([window], worker(), cache=cache, known=known.keys(), recorder=recorder)
    fresh: dict[bytes, Answer] = {}
    for batch, answers in _answered(_planned(window, worker(), known=known.keys()), worker):
        recorder.record(batch, answers)
        fresh.update(zip((window.keys[at] for at in batch.positions.tolist()), answers, strict=True))
    # records first: if a crash left the cache ahead of them, the resumed batches would differ
    recorder.writer.flush()
    cache.add(list(fresh), fresh.values())


def _ask_endpoint(
    windows: Iterable[_Window],
    worker: Worker,
    *,
    recorder: _Recorder,
    cache: AnswerCache | None = None,
    known: Set[bytes] = frozenset(),
) -> None:
    """Ask a model behind an address: call by call, each reply kept as it arrives."""
    model = worker.model
    assert isinstance(model, CanSend)

    def wanted() -> Iterator[Asked]:
        for window in windows:
            for key, at in window.lacking():
                if key not in known:
                    count = len(window.everywhere(at))
                    rows = functools.partial(window.rows_of, key)
                    yield Asked(key, window.items.requests[at], count, rows)

    def learn(fresh: Mapping[bytes, tuple[Answer, Source]]) -> None:
        if cache is not None:
            cache.add(
                list(fresh), [answer for answer, _ in fresh.values()], sources=[told for _, told in fresh.values()]
            )

    stage = EndpointStage(
        model=model,
        sender=Sender(model, worker.where, worker.pace, worker.patience, worker.meter),
        journal=recorder.journal,
        writer=recorder.writer,
        progress=recorder.progress,
        learn=learn if cache is not None else None,
        who=worker.model.info.told,
    )
    try:
        run_in_loop(stage.ask(wanted()))
    finally:
        if stage.sender.resent:
            recorder.progress.note(f"{stage.sender.resent:,} calls were sent again")
