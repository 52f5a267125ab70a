"""Renders the report as one HTML page that needs nothing but a browser.

The page's security policy allows the two scripts and the one style sheet below by their hash, and nothing else: no
other script, no evaluated text (Vega interprets its expressions itself), no request of any kind.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from importlib.metadata import version
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from clinometer.errors import RecordsError, StoreError, nearest
from clinometer.folders import cache_folder
from clinometer.report.chart_style import PAGE, config
from clinometer.report.charts import Chart, chart, opened_at
from clinometer.report.evidence import Evidence
from clinometer.report.glossary import Explained, Term
from clinometer.report.plot_data import plot_data
from clinometer.report.rounding import count_text, json_number, size_text
from clinometer.report.summary import counts, summary_rows
from clinometer.report.tables import FOLDED, UNSCRIPTED, TableView, table_view
from clinometer.store import write_atomically
from clinometer.types import MASK, Figure, Findings, FindingTable, ModelInfo

MOST_OPEN = 8  # figures that are open on a page; the others are behind a fold
MOST_OF_ONE = 3  # of one audit
NOT_TOLD = "cannot be judged"  # how every audit words what it cannot tell
# the SHA-256 of the script that a release of vl-convert makes; one that is not here makes it anew for every report
_KNOWN_VEGA = {"1.9.0.post1": "373b1f84072b31010f15ceb787be6b415c53936411aae267c8c2b2b6ccde46e7"}

SCRIPTS = ("rounding.js", "findings.js", "tables.js", "charts.js")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeText:
    """How a probe introduces itself to the reader."""

    title: str
    question: str  # what was asked, in one sentence
    paper: str  # who asked it first: authors, title, year
    data: str = ""  # where its words and sentences come from, in a sentence or two
    how: tuple[str, ...] = ()  # how to read what it found …
    not_shown: tuple[str, ...] = ()  # … and what that does not show
    bibtex: str = ""  # the paper


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """What the report of one run shows."""

    run_id: str
    created: str
    profile: str
    seed: str
    digest: str  # SHA-256 over the run where it is sealed, else over its findings
    models: tuple[ModelInfo, ...]
    probes: Mapping[str, ProbeText]
    findings: tuple[Findings, ...]
    spec: str
    provenance: Mapping[str, Any]
    sealed: bool = False
    assistants: tuple[ModelInfo, ...] = ()  # models that take part without being audited
    roles: Mapping[str, str] = field(default_factory=dict)  # model -> its roles: "scorer", …
    evidence: Mapping[str, Mapping[str, Evidence]] = field(default_factory=dict)  # probe -> figure -> prompts
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # probe -> table -> its file


@dataclass(frozen=True, slots=True, kw_only=True)
class _TablePart:
    id: str
    table: FindingTable
    view: TableView
    file: str
    rests: tuple[Mapping[str, Any], ...]  # the labels of the rows that verdicts rest on
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _FigurePart:
    id: str
    number: str
    figure: Figure
    chart: Chart
    table: _TablePart
    evidence: Evidence | None
    same_prompts: _FigurePart | None  # an earlier figure that shows them
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProbePart:
    name: str
    text: ProbeText
    findings: Findings
    figures: tuple[_FigurePart, ...]
    tables: tuple[_TablePart, ...]
    prompts: Mapping[str, str]  # table -> the figure under which its prompts are; "": none
    headlines: tuple[str, ...]  # what was found before what could not be told
    terms: tuple[Term, ...]  # of the headlines
    open_figures: int = 0


def render(page: ReportPage) -> str:
    """Return the page as HTML; whatever came from a model, a user or a file is shown as text."""
    style = asset("report.css")
    scripts = [_vega(), "\n".join(asset(name) for name in SCRIPTS)]
    probes = [_probe_part(findings, page, number=i) for i, findings in enumerate(page.findings, start=1)]
    shown = open_figures([len(part.figures) for part in probes])
    probes = [replace(part, open_figures=number) for part, number in zip(probes, shown, strict=True)]
    summary = summary_rows(page.findings, [info.name for info in page.models])
    return (
        page_templates()
        .get_template("report.html")
        .render(
            page=page,
            probes=probes,
            summary=summary,
            states=counts(summary),
            titles={part.name: {"place": i, "title": part.text.title} for i, part in enumerate(probes, start=1)},
            tables={part.name: {table.table.name: table.id for table in part.tables} for part in probes},
            bibtex="\n\n".join([_tool_bibtex(page), *(part.text.bibtex for part in probes if part.text.bibtex)]),
            warnings=sum(notice.level == "warning" for findings in page.findings for notice in findings.notices),
            provenance=[(name, value) for name, value in _flat(page.provenance) if name != "sessions"],
            sessions=sessions_view(page.provenance.get("sessions", ())),
            look=json.dumps(config(PAGE), separators=(",", ":")),
            style=Markup(style),
            scripts=[Markup(script) for script in scripts],
            policy=security_policy(style=style, scripts=scripts),
        )
    )


def find_table(figure: Figure, findings: Findings) -> FindingTable:
    """Return the table that a figure draws; raise RecordsError if the findings have none of that name."""
    tables = {table.name: table for table in findings.tables}
    if figure.table not in tables:
        raise RecordsError(
            f"figure {figure.name!r} of {findings.probe!r} draws the table {figure.table!r}, which is not "
            f"among its findings: {nearest(figure.table, tables)}"
        )
    return tables[figure.table]


def _probe_part(findings: Findings, page: ReportPage, *, number: int) -> _ProbePart:
    files = page.files.get(findings.probe, {})
    unnamed = ProbeText(title=findings.probe.replace("_", " "), question="", paper="")
    rests: dict[str, list[Mapping[str, Any]]] = {}
    for row in (row for verdict in findings.verdicts for row in verdict.rows):
        rests.setdefault(row.table, []).append(row.labels)
    explained = Explained(findings.probe)
    terms = explained.new_in(findings.headlines)
    figures_of = {figure.name: explained.new_in(_texts_of(figure)) for figure in findings.figures}
    tables = {
        table.name: _TablePart(
            id=f"{number}-{i}",
            table=table,
            view=table_view(table, rows_shown=FOLDED if table.name in rests else UNSCRIPTED),
            file=files.get(table.name, ""),
            rests=tuple(rests.get(table.name, ())),
            terms=explained.new_in((table.title, table.caption)),
        )
        for i, table in enumerate(findings.tables, start=1)
    }
    figures = tuple(_figure_parts(findings, page, number=number, tables=tables, terms=figures_of))
    with_prompts = {
        part.table.table.name: (part.same_prompts or part).id for part in figures[::-1] if part.evidence
    }
    # a table that no figure draws rests on the same records as the audit's first figure with prompts
    anywhere = next((part.id for part in figures if part.evidence), "")
    return _ProbePart(
        name=findings.probe,
        text=page.probes.get(findings.probe, unnamed),
        findings=findings,
        figures=figures,
        tables=tuple(tables.values()),
        # what counts nothing is somebody else's, such as the numbers that a paper prints
        prompts={
            name: with_prompts.get(name, anywhere if any(row.n for row in part.table.rows) else "")
            for name, part in tables.items()
        },
        headlines=tuple(sorted(findings.headlines, key=lambda line: _turn(line, findings))),
        terms=terms,
    )


def _figure_parts(
    findings: Findings,
    page: ReportPage,
    *,
    number: int,
    tables: Mapping[str, _TablePart],
    terms: Mapping[str, tuple[Term, ...]],
) -> Iterator[_FigurePart]:
    evidence = page.evidence.get(findings.probe, {})
    settings = headline_settings(findings)
    shown: list[_FigurePart] = []  # those with prompts of their own
    # what has nothing to draw comes last, so that it is not among the open ones
    ordered = sorted(findings.figures, key=lambda each: not plot_data(each, find_table(each, findings)).rows)
    for i, figure in enumerate(ordered, start=1):
        prompts = evidence.get(figure.name)
        table = find_table(figure, findings)
        part = _FigurePart(
            id=f"{number}-{i}",
            number=str(i) if len(page.findings) == 1 else f"{number}.{i}",
            figure=figure,
            chart=chart(opened_at(figure, table, settings), table, colours=PAGE),
            table=tables[figure.table],
            evidence=prompts,
            same_prompts=next((other for other in shown if prompts and other.evidence == prompts), None),
            terms=terms[figure.name],
        )
        if prompts and not part.same_prompts:
            shown.append(part)
        yield part


def _turn(line: str, findings: Findings) -> int:
    """Order headlines: what was found, what was not, what could not be told."""
    leans = (verdict.sentence.rstrip(".") for verdict in findings.verdicts if verdict.state == "lean")
    return 0 if any(map(line.startswith, leans)) else 2 if NOT_TOLD in line else 1


def _tool_bibtex(page: ReportPage) -> str:
    """Return how this run is cited: Clinometer has no paper of its own."""
    packages = page.provenance.get("packages", {})
    release = str(packages.get("clinometer", "") if isinstance(packages, Mapping) else "")
    year = page.created[:4] if page.created[:4].isdigit() else ""
    fields = {
        "title": "{Clinometer}: which way does a language model lean?",
        "author": "{The Clinometer developers}",
        "version": release,
        "year": year,
        "note": f"Run {page.run_id}, {'digest' if page.sealed else 'findings'} {(page.digest or '-')[:16]}",
    }
    lines = (f"  {name:<7} = {{{value}}}" for name, value in fields.items() if value)
    return "@software{clinometer,\n" + ",\n".join(lines) + "\n}"


def _texts_of(figure: Figure) -> tuple[str, ...]:
    return (figure.title, figure.caption, figure.measure, *map(str, figure.filters.values()), *figure.menus)


def headline_settings(findings: Findings) -> dict[str, str | int | float]:
    """Return the labels of the row that the audit's first finding rests on; the charts open where they can."""
    told = [verdict for verdict in findings.verdicts if verdict.rows and verdict.state != "cannot tell"]
    first = next((verdict for verdict in told if verdict.state == "lean"), told[0] if told else None)
    return dict(first.rows[0].labels) if first else {}


def open_figures(numbers: Sequence[int]) -> list[int]:
    """Return how many figures of each audit are open: up to three each, eight in all, and one at least.

    >>> open_figures([8, 19, 6, 6, 11]), open_figures([5]), open_figures([0, 1, 4])
    ([2, 2, 2, 1, 1], [3], [0, 1, 3])
    """
    shown = [min(1, number) for number in numbers]
    for most in range(2, MOST_OF_ONE + 1):
        for place, number in enumerate(numbers):
            if sum(shown) < MOST_OPEN and number >= most:
                shown[place] = most
    return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsView:
    """Who computed a run in several sessions that differ: what differs, by name, and its value in each session."""

    times: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def sessions_view(sessions: Sequence[Mapping[str, Any]]) -> SessionsView | None:
    """Return what the reader must know about who computed; None where all sessions are alike.

    >>> one, other = {"recorded": "Monday", "torch": "2.1"}, {"recorded": "Tuesday", "torch": "2.2"}
    >>> sessions_view([one, other]).rows
    (('torch', ('2.1', '2.2')),)
    >>> sessions_view([one, {**one, "recorded": "Tuesday"}])
    """
    flat = [dict(_flat(session)) for session in sessions]
    names = [name for name in dict.fromkeys(name for each in flat for name in each) if name != "recorded"]
    rows = tuple((name, tuple(each.get(name, "–") for each in flat)) for name in names)
    differing = tuple((name, values) for name, values in rows if len(set(values)) > 1)
    times = tuple(each.get("recorded", "–") for each in flat)
    return SessionsView(times=times, rows=differing) if differing else None


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value with its path: machine.cores, packages.torch, …"""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value, default=str)


@functools.cache
def page_templates() -> jinja2.Environment:
    """Return the templates of our pages."""
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("clinometer.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        count=count_text, size=size_text, json_block=_json_block, breakable=_breakable, plain=_plain
    )
    templates.globals["mask"] = MASK
    return templates


def _breakable(name: str) -> Markup:
    """Let a name break after its marks, so that no line ends in the middle of a word where it need not.

    >>> str(_breakable("org/<b>-base"))
    'org/<wbr>&lt;b&gt;-<wbr>base'
    """
    return Markup("<wbr>").join(re.split(r"(?<=[-_/:.])(?=\w|<)", name))


def _plain(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return labels as the tables of the page hold them: JSON has no NaN, and one would stop the script."""
    return {name: json_number(value) if isinstance(value, float) else value for name, value in labels.items()}


def _json_block(value: object) -> Markup:
    """Write JSON that cannot end its script element, whatever text it holds."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


@functools.cache
def asset(name: str) -> str:
    """Return one of our scripts or style sheets."""
    return resources.files("clinometer.report").joinpath("assets", name).read_text(encoding="utf-8")


@functools.cache
def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, from the copy inside vl-convert.

    To bundle them takes two seconds, so the script of a release that we know is kept. What is in the cache is used
    only if it has the checksum that is written here: nobody can put another script into a report.
    """
    release = version("vl-convert-python")
    expected = _KNOWN_VEGA.get(release, "")
    kept = cache_folder() / "report" / f"vega-{release}.js"
    if expected and kept.is_file():
        with contextlib.suppress(OSError, UnicodeDecodeError):
            script = kept.read_text(encoding="utf-8")
            if hashlib.sha256(script.encode()).hexdigest() == expected:
                return script
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    script = bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    if hashlib.sha256(script.encode()).hexdigest() == expected:
        with contextlib.suppress(OSError, StoreError):  # a report can do without a cache
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(kept, script.encode(), run=kept.parent)
    return script


def security_policy(*, style: str, scripts: list[str]) -> str:
    """Return the policy of a page: these scripts and this style sheet, and nothing else."""
    allowed = " ".join(_hash(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
