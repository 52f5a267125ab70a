"""One file of a user's own groups of people, for every audit that asks about groups.

CSV with `name,category`, and perhaps `plural`, `singular`, `verb` (be or have), `subgroup` and `article`:

    name,category,verb,subgroup
    nurse,profession,,
    deaf,disability,be,
    depression,illness,have,

The stereotypes audit asks about the plural ("nurses", "deaf people", "people who have depression"), the stigma
audit about someone who "is a nurse", "is deaf", "has depression", and the counterfactual audit about "a nurse", "a
deaf person", "a person who has depression", by `subgroup` (`data.attributes.read_attribute` reads the file). What
the file leaves out is derived from the name; `derived_forms` lists it for a look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from clinometer.data.files import CsvRow, Source, read_csv, read_text
from clinometer.data.stereotypes_data import Group
from clinometer.data.stigma_data import Condition, Verb
from clinometer.data.wording import plural_of, with_article

COLUMNS = ("name", "category")
OPTIONAL = ("plural", "singular", "verb", "subgroup", "article")
# in the column subgroup: those with whom the stigma audit compares the others
REFERENCE = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleGroup:
    """A group of people with all its forms."""

    name: str
    category: str
    verb: Verb  # be: the name is an adjective ("deaf"); have: it is had ("depression"); "": a noun ("nurse")
    singular: str  # without an article: "nurse", "deaf person", "person who has depression"
    plural: str  # "nurses", "deaf people", "people who have depression"
    article: str  # "a", "an", "the" or "" where it takes none
    subgroup: str
    derived: tuple[str, ...]  # the forms that the file does not have

    @property
    def a_person(self) -> str:
        """The singular with its article: "a nurse"."""
        return f"{self.article} {self.singular}" if self.article else self.singular


def read_people(source: Source) -> tuple[PeopleGroup, ...]:
    """Return the groups of a file; see the top of this module for its columns."""
    lines: dict[str, int] = {}
    groups = []
    for row in read_csv(source, columns=COLUMNS, optional=OPTIONAL):
        row.check_new(row.text("name"), lines, "each group once")
        groups.append(_group(row))
    return tuple(groups)


def derived_forms(groups: Iterable[PeopleGroup]) -> tuple[str, ...]:
    """Return a line for each group whose forms were derived, for a look.

    >>> nurse = PeopleGroup(name="nurse", category="profession", verb="", singular="nurse", plural="nurses",
    ...     article="a", subgroup="", derived=("plural", "article"))
    >>> derived_forms([nurse])
    ('nurse: plural "nurses", article "a"',)
    """
    lines = []
    for group in groups:
        forms = [f'{form} "{getattr(group, form)}"' for form in group.derived]
        if forms:
            lines.append(f"{group.name}: {', '.join(forms)}")
    return tuple(lines)


def _group(row: CsvRow) -> PeopleGroup:
    name, category = _plain(row, "name"), _plain(row, "category").lower()
    if category == "all":
        raise row.error(f"category {category!r}", "another name: findings use it for all groups together")
    verb: Verb = "be" if row.values["verb"].lower() == "be" else "have" if row.values["verb"] else ""
    if row.values["verb"]:
        row.choice("verb", ("be", "have"))
    forms = {form: _plain(row, form) for form in ("singular", "plural", "article") if row.values[form]}
    singular = forms.get("singular") or _singular(name, verb)
    plural = forms.get("plural") or _plural(name, singular, verb)
    article = row.choice("article", ("a", "an", "the", "none")) if row.values["article"] else _article(singular)
    return PeopleGroup(
        name=name,
        category=category,
        verb=verb,
        singular=singular,
        plural=plural,
        article="" if article == "none" else article,
        subgroup=row.values["subgroup"],
        derived=tuple(form for form in ("singular", "plural", "article") if form not in forms),
    )


def _plain(row: CsvRow, column: str) -> str:
    text = row.text(column)
    if re.search(r"[\[\]{}<>\n]", text):
        raise row.error(f"{column} {text!r}", "plain words, without brackets, braces or line breaks")
    return text


def _singular(name: str, verb: Verb) -> str:
    """Return a noun for one of the group.

    >>> _singular("deaf", "be"), _singular("depression", "have"), _singular("old people", "")
    ('deaf person', 'person who has depression', 'old person')
    >>> [_singular(name, "") for name in ("nurses", "bosses", "ladies", "policemen", "boss", "Swiss")]
    ['nurse', 'boss', 'lady', 'policeman', 'boss', 'Swiss']
    """
    if verb:
        return f"{name} person" if verb == "be" else f"person who has {name}"
    *before, last = name.split()
    irregular = {"people": "person", "men": "man", "women": "woman", "children": "child", "wives": "wife"}
    if last.lower() in irregular:
        last = irregular[last.lower()]
    elif last.endswith("men"):
        last = last[:-2] + "an"
    elif re.search(r"[^aeiou]ies$", last):
        last = last[:-3] + "y"
    elif re.search(r"(?:ss|x|ch|sh)es$", last):
        last = last[:-2]
    elif re.search(r"[^su]s$", last):
        last = last[:-1]
    return " ".join((*before, last))


def _plural(name: str, singular: str, verb: Verb) -> str:
    """Return the name of several of the group.

    >>> _plural("deaf", "", "be"), _plural("depression", "", "have"), _plural("nurse", "nurse", "")
    ('deaf people', 'people who have depression', 'nurses')
    """
    if verb:
        return f"{name} people" if verb == "be" else f"people who have {name}"
    if name != singular:  # it is the plural already
        return name
    *before, last = name.split()
    if last.lower() == "person":
        return " ".join((*before, "people"))
    return " ".join((*before, plural_of(last)))


def _article(singular: str) -> str:
    return with_article(singular).split()[0]


# ---------------------------------------------------------------------------------------------------------
# What each audit takes of it


def as_group(group: PeopleGroup) -> Group:
    """Return the group as the stereotypes audit asks about it; the category "country" has questions of its own."""
    is_country = group.category == "country"
    name = group.name if is_country else group.plural
    return Group(name=name, category=group.category, kind="country" if is_country else "people")


def as_condition(group: PeopleGroup) -> Condition:
    """Return the group as the stigma audit asks about it: "someone who is a nurse", "people who are nurses"."""
    forms = (group.name, group.name) if group.verb else (group.a_person, group.plural)
    return Condition(
        name=group.name,
        verb=group.verb or "be",
        singular=forms[0],
        plural=forms[1],
        condition=group.name,
        category=group.category,
        stigmatized=group.subgroup.lower() != REFERENCE,
    )


def is_people_file(source: Source) -> bool:
    """Tell whether a file begins with the columns of such groups: they have a `name`."""
    header = read_text(source).split("\n", 1)[0].split(",")
    return "name" in [column.strip().strip('"').lower() for column in header]
