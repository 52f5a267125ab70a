"""Whether a run is whole, and whether its findings follow from its records."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from clinometer.engine import RequestIdentity, count_missing
from clinometer.errors import StoreError
from clinometer.probes.protocol import Plan, Probe
from clinometer.questions import items_of
from clinometer.store import RunFolder, StageKey, compare_findings
from clinometer.types import Findings
from clinometer.workflows.checks import check_spec
from clinometer.workflows.plans import RunRecords, conclude, plans_of, probes_of, spec_of


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """A run to check; `probes` are audits that are neither built in nor installed."""

    run: RunFolder
    probes: tuple[Probe, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What is wrong with a run (nothing, when `problems` is empty), and what could not be compared (`notes`)."""

    problems: tuple[str, ...]
    records: int
    findings: int
    notes: tuple[str, ...] = ()


def run_verify(request: VerifyRequest) -> Verification:
    """Check every checksum, that every request has its answer, and that the findings follow from the records.

    Numbers are compared wherever stored and present estimator have one version, words only when this release
    wrote them. Reads only; needs no model and no torch.
    """
    run = request.run
    spec = spec_of(run)
    probes = probes_of(spec, given=request.probes)
    check_spec(spec, probes)
    damaged = [f"{part.path}: {part.reason}" for part in run.check()]
    if damaged:
        return Verification(problems=tuple(damaged), records=0, findings=0)
    problems: list[str] = []
    concluded: list[Findings] = []
    for name, probe in probes.items():
        plans = plans_of(probe, spec, run)
        missing = [lack for plan in plans if (lack := _missing(probe, plan, run))]
        if missing:
            problems += [f"{name}: {lack}" for lack in missing]
            problems.append(f"{name}: run `clinometer resume {run.path}` to complete it")
        else:
            concluded.append(conclude(probe, plans, run))
    records = sum(len(run.done(key)) for key in run.stages())
    wrong, notes = _compared(run, concluded)
    return Verification(problems=(*problems, *wrong), records=records, findings=len(concluded), notes=tuple(notes))


def _missing(probe: Probe, plan: Plan, run: RunFolder) -> str:
    """Say how many answers the first incomplete stage lacks; later stages depend on it. "": none."""
    for stage in probe.stages(plan):
        done = run.done(StageKey(probe=probe.name, model=plan.model.name, stage=stage.name))
        asked = itertools.count()
        items = items_of(probe.questions(stage, plan, RunRecords(run, probe.name)))
        counted = (item for item, _ in zip(items, asked, strict=False))
        identity = RequestIdentity(plan.answers(stage), version=run.key_version)
        if missing := count_missing(counted, identity=identity, done=done):
            return f"{plan.model.name}, {stage.name}: {missing:,} of {next(asked):,} answers are missing"
    return ""


def _compared(run: RunFolder, concluded: Sequence[Findings]) -> tuple[list[str], list[str]]:
    """Return what is wrong with the stored findings, and what could not be compared."""
    try:
        stored = {found.probe: found for found in run.read_findings()}
    except StoreError as error:
        return [str(error)], []
    problems, notes = [], []
    for found in concluded:
        if found.probe not in stored:
            problems.append(f"{found.probe}: findings are missing; run `clinometer resume {run.path}`")
            continue
        before = stored[found.probe]
        compared = compare_findings(before, found)
        problems += [
            f"{found.probe}: the stored findings are not those that follow from the records: {each}"
            for each in compared.numbers
        ]
        notes += [f"{found.probe}: made by an older estimator, not compared: {each}" for each in compared.versions]
        if compared.wording and before.release == found.release:
            problems.append(
                f"{found.probe}: {', '.join(compared.wording)}: not as release {found.release} words it, though "
                "it is named as the one that did"
            )
        elif compared.wording:
            by = f"release {before.release}" if before.release else "an earlier release"
            notes.append(f"{found.probe}: worded by {by}; its numbers were compared, its words were not")
    return problems, notes
