"""The executor door of a cluster: batches in as they are planned, answers out as they arrive."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, final

from clinometer.engine.batching import tokens_for
from clinometer.engine.cluster.driver import Driver
from clinometer.engine.cluster.settings import ClusterSettings
from clinometer.engine.cluster.view import worker_lines
from clinometer.engine.cluster.worker import Origin
from clinometer.engine.executor import Answered, Batch, Executor
from clinometer.errors import PoisonedError, SpecError, WorkerError
from clinometer.models.load import files_of
from clinometer.models.protocols import Model
from clinometer.plain import visible
from clinometer.types import ModelSpec

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_MOST_GIVEN_UP = 20  # batches of one stage: then something else is wrong
_SHOWN = 60  # characters of a text that is named


@final
class RayExecutors:
    """Makes the executors of one run; its workers are shared by all of them, and started with the first."""

    def __init__(self, settings: ClusterSettings, *, release: str) -> None:
        self.settings = settings
        self._release = release
        self._cluster: Any = None
        self._driver: Driver | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._kept: Mapping[str, Any] = {}

    def __call__(self, model: Model, *, spec: ModelSpec, device: str) -> Executor:
        """Return the executor of a model that workers load by its spec."""
        folder = files_of(spec)
        driver = self.driver()
        server = self._cluster.serve(folder) if folder else None
        origin = replace(self._origin(model, spec, device), folder=folder, server=server)
        return RayExecutor(driver, origin)

    def carry(self, model: Model, *, spec: ModelSpec, device: str) -> Executor:
        """Return the executor of a model that is in memory here: it is sent to the workers as it is."""
        driver = self.driver()
        from ray import cloudpickle

        try:
            carried = cloudpickle.dumps(model)
        except Exception as error:  # whatever a stranger's object raises
            raise SpecError(
                f"{model.info.name} is in memory, and cannot be sent to workers elsewhere ({error}); name a "
                'folder or a hub id instead, or use executor="local"'
            ) from error
        return RayExecutor(driver, replace(self._origin(model, spec, device), carried=carried))

    def _origin(self, model: Model, spec: ModelSpec, device: str) -> Origin:
        info = model.info
        told = repr(
            (info.weights, info.tokenizer, info.dtype, sorted(info.settings.items()), spec.kind, spec.name)
        )
        return Origin(
            key=hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:32],
            spec=spec,
            device=self.settings.device(device),
            release=self._release,
            size=info.parameters * _BYTES.get(info.dtype.removeprefix("torch."), 4),
            expected=info,
        )

    def driver(self) -> Driver:
        """Return the driver; the cluster is opened when it is first asked for."""
        with self._lock:
            if self._closed:  # a stage that was being planned when the run was stopped
                raise WorkerError("the cluster was closed")
            if self._driver is None:
                from clinometer.engine.cluster.connection import RayCluster

                self._cluster = RayCluster(self.settings)
                self._driver = Driver(self.settings, self._cluster)
            return self._driver

    def spec_of(self, spec: ModelSpec) -> ModelSpec:
        """Return the spec with the number format in which workers compute: the driver may have no GPU."""
        return replace(spec, dtype="bfloat16") if spec.dtype == "auto" and self.settings.gpus else spec

    @property
    def batch_tokens(self) -> int:
        """How many padded tokens a batch may hold on a worker."""
        return tokens_for(gpu=bool(self.settings.gpus))

    @property
    def at_once(self) -> int:
        """How many stages are asked side by side, so that no worker waits for the last batches of one."""
        return min(32, 2 + (self.settings.workers or 6))

    def keep_threads(self, threads: int) -> None:
        """Compute with as many threads as the run began with, unless the user says otherwise."""
        if threads and not self.settings.threads:
            self.settings = replace(self.settings, threads=threads)

    def session(self) -> Mapping[str, Any]:
        """Say what computes: where workers differ, all that they say."""
        said = self._driver.sessions() if self._driver else []
        names = dict.fromkeys(name for each in said for name in each)
        merged = {name: _joined([each[name] for each in said if name in each]) for name in names}
        self._kept = merged or self._kept
        return self._kept

    def lines(self) -> list[str]:
        """Return a line for each worker: where it is, what it has, how fast it is."""
        return worker_lines(self._driver.hands()) if self._driver else []

    def notes(self) -> list[str]:
        """Return what happened since this was last asked."""
        return self._driver.notes() if self._driver else []

    def close(self) -> None:
        """End the workers, and the cluster if it was started here."""
        with self._lock:
            self._closed = True
            driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()
            self._cluster.close()


@final
class RayExecutor:
    """Answers the batches of one model on the workers of the run."""

    def __init__(self, driver: Driver, origin: Origin) -> None:
        self._driver = driver
        self._origin = origin

    def run(self, batches: Iterable[Batch]) -> Iterator[Answered]:
        """Yield answers as they come; a bounded number of batches is under way, however many there are.

        Batches that kill every worker are left out and named in an error, after all others are answered.
        """
        stream = self._driver.open(self._origin)
        numbered = iter(batches)
        try:
            while stream.open or stream.outstanding or not stream.out.empty():
                while stream.open and stream.outstanding < self._driver.ahead and stream.out.empty():
                    batch = next(numbered, None)
                    if batch is None:
                        stream.open = False
                    else:
                        self._driver.put(stream, batch)
                if not stream.open and not stream.outstanding and stream.out.empty():
                    break
                answered = stream.out.get()
                if answered is not None:
                    yield answered
                if stream.error is not None:
                    raise stream.error
                if len(stream.given_up) >= _MOST_GIVEN_UP:
                    break
            if stream.given_up:
                raise PoisonedError(_named(self._origin, [job.batch for job in stream.given_up]))
        finally:
            self._driver.close_stream(stream)


def _named(origin: Origin, batches: list[Batch]) -> str:
    """Name the batches that nobody could answer, so that a reader can find the text in it."""
    name = origin.spec.alias or origin.spec.name
    told = []
    for batch in sorted(batches, key=lambda batch: batch.number)[:5]:
        longest = max((_text(request) for request in batch.requests), key=len)
        shown = visible(longest[:_SHOWN]) + ("…" if len(longest) > _SHOWN else "")
        told.append(f"batch {batch.number} ({len(batch.requests):,} requests, the longest: {shown!r})")
    more = f" and {len(batches) - 5} more" if len(batches) > 5 else ""
    return (
        f"every worker that was given {'; '.join(told)}{more} of {name} died, three in a row; everything else was "
        "asked and recorded. Give workers more memory (--worker-resources) or look at that text, then resume"
    )


def _text(request: Any) -> str:
    for field in ("text", "prefix"):
        if hasattr(request, field):
            return f"{getattr(request, 'context', '')} {getattr(request, field)}".strip()
    return " ".join(message.content for message in getattr(request, "messages", ()))


def _joined(values: list[Any]) -> Any:
    """Return the one value that all have, or a list of them all as text."""
    distinct = sorted(set(map(str, values)))
    return values[0] if len(distinct) == 1 else ", ".join(distinct)
