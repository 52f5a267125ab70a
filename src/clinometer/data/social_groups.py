"""The social groups of the stereotypes audit, and the questions that ask for their attributes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from clinometer.data.files import Source, packaged
from clinometer.data.tables import read_csv, read_toml
from clinometer.errors import DataError, nearest
from clinometer.types import MASK

GroupKind = Literal["people", "country"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A social group as the questions name it; its kind says which questions it gets."""

    name: str
    category: str
    kind: GroupKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """Questions with one {group} and one [MASK], where the attribute stands."""

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

    Without a kind, groups of the category "country" are countries and all others people.
    """
    lines: dict[str, int] = {}
    groups = []
    for row in read_csv(source, columns=("group", "category"), optional=("kind",)):
        name, category = row.text("group"), row.text("category").lower()
        if name.lower() in lines:
            raise row.error(f"'{name}' again (first in line {lines[name.lower()]})", "each group once")
        for column, value in (("group", name), ("category", category)):
            if re.search(r"[\[\]{}\n]", value):
                raise row.error(f"{column} {value!r}", "a plain name, without brackets, braces or line breaks")
        if category == "all":
            raise row.error(f"category {category!r}", "another name: findings call all groups together that")
        lines[name.lower()] = row.line
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
    """Read questions in the format of templates.toml: `people` and `country`, a list of texts each."""
    table = read_toml(source, keys=("people", "country"))
    return Templates(
        people=_questions(f"'{source}': people", table["people"]),
        country=_questions(f"'{source}': country", table["country"]),
    )


def _questions(where: str, listed: Any) -> tuple[str, ...]:
    if not isinstance(listed, list) or not listed or not all(isinstance(text, str) for text in listed):
        raise DataError(
            f"{where} is not a list of texts; expected questions such as 'Why are {{group}} so {MASK}?'"
        )
    for number, text in enumerate(listed, start=1):
        entry = f"{where}, entry {number}"
        for field in re.findall(r"{([^{}]*)}", text):
            if field != "group":
                raise DataError(f"{entry}: no field {{{field}}}; {nearest(field, ['group'])}")
        for part in ("{group}", MASK):
            if text.count(part) != 1:
                raise DataError(f"{entry}: {text.count(part)} times {part} in {text!r}; expected it once")
        if re.search(r"[{}]", text.replace("{group}", "")):
            raise DataError(f"{entry}: a brace stands alone in {text!r}; expected {{group}}")
        if text in listed[: number - 1]:
            raise DataError(f"{entry}: {text!r} stands there twice; expected each question once")
    return tuple(listed)
