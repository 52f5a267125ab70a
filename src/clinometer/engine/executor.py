"""Runs the batches: by default in the process that has the model."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from clinometer.engine.cluster.settings import ClusterSettings
from clinometer.errors import ModelError, SpecError, nearest
from clinometer.models.protocols import METHODS, CanLaunch, Model
from clinometer.plugins import EXECUTORS, entry_points, load_plugin
from clinometer.types import Answer, ModelSpec, Request

# How many batches a GPU gets ahead of time. It works on them while the next window is planned, which takes longer
# than one batch; a killed run loses them.
_AHEAD = 8

LOCAL, RAY = "local", "ray"


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests of one kind that are answered together; `number` is its place in the plan."""

    number: int
    requests: Sequence[Request]


@dataclass(frozen=True, slots=True)
class Answered:
    """A batch's answers, in the order of its requests."""

    number: int
    answers: Sequence[Answer]


class Executor(Protocol):
    """Answers batches, in any order."""

    def run(self, batches: Iterable[Batch]) -> Iterator[Answered]: ...


class ExecutorFactory(Protocol):
    """Makes the executor of one model: `Execution(executor=…)` takes one, or its name."""

    def __call__(self, model: Model, *, spec: ModelSpec, device: str) -> Executor:
        """Return the executor; `spec` and `device` are for those that load the model again elsewhere."""
        ...


@runtime_checkable
class ComputesElsewhere(Protocol):
    """Factories whose executors load the model themselves, on other machines; here it only measures requests."""

    @property
    def at_once(self) -> int:
        """How many stages are asked side by side."""
        ...

    @property
    def batch_tokens(self) -> int:
        """How many padded tokens a batch may hold there."""
        ...

    def __call__(self, model: Model, *, spec: ModelSpec, device: str) -> Executor: ...

    def carry(self, model: Model, *, spec: ModelSpec, device: str) -> Executor:
        """Return the executor of a model that is in memory here and nowhere else."""
        ...

    def spec_of(self, spec: ModelSpec) -> ModelSpec:
        """Return the spec with the number format that is computed in there."""
        ...

    def keep_threads(self, threads: int) -> None:
        """Compute with as many threads as the run began with."""
        ...

    def session(self) -> Mapping[str, Any]:
        """Say what computes, as `describe_session` does; nothing before the first answer."""
        ...

    def lines(self) -> list[str]:
        """Return a line for each worker."""
        ...

    def notes(self) -> list[str]:
        """Return what happened since this was last asked, and a user should know."""
        ...

    def close(self) -> None: ...


def local_executor(model: Model, *, spec: ModelSpec, device: str) -> Executor:
    """Answer in this process, with the loaded model."""
    return LocalExecutor(model)


def ray_executors(settings: ClusterSettings, release: str) -> ExecutorFactory:
    """Answer on the workers of a Ray cluster."""
    from clinometer.engine.cluster.executor import RayExecutors

    return RayExecutors(settings, release=release)


_OURS: dict[str, Callable[[ClusterSettings, str], ExecutorFactory]] = {
    LOCAL: lambda *_: local_executor,
    RAY: ray_executors,
}


def check_executor(name: str) -> None:
    """Raise SpecError, with the nearest name, where there is no executor of this one."""
    if name not in _OURS and name not in entry_points(EXECUTORS):
        raise SpecError(f"no executor {name!r}; {nearest(name, [*_OURS, *entry_points(EXECUTORS)])}")


def get_executor(
    chosen: str | ExecutorFactory, *, cluster: ClusterSettings | None = None, release: str = ""
) -> ExecutorFactory:
    """Return the factory of that name: one of ours, or one that a package registers in `clinometer.executors`.

    `cluster` and `release` are for those of ours that compute on other machines.
    """
    if not isinstance(chosen, str):
        return chosen
    if chosen in _OURS:
        return _OURS[chosen](cluster or ClusterSettings(), release)
    check_executor(chosen)
    factory: ExecutorFactory = load_plugin(EXECUTORS, chosen)
    return factory


class LocalExecutor:
    """Runs one batch after another on the loaded model; one that does not fit in memory is halved."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._too_many: dict[str, int] = {}  # method -> smallest token count that did not fit
        self._launch = model.launch if isinstance(model, CanLaunch) else None
        self._ahead = _AHEAD if isinstance(model, CanLaunch) and model.runs_in_background else 0

    def run(self, batches: Iterable[Batch]) -> Iterator[Answered]:
        """Answer the batches in order; the next ones start before the first answers are read."""
        started: deque[tuple[Batch, Callable[[], Sequence[Answer]]]] = deque()
        for batch in batches:
            started.append((batch, self._start(batch.requests)))
            if len(started) > self._ahead:
                yield self._read(*started.popleft())
        while started:
            yield self._read(*started.popleft())

    def _start(self, requests: Sequence[Request]) -> Callable[[], Sequence[Answer]]:
        method = METHODS[type(requests[0])]
        if (
            len(requests) > 1
            and self._too_many
            and self._tokens(requests) >= self._too_many.get(method, sys.maxsize)
        ):
            return self._halves(requests)
        try:
            if self._launch is not None:
                return self._launch(requests)
            answers: list[Answer] = getattr(self._model, method)(requests)
        except (RuntimeError, MemoryError) as error:
            if not _is_out_of_memory(error):
                raise
        else:
            return lambda: answers
        # outside the except clause, where the traceback and the tensors of the failed pass are gone
        _release_memory()
        tokens = self._tokens(requests)
        if len(requests) == 1:
            raise ModelError(
                f"{self._model.info.name} ran out of memory on one request of {tokens} tokens: "
                "use a device with more memory, a smaller dtype (--dtype bfloat16) or shorter texts"
            )
        self._too_many[method] = min(tokens, self._too_many.get(method, sys.maxsize))
        return self._halves(requests)

    def _halves(self, requests: Sequence[Request]) -> Callable[[], Sequence[Answer]]:
        middle = len(requests) // 2
        first, second = self._start(requests[:middle]), self._start(requests[middle:])
        return lambda: [*first(), *second()]

    def _tokens(self, requests: Sequence[Request]) -> int:
        return max(self._model.cost(requests)) * len(requests)

    def _read(self, batch: Batch, answers_of: Callable[[], Sequence[Answer]]) -> Answered:
        answers = answers_of()
        if len(answers) != len(batch.requests):
            raise ModelError(
                f"{self._model.info.name} gave {len(answers)} answers to {len(batch.requests)} requests"
            )
        return Answered(batch.number, answers)


def _is_out_of_memory(error: Exception) -> bool:
    # torch.OutOfMemoryError on a GPU; its CPU allocator raises a plain RuntimeError
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "can't allocate memory" in str(error)
        or "not enough memory" in str(error)
    )


def _release_memory() -> None:
    torch = sys.modules.get("torch")  # only a model that uses torch has memory to give back
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
