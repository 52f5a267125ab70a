"""Sentences of English running text, as Wikipedia and newspapers write it.

Rules of our own: of the libraries tried on Wikipedia, those in pure Python (pysbd, sentence-splitter, syntok) read
less than 1 MB a second, and the fast one (sentencex) is compiled code, for some platforms only. These rules agree
with it but for quotations, which it keeps in one piece. A sentence that is cut in the wrong place now and then
does no harm to what they are for: to train on.
"""

from __future__ import annotations

import re

_END = re.compile(r"(?<![.!?…])([.!?…]+)[\"'”’»)\]]*\s+")
_NEXT = re.compile(r"[\"'“‘«(\[¿¡]*(\w+)")
_OPENING = "\"'“‘«([-–—/"
_LETTERS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # J, U.S, a.m
_LONG = 24  # more characters than any abbreviation has
_SHORT = 6


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# A full stop after these ends no sentence.
_WITHIN = _words(
    "mr mrs ms messrs mme mlle dr prof rev fr hon pres gov gen lt col maj capt cmdr cpl sgt adm sen rep supt vs cf"
    " viz ca approx e.g i.e"
)
# After these it does, but not before a number: "No. 5", "pp. 3", "Jan. 5".
_BEFORE_NUMBER = _words(
    "no nos pp vol vols ch sec sect fig figs art jan feb mar apr jun jul aug sep sept oct nov dec fl"
)
# After these, after an initial (J. Smith) and after letters with stops (U.S.), it does where the next word is one
# that mostly begins a sentence.
_EITHER = _words("st mt ft jr sr inc co corp ltd bros dept univ assn ave blvd rd esq ed eds al etc ph.d")
_STARTERS = _words(
    "A After Although An And As At Because Before Both But By Despite During Each For From He Her His How However"
    " I If In It Its Many Most On Once Other Our She Since So Some Such Than That The Their Then There These They"
    " This Those Though Thus To Under Until We What When Where While With You"
)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of an English text in order, without the space around them.

    A line break always ends one. So does ".", "!", "?" or "…" with the quotes and brackets that close after it,
    where space and a word follow that does not begin with a small letter. A single full stop does not after an
    initial, an abbreviation such as "Dr." or "e.g.", or the number of a list.

    >>> split_sentences('"Who is J. Smith?" Dr. Lee of the U.S. Army asked. He paid $3.50 ... and left')
    ['"Who is J. Smith?"', 'Dr. Lee of the U.S. Army asked.', 'He paid $3.50 ... and left']
    """
    return [sentence for line in text.splitlines() for sentence in _of_line(line)]


def _of_line(line: str) -> list[str]:
    sentences = []
    start = 0
    for end in _END.finditer(line):
        following = _NEXT.match(line, end.end())
        if not following or following[1][0].islower():
            continue
        if end[1] == "." and _goes_on(line, start, end.start(), following[1]):
            continue
        sentences.append(line[start : end.end()].strip())
        start = end.end()
    return [sentence for sentence in (*sentences, line[start:].strip()) if sentence]


def _goes_on(line: str, start: int, stop: int, following: str) -> bool:
    """Tell whether a sentence that begins at `start` goes on after the full stop at `stop`."""
    written = "".join(line[max(start, stop - _LONG) : stop].split()[-1:])
    before = written.lstrip(_OPENING)
    # nothing stands in front of the word
    alone = stop - start <= _LONG and not line[start:stop].removesuffix(before).strip(_OPENING + " ")
    if before.isdecimal():
        return alone and len(before) < 4  # 12. as the number of a list, but not a year
    word = before.lower()
    in_brackets = written[:1] in ("(", "[") and len(word) < _SHORT and word == before  # (syn. Acacia), (b. 1950)
    if word in _WITHIN or in_brackets or (word in _BEFORE_NUMBER and following[0].isdecimal()):
        return True
    if before == "I" and not alone:  # "World War I." and "than I." are no initials
        return False
    if word in _EITHER or _LETTERS.fullmatch(before):
        return alone or following not in _STARTERS
    return False
