"""Writing the report of a run from its records and findings; needs no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from clinometer.probes import PROBES
from clinometer.probes.protocol import Probe
from clinometer.report import ProbeText, write_report
from clinometer.store import RunFolder
from clinometer.types import Findings
from clinometer.workflows.plans import players_of, spec_of


def report_run(
    run: RunFolder,
    *,
    findings: Sequence[Findings] | None = None,
    probes: Mapping[str, Probe] | None = None,
) -> Path:
    """Write the page; `findings` saves reading them again, `probes` are audits that are not registered."""
    run.require_documents()
    found = run.read_findings() if findings is None else findings
    texts = {}
    for each in found:
        probe = (probes or {}).get(each.probe) or PROBES.get(each.probe)
        if probe is not None:  # somebody else's audit, not installed here, is shown under its bare name
            texts[each.probe] = ProbeText(
                title=probe.title, question=probe.question, paper=probe.paper, data=probe.sources
            )
    return write_report(
        run, probes=texts, findings=sorted(found, key=lambda each: each.probe), roles=_roles_of(run)
    )


def _roles_of(run: RunFolder) -> Mapping[str, Sequence[str]]:
    if run.format > 1:
        return run.roles
    players = players_of(spec_of(run), (*run.models, *run.assistants))  # format 1: the spec alone knows
    return {role: [info.name for info in known] for role, known in players.items()}
