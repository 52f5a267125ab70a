"""Occupations and the share of women in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clinometer.data.files import Source, packaged
from clinometer.data.tables import read_csv
from clinometer.errors import DataError

Gender = Literal["female", "male"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupation:
    """An occupation in the singular, with the percentage of women in it."""

    name: str
    percent_female: float
    winobias: bool = False  # one of the 20 + 20 occupations of WinoBias
    article: str = ""  # "a" or "an"; "": by the spelling of the name

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
        if name.lower() in lines:
            raise row.error(f"'{name}' again (first in line {lines[name.lower()]})", "each occupation once")
        if "[" in name or "\n" in name:
            raise row.error(f"occupation {name!r}", "a plain name, without brackets or line breaks")
        lines[name.lower()] = row.line
        percent = row.number("percent_female", low=0, high=100)
        if percent == 50:
            raise row.error(
                f"percent_female 50 for '{name}'", "a share above or below 50: neither gender dominates here"
            )
        article = row.choice("article", ("", "a", "an"))
        occupations.append(Occupation(name=name, percent_female=percent, article=article))
    if len(occupations) < 2:
        raise DataError(f"'{source}' has one occupation; expected at least two, or nothing can be compared")
    return tuple(occupations)
