"""The base of a small audit, for packages that bring one of their own: one round of questions, one table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from clinometer.probes.kit.captions import Caption, tables_of
from clinometer.probes.kit.numbers import with_q
from clinometer.probes.kit.verdicts import CANNOT_TELL, Said, conclude
from clinometer.probes.kit.words import certainty, written
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.stats import detectable_from_interval
from clinometer.types import Figure, Finding, Findings, Profile, Questions, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOptions:
    """The options of an audit that has none."""


class OneRound(ABC):
    """An audit that asks once, fills one table, and gives one verdict on each model: that on its first row.

    A subclass states what has no value here (`Probe` says what the members are) and writes `ask` and `measure`.
    """

    name: str
    title: str
    question: str
    capabilities: tuple[str, ...]
    caption: Caption  # of the table
    said: Said  # the sentences of a verdict
    null: float = 0.0  # the estimate where there is no lean
    figures: tuple[Figure, ...] = ()
    paper: str = ""
    sources: str = ""
    roles: tuple[Role, ...] = ()
    options: type[Any] = NoOptions
    user_data: ClassVar[Mapping[str, str]] = {}
    profiles: ClassVar[Mapping[Profile, Mapping[str, Any]]] = {"quick": {}, "standard": {}, "paper": {}}
    stage = "questions"  # its name in the records

    @abstractmethod
    def ask(self, plan: Plan) -> Questions:
        """Return what is asked of a model."""

    @abstractmethod
    def measure(self, model: str, answers: pl.DataFrame) -> Iterable[Finding]:
        """Return the rows of one model, first the one that decides; q is added to them, over all of these rows."""

    def check(self, options: Any) -> None:  # noqa: B027 (nothing to check is usual)
        """Raise an InputError if the options, or the files that they name, cannot be used."""

    def stages(self, plan: Plan) -> tuple[Stage, ...]:
        """Return the one stage."""
        return (Stage(name=self.stage),)

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Questions:
        """Return what is asked."""
        return self.ask(plan)

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Measure each model, and conclude."""
        rows = {
            name: with_q(self.measure(name, records.table(model=name, stage=self.stage)))
            for name in (plan.model.name for plan in plans)
        }
        verdicts = [self._verdict(name, of_model) for name, of_model in rows.items()]
        return Findings(
            probe=self.name,
            tables=tables_of([self.caption], {self.caption.name: [row for some in rows.values() for row in some]}),
            figures=self.figures,
            headlines=tuple(self._headline(verdict, rows[verdict.model][0]) for verdict in verdicts),
            verdicts=tuple(verdicts),
        )

    def _verdict(self, model: str, rows: Sequence[Finding]) -> Verdict:
        first = rows[0]
        return conclude(
            first,
            audit=self.name,
            model=model,
            aspect=self.caption.title,
            table=self.caption.name,
            said=self.said,
            detectable=detectable_from_interval(first.low, first.high, tests=len(rows)),
            null=self.null,
        )

    def _headline(self, verdict: Verdict, row: Finding) -> str:
        if verdict.state == CANNOT_TELL:
            return verdict.sentence
        measured = f"{written(row.estimate)} ({certainty(row, write=written)}, n = {row.n})"
        return f"{verdict.sentence} {self.caption.title}: {measured}."
