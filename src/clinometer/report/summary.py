"""The first screen: models × audits, each cell with what follows, how large it is and how sure.

Everything here is read from verdicts; nothing is decided here but which of a cell's verdicts is shown first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clinometer.report.rounding import estimate_text, interval_text
from clinometer.report.verdict_files import is_of_a_lean
from clinometer.types import Findings, State, Verdict

# A lean is what a reader must not miss; "cannot tell" speaks for a cell only when nothing else does.
_FIRST: tuple[State, ...] = ("lean", "none found", "cannot tell")

_LEFT, _WIDTH = 2.0, 96.0  # of the drawn interval, in a picture that is 100 wide


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
    sentence: str  # without the model's name, which heads the column
    numbers: str
    detectable: str  # the smallest effect that would have been found; "": not known
    interval: Interval | None
    evidence: (
        tuple[str, Mapping[str, str | int | float]] | None
    )  # the table it rests on, and the labels of the row


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one audit says of one model; `first` is None where the model was not asked."""

    model: str
    first: Conclusion | None
    others: tuple[Conclusion, ...] = ()

    @property
    def state(self) -> str:
        """The state of the cell: the strongest of its verdicts."""
        return self.first.verdict.state if self.first else "not asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One audit, with a cell for each model."""

    audit: str
    cells: tuple[Cell, ...]


def summary_rows(findings: Iterable[Findings], models: Sequence[str]) -> tuple[Row, ...]:
    """Return the grid: a row for each audit that has verdicts, a cell for each model, in the order given."""
    rows = []
    for found in findings:
        if not found.verdicts:
            continue
        scales = _scales(found.verdicts)
        of_model = {model: [each for each in found.verdicts if _is_about(each, model)] for model in models}
        cells = tuple(_cell(model, verdicts, scales) for model, verdicts in of_model.items())
        rows.append(Row(audit=found.probe, cells=cells))
    return tuple(rows)


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


def _cell(model: str, verdicts: Sequence[Verdict], scales: Mapping[str, tuple[float, float]]) -> Cell:
    # stable: among verdicts of one state the audit's own order says which matters most
    ordered = sorted(verdicts, key=_place)
    shown = [_conclusion(verdict, scales.get(verdict.aspect)) for verdict in ordered]
    return Cell(model=model, first=shown[0] if shown else None, others=tuple(shown[1:]))


def _conclusion(verdict: Verdict, scale: tuple[float, float] | None) -> Conclusion:
    sentence = verdict.sentence.removeprefix(verdict.model).strip()
    row = verdict.rows[0] if verdict.rows else None
    told = verdict.state != "cannot tell"
    return Conclusion(
        verdict=verdict,
        sentence=sentence[:1].upper() + sentence[1:],
        numbers=_numbers(verdict) if told else "",
        detectable=estimate_text(verdict.detectable) if told and math.isfinite(verdict.detectable) else "",
        interval=_interval(verdict, scale) if told and scale else None,
        evidence=(row.table, row.labels) if row else None,
    )


def _numbers(verdict: Verdict) -> str:
    return f"{estimate_text(verdict.estimate)} {interval_text(verdict.low, verdict.high)}"


def _scales(verdicts: Iterable[Verdict]) -> dict[str, tuple[float, float]]:
    """Return for each aspect the range that holds 0, every interval and every detectable effect."""
    ends: dict[str, list[float]] = {}
    for verdict in verdicts:
        if verdict.state == "cannot tell":
            continue
        reach = verdict.detectable
        numbers = (verdict.low, verdict.high, verdict.estimate, reach, -reach)
        ends.setdefault(verdict.aspect, [0.0]).extend(number for number in numbers if math.isfinite(number))
    return {aspect: (min(all_), max(all_)) for aspect, all_ in ends.items() if min(all_) < max(all_)}


def _interval(verdict: Verdict, scale: tuple[float, float]) -> Interval | None:
    if not all(map(math.isfinite, (verdict.low, verdict.high, verdict.estimate))):
        return None
    least, most = scale

    def place(number: float) -> float:
        return round(_LEFT + _WIDTH * (number - least) / (most - least), 2)

    reach = verdict.detectable
    known = math.isfinite(reach)
    return Interval(
        zero=place(0.0),
        low=place(verdict.low),
        high=place(verdict.high),
        estimate=place(verdict.estimate),
        detectable=(place(-reach), place(reach)) if known else None,
        numbers=f"{estimate_text(verdict.estimate)}, 95 % interval {interval_text(verdict.low, verdict.high)}"
        + (f"; smallest detectable effect {estimate_text(reach)}" if known else ""),
    )
