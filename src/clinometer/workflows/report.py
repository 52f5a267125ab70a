"""Writing the report of a run from its records and findings; needs no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from clinometer.errors import StoreError
from clinometer.probes import PROBES
from clinometer.probes.protocol import Probe
from clinometer.report import ProbeText, ReportPage, page_bytes, read_page, write_page
from clinometer.spec import parse_spec
from clinometer.store import RunFolder
from clinometer.types import Findings
from clinometer.workflows.plans import players_of, spec_of
from clinometer.workflows.reading import reading_of


def report_run(
    run: RunFolder,
    *,
    findings: Sequence[Findings] | None = None,
    probes: Mapping[str, Probe] | None = None,
) -> Path:
    """Write the page; `findings` saves reading them again, `probes` are audits that are not registered."""
    run.require_documents()
    return write_page(run, _page(run, findings, probes or {}))


def page_of(run: RunFolder, *, probes: Mapping[str, Probe]) -> bytes:
    """Return the page as `report_run` would write it."""
    return page_bytes(_page(run, None, probes))


def _page(run: RunFolder, findings: Sequence[Findings] | None, probes: Mapping[str, Probe]) -> ReportPage:
    found = _asked_for(run, run.read_findings()) if findings is None else findings
    texts = {}
    for each in found:
        probe = probes.get(each.probe) or PROBES.get(each.probe)
        if probe is not None:  # somebody else's audit, not installed here, is shown under its bare name
            reading = reading_of(probe)
            texts[each.probe] = ProbeText(
                title=probe.title,
                question=probe.question,
                paper=probe.paper,
                data=probe.sources,
                how=reading.how,
                not_shown=reading.not_shown,
                bibtex=reading.bibtex,
            )
    return read_page(run, probes=texts, findings=sorted(found, key=lambda each: each.probe), roles=_roles_of(run))


def _asked_for(run: RunFolder, found: Sequence[Findings]) -> Sequence[Findings]:
    """Return findings after seeing that the spec names every audit that they are from."""
    named = parse_spec(run.spec, origin=str(run.path / "spec.toml")).probes
    for each in found:
        if each.probe not in named:
            raise StoreError(
                f"{run.path} has findings of {each.probe!r}, an audit that its spec does not name; remove them"
            )
    return found


def _roles_of(run: RunFolder) -> Mapping[str, Sequence[str]]:
    if run.format > 1:
        return run.roles
    players = players_of(spec_of(run), (*run.models, *run.assistants))  # format 1: the spec alone knows
    return {role: [info.name for info in known] for role, known in players.items()}
