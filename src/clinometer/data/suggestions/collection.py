"""A collection: every question to every engine, with what was answered before left out."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clinometer.data.suggestions.asking import Asker
from clinometer.data.suggestions.journal import Entry, Journal
from clinometer.data.suggestions.questions import Question

# an engine that fails so many questions in a row is blocking us or gone: it is left alone until the next time
GIVE_UP_AFTER = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What one go of a collection did."""

    answered: int
    failed: int
    left_alone: tuple[str, ...]  # engines that failed too often or want a long pause, with the last reason


def open_questions(questions: Sequence[Question], engines: Sequence[str], journal: Journal) -> int:
    """Return how many questions are still to be asked, over all engines."""
    done = journal.answered()
    return sum((engine, question.prompt) not in done for question in questions for engine in engines)


def collect(
    questions: Sequence[Question],
    askers: Sequence[Asker],
    journal: Journal,
    *,
    on_reply: Callable[[], None] = lambda: None,
) -> Collected:
    """Ask what is not yet answered, engine by engine for each question, and write each reply down as it comes.

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
