"""The journal of a collection: one line of JSON for each question asked, only ever appended to."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import filelock

from clinometer.data.suggestions.engines import OtherFormat, get_engine
from clinometer.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One question to one engine: `answer`, the decoded JSON as it came, or `failure`, why there is none."""

    engine: str
    prompt: str
    group: str
    category: str
    time: str
    answer: Any = None
    failure: str = ""


class Journal:
    """What is known so far, and where more is written."""

    def __init__(self, entries: list[Entry], file: IO[bytes]) -> None:
        self.entries, self._file = entries, file

    def answered(self) -> set[tuple[str, str]]:
        """Return engine and prompt of all that was answered: it is never asked again."""
        return {(entry.engine, entry.prompt) for entry in self.entries if not entry.failure}

    def append(self, entry: Entry) -> None:
        """Write an entry down before the next question is asked."""
        self._file.write(json.dumps(asdict(entry), ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.entries.append(entry)


@contextlib.contextmanager
def open_journal(path: Path) -> Iterator[Journal]:
    """Open a journal, or begin one; a last line that a killed collection did not finish is cut off."""
    lock = filelock.FileLock(path.with_name(path.name + ".lock"), thread_local=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
        file = path.open("a+b")  # closed below
    except filelock.Timeout:
        raise DataError(f"'{path}' is in use by another collection; wait until it ends, or stop it") from None
    except OSError as error:
        lock.release()
        raise DataError(
            f"cannot write '{path}' ({error.strerror or error}); give a folder that you may write in with --out"
        ) from None
    try:
        with file:
            file.seek(0)
            whole, newline, half = file.read().rpartition(b"\n")
            if half:
                file.truncate(len(whole) + len(newline))
            lines = whole.split(b"\n") if newline else []
            yield Journal([_entry(f"'{path}', line {number}", line) for number, line in enumerate(lines, 1)], file)
    finally:
        lock.release()


def _entry(where: str, line: bytes) -> Entry:
    try:
        entry = Entry(**json.loads(line))
        texts = (entry.engine, entry.prompt, entry.group, entry.category, entry.time, entry.failure)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("expected text")
        if not entry.failure:
            get_engine(entry.engine).read(entry.answer)
    except (ValueError, TypeError, OtherFormat, DataError) as error:
        raise DataError(
            f"{where} is no answer of a search engine ({error}); remove that line, or begin anew"
        ) from None
    return entry
