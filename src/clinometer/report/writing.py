"""Reads a run folder and writes its report there."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from clinometer.errors import StoreError
from clinometer.report.evidence import check_evidence_filter, exchanges, matching, spread, with_tags
from clinometer.report.page import Evidence, Exchange, ProbeText, ReportPage
from clinometer.report.rendering import render
from clinometer.store import RunFolder, StageKey, findings_digest, write_atomically
from clinometer.types import Figure, Findings

PROMPTS = 60  # shown behind each figure


def write_report(
    run: RunFolder,
    *,
    probes: Mapping[str, ProbeText],
    findings: Sequence[Findings] | None = None,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> Path:
    """Write the report of a run into its folder and return where it is.

    `probes` says how each probe introduces itself; one that is not named is shown under its bare name. `findings`
    are those of the run where they are in memory; `roles` those of a run whose folder does not tell them.
    """
    html = render(read_page(run, probes=probes, findings=findings, roles=roles))
    write_atomically(run.report_path, html.encode("utf-8", "replace"), run=run.path)
    return run.report_path


def read_page(
    run: RunFolder,
    *,
    probes: Mapping[str, ProbeText],
    findings: Sequence[Findings] | None = None,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> ReportPage:
    """Read from the run folder all that its report shows."""
    found = tuple(run.read_findings() if findings is None else findings)
    spec = _parsed_spec(run)
    return ReportPage(
        run_id=run.run_id,
        created=_date(run.provenance.get("created")),
        profile=str(spec.get("profile", "standard")),
        seed=str(spec.get("seed", 0)),
        digest=findings_digest(found),
        models=run.models,
        assistants=run.assistants,
        roles=_roles(run, run.roles if roles is None else roles),
        probes=probes,
        findings=found,
        spec=run.spec,
        provenance=run.provenance,
        evidence=_evidence(run, found),
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
        return tomllib.loads(run.spec)
    except tomllib.TOMLDecodeError as error:
        raise StoreError(
            f"the spec of {run.path} is not TOML ({error}); put back the file that was there"
        ) from error


def _date(created: object) -> str:
    try:
        moment = datetime.datetime.fromisoformat(str(created))
    except ValueError:
        return "unknown"
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".strip()


def _evidence(run: RunFolder, found: Sequence[Findings]) -> dict[str, dict[str, Evidence]]:
    stages = run.stages()
    return {
        findings.probe: {
            name: evidence
            for stage in dict.fromkeys(figure.evidence for figure in findings.figures if figure.evidence)
            for name, evidence in _examples(
                run,
                keys=[key for key in stages if (key.probe, key.stage) == (findings.probe, stage)],
                figures=[figure for figure in findings.figures if figure.evidence == stage],
            )
        }
        for findings in found
    }


def _examples(
    run: RunFolder, *, keys: Sequence[StageKey], figures: Sequence[Figure]
) -> Iterator[tuple[str, Evidence]]:
    """Yield examples for each figure: as many of each model, and in all no more than a reader would look at."""
    wanted = {figure.name: [key for key in keys if _shows(figure, key)] for figure in figures}
    shown: dict[str, list[Exchange]] = {figure.name: [] for figure in figures}
    total = dict.fromkeys(shown, 0)
    tags = {key: [name for name in run.column_names(key) if name.startswith("tag_")] for key in keys}
    known = list(dict.fromkeys(name.removeprefix("tag_") for names in tags.values() for name in names))
    for figure in figures if keys else ():
        check_evidence_filter(figure, tags=known)
    for key in keys:
        # a stage can hold millions of records: choose by their tags, then read only those that are shown
        labels = run.table(key, columns=["index", *tags[key]])
        chosen: dict[str, list[int]] = {}
        for figure in figures:
            if key in wanted[figure.name]:
                behind = matching(with_tags(labels, figure), figure.filters)
                total[figure.name] += len(behind)
                room = max(1, PROMPTS // len(wanted[figure.name]))
                chosen[figure.name] = spread(behind, room)["index"].to_list()
        rows = run.table(key, indices=[index for indices in chosen.values() for index in indices])
        for name, indices in chosen.items():
            shown[name] += exchanges(rows.filter(pl.col("index").is_in(indices)), model=key.model)
    for name, places in wanted.items():
        if places:
            where = tuple(f"records/{key.folder.as_posix()}" for key in places)
            yield name, Evidence(shown=tuple(shown[name][:PROMPTS]), total=total[name], where=where)


def _shows(figure: Figure, key: StageKey) -> bool:
    return figure.filters.get("model", key.model) == key.model
