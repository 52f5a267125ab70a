"""The verbalizer: which words a model may offer count as female and which as male."""

from __future__ import annotations

from collections.abc import Mapping

from clinometer.data.files import Source, packaged
from clinometer.data.occupations import Gender
from clinometer.data.tables import read_csv
from clinometer.errors import DataError

Verbalizer = Mapping[str, Gender]  # lower-case word -> gender


def load_verbalizer() -> Verbalizer:
    """Return our own list of female and male words.

    >>> words = load_verbalizer()
    >>> words["waitress"], words["dad"], "nurse" in words
    ('female', 'male', False)
    """
    return read_verbalizer(packaged("counterexamples", "verbalizer.csv"))


def read_verbalizer(source: Source) -> Verbalizer:
    """Return the words of a file: CSV with `word,gender` and perhaps `group,reason`."""
    lines: dict[str, int] = {}
    words: dict[str, Gender] = {}
    for row in read_csv(source, columns=("word", "gender"), optional=("group", "reason")):
        word = row.text("word").lower()
        if word in lines:
            raise row.error(f"'{word}' again (first in line {lines[word]})", "each word once, whatever its case")
        if len(word.split()) != 1:
            raise row.error(f"'{word}'", "a single word: models are asked for one word")
        lines[word] = row.line
        words[word] = "female" if row.choice("gender", ("female", "male")) == "female" else "male"
    for gender in ("female", "male"):
        if gender not in words.values():
            raise DataError(f"'{source}' has no {gender} word; expected female and male words")
    return words
