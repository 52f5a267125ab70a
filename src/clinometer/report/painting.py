"""Hands charts to a painter in a process of its own, and outlives it.

The library that draws PNG and SVG ends its whole process over some characters, and perhaps over others that nobody
has found yet. Labels are cleaned before (`charts.Chart.whole`); what still goes wrong costs one picture.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from clinometer.errors import reason

PAINTER = Path(__file__).with_name("painter.py")
LONGEST = 120.0  # seconds for one picture
MOST_BYTES = 1 << 30

Format = Literal["png", "svg"]


class NotPainted(Exception):
    """A chart that could not be drawn, and why."""


class Painter:
    """Paints one chart after another; a process that ends over one is replaced for the next."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def paint(self, spec: dict[str, Any], form: Format, *, scale: float) -> bytes:
        """Return the picture of a Vega-Lite specification; raise NotPainted where there is none."""
        process = self._process or self._begin()
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(LONGEST, stop)
        timer.start()
        try:
            code, answer = self._answer(process, {"spec": spec, "form": form, "scale": scale})
        except (OSError, EOFError):
            self._end()
            why = f"it takes longer than {LONGEST:g} s" if late.is_set() else "the process that draws it ended"
            raise NotPainted(why) from None
        finally:
            timer.cancel()
        if code:
            raise NotPainted(reason(ValueError(answer.decode("utf-8", "replace"))))
        return answer

    def _answer(self, process: subprocess.Popen[bytes], task: dict[str, Any]) -> tuple[int, bytes]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(task).encode() + b"\n")
        process.stdin.flush()
        head = process.stdout.read(9)
        length = int.from_bytes(head[1:], "big")
        if len(head) < 9 or length > MOST_BYTES:
            raise EOFError
        answer = process.stdout.read(length)
        if len(answer) < length:
            raise EOFError
        return head[0], answer

    def _begin(self) -> subprocess.Popen[bytes]:
        # -P: nothing beside the script is imported in place of the standard library
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(PAINTER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a panic prints pages
        )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            # closing the pipe of a dead process raises over what was not written yet; it is closed, and waited for
            with contextlib.suppress(OSError), self._process:
                pass
            self._process = None
