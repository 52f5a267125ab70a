"""Whether a run is whole, and whether its findings follow from its records."""

from __future__ import annotations

from dataclasses import dataclass

from clinometer.engine import RequestIdentity, count_missing
from clinometer.errors import StoreError
from clinometer.probes import get_probe
from clinometer.probes.protocol import Plan, Probe
from clinometer.questions import items_of
from clinometer.store import RunFolder, StageKey, same_findings
from clinometer.types import Findings
from clinometer.workflows.checks import check_spec
from clinometer.workflows.plans import RunRecords, plans_of, spec_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What is wrong with a run; `problems` is empty when everything holds."""

    problems: tuple[str, ...]
    records: int
    findings: int


def verify_audit(run: RunFolder) -> Verification:
    """Check every checksum, that every request has its answer, and that the findings follow from the records.

    Reads only; needs no model and no torch.
    """
    spec = spec_of(run)
    check_spec(spec)
    damaged = [f"{part.path}: {part.reason}" for part in run.check()]
    if damaged:
        return Verification(problems=tuple(damaged), records=0, findings=0)
    problems: list[str] = []
    records = 0
    concluded: list[Findings] = []
    for name in spec.probes:
        probe = get_probe(name)
        plans = plans_of(probe, spec, run)
        missing = sum(_missing(probe, plan, run) for plan in plans)
        if missing:
            problems.append(f"{name}: {missing} answers are missing; run `clinometer resume {run.path}`")
        else:
            concluded.append(probe.findings(plans, RunRecords(run, name)))
    records = sum(len(run.done(key)) for key in run.stages())
    problems += _findings_problems(run, concluded)
    return Verification(problems=tuple(problems), records=records, findings=len(concluded))


def _missing(probe: Probe, plan: Plan, run: RunFolder) -> int:
    """Count the answers that the first incomplete stage lacks; later stages depend on it."""
    for stage in probe.stages(plan):
        done = run.done(StageKey(probe=probe.name, model=plan.model.name, stage=stage.name))
        items = items_of(probe.questions(stage, plan, RunRecords(run, probe.name)))
        if missing := count_missing(items, identity=RequestIdentity(plan.answers(stage)), done=done):
            return missing
    return 0


def _findings_problems(run: RunFolder, concluded: list[Findings]) -> list[str]:
    try:
        stored = {found.probe: found for found in run.read_findings()}
    except StoreError as error:
        return [str(error)]
    problems = []
    for found in concluded:
        if found.probe not in stored:
            problems.append(f"{found.probe}: findings are missing; run `clinometer resume {run.path}`")
        elif not same_findings(stored[found.probe], found):
            problems.append(f"{found.probe}: the stored findings are not those that follow from the records")
    return problems
