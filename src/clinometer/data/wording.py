"""Small rules of English: articles, plurals, numbers with nouns, template fields, and where a sentence ends."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from clinometer.errors import DataError, nearest

# Words whose first letter is misleading: "a university", "an hour". A user's file can name the article instead.
_A_BEFORE_VOWEL = re.compile(
    r"(uni(?!n|m|d)|us[aeu]|us\b|u\.s|ur[aeiou]|ut[eio]|uk\b|ukr|uku|uga|eu|ewe|one\b|once\b)", re.IGNORECASE
)
_AN_BEFORE_H = re.compile(r"(hour|honest|hono|heir)", re.IGNORECASE)
_FIELD = re.compile(r"\{(\w+)\}")


def article_of(noun: str) -> str:
    """Return "a" or "an", guessed from the spelling of the noun.

    >>> article_of("nurse"), article_of("architect"), article_of("hourly worker")
    ('a', 'an', 'an')
    """
    vowel = noun[:1].lower() in "aeiou" and not _A_BEFORE_VOWEL.match(noun)
    return "an" if vowel or _AN_BEFORE_H.match(noun) else "a"


def with_article(noun: str, *, article: str = "") -> str:
    """Return the noun with its article: the given one, or the one guessed from its spelling.

    >>> with_article("nurse"), with_article("architect"), with_article("usher"), with_article("university dean")
    ('a nurse', 'an architect', 'an usher', 'a university dean')
    >>> with_article("MRI technician", article="an")
    'an MRI technician'
    """
    return f"{article or article_of(noun)} {noun}"


def capitalised(word: str) -> str:
    """Return the word with a capital first letter; the other letters stay as they are.

    >>> capitalised("CEO"), capitalised("nurse")
    ('CEO', 'Nurse')
    """
    return word[:1].upper() + word[1:]


def plural_of(noun: str) -> str:
    """Return the regular plural of an English noun.

    >>> plural_of("nurse"), plural_of("secretary"), plural_of("boss"), plural_of("CEO")
    ('nurses', 'secretaries', 'bosses', 'CEOs')
    """
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + ("es" if re.search(r"(s|x|z|ch|sh)$", noun) else "s")


def fill_fields(template: str, fields: Mapping[str, str]) -> str:
    """Return the template with each {field} replaced by its value.

    >>> fill_fields("The {target} can be a {gender}.", {"target": "nurse", "gender": "male"})
    'The nurse can be a male.'
    """

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in fields:
            raise DataError(f"unknown field '{{{name}}}' in template '{template}'; {nearest(name, fields)}")
        return fields[name]

    return _FIELD.sub(value, template)


def check_fields(where: str, text: str, fields: Collection[str]) -> None:
    """Raise DataError for a {field} that does not exist, or for a brace without its partner."""
    for name in re.findall(r"{([^{}]*)}", text):
        if name not in fields:
            raise DataError(f"{where}: no field {{{name}}}; {nearest(name, fields)}")
    if re.search(r"[{}]", re.sub(r"{[^{}]*}", "", text)):
        raise DataError(f"{where}: a brace without its partner in {text!r}; expected {{field}}")


def counted(number: int, one: str, many: str = "") -> str:
    """Return the number with its noun in the singular or plural; without `many`, the plural ends in -s.

    >>> counted(1, "group"), counted(1886, "group"), counted(0, "category", "categories")
    ('1 group', '1,886 groups', '0 categories')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


# Rules of our own for sentences: of the libraries tried on Wikipedia, those in pure Python (pysbd,
# sentence-splitter, syntok) read less than 1 MB a second, and the fast one (sentencex) is compiled code for some
# platforms only. These rules agree with it except for quotations, which it keeps in one piece. They serve
# training, where a sentence that is now and then cut in the wrong place does no harm.
_END = re.compile(r"(?<![.!?…])([.!?…]+)[\"'”’»)\]]*\s+")
_NEXT = re.compile(r"[\"'“‘«(\[¿¡]*(\w+)")
_OPENING = "\"'“‘«([-–—/"
_LETTERS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # J, U.S, a.m
_LONG = 24  # characters, more than any abbreviation has
_SHORT = 6


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# A full stop after these never ends a sentence.
_WITHIN = _words(
    "mr mrs ms messrs mme mlle dr prof rev fr hon pres gov gen lt col maj capt cmdr cpl sgt adm sen rep supt vs cf"
    " viz ca approx e.g i.e"
)
# After these it does, except before a number: "No. 5", "pp. 3", "Jan. 5".
_BEFORE_NUMBER = _words(
    "no nos pp vol vols ch sec sect fig figs art jan feb mar apr jun jul aug sep sept oct nov dec fl"
)
# After these, after an initial (J. Smith) and after letters with stops (U.S.), it does if the next word is one
# that usually begins a sentence.
_EITHER = _words("st mt ft jr sr inc co corp ltd bros dept univ assn ave blvd rd esq ed eds al etc ph.d")
_STARTERS = _words(
    "A After Although An And As At Because Before Both But By Despite During Each For From He Her His How However"
    " I If In It Its Many Most On Once Other Our She Since So Some Such Than That The Their Then There These They"
    " This Those Though Thus To Under Until We What When Where While With You"
)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of an English text in order, without the space around them.

    A line break always ends a sentence. So does ".", "!", "?" or "…", with any closing quotes and brackets, if
    space and a word without a small first letter follow; but not a full stop after an initial, an abbreviation
    such as "Dr." or "e.g.", or the number of a list item.

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
    """Return whether a sentence that begins at `start` continues after the full stop at `stop`."""
    written = "".join(line[max(start, stop - _LONG) : stop].split()[-1:])
    before = written.lstrip(_OPENING)
    # there is nothing in front of the word
    alone = stop - start <= _LONG and not line[start:stop].removesuffix(before).strip(_OPENING + " ")
    if before.isdecimal():
        return alone and len(before) < 4  # 12. as a list number, but not a year
    word = before.lower()
    in_brackets = written[:1] in ("(", "[") and len(word) < _SHORT and word == before  # (syn. Acacia), (b. 1950)
    if word in _WITHIN or in_brackets or (word in _BEFORE_NUMBER and following[0].isdecimal()):
        return True
    if before == "I" and not alone:  # "World War I." and "than I." do not end in an initial
        return False
    if word in _EITHER or _LETTERS.fullmatch(before):
        return alone or following not in _STARTERS
    return False
