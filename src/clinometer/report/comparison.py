"""The page of a comparison: first what changed (or the rank of every model), then the tables, folded.

It needs no chart library: intervals are drawn as they are on the first screen of a report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from clinometer.errors import InputError
from clinometer.report.rendering import asset, page_templates, security_policy
from clinometer.report.rounding import estimate_text, interval_text
from clinometer.report.summary import Interval, Scale, drawn, scale_of
from clinometer.report.tables import TableView, table_view
from clinometer.report.verdict_files import is_of_a_lean
from clinometer.store import write_atomically
from clinometer.types import ChangeState, ChangeVerdict, Finding, FindingTable, Verdict

MOST_UNITS = 40  # rows of each measure in the table of units: the page is for reading, the tables hold all
_FIRST: tuple[ChangeState, ...] = ("worse", "better", "no change found", "cannot tell")
_LEANS = ("lean", "none found", "cannot tell")
_SCRIPTS = ("comparison.js", "rounding.js", "findings.js", "tables.js")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPage:
    """What the page shows."""

    models: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    verdicts: tuple[ChangeVerdict, ...]
    leans: Mapping[str, Sequence[Verdict]]
    tables: tuple[FindingTable, ...]
    audits: Mapping[str, str]  # audit -> its title
    notes: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One change as the first screen shows it."""

    verdict: ChangeVerdict
    estimate: str
    limits: str  # of the 95 % interval
    numbers: str  # the lean of either model, and of how many units
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one audit says of one pair of models; `first` is None where nothing of it was compared."""

    audit: str
    first: Shown | None
    others: tuple[Shown, ...] = ()

    @property
    def state(self) -> str:
        """The state of the cell: that of the measure that matters most."""
        return self.first.verdict.state if self.first else "not compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One pair of models, with a cell for each audit."""

    before: str
    after: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One model in one column of the table of all models."""

    state: str  # what the audit says of the model
    letters: str
    numbers: str
    reason: str
    distance: float | None  # what the column is sorted by
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One audit in the table of all models: the measure shown, and each model's standing."""

    audit: str
    title: str
    measure: str
    standings: Mapping[str, Standing]


@dataclass(frozen=True, slots=True, kw_only=True)
class _TablePart:
    id: str
    table: FindingTable
    view: TableView
    file: str = ""
    rests: tuple[Mapping[str, object], ...] = ()  # as in a report: nothing here rests on a single row,
    terms: tuple[object, ...] = ()  # and the captions explain themselves


def change_rows(page: ComparisonPage) -> tuple[Row, ...]:
    """Return the grid: a row for each pair, a cell for each audit of which anything was compared."""
    compared = {audit: [each for each in page.verdicts if each.audit == audit] for audit in page.audits}
    scales = {audit: _scales(verdicts) for audit, verdicts in compared.items() if verdicts}
    rows = []
    for pair in page.pairs if scales else ():
        cells = []
        for audit, scale in scales.items():
            mine = [each for each in compared[audit] if (each.before, each.after) == pair]
            ordered = sorted(mine, key=lambda each: _FIRST.index(each.state))
            shown = [_shown(each, scale.get(each.measure)) for each in ordered]
            cells.append(Cell(audit=audit, first=shown[0] if shown else None, others=tuple(shown[1:])))
        rows.append(Row(before=pair[0], after=pair[1], cells=tuple(cells)))
    return tuple(rows)


def standing_columns(page: ComparisonPage) -> tuple[Column, ...]:
    """Return the table of all models: for each audit its first measure that most of the models have."""
    table = next((each for each in page.tables if each.name == "standings"), None)
    columns = []
    for audit, title in page.audits.items():
        rows = [row for row in (table.rows if table else ()) if row.labels["audit"] == audit]
        counts: dict[str, int] = {}
        for row in rows:
            name = str(row.labels["measure"])
            counts[name] = counts.get(name, 0) + (not math.isnan(row.estimate))
        if not counts:
            continue
        measure = max(counts, key=lambda name: counts[name])  # the first of those that most have
        mine = [row for row in rows if row.labels["measure"] == measure]
        scale = scale_of(end for row in mine for end in (row.low, row.high, row.estimate))
        standings = {
            str(row.labels["model"]): _standing(row, scale, page.leans.get(str(row.labels["model"]), ()), audit)
            for row in mine
        }
        for model, leans in page.leans.items():
            if model not in standings and any(each.audit == audit for each in leans):
                standings[model] = _otherwise(leans, audit)
        columns.append(Column(audit=audit, title=title, measure=measure, standings=standings))
    return tuple(columns)


def render_comparison(page: ComparisonPage) -> str:
    """Return the page as HTML; whatever came from a model, a user or a file is shown as text."""
    style = asset("report.css") + asset("comparison.css")
    script = "\n".join(asset(name) for name in _SCRIPTS)
    rows = change_rows(page)
    states = [each.state for each in page.verdicts]  # as the command and the Markdown count
    return (
        page_templates()
        .get_template("comparison.html")
        .render(
            page=page,
            rows=rows,
            states={state: states.count(state) for state in _FIRST},
            columns=standing_columns(page) if not page.pairs else (),
            tables=[
                _TablePart(id=str(number), table=table, view=table_view(_for_page(table)))
                for number, table in enumerate(page.tables, start=1)
                if table.rows
            ],
            style=Markup(style),
            script=Markup(script),
            policy=security_policy(style=style, scripts=[script]),
        )
    )


def write_comparison(page: ComparisonPage, path: Path) -> Path:
    """Write the page, making its folder where there is none, and return where it is."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the page cannot be written to {path}: {error.strerror}") from error
    write_atomically(path, render_comparison(page).encode("utf-8", "replace"), run=path.parent)
    return path


def _for_page(table: FindingTable) -> FindingTable:
    if table.name != "units":
        return table
    counts: dict[tuple[object, ...], int] = {}
    kept: list[Finding] = []
    for row in table.rows:
        key = tuple(row.labels[name] for name in ("audit", "measure", "before", "after"))
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= MOST_UNITS:
            kept.append(row)
    return replace(table, rows=tuple(kept))


def _shown(verdict: ChangeVerdict, scale: Scale | None) -> Shown:
    told = verdict.state != "cannot tell"
    numbers = ""
    if told and not math.isnan(verdict.lean_before):
        numbers = f"{estimate_text(verdict.lean_before)} → {estimate_text(verdict.lean_after)}"
        numbers += f"; {verdict.n} {verdict.unit}{'s' if verdict.n != 1 else ''} of both"
    if told and math.isfinite(verdict.detectable):
        numbers += f"{'; ' if numbers else ''}detectable from {estimate_text(verdict.detectable)}"
    return Shown(
        verdict=verdict,
        estimate=estimate_text(verdict.estimate) if told else "",
        limits=interval_text(verdict.low, verdict.high) if told else "",
        numbers=numbers,
        interval=drawn(verdict, scale, verdict.detectable, what="change") if told and scale else None,
    )


def _standing(row: Finding, scale: Scale, leans: Iterable[Verdict], audit: str) -> Standing:
    state = _lean_state(leans, audit)
    told = not math.isnan(row.estimate) and state != "cannot tell"  # no number that looks like an even hand
    return Standing(
        state=state,
        letters=letter_ranges(str(row.labels["group"]).split()) if told else "",
        numbers=f"{estimate_text(row.estimate)} {interval_text(row.low, row.high)}" if told else "",
        reason=str(row.labels["reason"]),
        distance=abs(row.estimate) if told else None,
        interval=drawn(row, scale, math.nan, what="effect") if told else None,
    )


def _otherwise(leans: Iterable[Verdict], audit: str) -> Standing:
    """Return what stands for a model that was asked, but not with the measure of the column."""
    state = _lean_state(leans, audit)
    return Standing(state=state, letters="", numbers="by another measure", reason="", distance=None, interval=None)


def _lean_state(leans: Iterable[Verdict], audit: str) -> str:
    known = [each.state for each in leans if each.audit == audit and is_of_a_lean(each)]
    return next((state for state in _LEANS if state in known), "")


def letter_ranges(letters: Sequence[str]) -> str:
    """Write letters, three and more that follow each other as a range.

    >>> letter_ranges(["a", "b"]), letter_ranges(["a", "c", "d", "e"]), letter_ranges(["y", "z", "aa"])
    ('a b', 'a c–e', 'y–aa')
    """
    runs: list[list[str]] = []
    for letter in letters:
        if runs and _number(letter) == _number(runs[-1][-1]) + 1:
            runs[-1].append(letter)
        else:
            runs.append([letter])
    return " ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else " ".join(run) for run in runs)


def _number(letter: str) -> int:
    number = 0
    for each in letter.rstrip("′"):
        number = 26 * number + ord(each) - ord("a") + 1
    return number


def _scales(verdicts: Iterable[ChangeVerdict]) -> dict[str, Scale]:
    """Return the scale of each measure."""
    ends: dict[str, list[float]] = {}
    for each in verdicts:
        ends.setdefault(each.measure, []).extend(
            (each.low, each.high, each.estimate, each.detectable, -each.detectable)
        )
    return {measure: scale_of(numbers) for measure, numbers in ends.items()}
