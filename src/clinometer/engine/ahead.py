"""Works ahead in a thread: the next questions are made and planned while a device answers the last ones."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

_LOOK = 0.1  # seconds after which a thread that waits looks whether it is still wanted


def ahead(source: Iterator[T], *, by: int) -> Generator[T, None, None]:
    """Yield what an iterator yields, in its order; a thread reads it, at most `by` ahead of what was taken.

    What the iterator raises is raised here, in its turn. When this generator is closed, the thread ends before
    anything else goes on, and closes the iterator.
    """
    waiting: queue.Queue[tuple[bool, Any]] = queue.Queue(maxsize=by)
    unwanted = threading.Event()

    def put(found: tuple[bool, Any]) -> bool:
        while not unwanted.is_set():
            with contextlib.suppress(queue.Full):
                waiting.put(found, timeout=_LOOK)
                return True
        return False

    def read() -> None:
        try:
            for each in source:
                if not put((True, each)):
                    break
            else:
                put((False, None))
        except BaseException as error:  # whatever it is, it belongs to the thread that asked
            put((False, error))
        finally:
            if hasattr(source, "close"):
                source.close()

    thread = threading.Thread(target=read, name="clinometer-ahead", daemon=True)
    thread.start()
    try:
        while True:
            more, found = waiting.get()
            if not more:
                if found is not None:
                    raise found
                return
            yield found
    finally:
        unwanted.set()
        thread.join()
