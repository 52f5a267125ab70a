"""What the counterexamples audit asks with: occupations, gendered words, and the knowledge put before a prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from clinometer.data.files import Source, check_keys, packaged, read_csv, read_toml
from clinometer.data.wording import capitalised, check_fields, fill_fields, with_article
from clinometer.errors import DataError, nearest
from clinometer.types import MASK

Gender = Literal["female", "male"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupation:
    """An occupation in the singular, with the percentage of women in it."""

    name: str
    percent_female: float
    winobias: bool = False  # one of the 20 + 20 occupations of WinoBias
    article: str = ""  # "a" or "an"; "": guessed from the spelling

    @property
    def dominance(self) -> Gender:
        """The gender of most people in the occupation."""
        return "female" if self.percent_female > 50 else "male"


def load_occupations() -> tuple[Occupation, ...]:
    """Return the 58 occupations of the paper's Table 1.

    >>> occupations = load_occupations()
    >>> len(occupations), occupations[0].name, occupations[0].dominance
    (58, 'mechanician', 'male')
    """
    columns = ("occupation", "percent_female", "dominance", "winobias", "printed")
    return tuple(
        Occupation(
            name=row.text("occupation"),
            percent_female=row.number("percent_female", low=0, high=100),
            winobias=row.choice("winobias", ("yes", "no")) == "yes",
        )
        for row in read_csv(packaged("counterexamples", "occupations.csv"), columns=columns)
    )


def read_occupations(source: Source) -> tuple[Occupation, ...]:
    """Return the occupations of a user's file: CSV with `occupation,percent_female` and perhaps `article`."""
    lines: dict[str, int] = {}
    occupations = []
    for row in read_csv(source, columns=("occupation", "percent_female"), optional=("article",)):
        name = row.text("occupation")
        row.check_new(name, lines, "each occupation once")
        if "[" in name or "\n" in name:
            raise row.error(f"occupation {name!r}", "a plain name, without brackets or line breaks")
        percent = row.number("percent_female", low=0, high=100)
        if percent == 50:
            raise row.error(
                f"percent_female 50 for '{name}'", "a share above or below 50: neither gender dominates here"
            )
        article = row.choice("article", ("", "a", "an"))
        occupations.append(Occupation(name=name, percent_female=percent, article=article))
    if len(occupations) < 2:
        raise DataError(f"'{source}' has one occupation; expected at least two to compare")
    if max(each.percent_female for each in occupations) <= 1:  # nobody has a list of jobs without women
        raise DataError(f"'{source}' has only shares from 0 to 1; expected percent_female in percent, 0 to 100")
    return tuple(occupations)


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
        row.check_new(word, lines, "each word once, whatever its case")
        if len(word.split()) != 1:
            raise row.error(f"'{word}'", "a single word: models are asked for one word")
        words[word] = "female" if row.choice("gender", ("female", "male")) == "female" else "male"
    for gender in ("female", "male"):
        if gender not in words.values():
            raise DataError(f"'{source}' has no {gender} word; expected female and male words")
    return words


Expected = Literal["larger", "smaller", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of knowledge; its sentence has {target}-style fields."""

    name: str
    knowledge: str
    expected: Expected  # how the paper expects the margin between the genders to change

    @property
    def has_background(self) -> bool:
        """Whether the sentence is about another occupation than the target."""
        return "background}" in self.knowledge


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """The two forms of the prompt, and the kinds of knowledge: the base, then the paper's nine in its order."""

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
        check_fields(where, kind["knowledge"], FIELDS)
    names = [kind["name"] for kind in kinds]
    if not kinds or names[0] != "base" or kinds[0]["knowledge"]:
        raise DataError(f"'{source}': the first kind must be named 'base' and have no knowledge")
    if len(kinds) < 2:
        raise DataError(f"'{source}': there is no kind but the base; add a [[kinds]] entry")
    if repeated := [name for name in names if names.count(name) > 1]:
        raise DataError(f"'{source}': the kind {repeated[0]!r} appears twice; expected each once")
    for key in ("blank", "prefix"):
        text = table[key]
        if not isinstance(text, str) or not any(field in text for field in _TARGET):
            raise DataError(f"'{source}': {key} = {text!r}; expected a text with {' or '.join(_TARGET)}")
        check_fields(f"'{source}': {key}", text, FIELDS)
    if table["blank"].count(MASK) != 1:
        raise DataError(f"'{source}': blank = {table['blank']!r}; expected a text with one {MASK}")
    return Sentences(blank=table["blank"], prefix=table["prefix"], kinds=tuple(Kind(**kind) for kind in kinds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sentence about a person of the gender that is rarer in an occupation, and where its gendered words are."""

    text: str
    gendered: tuple[tuple[int, int], ...]  # start and end


_RARER: dict[Gender, dict[str, str]] = {  # by the gender that dominates
    "male": {"person": "woman", "she": "she", "her": "her"},
    "female": {"person": "man", "she": "he", "her": "his"},
}


def load_statements() -> tuple[Statement, ...]:
    """Return our own statements that go against the majority, of every occupation, to train on.

    >>> statements = load_statements()
    >>> first = statements[0]
    >>> len(statements), first.text, [first.text[start:end] for start, end in first.gendered]
    (696, 'The mechanician said that she had trained for years.', ['she'])
    """
    return statements_about(load_occupations(), read_statements(packaged("counterexamples", "statements.toml")))


def read_statements(source: Source) -> tuple[str, ...]:
    """Read statements with fields, in the format of statements.toml."""
    listed = read_toml(source, keys=("statements",))["statements"]
    if not isinstance(listed, list) or not listed or not all(isinstance(text, str) for text in listed):
        raise DataError(f"'{source}': statements is not a list of texts; expected sentences with {{target}}")
    gendered = {name for field in _RARER["male"] for name in (field, capitalised(field))}
    for number, text in enumerate(listed, start=1):
        where = f"'{source}': statements, entry {number}"
        check_fields(where, text, {"target", "a_target", *gendered})
        named = set(re.findall(r"{(\w+)}", text))
        if not named & {"target", "a_target"} or not named & gendered:
            raise DataError(f"{where}: {text!r}; expected an occupation ({{target}}) and a gender ({{she}})")
    return tuple(listed)


def statements_about(occupations: Sequence[Occupation], templates: Sequence[str]) -> tuple[Statement, ...]:
    """Return every template filled for every occupation."""
    found = []
    for each in occupations:
        of_job = {"target": each.name, "a_target": with_article(each.name, article=each.article)}
        words = _RARER[each.dominance]
        words = words | {capitalised(name): capitalised(word) for name, word in words.items()}
        for template in templates:
            text, spans = "", []
            for part in re.split(r"({\w+})", template):
                filled = fill_fields(part, {**of_job, **words})
                if part.strip("{}") in words and part.startswith("{"):
                    spans.append((len(text), len(text) + len(filled)))
                text += filled
            found.append(Statement(text=text, gendered=tuple(spans)))
    return tuple(found)
