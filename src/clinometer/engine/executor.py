"""Who runs the batches: here, the process that has the model."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from clinometer.errors import ModelError
from clinometer.models.protocols import METHODS, Model
from clinometer.types import Answer, Request


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests of one kind that are answered together; `number` says which batch of the plan it is."""

    number: int
    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """A batch's answers, in the order of its requests."""

    number: int
    answers: tuple[Answer, ...]


class Executor(Protocol):
    """Answers batches, in any order."""

    def run(self, batches: Iterable[Batch]) -> Iterator[Answered]: ...


class LocalExecutor:
    """Runs one batch after the other on the loaded model; one that does not fit in memory is halved."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._too_many: dict[str, int] = {}  # method -> smallest token count that did not fit so far

    def run(self, batches: Iterable[Batch]) -> Iterator[Answered]:
        """Answer the batches in order."""
        for batch in batches:
            yield Answered(batch.number, tuple(self._answer(batch.requests)))

    def _answer(self, requests: Sequence[Request]) -> list[Answer]:
        method = METHODS[type(requests[0])]
        tokens = max(self._model.cost(requests)) * len(requests)
        if len(requests) > 1 and tokens >= self._too_many.get(method, sys.maxsize):
            return self._halves(requests)
        try:
            answers: list[Answer] = getattr(self._model, method)(requests)
        except (RuntimeError, MemoryError) as error:
            if not _is_out_of_memory(error):
                raise
        else:
            if len(answers) != len(requests):
                raise ModelError(
                    f"{self._model.info.name} gave {len(answers)} answers to {len(requests)} requests"
                )
            return answers
        # outside the except clause: the traceback, and with it the tensors of the failed pass, is gone by now
        _release_memory()
        if len(requests) == 1:
            raise ModelError(
                f"{self._model.info.name} ran out of memory on one request of {tokens} tokens: "
                "use a device with more memory, a smaller dtype (--dtype bfloat16) or shorter texts"
            )
        self._too_many[method] = min(tokens, self._too_many.get(method, sys.maxsize))
        return self._halves(requests)

    def _halves(self, requests: Sequence[Request]) -> list[Answer]:
        middle = len(requests) // 2
        return self._answer(requests[:middle]) + self._answer(requests[middle:])


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
