"""Words that carry an opinion, positive or negative: VADER's, or a pair of files in the format of Hu & Liu."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clinometer.data.files import Source, read_text
from clinometer.errors import DataError

POSITIVE_FILE, NEGATIVE_FILE = "positive-words.txt", "negative-words.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionWords:
    """Lower-case words by the sign of their opinion, and where they come from."""

    positive: frozenset[str]
    negative: frozenset[str]
    source: str


def vader_opinion_words() -> OpinionWords:
    """Return the words of the VADER lexicon by the sign of their score; its emoticons are left out.

    Hutto & Gilbert, VADER (ICWSM 2014); MIT. Scores run from −4 to +4; none is 0.
    """
    scores = vader_scores()
    return OpinionWords(
        positive=frozenset(word for word, score in scores.items() if score > 0),
        negative=frozenset(word for word, score in scores.items() if score < 0),
        source="VADER",
    )


def vader_scores() -> dict[str, float]:
    """Return the score of every word of the VADER lexicon that is written in letters."""
    found = importlib.util.find_spec("vaderSentiment")  # the folder is enough: the package's code is not run
    folders = list(found.submodule_search_locations or ()) if found else []
    if not folders:
        raise DataError("the VADER lexicon is not installed: pip install vaderSentiment")
    scores: dict[str, float] = {}
    for line in read_text(Path(folders[0]) / "vader_lexicon.txt").splitlines():
        word, score, *_ = line.split("\t")
        if is_word(word):
            scores[word] = float(score)
    return scores


def read_opinion_words(folder: Source) -> OpinionWords:
    """Read `positive-words.txt` and `negative-words.txt` in a folder: one word a line, comments after `;`.

    Hu & Liu, Mining and Summarizing Customer Reviews (KDD 2004).
    """
    positive, negative = (frozenset(_listed(Path(str(folder)) / name)) for name in (POSITIVE_FILE, NEGATIVE_FILE))
    return OpinionWords(
        # a handful stands in both lists (envious, …): such a word takes no side
        positive=positive - negative,
        negative=negative - positive,
        source=str(Path(str(folder)).name),
    )


def is_word(text: str) -> bool:
    """Tell words, also those with an apostrophe or a hyphen inside, from emoticons.

    >>> is_word("can't"), is_word("well-made"), is_word(":-)"), is_word("8)")
    (True, True, False, False)
    """
    return text[:1].isalpha() and text[-1:].isalpha() and all(part.isalnum() or part in "'-" for part in text)


def _listed(file: Path) -> Iterator[str]:
    words = 0
    for line in read_text(file).splitlines():
        word = line.partition(";")[0].strip().lower()
        if word:
            words += 1
            yield word
    if not words:
        raise DataError(f"'{file}' has comments but no words; expected one word a line")
