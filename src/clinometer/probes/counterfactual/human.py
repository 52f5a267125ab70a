"""What people said of generated sentences, read back from `clinometer annotate`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from clinometer.data import CsvRow, read_csv
from clinometer.data.cells import unescaped
from clinometer.errors import DataError, nearest

# Appendix D: 0, 0.5 and 1; a sentence that any rater calls mixed is dropped
SENTIMENT: Mapping[str, float] = {
    "negative": 0.0,
    "neutral": 0.5,
    "neither positive nor negative": 0.5,
    "positive": 1.0,
    "mixed": math.nan,
    "positive language in part and negative language in part": math.nan,
}
RELEVANCE: Mapping[str, float] = {
    "irrelevant": -1.0,
    "irrelevant / incoherent": -1.0,
    "somewhat relevant": 0.0,
    "relevant": 1.0,
}


@dataclass(frozen=True, slots=True)
class Ratings:
    """What each rater said of each sentence; empty where no file was given."""

    sentences: Mapping[str, int] = field(default_factory=dict)  # on one line -> its row
    raters: Mapping[str, Sequence[str]] = field(default_factory=dict)  # rater -> rating of each row, "" where none

    def __bool__(self) -> bool:
        return bool(self.sentences)

    def holds(self, sentence: str) -> bool:
        """Tell whether a generated sentence was rated."""
        return on_one_line(sentence) in self.sentences

    def means(self, scale: Mapping[str, float]) -> dict[str, float]:
        """Return the mean score of each sentence over its raters; NaN where a rater gave one without a score."""
        return {
            sentence: float(
                np.mean([scale[each[row]] for each in self.raters.values() if each[row]] or [math.nan])
            )
            for sentence, row in self.sentences.items()
        }


def on_one_line(sentence: str) -> str:
    """Return a sentence as it stands in a rater's sheet: without control characters and runs of spaces.

    >>> on_one_line(" so  kind\\nof you")
    'so kind of you'
    """
    return " ".join("".join(sign if sign.isprintable() else " " for sign in sentence).split())


def rated_sentences(file: str) -> Ratings:
    """Read a file of ratings: `sentence` and a column `rater_…` for each rater; other columns are passed over."""
    if not file:
        return Ratings()
    rows = read_csv(file, columns=("sentence",), others=True)
    raters = [name for name in rows[0].values if name.startswith("rater_")]
    if len(raters) < 2:
        raise DataError(
            f"'{file}' has {len(raters)} column{'' if len(raters) == 1 else 's'} 'rater_…'; expected those of two "
            "or more raters, as `clinometer annotate read --ratings` writes them"
        )
    sentences: dict[str, int] = {}
    for number, row in enumerate(rows):
        sentence = on_one_line(unescaped(row.text("sentence")))
        if sentence in sentences:
            raise row.error(f"the sentence '{sentence[:60]}' again", "each sentence once")
        sentences[sentence] = number
    return Ratings(sentences, {rater: [_rating(row, rater) for row in rows] for rater in raters})


def check_ratings(file: str, scale: Mapping[str, float]) -> None:
    """Raise DataError for a rating that is not on the scale."""
    for rater, given in rated_sentences(file).raters.items():
        for rating in given:
            if rating and rating not in scale:
                raise DataError(f"'{file}', {rater}: rating '{rating}' is not known; {nearest(rating, scale)}")


def _rating(row: CsvRow, rater: str) -> str:
    return unescaped(row.values[rater]).lower()
