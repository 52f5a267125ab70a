"""The sentences of the counterexamples audit: the prompt, and the kinds of knowledge put before it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from clinometer.data.files import Source, packaged
from clinometer.data.tables import check_keys, read_toml
from clinometer.errors import DataError, nearest
from clinometer.types import MASK

Expected = Literal["larger", "smaller", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of knowledge; its sentence has {target}-style fields."""

    name: str
    knowledge: str
    expected: Expected  # what the paper expects of the margin between the genders

    @property
    def has_background(self) -> bool:
        """Whether the sentence is about another occupation than the target."""
        return "background}" in self.knowledge


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """The two forms of the prompt, and the base with the nine kinds of knowledge, in the paper's order."""

    blank: str  # for models that fill a blank
    prefix: str  # for models that continue a text
    kinds: tuple[Kind, ...]


FIELDS = (
    "target",
    "a_target",
    "background",
    "a_background",
    "pro_person",
    "counter_person",
    "pro_gender",
    "counter_gender",
)
_TARGET = ("{target}", "{a_target}")


def load_sentences() -> Sentences:
    """Return the sentences of the paper's Table 2.

    >>> load_sentences().kinds[-1].knowledge
    'The dog is in a chair.'
    """
    return read_sentences(packaged("counterexamples", "knowledge.toml"))


def read_sentences(source: Source) -> Sentences:
    """Read a file in the format of knowledge.toml; the first kind is the base, with no knowledge."""
    table = read_toml(source, keys=("blank", "prefix", "kinds"))
    kinds = table["kinds"]
    if not isinstance(kinds, list) or not all(isinstance(kind, dict) for kind in kinds):
        raise DataError(f"'{source}': kinds is not a list of tables; expected [[kinds]] entries")
    for number, kind in enumerate(kinds, start=1):
        where = f"'{source}': kinds, entry {number}"
        check_keys(where, kind, keys=("name", "knowledge", "expected"))
        if not all(isinstance(value, str) for value in kind.values()):
            raise DataError(f"{where}: expected text for name, knowledge and expected")
        if kind["expected"] not in get_args(Expected):
            raise DataError(
                f"{where}: expected = {kind['expected']!r}; {nearest(kind['expected'], get_args(Expected))}"
            )
        _check_fields(where, kind["knowledge"])
    names = [kind["name"] for kind in kinds]
    if not kinds or names[0] != "base" or kinds[0]["knowledge"]:
        raise DataError(f"'{source}': the first kind must be named 'base' and have no knowledge")
    if len(kinds) < 2:
        raise DataError(f"'{source}': there is no kind beside the base; add a [[kinds]] entry")
    if repeated := [name for name in names if names.count(name) > 1]:
        raise DataError(f"'{source}': the kind {repeated[0]!r} stands there twice; name it once")
    for key in ("blank", "prefix"):
        text = table[key]
        if not isinstance(text, str) or not any(field in text for field in _TARGET):
            raise DataError(f"'{source}': {key} = {text!r}; expected a text with {' or '.join(_TARGET)}")
        _check_fields(f"'{source}': {key}", text)
    if table["blank"].count(MASK) != 1:
        raise DataError(f"'{source}': blank = {table['blank']!r}; expected a text with one {MASK}")
    return Sentences(blank=table["blank"], prefix=table["prefix"], kinds=tuple(Kind(**kind) for kind in kinds))


def _check_fields(where: str, text: str) -> None:
    """Raise DataError for a {field} that does not exist, or a brace that stands alone."""
    for field in re.findall(r"{([^{}]*)}", text):
        if field not in FIELDS:
            raise DataError(f"{where}: no field {{{field}}}; {nearest(field, FIELDS)}")
    if re.search(r"[{}]", re.sub(r"{[^{}]*}", "", text)):
        raise DataError(f"{where}: a brace stands alone in {text!r}; expected {{field}}")
