"""The only door to the terminal: what strangers wrote is shown, never obeyed."""

from __future__ import annotations

import contextlib
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


@contextlib.contextmanager
def clean_warnings() -> Iterator[None]:
    """Let other libraries' warnings, which may quote a file, pass through the same door."""
    usual = warnings.showwarning

    def shown(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        show(f"{category.__name__}: {message}", error=True)

    warnings.showwarning = shown
    try:
        yield
    finally:
        warnings.showwarning = usual
