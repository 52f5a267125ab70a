"""The only door to the terminal: what strangers wrote is shown, never obeyed."""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Iterator

from clinometer.plain import visible


def show(line: object = "", *, error: bool = False, end: str = "\n") -> None:
    """Print one line on standard output or standard error; what would be a command to the terminal is written out.

    A line end inside is written out, too: a file name must not be able to add a line of its own.
    """
    file = sys.stderr if error else sys.stdout
    encoding = getattr(file, "encoding", None) or "utf-8"
    # a terminal that is not UTF-8 shows what it cannot as an escape
    text = visible(str(line)).encode(encoding, "backslashreplace").decode(encoding)
    print(text, file=file, flush=error, end=end)


class _CleanRecord(logging.LogRecord):
    """A line of a log that may quote a file."""

    def getMessage(self) -> str:
        return "\n".join(map(visible, super().getMessage().splitlines()))


@contextlib.contextmanager
def clean_libraries() -> Iterator[None]:
    """Let what other libraries warn of and log, which may quote a file, pass through the same door."""
    usual, factory = warnings.showwarning, logging.getLogRecordFactory()

    def shown(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        show(f"{category.__name__}: {message}", error=True)

    warnings.showwarning = shown
    logging.setLogRecordFactory(_CleanRecord)
    try:
        yield
    finally:
        warnings.showwarning = usual
        logging.setLogRecordFactory(factory)
