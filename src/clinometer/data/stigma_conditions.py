"""The conditions of the stigma audit, worded so that they fit into its sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from clinometer.data.files import Source, packaged
from clinometer.data.tables import CsvRow, read_csv
from clinometer.errors import DataError

Verb = Literal["be", "have", ""]  # none: the wording is the whole clause, in any language
Tense = Literal["present", "past"]

CATEGORIES = (
    "ethnicity",
    "disability",
    "diseases",
    "drug use",
    "education",
    "physical traits",
    "mental illness",
    "profession",
    "religion",
    "sexuality",
    "socioeconomic status",
    "other",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One wording of a condition; those that share `condition` are averaged (the paper's sub-conditions)."""

    name: str  # of this wording: no other row has it
    verb: Verb
    singular: str  # after "is", "has", "was" or "had"
    plural: str  # after "are", "have", "were" or "had"
    condition: str  # the name to aggregate by
    category: str
    stigmatized: bool
    tense: Tense = "present"  # past: a condition that is over ("remitted", "previously")

    @property
    def singular_clause(self) -> str:
        """What follows "someone who".

        >>> load_conditions()[18].singular_clause
        'had a movement impairment'
        """
        verbs = {
            ("be", "present"): "is",
            ("be", "past"): "was",
            ("have", "present"): "has",
            ("have", "past"): "had",
        }
        return f"{verbs[self.verb, self.tense]} {self.singular}" if self.verb else self.singular

    @property
    def plural_clause(self) -> str:
        """What follows "people who".

        >>> load_conditions()[18].plural_clause
        'had a movement impairment'
        """
        verbs = {
            ("be", "present"): "are",
            ("be", "past"): "were",
            ("have", "present"): "have",
            ("have", "past"): "had",
        }
        return f"{verbs[self.verb, self.tense]} {self.plural}" if self.verb else self.plural


def load_conditions() -> tuple[Condition, ...]:
    """Return our wordings: 108 of the 93 stigmatized conditions, then 30 of the 29 others.

    >>> conditions = load_conditions()
    >>> len(conditions), len({each.condition for each in conditions if each.stigmatized})
    (138, 93)
    """
    columns = ("name", "verb", "tense", "singular", "plural", "condition", "category")
    stigmatized = read_csv(packaged("stigma", "conditions.csv"), columns=columns)
    others = read_csv(packaged("stigma", "other_conditions.csv"), columns=columns)
    return tuple(
        _condition(row, stigmatized=flag) for rows, flag in ((stigmatized, True), (others, False)) for row in rows
    )


def read_conditions(source: Source) -> tuple[Condition, ...]:
    """Return the conditions of a user's file: CSV with `name,verb,singular,stigmatized` and perhaps others.

    `verb` is be or have, or empty where the wording is the whole clause ("ist obdachlos"); `stigmatized` is yes or
    no. `tense` (present or past) is present, `plural` is as the singular, `condition` is the name and `category`
    is other where the column is missing or empty.
    """
    rows = read_csv(
        source,
        columns=("name", "verb", "singular", "stigmatized"),
        optional=("tense", "plural", "condition", "category"),
    )
    conditions = []
    lines: dict[str, int] = {}
    for row in rows:
        name = row.text("name")
        if name.lower() in lines:
            raise row.error(f"'{name}' again (first in line {lines[name.lower()]})", "each name once")
        lines[name.lower()] = row.line
        conditions.append(_condition(row, stigmatized=row.choice("stigmatized", ("yes", "no")) == "yes"))
    _check_sides(source, conditions)
    return tuple(conditions)


def read_published_conditions(stigma_csv: Source, non_stigma_csv: Source) -> tuple[Condition, ...]:
    """Return the authors' own wordings from the two files that they published.

    The files spell their columns differently; the stigmatized rows aggregate by `Pachankis_condition`, the others
    by `Condition_StandardNaming`. "none" as a plural means: as the singular. A category that holds one condition
    only ("Homeless") is `other`, as in the paper's list.
    """
    stigmatized = read_csv(
        stigma_csv,
        columns=("Verb/Be_singular", "Condition", "Condition_plural", "Pachankis_condition"),
        optional=("Verb/Be_plural", "Category", "Final_Category"),
    )
    others = read_csv(
        non_stigma_csv,
        columns=("Verb/Be", "Condition", "Condition_plural", "Condition_StandardNaming"),
        optional=("Verb/Be_plural", "Category", "Final_Category", "Pachankis_condition"),
    )
    return (
        *_published(stigmatized, verb="Verb/Be_singular", condition="Pachankis_condition", stigmatized=True),
        *_published(others, verb="Verb/Be", condition="Condition_StandardNaming", stigmatized=False),
    )


def _condition(row: CsvRow, *, stigmatized: bool) -> Condition:
    singular = _wording(row, "singular")
    return Condition(
        name=row.text("name"),
        verb=cast(Verb, row.choice("verb", ("be", "have")) if row.values["verb"] else ""),
        tense=cast(Tense, row.choice("tense", ("present", "past", "")) or "present"),
        singular=singular,
        plural=_wording(row, "plural") if row.values["plural"] else singular,
        condition=row.values["condition"] or row.text("name"),
        category=row.values["category"] or "other",
        stigmatized=stigmatized,
    )


_PUBLISHED_VERBS: dict[str, tuple[Verb, Tense]] = {
    "be": ("be", "present"),
    "verb": ("have", "present"),
    "was": ("be", "past"),
    "had": ("have", "past"),
}


def _published(rows: Iterable[CsvRow], *, verb: str, condition: str, stigmatized: bool) -> tuple[Condition, ...]:
    conditions = []
    names: set[str] = set()
    for row in rows:
        used, tense = _PUBLISHED_VERBS[row.choice(verb, _PUBLISHED_VERBS)]
        singular = _wording(row, "Condition")
        plural = row.text("Condition_plural")
        name = singular if tense == "present" else f"{singular} (past)"
        if name in names:
            raise row.error(f"'{name}' again", "each wording once")
        names.add(name)
        conditions.append(
            Condition(
                name=name,
                verb=used,
                tense=tense,
                singular=singular,
                plural=singular if plural == "none" else _wording(row, "Condition_plural"),
                condition=row.text(condition),
                category=_published_category(row.values["Final_Category"] or row.values["Category"]),
                stigmatized=stigmatized,
            )
        )
    return tuple(conditions)


def _published_category(found: str) -> str:
    category = found.lower()
    category = {"ethinicity": "ethnicity", "disease": "diseases"}.get(category, category)
    return category if category in CATEGORIES else "other"


def _wording(row: CsvRow, column: str) -> str:
    text = row.text(column)
    if any(sign in text for sign in "[]{}<>\n"):
        raise row.error(f"{column} {text!r}", "plain words, without brackets or line breaks")
    if text[-1] in ".?!":
        raise row.error(f"{column} {text!r}", "words without a full stop: the sentence brings its own")
    return text


def _check_sides(source: Source, conditions: Sequence[Condition]) -> None:
    sides: dict[str, bool] = {}
    for each in conditions:
        if sides.setdefault(each.condition, each.stigmatized) != each.stigmatized:
            raise DataError(
                f"'{source}': condition '{each.condition}' is stigmatized in one row and not in another; "
                "give all its rows the same"
            )
    if set(sides.values()) != {True, False}:
        missing = "stigmatized = no" if True in sides.values() else "stigmatized = yes"
        raise DataError(f"'{source}' has no row with {missing}; expected both, or nothing can be compared")
