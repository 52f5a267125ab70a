"""Text from strangers, made harmless for where it is shown: a terminal, a chart, a spreadsheet.

Labels, file names, headlines and what a server answers come from models, data and other people's run folders.
"""

from __future__ import annotations

import re

# What a terminal obeys (C0 and C1 controls: escape sequences, carriage returns), what makes a line look like
# another one (line separators, marks that turn the direction of writing), and what no XML or UTF-8 file can hold
# (lone surrogates, U+FFFE, U+FFFF). Joiners stay: Persian and emoji need them.
_COMMANDS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Return the text with every character that is a command written out, as Python writes it.

    >>> visible("nurse\\x1b[2J"), visible("two\\nlines"), visible("Ärztin 👩‍⚕️")
    ('nurse\\\\x1b[2J', 'two\\\\nlines', 'Ärztin 👩‍⚕️')
    """
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


# A spreadsheet runs what begins with = + - @ (also in full width), with or without a tab or a line end before it.
_RUN = r"[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]"
# … turns true and false into TRUE and FALSE, and 3-4 or 1e5 into a date or another number.
_CHANGED = re.compile(rf"{_RUN}|['\d]|(true|false)$", re.IGNORECASE)
_FORMULA = re.compile(rf"'*{_RUN}")


def escaped(text: str) -> str:
    """Return the text for a spreadsheet cell, with an apostrophe in front where it would be run or changed.

    >>> escaped("=1+1"), escaped("true"), escaped("easy"), escaped("'tis")
    ("'=1+1", "'true", 'easy', "''tis")
    """
    return f"'{text}" if _CHANGED.match(text) else text


def unescaped(cell: str) -> str:
    """Return the text of a cell that `escaped` made; an apostrophe that the writer typed stays.

    >>> unescaped("'=1+1"), unescaped("''tis"), unescaped("'tis"), unescaped("easy")
    ('=1+1', "'tis", "'tis", 'easy')
    """
    return cell[1:] if cell[:1] == "'" and _CHANGED.match(cell[1:]) else cell


def without_formula(text: str) -> str:
    """Return the text for a cell that programs read, too: with an apostrophe in front only where it would be run.

    >>> without_formula("=1+1"), without_formula("'=1+1"), without_formula("3 to 5"), without_formula("'tis")
    ("'=1+1", "''=1+1", '3 to 5', "'tis")
    """
    return f"'{text}" if _FORMULA.match(text) else text
