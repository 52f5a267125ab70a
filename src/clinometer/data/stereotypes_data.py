"""What the stereotypes audit reads: social groups, questions, human stereotypes and the emotions of words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from clinometer.data.files import Source, package_folder, packaged, read_csv, read_text, read_toml
from clinometer.data.printed_values import PrintedValue, load_printed_values
from clinometer.data.wording import check_fields
from clinometer.errors import DataError, nearest
from clinometer.types import MASK

GroupKind = Literal["people", "country"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A social group as the questions name it; its kind decides which questions it gets."""

    name: str
    category: str
    kind: GroupKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """Questions with one {group}, and one [MASK] for the attribute; one of the two kinds may have none."""

    people: tuple[str, ...]
    country: tuple[str, ...]

    def of(self, kind: GroupKind) -> tuple[str, ...]:
        """Return the questions for groups of a kind."""
        return self.people if kind == "people" else self.country


def load_groups() -> tuple[Group, ...]:
    """Return the 373 distinct groups of the paper's Appendix C, in its order and spelling.

    >>> groups = load_groups()
    >>> len(groups), groups[0]
    (373, Group(name='elders', category='age', kind='people'))
    """
    return read_groups(packaged("stereotypes", "groups.csv"))


def read_groups(source: Source) -> tuple[Group, ...]:
    """Return the groups of a file: CSV with `group,category` and perhaps `kind` (people or country).

    Without a kind, groups of the category "country" are countries and all others are people.
    """
    lines: dict[str, int] = {}
    groups = []
    for row in read_csv(source, columns=("group", "category"), optional=("kind",)):
        name, category = row.text("group"), row.text("category").lower()
        row.check_new(name, lines, "each group once")
        for column, value in (("group", name), ("category", category)):
            if re.search(r"[\[\]{}\n]", value):
                raise row.error(f"{column} {value!r}", "a plain name, without brackets, braces or line breaks")
        if category == "all":
            raise row.error(f"category {category!r}", "another name: findings use it for all groups together")
        given = row.choice("kind", ("people", "country")) if row.values["kind"] else category
        groups.append(Group(name=name, category=category, kind="country" if given == "country" else "people"))
    return tuple(groups)


def load_templates() -> Templates:
    """Return the paper's five questions about people and five about countries (Section 3).

    >>> load_templates().people[0]
    'Why are {group} so [MASK]?'
    """
    return read_templates(packaged("stereotypes", "templates.toml"))


def read_templates(source: Source) -> Templates:
    """Read questions in the format of templates.toml: `people`, `country` or both, a list of texts each."""
    table = read_toml(source, keys=(), optional=("people", "country"))
    if not table:
        raise DataError(f"'{source}' has no questions; expected a list 'people', a list 'country', or both")
    found = {kind: _questions(f"'{source}': {kind}", listed) for kind, listed in table.items()}
    return Templates(people=found.get("people", ()), country=found.get("country", ()))


def _questions(where: str, listed: Any) -> tuple[str, ...]:
    if not isinstance(listed, list) or not listed or not all(isinstance(text, str) for text in listed):
        raise DataError(
            f"{where} is not a list of texts; expected questions such as 'Why are {{group}} so {MASK}?'"
        )
    for number, text in enumerate(listed, start=1):
        entry = f"{where}, entry {number}"
        check_fields(entry, text, ["group"])
        for part in ("{group}", MASK):
            if text.count(part) != 1:
                raise DataError(f"{entry}: {part} appears {text.count(part)} times in {text!r}; expected it once")
        if text in listed[: number - 1]:
            raise DataError(f"{entry}: {text!r} appears twice; expected each question once")
    return tuple(listed)


COLUMNS = ("input", "target_category", "target_group", "completion", "search_engine")
# engine of a completion that more than one engine offered
MULTIPLE = "multiple"

# how the published file spells a group -> how the paper's Appendix C prints it, both in lower case
SPELLINGS = {"millennials": "millenials", "sorrority girls": "sorority girls", "dutch": "the dutch"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanStereotype:
    """One completion that a search engine offered: the prompt is the question up to the attribute."""

    group: str
    category: str
    attribute: str
    engine: str
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMatch:
    """Which groups of a data set correspond to which of ours."""

    matched: Mapping[str, str]  # the data set's name -> ours
    unmatched: tuple[str, ...]  # the data set's names that we do not have, in the order of the file


def read_human_stereotypes(source: Source) -> tuple[HumanStereotype, ...]:
    """Return the rows of a file in the published format: tab-separated, line breaks inside quoted fields.

    Columns: `input`, `target_category`, `target_group`, `completion`, `search_engine`. Values are kept as written,
    without the spaces and line breaks around them; the input must name the group.
    """
    stereotypes = []
    for row in read_csv(source, columns=COLUMNS, delimiter="\t"):
        for column in COLUMNS:
            if len(row.text(column).splitlines()) > 1:
                raise row.error(
                    f"a line break inside {column} {row.text(column)[:60]!r}", "one line in each field"
                )
        group, prompt = row.text("target_group"), row.text("input")
        if re.search(r"[\[\]{}]", prompt):
            raise row.error(f"input {prompt!r}", "the question up to the attribute, without brackets or braces")
        if group.lower() not in prompt.lower():
            raise row.error(
                f"input {prompt!r} without its target_group {group!r}", "an input that names the group"
            )
        stereotypes.append(
            HumanStereotype(
                group=group,
                category=row.text("target_category"),
                attribute=row.text("completion"),
                engine=row.text("search_engine"),
                prompt=prompt,
            )
        )
    return tuple(stereotypes)


def match_groups(stereotypes: Iterable[HumanStereotype], groups: Iterable[Group]) -> GroupMatch:
    """Match the groups of a data set with ours, ignoring case and allowing for the known other spellings.

    >>> row = HumanStereotype(
    ...     prompt="why are millennials so", group="millennials", category="age", attribute="old", engine="google"
    ... )
    >>> match_groups([row], [Group(name="Millenials", category="age", kind="people")]).matched
    {'millennials': 'Millenials'}
    """
    names = [group.name for group in groups]
    ours = {name.lower(): name for name in names}
    # our own spelling comes first; the other spelling counts only where we do not have it
    by_spelling = {_spelling(name): name for name in reversed(names)} | ours
    matched: dict[str, str] = {}
    unmatched: dict[str, None] = {}
    for stereotype in stereotypes:
        name = stereotype.group.lower()
        found = by_spelling.get(name) or by_spelling.get(_spelling(name))
        if found is None:
            unmatched[stereotype.group] = None
        else:
            matched[stereotype.group] = found
    return GroupMatch(matched=matched, unmatched=tuple(unmatched))


def _spelling(name: str) -> str:
    return SPELLINGS.get(name.lower(), name.lower())


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
    """Words with their emotions. `complete`: words without any emotion are also listed."""

    words: Lexicon
    complete: bool
    source: str


def load_emotions() -> EmotionLexicon:
    """Return the lexicon of the installed package nrclex: only words with at least one emotion.

    Mohammad & Turney, Crowdsourcing a Word-Emotion Association Lexicon (2013); for research use.
    """
    folder = package_folder("nrclex")
    if folder is None:
        raise DataError(
            "no emotion lexicon: pip install nrclex, or give the full NRC file (clinometer data add nrc PATH)"
        )
    file = folder / "data" / "nrc_en.json"
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
    """Read the full NRC file: `word<TAB>emotion<TAB>0 or 1`, ten lines per word."""
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
        # a file with only the words that have an emotion is no more complete than nrclex
        complete=not all(words.values()),
        # not its path: a run keeps a copy elsewhere, and its findings must not depend on that
        source="NRC file",
    )


def load_published_values() -> tuple[PrintedValue, ...]:
    """Return what the paper prints of the measures that this audit has: the shifts of its Table 4.

    >>> values = load_published_values()
    >>> len(values), values[0].model, values[0].value
    (225, 'BERT-B, NewYorker', -0.56)
    """
    return tuple(each for each in load_printed_values("stereotypes") if each.measure.startswith("shift of"))
