"""What an audit is built from: the limits of its options, and a base for one that asks a single round.

An options class is a frozen dataclass whose fields carry their limits, which `spec.build` enforces:
`draws: Draws = 1999`. What depends on two options at once is checked in `__post_init__`, which raises
`wrong_option`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar

import polars as pl
from pydantic import AfterValidator, Field

from clinometer.errors import SpecError
from clinometer.probes.kit.numbers import Caption, certainty, tables_of, with_q, written
from clinometer.probes.kit.verdicts import CANNOT_TELL, Said, conclude
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.stats import detectable_from_interval
from clinometer.types import Figure, Finding, Findings, Profile, Questions, Verdict

T = TypeVar("T")


def _each_once(values: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(values)) < len(values):
        raise ValueError("a value is given twice; give each once")
    return values


Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Draws = Annotated[int, Field(ge=100, le=100_000)]  # of a bootstrap
# at least one value, none of them twice: `Annotated[tuple[Positive, ...], *Listed]`
Listed = (Field(min_length=1), AfterValidator(_each_once))


def wrong_option(probe: str, option: str, value: object, hint: str) -> SpecError:
    """Return the error to raise for an option that cannot be used; `hint` says what was expected."""
    return SpecError(f"{probe}: {option} = {value!r} is not valid; {hint}")


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
        measured = f"{written(row.estimate)} ({certainty(row, write=written, null=self.null)}, n = {row.n})"
        return f"{verdict.sentence} {self.caption.title}: {measured}."
