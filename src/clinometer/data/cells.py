"""Text in the cells of a spreadsheet: written so that nothing is run or changed, read back as it was."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

# A spreadsheet runs what begins with = + - @ (also in full width), turns true and false into TRUE and FALSE, and
# 3-4 or 1e5 into a date or another number. An apostrophe in front makes each of them text.
_CHANGED = re.compile(r"[=+\-@\uff1d\uff0b\uff0d\uff20'\d]|(true|false)$", re.IGNORECASE)


def escaped(text: str) -> str:
    """Return the text for a cell, with an apostrophe in front where a spreadsheet would run or change it.

    >>> escaped("=1+1"), escaped("true"), escaped("easy"), escaped("'tis")
    ("'=1+1", "'true", 'easy', "''tis")
    """
    return f"'{text}" if _CHANGED.match(text) else text


def unescaped(cell: str) -> str:
    """Return the text of a cell that `escaped` made; an apostrophe of the writer's own stays.

    >>> unescaped("'=1+1"), unescaped("''tis"), unescaped("'tis"), unescaped("easy")
    ('=1+1', "'tis", "'tis", 'easy')
    """
    return cell[1:] if cell[:1] == "'" and _CHANGED.match(cell[1:]) else cell


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return CSV text with every cell escaped and the line ends that spreadsheets write."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([escaped(cell) for cell in row] for row in rows)
    return file.getvalue()
