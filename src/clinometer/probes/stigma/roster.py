"""The conditions of a run: each with its wordings, its category and its side of the comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clinometer.data.stigma_conditions import Condition
from clinometer.probes.kit.numbers import Label
from clinometer.probes.stigma.groups import Bools, Ints
from clinometer.probes.stigma.prompts import OTHER, STIGMATIZED


@dataclass(frozen=True, kw_only=True)
class Roster:
    """What was asked about. Wordings (sub-conditions) are numbered as asked, conditions by first appearance."""

    wordings: tuple[Condition, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The conditions."""
        return tuple(dict.fromkeys(each.condition for each in self.wordings))

    @cached_property
    def condition_of(self) -> Ints:
        """The number of each wording's condition."""
        place = {name: at for at, name in enumerate(self.names)}
        return np.array([place[each.condition] for each in self.wordings], dtype=np.int64)

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """The category of each condition."""
        first = {each.condition: each.category for each in reversed(self.wordings)}
        return tuple(first[name] for name in self.names)

    @cached_property
    def stigmatized(self) -> Bools:
        """Whether each condition is stigmatized."""
        side = {each.condition: each.stigmatized for each in self.wordings}
        return np.array([side[name] for name in self.names], dtype=np.bool_)

    def group(self, condition: int) -> str:
        """Return the side of the comparison that a condition is on."""
        return STIGMATIZED if self.stigmatized[condition] else OTHER

    def labels(self, condition: int) -> dict[str, Label]:
        """Return the labels of one condition."""
        return {
            "condition": self.names[condition],
            "category": self.categories[condition],
            "group": self.group(condition),
        }

    def members(self) -> dict[str, Bools]:
        """Return which conditions are stigmatized and which are not."""
        return {STIGMATIZED: self.stigmatized, OTHER: ~self.stigmatized}


def roster_of(conditions: Sequence[Condition]) -> Roster:
    """Return the roster of some conditions."""
    return Roster(wordings=tuple(conditions))
