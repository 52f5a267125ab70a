"""A finished run as an object: tables as frames, charts as in the report, raw answers, and a page for notebooks.

>>> run = open_run("runs/mine")                                    # doctest: +SKIP
>>> run["stigma"]["difference"].to_polars()                        # doctest: +SKIP
>>> run["stigma"]["difference"].plot()                             # doctest: +SKIP
>>> run.records("stigma", stage="attitudes", model="bert")         # doctest: +SKIP
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinometer.errors import InputError, nearest
from clinometer.store import RunFolder
from clinometer.types import ChangeVerdict, Figure, Findings, FindingTable, ModelInfo, Verdict

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Table:
    """One table of findings: labels, then estimate, low, high, p, q and n."""

    def __init__(self, table: FindingTable, figures: Sequence[Figure]) -> None:
        self.name = table.name
        self.title = table.title
        self.caption = table.caption
        self.rows = table.rows
        self.figures = tuple(figure.name for figure in figures)
        self._table = table
        self._figures = {figure.name: figure for figure in figures}

    def to_polars(self) -> pl.DataFrame:
        """Return the table as a polars frame, one row for each finding."""
        from clinometer.store import table_frame

        return table_frame(self._table)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas frame; raise InputError where pandas is not installed."""
        try:
            import pandas as pd
        except ImportError:
            raise InputError("pandas is not installed; run `pip install pandas`, or use to_polars()") from None
        return pd.DataFrame(self.to_polars().to_dict(as_series=False))

    def plot(self, figure: str = "", *, width: int = 600, **choices: Any) -> Any:
        """Return an Altair chart of the table as the report draws it.

        A table may have several figures: name one of `figures`, or get the first. Where the report has a menu
        (say, for k), `choices` choose: `plot(k=5)`; without, the menu's first value.
        """
        from clinometer.report import altair_chart

        if not self._figures:
            raise InputError(f"no figure of the report draws the table {self.name!r}; use to_polars()")
        if figure and figure not in self._figures:
            raise InputError(f"no figure {figure!r} of table {self.name!r}; {nearest(figure, self._figures)}")
        chosen = self._figures[figure] if figure else next(iter(self._figures.values()))
        return altair_chart(chosen, self._table, choices=choices, width=width)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<table {self.name!r}: {self.title}; {len(self.rows):,} rows>"

    def _repr_html_(self) -> str:
        frame = self.to_polars()._repr_html_()
        return f"<p><b>{html.escape(self.title)}</b></p>{frame}<p>{html.escape(self.caption)}</p>"


class _Tables(Mapping[str, Table]):
    """Tables by name, as a dictionary: what an audit and a comparison have in common."""

    _tables: Mapping[str, Table]
    _within: str  # what they are the tables of, for an error

    def __getitem__(self, name: str) -> Table:
        if name not in self._tables:
            raise KeyError(f"no table {name!r} in {self._within}; {nearest(name, self._tables)}")
        return self._tables[name]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._tables)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


class AuditResult(_Tables):
    """What one audit concluded: its tables by name, its headlines and its notices."""

    def __init__(self, findings: Findings) -> None:
        self.name = findings.probe
        self.headlines = findings.headlines
        self.notices = findings.notices
        self.findings = findings
        self._within = findings.probe
        self._tables = {
            table.name: Table(table, [figure for figure in findings.figures if figure.table == table.name])
            for table in findings.tables
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before believing a number."""
        return tuple(notice.text for notice in self.notices if notice.level == "warning")

    def __repr__(self) -> str:
        lines = [f"{self.name}: {len(self._tables)} tables"]
        lines += [
            f"  {table.name:<24} {len(table.rows):>7,} rows  {table.title}" for table in self._tables.values()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(table.name)}</td><td>{len(table.rows):,}</td><td>{html.escape(table.title)}</td></tr>"
            for table in self._tables.values()
        )
        head = "<tr><th>table</th><th>rows</th><th>what it shows</th></tr>"
        warned = "".join(f"<p>Warning: {html.escape(text)}</p>" for text in self.warnings)
        said = f"<p><b>{html.escape(self.name)}</b></p>{_html_list(self.headlines)}"
        return f"{said}{warned}<table>{head}{rows}</table>"


class Run(Mapping[str, AuditResult]):
    """A run: `run["stigma"]` is what that audit concluded."""

    def __init__(self, folder: RunFolder, findings: Sequence[Findings] | None = None) -> None:
        self.folder = folder
        self._given = findings

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.folder.path

    @property
    def report_path(self) -> Path:
        """Where the report is, or will be."""
        return self.folder.report_path

    @property
    def digest(self) -> str:
        """The SHA-256 of the whole run, the page apart; "" while it is not complete."""
        return self.folder.digest

    @property
    def models(self) -> tuple[ModelInfo, ...]:
        """The models under audit."""
        return self.folder.models

    @cached_property
    def findings(self) -> tuple[Findings, ...]:
        """What all audits concluded, by name; read from the folder when it is first asked for."""
        found = self.folder.read_findings() if self._given is None else self._given
        return tuple(sorted(found, key=lambda each: each.probe))

    @property
    def headlines(self) -> dict[str, tuple[str, ...]]:
        """What was found, in plain sentences, by audit."""
        return {found.probe: found.headlines for found in self.findings}

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What follows, for each audit, model and aspect: lean, none found, or cannot tell."""
        return tuple(verdict for found in self.findings for verdict in found.verdicts)

    @property
    def changes(self) -> tuple[ChangeVerdict, ...]:
        """What training changed, for every checkpoint whose base is in the run: worse, better, …"""
        return tuple(change for found in self.findings for change in found.changes)

    def records(
        self, audit: str, *, stage: str = "", model: str = "", columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Return the raw answers of one stage: `index`, `tag_*`, `ask_*` (what was asked), `got_*` (the answer).

        Without `stage` or `model`, the only one is taken; where there are several, the error lists them.
        """
        stages = [key for key in self.folder.stages() if key.probe == audit]
        if not stages:
            known = dict.fromkeys(key.probe for key in self.folder.stages())
            raise InputError(f"there are no records of {audit!r}; {nearest(audit, known)}")
        found = [key for key in stages if key.stage == (stage or key.stage) and key.model == (model or key.model)]
        if len(found) != 1:
            names = " or ".join(f"(stage={key.stage!r}, model={key.model!r})" for key in found or stages)
            raise InputError(f"{len(found) or 'none'} of the records of {audit} fit; choose one: {names}")
        return self.folder.table(found[0], columns=columns)

    @cached_property
    def _audits(self) -> dict[str, AuditResult]:
        return {found.probe: AuditResult(found) for found in self.findings}

    def __getitem__(self, audit: str) -> AuditResult:
        if not self._audits:
            raise KeyError(f"{self.path} has no findings yet; complete the run with clinometer.resume()")
        if audit not in self._audits:
            raise KeyError(f"no findings of {audit!r} in {self.path}; {nearest(audit, self._audits)}")
        return self._audits[audit]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._audits)

    def __iter__(self) -> Iterator[str]:
        return iter(self._audits)

    def __len__(self) -> int:
        return len(self._audits)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        audits = ", ".join(self._audits) or "no findings yet"
        return f"<run {self.path}: {audits}; {self._model_names(2)}>"

    def _repr_html_(self) -> str:
        said = "".join(
            f"<p><b>{html.escape(name)}</b>{_counted(audit.warnings)}</p>{_html_list(audit.headlines)}"
            for name, audit in self._audits.items()
        )
        models = html.escape(self._model_names(20))
        where = html.escape(str(self.report_path if self.report_path.is_file() else "not written yet"))
        return f"<p>Run {html.escape(str(self.path))}: {models}</p>{said}<p>Report: {where}</p>"

    def _model_names(self, most: int) -> str:
        names = [info.name for info in self.models]
        more = f" and {len(names) - most} more" if len(names) > most else ""
        return ", ".join(names[:most]) + more


_CHANGES = Figure(
    name="changes",
    title="Farther from even-handed, or nearer",
    caption="To the right of 0 the second model is farther from even-handed than the first.",
    table="changes",
    mark="intervals",
    x="estimate",
    y="measure",
    color="state",
    row="audit",
    column="after",
    reference=0.0,
)
_SIMILARITY = Figure(
    name="similarity",
    title="How alike models see groups",
    caption="ρ of every two models: 1 is the same relations between groups.",
    table="similarity",
    mark="heatmap",
    x="model",
    y="other_model",
)
_STANDINGS = Figure(
    name="standings",
    title="Every model",
    caption="The lean of every model with its interval.",
    table="standings",
    mark="intervals",
    x="estimate",
    y="model",
    row="measure",
    reference=0.0,
)


class Comparison(_Tables):
    """Two models or more, compared: `comparison["changes"]` is a table, `comparison.verdicts` what follows.

    >>> clinometer.compare("runs/before", "runs/after")                # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        models: Sequence[str],
        pairs: Sequence[tuple[str, str]],
        after: Sequence[str],
        verdicts: Sequence[ChangeVerdict],
        leans: Mapping[str, Sequence[Verdict]],
        tables: Sequence[FindingTable],
        audits: Mapping[str, str],
        notes: Sequence[str] = (),
        sources: Sequence[str] = (),
        left_out: Sequence[str] = (),
    ) -> None:
        self.models = tuple(models)
        self.pairs = tuple(pairs)  # which model is before, and which after: several trainings have one name
        self.after = tuple(after)  # the models that come after, each training by itself
        self.verdicts = tuple(verdicts)  # worse, better, no change found, or cannot tell
        self.leans = {model: tuple(given) for model, given in leans.items()}  # what the audits say of each model
        self.audits = dict(audits)  # audit -> its title
        self.notes = tuple(notes)  # what the models do not share
        self.sources = tuple(sources)
        self.left_out = tuple(left_out)  # what was given and could not be opened
        self.tables = tuple(tables)
        figures = (_CHANGES, _SIMILARITY, _STANDINGS)
        self._within = "this comparison"
        self._tables = {
            table.name: Table(table, [figure for figure in figures if figure.table == table.name])
            for table in tables
        }

    @property
    def headlines(self) -> tuple[str, ...]:
        """What changed, in plain sentences; what did not is not told."""
        return tuple(each.sentence for each in self.verdicts if each.state in ("worse", "better"))

    def plot(self, **choices: Any) -> Any:
        """Return a chart of every change with its interval; without pairs, of every model."""
        return self["changes" if self.pairs else "standings"].plot(**choices)

    def write_page(self, path: str | Path) -> Path:
        """Write the comparison as one HTML page and return where it is."""
        from clinometer.report.comparison import ComparisonPage, write_comparison

        page = ComparisonPage(
            models=self.models,
            pairs=self.pairs,
            verdicts=self.verdicts,
            leans=self.leans,
            tables=self.tables,
            audits=self.audits,
            notes=self.notes,
            sources=self.sources,
        )
        return write_comparison(page, Path(path))

    def __repr__(self) -> str:
        counts = _tally(self.verdicts)
        named = ", ".join(f"{before} → {after}" for before, after in self.pairs[:3]) or ", ".join(self.models[:3])
        more = max(len(self.pairs) or len(self.models), 3) - 3
        return f"<comparison {named}{f' and {more} more' if more else ''}: {counts or 'no pairs'}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(each.state)}</td><td>{html.escape(each.audit)}</td>"
            f"<td>{html.escape(each.measure)}</td><td>{html.escape(each.sentence)}</td></tr>"
            for each in sorted(self.verdicts, key=lambda each: _STATES.index(each.state))
        )
        head = "<tr><th>verdict</th><th>audit</th><th>measure</th><th>what follows</th></tr>"
        return f"<p>{html.escape(repr(self)[1:-1])}</p><table>{head}{rows}</table>{_html_list(self.notes)}"


_STATES = ("worse", "better", "no change found", "cannot tell")


def _tally(verdicts: Sequence[ChangeVerdict]) -> str:
    found = [each.state for each in verdicts]
    return ", ".join(f"{found.count(state)} × {state}" for state in _STATES if state in found)


def _counted(warnings: Sequence[str]) -> str:
    return f" ({len(warnings)} {'warning' if len(warnings) == 1 else 'warnings'})" if warnings else ""


def _html_list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"
