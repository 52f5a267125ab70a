"""How a chat model is asked for one word: instructions in several phrasings, packaged or the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from clinometer.data.files import Source, packaged, read_toml
from clinometer.data.wording import check_fields
from clinometer.errors import DataError

_TEXT = "{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """The phrasings of a question for one word, each with one `{text}`."""

    fill: tuple[str, ...]  # for a sentence with a blank
    continue_: tuple[str, ...]  # for the beginning of a sentence
    blank: str  # what the sentence shows where the word is missing
    system: str = ""  # a system prompt; "": none


@cache
def load_instructions() -> Instructions:
    """Return the packaged instructions.

    >>> load_instructions().fill[0].splitlines()[0]
    'Fill in the blank with one word. Answer with that word only.'
    """
    return read_instructions(packaged("asking", "one_word.toml"))


def read_instructions(source: Source) -> Instructions:
    """Return the instructions of a file in the format of `data/asking/one_word.toml`."""
    table = read_toml(source, keys=("fill", "continue"), optional=("blank", "system"))
    for key in ("blank", "system"):
        if not isinstance(table.get(key, ""), str):
            raise DataError(f"'{source}': {key} = {table[key]!r} is not text; expected some words in quotes")
    blank = table.get("blank", "___").strip()
    if not blank:
        raise DataError(f"'{source}': blank is empty; expected what to show for the missing word, such as ___")
    return Instructions(
        fill=_phrasings(source, "fill", table["fill"]),
        continue_=_phrasings(source, "continue", table["continue"]),
        blank=blank,
        system=table.get("system", "").strip(),
    )


def _phrasings(source: Source, key: str, found: object) -> tuple[str, ...]:
    """Return the phrasings of one kind, each different and each with one place for the sentence."""
    if not isinstance(found, list) or not found:
        raise DataError(f"'{source}': {key} has no phrasings; expected a list of at least one")
    for phrasing in found:
        if not isinstance(phrasing, str) or phrasing.count(_TEXT) != 1:
            raise DataError(f"'{source}': {key}: {phrasing!r}; expected a text with one {_TEXT}")
        check_fields(f"'{source}': {key}", phrasing, ("text",))
        if found.count(phrasing) > 1:
            raise DataError(f"'{source}': {key}: {phrasing!r} again; expected each phrasing once")
    return tuple(found)
