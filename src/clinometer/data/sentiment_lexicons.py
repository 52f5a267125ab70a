"""Words with a sentiment: VADER, MPQA, Hu & Liu, the paper's neutral words, and a user's own list."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from clinometer.data.files import Source, package_folder, packaged, read_csv, read_text
from clinometer.errors import DataError, nearest

Label = Literal["positive", "negative", "neutral"]

POSITIVE_FILE, NEGATIVE_FILE = "positive-words.txt", "negative-words.txt"
_MPQA_KEYS = ("type", "len", "word1", "pos1", "stemmed1", "priorpolarity", "polarity", "mpqapolarity")
_MPQA_POLARITIES = ("positive", "negative", "neutral", "both", "weakneg")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionWords:
    """Lower-case words by the sign of their opinion, and their source."""

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
    folder = package_folder("vaderSentiment")
    if folder is None:
        raise DataError("the VADER lexicon is not installed: pip install vaderSentiment")
    scores: dict[str, float] = {}
    for line in read_text(folder / "vader_lexicon.txt").splitlines():
        word, score, *_ = line.split("\t")
        if is_word(word):
            scores[word] = float(score)
    return scores


def read_opinion_words(folder: Source) -> OpinionWords:
    """Read `positive-words.txt` and `negative-words.txt` in a folder: one word per line, comments after `;`.

    Hu & Liu, Mining and Summarizing Customer Reviews (KDD 2004).
    """
    positive, negative = (
        frozenset(_opinion_list(Path(str(folder)) / name)) for name in (POSITIVE_FILE, NEGATIVE_FILE)
    )
    return OpinionWords(
        # a handful stands in both lists (envious, …): such a word takes no side
        positive=positive - negative,
        negative=negative - positive,
        source=str(Path(str(folder)).name),
    )


def is_word(text: str) -> bool:
    """Return whether a text is a word, perhaps with an apostrophe or a hyphen inside, and not an emoticon.

    >>> is_word("can't"), is_word("well-made"), is_word(":-)"), is_word("8)")
    (True, True, False, False)
    """
    return text[:1].isalpha() and text[-1:].isalpha() and all(part.isalnum() or part in "'-" for part in text)


def _opinion_list(file: Path) -> Iterator[str]:
    words = 0
    for line in read_text(file).splitlines():
        word = line.partition(";")[0].strip().lower()
        if word:
            words += 1
            yield word
    if not words:
        raise DataError(f"'{file}' has comments but no words; expected one word per line")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledWord:
    """A word, its label, and its score from −4 to +4 where the lexicon has scores (else NaN)."""

    word: str
    label: Label
    score: float = math.nan


def load_neutral_words() -> tuple[LabelledWord, ...]:
    """Return the 119 neutral words of the paper's tables, in its spelling.

    >>> words = load_neutral_words()
    >>> len(words), words[0].word, words[0].label
    (119, 'adversity', 'neutral')
    """
    rows = read_csv(packaged("sentiment_words", "neutral.csv"), columns=("word", "table"))
    return tuple(LabelledWord(word=row.text("word"), label="neutral") for row in rows)


def vader_words(*, sign: Literal["positive", "negative"], n: int | None = None) -> tuple[LabelledWord, ...]:
    """Return the n strongest words of one sign in the VADER lexicon, ties by name; without n, all of them.

    Only entries of letters: emoticons, phrases, hyphenated words and spellings with digits (j4f) are skipped.
    Abbreviations such as "ilu" are words to VADER; few models have them as one token.

    >>> [(word.word, word.score) for word in vader_words(sign="positive", n=3)]
    [('aml', 3.4), ('ilu', 3.4), ('ily', 3.4)]
    """
    if sign not in ("positive", "negative"):
        raise DataError(f"found sign {sign!r}; give 'positive' or 'negative'")
    side = 1 if sign == "positive" else -1
    words = [
        LabelledWord(word=word, label=sign, score=score)
        for word, score in vader_scores().items()
        if word.isalpha() and score * side > 0
    ]
    if n is not None and not 1 <= n <= len(words):
        raise DataError(f"asked for {n} {sign} words of VADER; it has {len(words):,}: ask for 1 to {len(words):,}")
    words.sort(key=lambda word: (-abs(word.score), word.word))
    return tuple(words[:n])


def read_mpqa(source: Source) -> tuple[LabelledWord, ...]:
    """Return the neutral words of MPQA subjectivity clues (`subjclueslen1-HLTEMNLP05.tff`), each once.

    A line is `type=… len=1 word1=… pos1=… stemmed1=… priorpolarity=…`. The published file has 430 words that are
    neutral as at least one part of speech; 13 of them have a polarity as another (precious, mean, …) and stay.
    Its odd lines are accepted: a key given twice with the same value, a stray `m`, the keys `polarity` and
    `mpqapolarity`, the polarity `weakneg`. Wilson, Wiebe & Hoffmann (HLT-EMNLP 2005).
    """
    neutral: dict[str, None] = {}
    for number, line in enumerate(read_text(source).split("\n"), start=1):
        if not line.strip():
            continue
        clue = _clue(f"'{source}', line {number}", line)
        if clue["priorpolarity"] == "neutral":
            neutral[clue["word1"]] = None
    if not neutral:
        raise DataError(f"'{source}' has no clue with priorpolarity=neutral; expected at least one")
    return tuple(LabelledWord(word=word, label="neutral") for word in neutral)


def _clue(where: str, line: str) -> dict[str, str]:
    """Split a line of MPQA's file into its keys and values."""
    clue: dict[str, str] = {}
    for part in line.split():
        if part == "m":
            continue
        key, equals, value = part.partition("=")
        if not equals or not value or key not in _MPQA_KEYS:
            raise DataError(f"{where}: {_short(part)}; expected key=value with a key of {', '.join(_MPQA_KEYS)}")
        if clue.setdefault(key, value) != value:
            raise DataError(f"{where}: {key} is {_short(clue[key])} and {_short(value)}; expected one value")
    for key in ("word1", "priorpolarity"):
        if key not in clue:
            raise DataError(f"{where}: no {key}=…; expected a subjectivity clue with word1 and priorpolarity")
    if clue["priorpolarity"] not in _MPQA_POLARITIES:
        hint = nearest(clue["priorpolarity"], _MPQA_POLARITIES)
        raise DataError(f"{where}: priorpolarity {_short(clue['priorpolarity'])}; {hint}")
    return clue


def read_labelled_words(source: Source) -> tuple[LabelledWord, ...]:
    """Return the words of a CSV file `word,label`; case is kept, because it can be another token to a model."""
    lines: dict[str, int] = {}
    words = []
    for row in read_csv(source, columns=("word", "label")):
        word = row.text("word")
        label = row.choice("label", get_args(Label))
        if len(word.split()) != 1:
            raise row.error(f"word {_short(word)}", "a single word: models are asked for one word")
        if word in lines:
            raise row.error(f"{_short(word)} again (first in line {lines[word]})", "each word once")
        lines[word] = row.line
        words.append(LabelledWord(word=word, label=_label(label)))
    return tuple(words)


def _label(name: str) -> Label:
    return next(label for label in get_args(Label) if label == name)


def read_neutral_file(source: Source) -> tuple[LabelledWord, ...]:
    """Return the neutral words of a file in one of three formats, recognised by the first line.

    MPQA's subjectivity clues (`word1=…`), a CSV `word,label` of which the neutral rows are taken, or a list with
    one word per line and no heading.
    """
    first = read_text(source).lstrip().split("\n", 1)[0]
    if "word1=" in first or "priorpolarity=" in first:
        return read_mpqa(source)
    if "," in first:
        words = tuple(word for word in read_labelled_words(source) if word.label == "neutral")
        if not words:
            raise DataError(f"'{source}' has no row with label neutral; expected at least one")
        return words
    return tuple(LabelledWord(word=word, label="neutral") for word in _listed(source))


def _listed(source: Source) -> Iterator[str]:
    lines: dict[str, int] = {}
    for number, line in enumerate(read_text(source).split("\n"), start=1):
        word = line.strip()
        if not word:
            continue
        where = f"'{source}', line {number}"
        if len(word.split()) != 1 or "," in word:
            raise DataError(f"{where}: {_short(word)}; expected one word per line, or a CSV 'word,label'")
        if word in lines:
            raise DataError(
                f"{where}: {_short(word)} again (first in line {lines[word]}); expected each word once"
            )
        lines[word] = number
        yield word


def _short(text: str) -> str:
    """Quote a text of the user's file in a message, cut if it is long."""
    return repr(text if len(text) <= 40 else text[:40] + "…")
