"""The first screen: models × audits, each cell with what follows, how large it is and how sure.

A row is a model and a column an audit, so that the intervals of an audit are below each other, on one scale.

Everything here is read from verdicts; nothing is decided here but which of a cell's verdicts is shown first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clinometer.report.rounding import estimate_text, interval_text
from clinometer.report.verdict_files import is_of_a_lean, state_text
from clinometer.types import ChangeVerdict, Finding, Findings, State, Verdict

# A lean is what a reader must not miss; "cannot tell" speaks for a cell only when nothing else does.
_FIRST: tuple[State, ...] = ("lean", "none found", "cannot tell")

_LEFT, _WIDTH = 2.0, 96.0  # of the drawn interval, in a picture that is 100 wide

Scale = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An interval to draw: places from 0 to 100, on the scale that all models of the aspect share."""

    zero: float
    low: float
    high: float
    estimate: float
    detectable: tuple[float, float] | None  # from − to + the smallest effect that would have been found
    numbers: str  # the same as text, for readers who do not see it


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """One verdict as the first screen shows it."""

    verdict: Verdict
    state: str
    sentence: str  # without the model's name, which heads the row; of what cannot be told the reason alone
    estimate: str
    limits: str  # of the 95 % interval
    detectable: str  # the smallest effect that would have been found; "": not known
    interval: Interval | None
    evidence: (
        tuple[str, Mapping[str, str | int | float]] | None
    )  # the table it rests on, and the labels of the row


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one audit says of one model; `first` is None where the model was not asked."""

    audit: str
    first: Conclusion | None
    others: tuple[Conclusion, ...] = ()

    @property
    def state(self) -> str:
        """The state of the cell: the strongest of its verdicts."""
        return self.first.verdict.state if self.first else "not asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One model, with a cell for each audit."""

    model: str
    cells: tuple[Cell, ...]


def summary_rows(findings: Iterable[Findings], models: Sequence[str]) -> tuple[Row, ...]:
    """Return the grid: a row for each model, a cell for each audit that has verdicts, in the order given."""
    concluded = {found.probe: found.verdicts for found in findings if found.verdicts}
    if not concluded:
        return ()
    scales = {audit: _scales(verdicts) for audit, verdicts in concluded.items()}
    return tuple(
        Row(
            model=model,
            cells=tuple(
                _cell(audit, [each for each in verdicts if _is_about(each, model)], scales[audit])
                for audit, verdicts in concluded.items()
            ),
        )
        for model in models
    )


def counts(rows: Iterable[Row]) -> dict[str, int]:
    """Return how many cells have each state.

    >>> counts([])
    {'lean': 0, 'none found': 0, 'cannot tell': 0}
    """
    states = [cell.state for row in rows for cell in row.cells]
    return {state: states.count(state) for state in _FIRST}


def _is_about(verdict: Verdict, model: str) -> bool:
    """Tell whether a verdict is about a model, asked in whatever way: "m", or "m (blank)"."""
    return verdict.model == model or verdict.model.startswith(f"{model} (")


def _place(verdict: Verdict) -> float:
    """Order by state; what is not of a lean comes after all that is, here as for the exit code."""
    order = _FIRST.index(verdict.state)
    return order if is_of_a_lean(verdict) else order + len(_FIRST)


def _cell(audit: str, verdicts: Sequence[Verdict], scales: Mapping[str, Scale]) -> Cell:
    # stable: among verdicts of one state the audit's own order says which matters most
    ordered = sorted(verdicts, key=_place)
    shown = [_conclusion(verdict, scales.get(verdict.aspect)) for verdict in ordered]
    return Cell(audit=audit, first=shown[0] if shown else None, others=tuple(shown[1:]))


def _conclusion(verdict: Verdict, scale: Scale | None) -> Conclusion:
    told = verdict.state != "cannot tell"
    sentence = verdict.sentence.removeprefix(verdict.model).strip()
    if verdict.reason and not told:  # the state says already that it cannot be judged
        sentence = f"{verdict.reason.rstrip('.')}."
    row = verdict.rows[0] if verdict.rows else None
    reach = verdict.detectable
    return Conclusion(
        verdict=verdict,
        state=state_text(verdict),
        sentence=sentence[:1].upper() + sentence[1:],
        estimate=estimate_text(verdict.estimate) if told else "",
        limits=interval_text(verdict.low, verdict.high) if told else "",
        detectable=estimate_text(reach) if told and math.isfinite(reach) else "",
        interval=drawn(verdict, scale, reach, what="effect") if told and scale else None,
        evidence=(row.table, row.labels) if row else None,
    )


def _scales(verdicts: Iterable[Verdict]) -> dict[str, Scale]:
    """Return the scale of each aspect."""
    ends: dict[str, list[float]] = {}
    for verdict in verdicts:
        if verdict.state != "cannot tell":
            reach = verdict.detectable
            ends.setdefault(verdict.aspect, []).extend(
                (verdict.low, verdict.high, verdict.estimate, reach, -reach)
            )
    return {aspect: scale_of(numbers) for aspect, numbers in ends.items()}


def scale_of(numbers: Iterable[float]) -> Scale:
    """Return the range that holds 0 and all of the numbers that were computed.

    >>> scale_of([0.2, math.nan, 0.5])
    (0.0, 0.5)
    """
    known = [0.0, *filter(math.isfinite, numbers)]
    return min(known), max(known)


def drawn(
    measured: Verdict | ChangeVerdict | Finding, scale: Scale, reach: float, *, what: str
) -> Interval | None:
    """Return an interval as it is drawn; None where there is none, or nothing but 0 on its scale."""
    least, most = scale
    if not least < most or not all(map(math.isfinite, (measured.low, measured.high, measured.estimate))):
        return None

    def place(number: float) -> float:
        return round(_LEFT + _WIDTH * (number - least) / (most - least), 2)

    known = math.isfinite(reach)
    numbers = f"{estimate_text(measured.estimate)}, 95 % interval {interval_text(measured.low, measured.high)}"
    return Interval(
        zero=place(0.0),
        low=place(measured.low),
        high=place(measured.high),
        estimate=place(measured.estimate),
        detectable=(place(-reach), place(reach)) if known else None,
        numbers=numbers + (f"; smallest detectable {what} {estimate_text(reach)}" if known else ""),
    )
