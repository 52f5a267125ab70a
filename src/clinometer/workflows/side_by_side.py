"""Several stages at once, where many workers answer: one thread plans each, and all share the workers.

A chain is the stages of one audit for one model; each may need the answers of the one before, so they stay in
order. Chains need nothing of each other. A chain that cannot go on stops alone.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from clinometer.engine import ComputesElsewhere, Progress

T = TypeVar("T")
_LOOK_SECONDS = 1.0  # between two looks at the workers


@runtime_checkable
class ShowsSeveral(Protocol):
    """Progress that can show several stages at once, and the workers that answer them."""

    def stage(self) -> Progress:
        """Return what shows one more stage."""
        ...

    def workers(self, lines: Sequence[str]) -> None:
        """Show what the workers do now, a line for each."""
        ...


class SharedProgress:
    """Progress that several threads report to: stages apart where the one who shows it can do that."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self._lock = threading.RLock()

    def stage(self) -> Progress:
        """Return the progress of one stage."""
        inner = self._shown.stage() if isinstance(self._shown, ShowsSeveral) else self._shown
        return _Locked(inner, self._lock)

    def note(self, text: str) -> None:
        """Show a line."""
        with self._lock:
            self._shown.note(text)

    def workers(self, cluster: ComputesElsewhere) -> None:
        """Show what happened, and what the workers do."""
        for text in cluster.notes():
            self.note(text)
        if isinstance(self._shown, ShowsSeveral):
            with self._lock:
                self._shown.workers(cluster.lines())


class _Locked:
    """Progress that one thread at a time reports to."""

    def __init__(self, inner: Progress, lock: Any) -> None:
        self._inner = inner
        self._lock = lock

    def begin(self, label: str, *, total: int, done: int, unit: str = "request") -> None:
        with self._lock:
            self._inner.begin(label, total=total, done=done, unit=unit)

    def advance(self, count: int) -> None:
        with self._lock:
            self._inner.advance(count)

    def end(self) -> None:
        with self._lock:
            self._inner.end()

    def note(self, text: str) -> None:
        with self._lock:
            self._inner.note(text)


def side_by_side(
    chains: Sequence[T],
    work: Callable[[T], None],
    *,
    at_once: int,
    finished: Callable[[T], None],
    meanwhile: Callable[[], None],
    stop: Callable[[], None],
) -> None:
    """Do the work of every chain, so many at once, in their order; `finished` is called here after each.

    An error in one of them ends all: `stop` makes the others give up. `meanwhile` is called about once a second.
    """
    with concurrent.futures.ThreadPoolExecutor(at_once, thread_name_prefix="clinometer-stage") as threads:
        doing = {threads.submit(work, chain): chain for chain in chains}
        try:
            while doing:
                done, _ = concurrent.futures.wait(
                    doing, timeout=_LOOK_SECONDS, return_when=concurrent.futures.FIRST_COMPLETED
                )
                meanwhile()
                for future in done:
                    chain = doing.pop(future)
                    future.result()
                    finished(chain)
        except BaseException:
            for future in doing:
                future.cancel()
            stop()
            raise
