"""What people ask search engines about social groups: the data set of Choenni et al., and files like it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clinometer.data.files import Source
from clinometer.data.social_groups import Group
from clinometer.data.tables import read_csv

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
    """Which groups of a data set are which of ours."""

    matched: Mapping[str, str]  # the data set's name -> ours
    unmatched: tuple[str, ...]  # the data set's names that are none of ours, in the order of the file


def read_human_stereotypes(source: Source) -> tuple[HumanStereotype, ...]:
    """Return the rows of a file in the published format: tab-separated, line breaks inside quoted fields.

    Columns: `input`, `target_category`, `target_group`, `completion`, `search_engine`. Values are kept as they
    stand, without the spaces and line breaks around them; the input must name the group.
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
    """Tell which groups of the data set are which of ours, whatever their case; the known other spellings count.

    >>> row = HumanStereotype(
    ...     prompt="why are millennials so", group="millennials", category="age", attribute="old", engine="google"
    ... )
    >>> match_groups([row], [Group(name="Millenials", category="age", kind="people")]).matched
    {'millennials': 'Millenials'}
    """
    names = [group.name for group in groups]
    ours = {name.lower(): name for name in names}
    # a spelling that we have ourselves is that group; only then does the other spelling count
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
