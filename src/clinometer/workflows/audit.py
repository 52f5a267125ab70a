"""Starting and resuming a run: ask every probe's questions, record the answers, conclude."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from clinometer.engine import AnswerCache, Progress, RequestIdentity, Silent, run_stage
from clinometer.engine.provenance import describe_machine
from clinometer.models.protocols import Model
from clinometer.probes import get_probe
from clinometer.probes.protocol import Plan, Probe
from clinometer.questions import items_of
from clinometer.spec import dump_spec, with_folders
from clinometer.store import RunFolder, StageKey, refuse_occupied
from clinometer.types import AuditSpec
from clinometer.workflows.checks import (
    check_capabilities,
    check_first_requests,
    check_place,
    check_roles,
    check_spec,
)
from clinometer.workflows.plans import RunRecords, plans_of, spec_of, with_inputs, with_roles, with_user_data
from clinometer.workflows.pool import Execution, ModelPool


def start_audit(
    spec: AuditSpec,
    folder: Path,
    *,
    loaded: Mapping[str, Model] | None = None,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> RunFolder:
    """Make a new run folder and complete it. `loaded` are models that are in memory already, by name."""
    spec = with_roles(with_user_data(with_folders(spec, base=Path.cwd())))
    check_spec(spec)
    refuse_occupied(folder)
    check_place(folder)
    kept, inputs = with_inputs(spec)
    execution = execution or Execution()
    progress = progress or Silent()
    pool = ModelPool(spec, loaded or {}, execution)
    pool.check_sources()
    infos = []
    for label in pool.labels:
        infos.append(replace(pool.get(label).info, name=label))
        if len(infos) <= len(spec.models):  # those beside them are asked later, about what is not known yet
            check_first_requests(pool.get(label), infos[-1], spec)
    check_roles(spec, infos)
    infos, beside = infos[: len(spec.models)], infos[len(spec.models) :]
    check_capabilities(spec, infos, progress)
    # only now: what cannot be asked leaves nothing behind
    machine = describe_machine(seed=spec.seed)
    run = RunFolder.create(
        folder, spec=dump_spec(kept), provenance=machine, models=infos, beside=beside, inputs=inputs
    )
    with run.lock():
        _complete(run, spec_of(run), pool, execution, progress)
    return run


def resume_audit(
    run: RunFolder,
    *,
    loaded: Mapping[str, Model] | None = None,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> RunFolder:
    """Complete a run: what is recorded and intact is kept, the rest is asked."""
    spec = spec_of(run)
    check_spec(spec)
    execution = execution or Execution()
    progress = progress or Silent()
    with run.lock():
        for part in run.set_aside_damaged():
            progress.note(f"{part.path}: {part.reason}; set aside, its requests are asked again")
        _complete(run, spec, ModelPool(spec, loaded or {}, execution), execution, progress)
    return run


def _complete(run: RunFolder, spec: AuditSpec, pool: ModelPool, execution: Execution, progress: Progress) -> None:
    cache = AnswerCache(execution.cache) if execution.cache else None
    try:
        for name in spec.probes:
            probe = get_probe(name)
            plans = plans_of(probe, spec, run)
            for plan in plans:
                _ask(probe, plan, run=run, pool=pool, cache=cache, progress=progress)
            progress.note(f"{name}: reading the answers")
            run.write_findings(probe.findings(plans, RunRecords(run, name)))
    finally:
        if cache is not None:
            cache.close()


def _ask(
    probe: Probe, plan: Plan, *, run: RunFolder, pool: ModelPool, cache: AnswerCache | None, progress: Progress
) -> None:
    records = RunRecords(run, probe.name)
    for stage in probe.stages(plan):
        answering = plan.answers(stage)
        key = StageKey(probe=probe.name, model=plan.model.name, stage=stage.name)
        done = run.done(key)
        total = stage.size or sum(1 for _ in items_of(probe.questions(stage, plan, records)))
        progress.begin(f"{probe.name} · {plan.model.name} · {stage.name}", total=total, done=min(len(done), total))
        run_stage(
            items_of(probe.questions(stage, plan, records)),
            run=run,
            key=key,
            done=done,
            identity=RequestIdentity(answering),
            worker=lambda answering=answering: pool.worker(answering),  # type: ignore[misc]
            cache=cache,
            progress=progress,
        )
        progress.end()
