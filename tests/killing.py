"""Processes to be killed in tests. Their imports, which take seconds, are made once and shared by forking."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from typing import Any

# The fork server imports these once, and forks before any of them has started a thread.
_SHARED = ["tests.interrupted_run", "tests.train.mitigation_samples", "tests.cli.in_child", "store_samples"]


class Child:
    """A process that calls `work(tell, …)`; what it tells is heard here, also after it was killed."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_SHARED)
        self._heard, telling = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(work, telling, *arguments), daemon=True)
        self._process.start()
        telling.close()  # so that its end is heard

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """How it ended; None while it works."""
        return self._process.exitcode

    def hear(self) -> Any:
        """Wait for what it tells next; an error of its own is raised here."""
        told = self._heard.recv()
        if isinstance(told, _Failure):
            raise AssertionError(str(told))
        return told

    def hear_the_rest(self) -> list[Any]:
        """Everything that it told and that was not heard yet, once it has ended."""
        told = []
        try:
            while True:
                told.append(self.hear())
        except (EOFError, OSError):  # the last one may have been cut short by a kill
            return told

    def ends_within(self, seconds: float) -> bool:
        """Wait so long for its end, at most."""
        self._process.join(seconds)
        return self._process.exitcode is not None

    def kill(self) -> None:
        """End it without any warning, by SIGKILL."""
        self._process.kill()
        self._process.join()


class _Failure(str):
    """The traceback of a child."""


def _run(work: Callable[..., None], telling: Any, *arguments: Any) -> None:
    try:
        work(telling.send, *arguments)
    except Exception:
        telling.send(_Failure(traceback.format_exc()))
        raise SystemExit(1) from None
