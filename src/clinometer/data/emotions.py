"""Which words go with which emotions: the NRC emotion lexicon, as nrclex carries it or as the full file."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clinometer.data.files import Source, read_text
from clinometer.errors import DataError, nearest

# the order of the paper's emotion vectors (Section 5)
EMOTIONS = (
    "fear",
    "joy",
    "sadness",
    "trust",
    "surprise",
    "anticipation",
    "disgust",
    "anger",
    "negative",
    "positive",
)

Lexicon = Mapping[str, frozenset[str]]  # every covered word, in lower case -> its emotions, perhaps none


@dataclass(frozen=True, slots=True, kw_only=True)
class EmotionLexicon:
    """Words with their emotions. `complete`: words without any emotion are listed, too."""

    words: Lexicon
    complete: bool
    source: str


def load_emotions() -> EmotionLexicon:
    """Return the lexicon that the installed package nrclex carries: only words with at least one emotion.

    Mohammad & Turney, Crowdsourcing a Word-Emotion Association Lexicon (2013); for research use.
    """
    found = importlib.util.find_spec("nrclex")  # the folder is enough: the package's code is not run
    folders = list(found.submodule_search_locations or ()) if found else []
    if not folders:
        raise DataError(
            "no emotion lexicon: pip install nrclex, or give the full NRC file (clinometer data add nrc PATH)"
        )
    file = Path(folders[0]) / "data" / "nrc_en.json"
    try:
        listed = json.loads(read_text(file))
    except ValueError as error:
        raise DataError(f"'{file}' is not JSON ({error}); install nrclex again") from None
    if not isinstance(listed, dict) or not listed:
        raise DataError(f"'{file}' is not a table of words; install nrclex again")
    words: dict[str, frozenset[str]] = {}
    for word, emotions in listed.items():
        if not isinstance(emotions, list) or not emotions or not set(map(str, emotions)) <= set(EMOTIONS):
            raise DataError(f"'{file}': {word!r} has {emotions!r}; expected emotions: install nrclex again")
        words[word.lower()] = frozenset(emotions)
    return EmotionLexicon(words=words, complete=False, source="nrclex")


def read_emotions(source: Source) -> EmotionLexicon:
    """Read the full NRC file: `word<TAB>emotion<TAB>0 or 1`, ten lines for each word."""
    labels: dict[str, dict[str, bool]] = {}
    for number, line in enumerate(read_text(source).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"'{source}', line {number}"
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) != 3 or not parts[0]:
            raise DataError(f"{where}: {line[:60]!r}; expected word, emotion and 0 or 1, separated by tabs")
        word, emotion, label = parts[0].lower(), parts[1].lower(), parts[2]
        if emotion not in EMOTIONS:
            raise DataError(f"{where}: no emotion {emotion!r}; {nearest(emotion, EMOTIONS)}")
        if label not in ("0", "1"):
            raise DataError(f"{where}: {label!r} for {word!r}, {emotion}; expected 0 or 1")
        of_word = labels.setdefault(word, {})
        if emotion in of_word:
            raise DataError(f"{where}: {word!r}, {emotion} again; expected each word and emotion once")
        of_word[emotion] = label == "1"
    for word, of_word in labels.items():
        if missing := [emotion for emotion in EMOTIONS if emotion not in of_word]:
            raise DataError(
                f"'{source}': no line for {word!r}, {missing[0]}; expected all ten emotions of each word"
            )
    words = {word: frozenset(emotion for emotion, on in of.items() if on) for word, of in labels.items()}
    return EmotionLexicon(
        words=words,
        # a file cut down to the words that have an emotion is no more complete than nrclex
        complete=not all(words.values()),
        # not its path: a run keeps a copy elsewhere, and what it finds must not change with that
        source="NRC file",
    )
