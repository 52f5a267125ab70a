"""Collecting suggestions: every question to every engine once, with a journal that survives interruption."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import filelock

from clinometer.data.stereotypes_data import Group, Templates
from clinometer.data.suggestions.asking import Asker, OtherFormat, get_engine
from clinometer.errors import DataError
from clinometer.types import MASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The beginning of a question about a group, as people would type it."""

    prompt: str  # without the space that follows it
    group: str
    category: str


def ask_about(groups: Iterable[Group], templates: Templates) -> tuple[Question, ...]:
    """Return every template with every group, each beginning once.

    >>> templates = Templates(people=("Why are {group} so [MASK]?",), country=("Why is {group} so [MASK]?",))
    >>> ask_about([Group(name="Asians", category="race", kind="people")], templates)
    (Question(prompt='why are asians so', group='asians', category='race'),)
    """
    questions: dict[str, Question] = {}
    for group in groups:
        for template in templates.of(group.kind):
            beginning = template.partition(MASK)[0]
            if "{group}" not in beginning:
                raise DataError(
                    f"{template!r} names the group after {MASK}; a search engine completes a question from its "
                    "beginning: put {group} first"
                )
            prompt = " ".join(beginning.replace("{group}", group.name).lower().split())
            questions.setdefault(
                prompt, Question(prompt=prompt, group=group.name.lower(), category=group.category)
            )
    return tuple(questions.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One question to one engine: `answer` is the decoded JSON, or `failure` says why there is none."""

    engine: str
    prompt: str
    group: str
    category: str
    time: str
    answer: Any = None
    failure: str = ""


class Journal:
    """The journal of a collection: one line of JSON per question asked, only ever appended to."""

    def __init__(self, entries: list[Entry], file: IO[bytes]) -> None:
        self.entries, self._file = entries, file

    def answered(self) -> set[tuple[str, str]]:
        """Return engine and prompt of all answered questions, which are never asked again."""
        return {(entry.engine, entry.prompt) for entry in self.entries if not entry.failure}

    def append(self, entry: Entry) -> None:
        """Write an entry to disk before the next question is asked."""
        self._file.write(json.dumps(asdict(entry), ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.entries.append(entry)


@contextlib.contextmanager
def open_journal(path: Path) -> Iterator[Journal]:
    """Open or begin a journal; an unfinished last line, left by a killed collection, is cut off."""
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
            f"{where} is not an answer of a search engine ({error}); remove that line, or start again"
        ) from None
    return entry


# an engine that fails this many questions in a row blocks us or is gone: leave it alone until the next collection
GIVE_UP_AFTER = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What one run of a collection did."""

    answered: int
    failed: int
    left_alone: tuple[str, ...]  # engines that failed too often or asked for a long pause, with the last reason


def open_questions(questions: Sequence[Question], engines: Sequence[str], journal: Journal) -> int:
    """Return how many questions are still to be asked, counting each engine."""
    done = journal.answered()
    return sum((engine, question.prompt) not in done for question in questions for engine in engines)


def collect(
    questions: Sequence[Question],
    askers: Sequence[Asker],
    journal: Journal,
    *,
    on_reply: Callable[[], None] = lambda: None,
) -> Collected:
    """Ask every engine each question that it has not answered yet, and record each reply at once.

    While one engine rests between two questions the others are asked, so three take no longer than one.
    """
    done = journal.answered()
    answered = failed = 0
    in_a_row = dict.fromkeys((asker.engine.name for asker in askers), 0)
    left_alone: dict[str, str] = {}
    for question in questions:
        for asker in askers:
            engine = asker.engine.name
            if engine in left_alone or (engine, question.prompt) in done:
                continue
            reply = asker.ask(question.prompt)
            journal.append(
                Entry(
                    engine=engine,
                    prompt=question.prompt,
                    group=question.group,
                    category=question.category,
                    time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                    answer=reply.answer,
                    failure=reply.failure,
                )
            )
            on_reply()
            if reply.failure:
                failed += 1
                in_a_row[engine] += 1
                if reply.leave_alone or in_a_row[engine] == GIVE_UP_AFTER:
                    left_alone[engine] = f"{engine} ({reply.failure})"
            else:
                answered += 1
                in_a_row[engine] = 0
    return Collected(answered=answered, failed=failed, left_alone=tuple(left_alone.values()))
