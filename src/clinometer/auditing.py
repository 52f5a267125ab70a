"""An audit from spec to findings: the one place where probes, engine and store meet."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from clinometer.engine import (
    AnswerCache,
    LocalExecutor,
    Progress,
    RequestIdentity,
    Silent,
    Worker,
    count_missing,
    default_budget,
    run_stage,
)
from clinometer.engine.provenance import describe_machine
from clinometer.errors import ModelError, SpecError, StoreError
from clinometer.models.load import check_model, load_model
from clinometer.models.protocols import Model
from clinometer.probes import PROBES, get_probe
from clinometer.probes.protocol import Plan, Probe
from clinometer.spec import build, dump_spec, parse_spec, with_files
from clinometer.store import INPUTS, RunFolder, StageKey, refuse_occupied, same_findings
from clinometer.types import AuditSpec, Findings, ModelInfo, ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How a run is computed. Nothing here may change a finding."""

    device: str = "auto"
    batch_tokens: int = 0  # padded tokens in one batch; 0 chooses by device
    cache: Path | None = None  # a folder of answers shared between runs


def start_audit(
    spec: AuditSpec,
    folder: Path,
    *,
    loaded: Mapping[str, Model] | None = None,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> RunFolder:
    """Make a new run folder and complete it. `loaded` are models that are in memory already, by name."""
    check_spec(spec)
    refuse_occupied(folder)
    kept, inputs = _with_inputs(spec)
    execution = execution or Execution()
    pool = _ModelPool(spec, loaded or {}, execution)
    pool.check_sources()
    # loaded before the folder is made: a model that cannot be used leaves nothing behind
    infos = [replace(pool.get(label).info, name=label) for label in pool.labels]
    for name in spec.probes:
        for info in infos:
            _check_capabilities(get_probe(name), info)
    machine = describe_machine(seed=spec.seed)
    run = RunFolder.create(folder, spec=dump_spec(kept), provenance=machine, models=infos, inputs=inputs)
    with run.lock():
        _complete(run, _spec_of(run), pool, execution, progress or Silent())
    return run


def resume_audit(
    run: RunFolder,
    *,
    loaded: Mapping[str, Model] | None = None,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> RunFolder:
    """Complete a run: what is recorded and intact is kept, the rest is asked."""
    spec = _spec_of(run)
    execution = execution or Execution()
    progress = progress or Silent()
    pool = _ModelPool(spec, loaded or {}, execution)
    with run.lock():
        for part in run.set_aside_damaged():
            progress.note(f"{part.path}: {part.reason}; set aside, its requests are asked again")
        _complete(run, spec, pool, execution, progress)
    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What is wrong with a run; empty when everything holds."""

    problems: tuple[str, ...]
    records: int
    findings: int


def verify_audit(run: RunFolder) -> Verification:
    """Check every checksum, that every request has its answer, and that the findings follow from the records.

    Reads only; needs no model and no torch.
    """
    problems = [f"{part.path}: {part.reason}" for part in run.check()]
    spec = _spec_of(run)
    records = 0
    findings: dict[str, Findings] = {}
    for name in spec.probes if not problems else ():
        probe = get_probe(name)
        plans = _plans(probe, spec, run)
        missing = 0
        for plan in plans:
            for stage in probe.stages(plan):
                key = StageKey(probe=name, model=plan.model.name, stage=stage.name)
                done = run.done(key)
                records += len(done)
                items = probe.requests(stage, plan, _RunRecords(run, name))
                missing += count_missing(items, identity=RequestIdentity(plan.model), done=done)
        if missing:
            problems.append(
                f"{name}: {missing} requests have no intact answer; run `clinometer resume {run.path}`"
            )
        else:
            findings[name] = probe.summarise(plans, _RunRecords(run, name))
    try:
        stored = {found.probe: found for found in run.read_findings()}
    except StoreError as error:
        stored = {}
        problems.append(str(error))
    for name, found in findings.items():
        if name in stored and not same_findings(stored[name], found):
            problems.append(f"{name}: the stored findings are not those that follow from the records")
        elif name not in stored:
            problems.append(f"{name}: findings are missing; run `clinometer resume {run.path}`")
    return Verification(problems=tuple(problems), records=records, findings=len(findings))


def check_spec(spec: AuditSpec) -> None:
    """Raise SpecError for whatever is wrong with a spec that is well-formed."""
    if not spec.probes:
        raise SpecError(f"the list of probes is empty; valid: {', '.join(sorted(PROBES))}")
    if not spec.models:
        raise SpecError("the list of models is empty; name at least one, such as builtin:causal")
    for kind, names in (("probe", spec.probes), ("model", _labels(spec.models))):
        repeated = [name for name, count in collections.Counter(names).items() if count > 1]
        if repeated:
            raise SpecError(f"{kind} {repeated[0]!r} is named twice; name it once")
    for name in spec.probes:
        probe = get_probe(name)
        probe.check(probe_options(probe, spec))
    for name in spec.options:
        get_probe(name)
        if name not in spec.probes:
            raise SpecError(f"there are options for {name!r}, which this audit does not run; add it to the probes")


def probe_options(probe: Probe, spec: AuditSpec) -> Any:
    """Return the probe's options: its defaults, then what the profile sets, then what the user says."""
    values = {**probe.profiles[spec.profile], **spec.options.get(probe.name, {})}
    return build(probe.options, values, where=f"options.{probe.name}")


def _with_inputs(spec: AuditSpec) -> tuple[AuditSpec, dict[str, bytes]]:
    """Return the spec with its files inside the run folder, and those files: a run must stand on its own."""
    inputs: dict[str, bytes] = {}

    def keep(file: str) -> str:
        name = f"{len(inputs) + 1}-{Path(file).name}"
        inputs[name] = Path(file).read_bytes()
        return f"{INPUTS}/{name}"

    return with_files(spec, keep), inputs


def _spec_of(run: RunFolder) -> AuditSpec:
    spec = parse_spec(run.spec, origin=str(run.path / "spec.toml"))
    spec = with_files(spec, lambda file: str(run.path / file))
    check_spec(spec)
    return spec


def _complete(run: RunFolder, spec: AuditSpec, pool: _ModelPool, execution: Execution, progress: Progress) -> None:
    cache = AnswerCache(execution.cache) if execution.cache else None
    try:
        for name in spec.probes:
            probe = get_probe(name)
            plans = _plans(probe, spec, run)
            for plan in plans:
                _ask(probe, plan, run=run, pool=pool, cache=cache, progress=progress)
            progress.note(f"{name}: reading the answers")
            run.write_findings(probe.summarise(plans, _RunRecords(run, name)))
    finally:
        if cache is not None:
            cache.close()


def _ask(
    probe: Probe, plan: Plan, *, run: RunFolder, pool: _ModelPool, cache: AnswerCache | None, progress: Progress
) -> None:
    records = _RunRecords(run, probe.name)
    identity = RequestIdentity(plan.model)
    for stage in probe.stages(plan):
        key = StageKey(probe=probe.name, model=plan.model.name, stage=stage.name)
        total = sum(1 for _ in probe.requests(stage, plan, records))
        missing = count_missing(probe.requests(stage, plan, records), identity=identity, done=run.done(key))
        progress.begin(f"{probe.name} · {plan.model.name} · {stage.name}", total=total, done=total - missing)
        if missing:
            run_stage(
                probe.requests(stage, plan, records),
                run=run,
                key=key,
                identity=identity,
                worker=lambda: pool.worker(plan.model),
                cache=cache,
                progress=progress,
            )
        progress.end()


def _plans(probe: Probe, spec: AuditSpec, run: RunFolder) -> list[Plan]:
    options = probe_options(probe, spec)
    known = {info.name: info for info in run.models}
    return [Plan(options=options, seed=spec.seed, model=known[label]) for label in _labels(spec.models)]


def _labels(models: Sequence[ModelSpec]) -> list[str]:
    """Name each model so that one that is audited in two dtypes has two names."""
    count = collections.Counter(model.name for model in models)
    return [model.name if count[model.name] == 1 else f"{model.name} ({model.dtype})" for model in models]


def _check_capabilities(probe: Probe, info: ModelInfo) -> None:
    if not set(probe.capabilities) & set(info.capabilities):
        raise ModelError(
            f"the audit {probe.name!r} needs a model that offers {' or '.join(probe.capabilities)}; "
            f"{info.name} is a {info.kind} model and offers {', '.join(info.capabilities)}"
        )


class _RunRecords:
    """What a probe sees of the run folder."""

    def __init__(self, run: RunFolder, probe: str) -> None:
        self._run = run
        self._probe = probe

    def table(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        return self._run.table(StageKey(probe=self._probe, model=model, stage=stage), columns=columns)


_MUST_STAY = {"weights": "the weights", "tokenizer": "the tokenizer", "dtype": "the dtype", "code": "the adapter"}


class _ModelPool:
    """Loads the models of a run when they are first needed, and holds one at a time."""

    def __init__(self, spec: AuditSpec, loaded: Mapping[str, Model], execution: Execution) -> None:
        self.labels = _labels(spec.models)
        self._specs = dict(zip(self.labels, spec.models, strict=True))
        self._given = loaded
        self._execution = execution
        self._current: tuple[str, Model] | None = None
        self._worker: tuple[str, Worker] | None = None

    def check_sources(self) -> None:
        """Fail on a model that does not exist before the first one is loaded."""
        for label, spec in self._specs.items():
            if label not in self._given:
                check_model(spec)

    def get(self, label: str) -> Model:
        """Return the loaded model; the one held before is let go."""
        if label in self._given:
            return self._given[label]
        if self._current is None or self._current[0] != label:
            self._current = self._worker = None  # before loading: two large models may not fit together
            self._current = (label, load_model(self._specs[label], device=self._execution.device))
        return self._current[1]

    def worker(self, expected: ModelInfo) -> Worker:
        """Return the model ready for work; it must be the one with which the run began."""
        model = self.get(expected.name)
        if self._worker is None or self._worker[0] != expected.name:
            for field, what in _MUST_STAY.items():
                was, now = getattr(expected, field), getattr(model.info, field)
                if was != now:
                    raise ModelError(
                        f"{what} of {expected.name} changed since this run began "
                        f"({was[:12]} then, {now[:12]} now): "
                        "start a new run with `clinometer audit`"
                    )
            tokens = self._execution.batch_tokens or default_budget(self._execution.device)
            self._worker = (
                expected.name,
                Worker(model=model, executor=LocalExecutor(model), batch_tokens=tokens),
            )
        return self._worker[1]
