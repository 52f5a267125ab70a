"""Writes the report of a run, and its figures for a paper."""

from __future__ import annotations

import datetime
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clinometer.errors import InputError, StoreError
from clinometer.limits import parse_toml
from clinometer.report.chart_style import PAPER
from clinometer.report.charts import Chart, chart
from clinometer.report.evidence import read_evidence
from clinometer.report.painting import Format, NotPainted, Painter
from clinometer.report.plot_data import plot_data
from clinometer.report.rendering import ProbeText, ReportPage, find_table, render
from clinometer.report.rounding import label_text
from clinometer.store import RunFolder, findings_digest, write_atomically
from clinometer.types import Figure, Findings, FindingTable

WIDTH = 640  # in pixels, 72 to the inch
SCALE = 3.0  # a PNG has this many times the pixels
LONGEST_NAME = 60  # characters of one part of a file name


def write_report(
    run: RunFolder,
    *,
    probes: Mapping[str, ProbeText],
    findings: Sequence[Findings] | None = None,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> Path:
    """Write the report of a run into its folder and return its path.

    `probes` says how each probe introduces itself; one that is missing is shown by its bare name. `findings` saves
    reading them from disk. `roles` is for old runs, whose folder does not record them.
    """
    return write_page(run, read_page(run, probes=probes, findings=findings, roles=roles))


def write_page(run: RunFolder, page: ReportPage) -> Path:
    """Write a page into the folder of its run, or beside its bundle, and return its path."""
    place = run.report_path
    if run.origin is not None:
        place = run.origin.with_name(f"{run.origin.name.removesuffix('.zip')}.{run.report_path.name}")
    write_atomically(place, page_bytes(page), run=run.path)
    return place


def page_bytes(page: ReportPage) -> bytes:
    """Return a page as it is written: the same bytes for the same run and release."""
    return render(page).encode("utf-8", "replace")


def read_page(
    run: RunFolder,
    *,
    probes: Mapping[str, ProbeText],
    findings: Sequence[Findings] | None = None,
    roles: Mapping[str, Sequence[str]] | None = None,
    evidence: bool = True,
) -> ReportPage:
    """Read what the report shows from the run folder; without `evidence`, no records are read."""
    found = tuple(run.read_findings() if findings is None else findings)
    spec = _parsed_spec(run)
    return ReportPage(
        run_id=run.run_id,
        created=_date(run.provenance.get("created")),
        profile=str(spec.get("profile", "standard")),
        seed=str(spec.get("seed", 0)),
        digest=run.digest or findings_digest(found),
        sealed=bool(run.digest),
        models=run.models,
        assistants=run.assistants,
        roles=_roles(run, run.roles if roles is None else roles),
        probes=probes,
        findings=found,
        spec=run.spec,
        provenance=run.provenance,
        evidence=read_evidence(run, found) if evidence else {},
        files={
            findings.probe: {
                table.name: f"findings/{findings.probe}/{table.name}.csv" for table in findings.tables
            }
            for findings in found
        },
    )


def _roles(run: RunFolder, roles: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Say what each model does in the run."""
    return {
        info.name: ", ".join(
            [
                *(["audited"] if info in run.models else []),
                *(role for role, names in roles.items() if info.name in names),
            ]
        )
        for info in (*run.models, *run.assistants)
    }


def _parsed_spec(run: RunFolder) -> dict[str, Any]:
    try:
        return parse_toml(run.spec)
    except ValueError as error:
        raise StoreError(
            f"the spec of {run.path} is not TOML ({error}); put back the file that was there"
        ) from error


def _date(created: object) -> str:
    try:
        moment = datetime.datetime.fromisoformat(str(created))
    except ValueError:
        return "unknown"
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".strip()


def save_figures(
    run: RunFolder, folder: str | Path, *, formats: Sequence[Format] = ("png", "svg")
) -> tuple[Path, ...]:
    """Save every figure of a run for a paper, one file per choice of its menus, and return the files.

    A figure that cannot be drawn is left out; StoreError names it once the others are saved.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from error
    saved, failed = [], []
    with Painter() as painter:
        for name, drawn in _drawn(run):
            for form in formats:
                path = folder / f"{name}.{form}"
                try:
                    picture = painter.paint(drawn.whole(), form, scale=SCALE)
                except NotPainted as error:
                    failed.append(f"{path.name} cannot be drawn: {error}")
                    continue
                try:
                    path.write_bytes(picture)
                except OSError as error:
                    raise _not_writable(path, error) from error
                saved.append(path)
    if failed:
        others = f"; {len(failed) - 1} more cannot be drawn, either" if len(failed) > 1 else ""
        raise StoreError(f"{failed[0]}{others}; {len(saved)} pictures were saved to {folder}")
    return tuple(saved)


def _drawn(run: RunFolder) -> Iterator[tuple[str, Chart]]:
    """Yield every chart that has something to draw, with the name of its file."""
    taken: Counter[str] = Counter()  # two long labels may be cut to the same file name
    for findings in run.read_findings():
        for figure in findings.figures:
            table = find_table(figure, findings)
            for chosen in _menu_choices(figure, table):
                drawn = chart(chosen, table, colours=PAPER, width=WIDTH)
                if not drawn.drawn:
                    continue
                name = _file_name(findings.probe, figure, chosen)
                taken[name] += 1
                yield name + (f"-{taken[name]}" if taken[name] > 1 else ""), drawn


def _not_writable(path: Path, error: OSError) -> InputError:
    why = "it is a file" if isinstance(error, FileExistsError) else error.strerror
    return InputError(f"figures cannot be saved to {path}: {why}; give a folder that can be written")


def _menu_choices(figure: Figure, table: FindingTable) -> Iterator[Figure]:
    """Yield the figure once for every choice of its menus, because paper has no menus."""
    values = plot_data(figure, table).values
    for choice in itertools.product(*(values.get(menu, ()) for menu in figure.menus)):
        chosen = dict(zip(figure.menus, choice, strict=True))
        yield replace(figure, filters={**figure.filters, **chosen}, menus=())


def _file_name(probe: str, figure: Figure, chosen: Figure) -> str:
    parts = [probe, figure.name, *(f"{menu}={label_text(chosen.filters[menu])}" for menu in figure.menus)]
    return "-".join(re.sub(r"[^\w=.]+", "_", part)[:LONGEST_NAME] for part in parts)
