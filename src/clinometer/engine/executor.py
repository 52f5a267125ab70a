"""Who runs the batches: by default, the process that has the model."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from clinometer.errors import ModelError, SpecError, nearest
from clinometer.models.protocols import METHODS, CanLaunch, Model
from clinometer.plugins import EXECUTORS, entry_points, load_plugin
from clinometer.types import Answer, ModelSpec, Request

# How many batches a GPU is given ahead. It works through them while the next window is planned, which takes longer
# than one batch; a run that is killed loses them.
_AHEAD = 8

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests of one kind that are answered together; `number` says which batch of the plan it is."""

    number: int
    requests: Sequence[Request]


@dataclass(frozen=True, slots=True)
class Answered:
    """A batch's answers, in the order of its requests."""

    number: int
    answers: tuple[Answer, ...]


class Executor(Protocol):
    """Answers batches, in any order."""

    def run(self, batches: Iterable[Batch]) -> Iterator[Answered]: ...


class ExecutorFactory(Protocol):
    """Provides the executor of one model: `Execution(executor=…)` takes one, or the name of one."""

    def __call__(self, model: Model, *, spec: ModelSpec, device: str) -> Executor:
        """Return who answers for the model; `spec` and `device` are for those who load it again elsewhere."""
        ...


def local_executor(model: Model, *, spec: ModelSpec, device: str) -> Executor:
    """Answer in this process, on the model that is loaded here."""
    return LocalExecutor(model)


def get_executor(chosen: str | ExecutorFactory) -> ExecutorFactory:
    """Return the factory of that name: "local", or what a package registers as `clinometer.executors`."""
    if not isinstance(chosen, str):
        return chosen
    if chosen == LOCAL:
        return local_executor
    if chosen not in entry_points(EXECUTORS):
        raise SpecError(f"no executor {chosen!r}; {nearest(chosen, [LOCAL, *entry_points(EXECUTORS)])}")
    factory: ExecutorFactory = load_plugin(EXECUTORS, chosen)
    return factory


class LocalExecutor:
    """Runs one batch after the other on the loaded model; one that does not fit in memory is halved."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._too_many: dict[str, int] = {}  # method -> smallest token count that did not fit so far
        self._launch = model.launch if isinstance(model, CanLaunch) else None
        self._ahead = _AHEAD if isinstance(model, CanLaunch) and model.runs_in_background else 0

    def run(self, batches: Iterable[Batch]) -> Iterator[Answered]:
        """Answer the batches in order. The next ones are begun before the answers of the first are read."""
        begun: deque[tuple[Batch, Callable[[], Sequence[Answer]]]] = deque()
        for batch in batches:
            begun.append((batch, self._begin(batch.requests)))
            if len(begun) > self._ahead:
                yield self._read(*begun.popleft())
        while begun:
            yield self._read(*begun.popleft())

    def _begin(self, requests: Sequence[Request]) -> Callable[[], Sequence[Answer]]:
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
        # outside the except clause: the traceback, and with it the tensors of the failed pass, is gone by now
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
        first, second = self._begin(requests[:middle]), self._begin(requests[middle:])
        return lambda: [*first(), *second()]

    def _tokens(self, requests: Sequence[Request]) -> int:
        return max(self._model.cost(requests)) * len(requests)

    def _read(self, batch: Batch, answers_of: Callable[[], Sequence[Answer]]) -> Answered:
        answers = answers_of()
        if len(answers) != len(batch.requests):
            raise ModelError(
                f"{self._model.info.name} gave {len(answers)} answers to {len(batch.requests)} requests"
            )
        return Answered(batch.number, tuple(answers))


def _is_out_of_memory(error: Exception) -> bool:
    # torch.OutOfMemoryError on a GPU; its CPU allocator raises a plain RuntimeError
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "can't allocate memory" in str(error)
        or "not enough memory" in str(error)
    )


def _release_memory() -> None:
    torch = sys.modules.get("torch")  # only a model that uses torch has anything to give back
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
