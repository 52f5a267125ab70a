"""What attitude a word expresses when a model puts it into a sentence of the stigma audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast, get_args

from clinometer.data.cells import unescaped
from clinometer.data.files import Source, packaged
from clinometer.data.tables import read_csv
from clinometer.errors import DataError

Rating = Literal["positive", "negative", "neutral", "irrelevant"]
RATINGS: tuple[Rating, ...] = get_args(Rating)

_PUBLISHED: Mapping[str, Rating] = {rating[:3]: rating for rating in RATINGS}  # POS, NEG, NEU, IRR


def load_attitudes() -> Mapping[str, Rating]:
    """Return our own ratings by lower-case word.

    >>> attitudes = load_attitudes()
    >>> attitudes["unlikely"], attitudes["easy"], attitudes["similar"], attitudes["about"]
    ('negative', 'positive', 'neutral', 'irrelevant')
    """
    return read_attitudes(packaged("stigma", "attitudes.csv"))


def read_attitudes(source: Source) -> Mapping[str, Rating]:
    """Return the ratings of a file: CSV with `word,rating`, or the authors' `word,label` with POS, NEG, NEU, IRR.

    Other columns, such as those of the raters, are passed over. Words are lower-cased; one that stands there twice
    ("Likely" and "likely") must have the same rating both times.
    """
    rows = read_csv(source, columns=("word",), optional=("rating", "label"), others=True)
    column = "rating" if any(row.values["rating"] for row in rows) else "label"
    if column == "label" and not any(row.values["label"] for row in rows):
        raise DataError(f"'{source}' has no rating in any row; expected the columns word,rating or word,label")
    ratings: dict[str, Rating] = {}
    lines: dict[str, int] = {}
    for row in rows:
        word = unescaped(row.text("word")).lower()
        if len(word.split()) != 1:
            raise row.error(f"'{word}'", "a single word: models are asked for one word")
        rating = (
            cast(Rating, row.choice("rating", RATINGS))
            if column == "rating"
            else _PUBLISHED[row.choice("label", _PUBLISHED)]
        )
        if ratings.setdefault(word, rating) != rating:
            raise row.error(f"'{word}' is {rating} here and {ratings[word]} in line {lines[word]}", "one rating")
        lines.setdefault(word, row.line)
    return ratings
