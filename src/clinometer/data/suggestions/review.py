"""A collection from its questions to the sheet that a person judges."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from clinometer.data.suggestions.asking import Asker, Engine, Manners
from clinometer.data.suggestions.cleaning import Cleaned, clean
from clinometer.data.suggestions.collection import Collected, Question, collect, open_journal, open_questions
from clinometer.data.suggestions.sheet import read_sheet, write_sheet
from clinometer.data.wording import counted
from clinometer.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What was asked this time, and what there is to judge of all answers so far."""

    folder: Path
    asked: Collected
    cleaned: Cleaned
    total: int  # questions, counting each engine
    still: int  # of them, those that are open

    @property
    def sheet(self) -> Path:
        """The sheet for the person who judges."""
        return _sheet(self.folder)


def collect_into(
    folder: Path,
    questions: Sequence[Question],
    engines: Sequence[Engine],
    *,
    delay: float,
    on_begin: Callable[[int, int], None],
    on_reply: Callable[[], None],
) -> Review:
    """Ask what is still open, into the journal of the folder; `on_begin` hears how many there are and are done."""
    if _sheet(folder).exists():
        read_sheet(_sheet(folder))  # complain about a mistake in it before asking anyone
    askers = [Asker(engine, manners=Manners(delay=delay), rng=random.Random()) for engine in engines]
    names = [engine.name for engine in engines]
    with open_journal(folder / "answers.jsonl") as journal:
        total = len(questions) * len(engines)
        on_begin(total, total - open_questions(questions, names, journal))
        asked = collect(questions, askers, journal, on_reply=on_reply)
        return Review(
            folder=folder,
            asked=asked,
            cleaned=clean(journal.entries),
            total=total,
            still=open_questions(questions, names, journal),
        )


def write_review(found: Review) -> int:
    """Write the sheet, keep what was judged, and return how many rows are to judge; DataError for none at all."""
    if not found.cleaned.candidates:
        raise DataError(
            f"no completion in {counted(found.total - found.still, 'answer')}; nothing to review"
            f" (answers: {found.folder})"
        )
    sheet = found.sheet
    # read only now: a person may have judged in the meantime
    write_sheet(sheet, found.cleaned.candidates, judged=read_sheet(sheet) if sheet.exists() else ())
    return sum(not row.keep for row in read_sheet(sheet))


def _sheet(folder: Path) -> Path:
    return folder / "review.csv"
