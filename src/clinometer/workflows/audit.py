"""Starting and resuming a run: ask every probe's questions, record the answers, conclude, report."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clinometer import __version__
from clinometer.engine import (
    KEY_VERSION,
    WINDOW,
    AnswerCache,
    Progress,
    RequestIdentity,
    Silent,
    run_stage,
)
from clinometer.engine.provenance import describe_machine, describe_session, with_time
from clinometer.errors import AwaitedError, InputError, PoisonedError
from clinometer.models.protocols import Call, Model
from clinometer.probes.protocol import Plan, Probe, Stage, questions_version
from clinometer.questions import Items, in_windows
from clinometer.results import Run
from clinometer.spec import dump_spec, with_folders
from clinometer.store import RunFolder, RunModels, StageKey, refuse_occupied, working_folder
from clinometer.store.remote import address_of
from clinometer.types import AuditSpec, Findings, ModelInfo
from clinometer.workflows.checks import (
    FirstQuestions,
    check_addresses,
    check_capabilities,
    check_place,
    check_roles,
    check_spec,
)
from clinometer.workflows.cohort import COHORT, compare_cohort
from clinometer.workflows.places import with_places, without_places
from clinometer.workflows.plans import (
    RunRecords,
    conclude,
    other_questions,
    plans_of,
    players_of,
    probes_of,
    spec_of,
    stages_of,
    with_inputs,
    with_roles,
    with_user_data,
)
from clinometer.workflows.pool import Execution, ModelPool
from clinometer.workflows.report import report_run
from clinometer.workflows.side_by_side import SharedProgress, side_by_side

_ACCEPTED = "accepted_code_changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """A new audit: what to ask, where the run goes, and how it is computed."""

    spec: AuditSpec
    folder: Path
    models: Mapping[str, Model] = field(default_factory=dict)  # those in memory, by name
    probes: tuple[Probe, ...] = ()  # those that are neither built in nor installed
    execution: Execution = field(default_factory=Execution)
    cohort: bool = False  # whether the run ends in a comparison of its models


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequest:
    """A run to complete; `models` and `probes` are those that only exist in memory.

    `trusted` are the models whose own code may run. The spec of the run is not asked: it may come from a stranger.
    """

    run: RunFolder
    trusted: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)  # where folders of models are now, by their labels
    accept_code_change: bool = False  # go on though the code that answers is another by now
    models: Mapping[str, Model] = field(default_factory=dict)
    probes: tuple[Probe, ...] = ()
    execution: Execution = field(default_factory=Execution)


def run_audit(request: AuditRequest, *, progress: Progress | None = None) -> Run:
    """Make a new run folder, complete it and write its report; one on shared storage is worked on here."""
    if address_of(request.folder):
        with working_folder(request.folder, new=True) as folder:
            return run_audit(replace(request, folder=folder), progress=progress)
    progress = progress or Silent()
    spec = with_folders(request.spec, base=Path.cwd())
    probes = probes_of(spec, given=request.probes)
    spec = with_roles(with_user_data(spec, probes), probes)
    check_spec(spec, probes)
    refuse_occupied(request.folder)
    check_place(request.folder)
    kept, inputs = with_inputs(spec)
    kept, places = without_places(kept)
    pool = ModelPool(spec, request.models, request.execution)
    pool.check_sources()
    infos: list[ModelInfo] = []
    first = FirstQuestions(spec, probes)
    for label in pool.labels:
        model = pool.look_at(label)
        infos.append(replace(model.info, name=label))
        if len(infos) <= len(spec.models):  # assistants are asked later, about what is not known yet
            first.check(model, infos[-1])
    check_roles(spec, probes, infos)
    players = players_of(spec, infos)
    models = RunModels(
        audited=tuple(infos[: len(spec.models)]),
        assistants=tuple(infos[len(spec.models) :]),
        roles={role: tuple(info.name for info in known) for role, known in players.items()},
    )
    check_capabilities(probes, models.audited, progress)
    # only now: what cannot be asked leaves nothing behind
    run = RunFolder.create(
        request.folder,
        spec=dump_spec(kept),
        provenance={
            "key_version": KEY_VERSION,
            "questions": {name: questions_version(probe) for name, probe in probes.items()},
            **({COHORT: True} if request.cohort and len(models.audited) > 1 else {}),
            **describe_machine(seed=spec.seed, release=__version__),
        },
        models=models,
        inputs=inputs,
        places=places,
    )
    with run.lock(), contextlib.closing(pool):
        found = _Completion(run, spec_of(run), probes, pool, progress, first).complete(request.execution.cache)
        report_run(run, findings=found, probes=probes)
        compare_cohort(run, probes=probes.values(), progress=progress)
    return Run(run, found)


def run_resume(request: ResumeRequest, *, progress: Progress | None = None) -> Run:
    """Complete a run and write its report: what is recorded and intact is kept, the rest is asked."""
    progress = progress or Silent()
    run = request.run
    run.refuse_bundle()
    run.require_documents()
    spec = with_places(spec_of(run), run.path, given=request.places)
    probes = probes_of(spec, given=request.probes)
    check_spec(spec, probes)
    check_addresses(spec)
    for name, probe in probes.items():
        if older := other_questions(run, probe):
            raise InputError(f"{name} was {older}; complete the run with that release, or start a new one")
    with run.lock():
        for part in run.set_aside_damaged():
            progress.note(f"{part.path}: {part.reason}; set aside, its requests are asked again")
        pool = ModelPool(
            spec,
            request.models,
            request.execution,
            trusted=request.trusted,
            accept_code_change=request.accept_code_change,
        )
        pool.keep_threads(run.sessions[-1].get("threads") if run.sessions else None)
        with contextlib.closing(pool):
            found = _Completion(run, spec, probes, pool, progress, None).complete(request.execution.cache)
        report_run(run, findings=found, probes=probes)
        compare_cohort(run, probes=probes.values(), progress=progress)
    return Run(run, found)


@dataclass(slots=True)
class _Chain:
    """The stages of one probe for one model that are still to be asked; each may depend on the one before."""

    probe: Probe
    plan: Plan
    stages: deque[Stage]
    waits: bool = False  # for answers that only the owner of the model can give, or nobody

    @property
    def answering(self) -> ModelInfo:
        """Who answers the next stage."""
        return self.plan.answers(self.stages[0])


@dataclass(slots=True)
class _Completion:
    """Asks what is missing, in an order that needs each model once, and concludes."""

    run: RunFolder
    spec: AuditSpec
    probes: Mapping[str, Probe]
    pool: ModelPool
    progress: Progress
    first: FirstQuestions | None
    session: dict[str, Any] | None = None
    awaited: dict[str, list[Call]] = field(default_factory=dict)
    poisoned: list[PoisonedError] = field(default_factory=list)
    lock: Any = field(default_factory=threading.RLock)  # several stages may be asked at once …
    sending: Any = field(default_factory=threading.Lock)  # … but one of those that are asked call by call

    def complete(self, cache_folder: Path | None) -> tuple[Findings, ...]:
        """Return what every probe concludes, in the order of the spec."""
        self.run.unseal()
        plans = {name: plans_of(probe, self.spec, self.run) for name, probe in self.probes.items()}
        chains = [
            _Chain(self.probes[name], plan, deque(self.probes[name].stages(plan)))
            for name in plans
            for plan in plans[name]
        ]
        concluded: dict[str, Findings] = {}
        # a cache would hand the answers of changed code to other runs, under the identity of the old
        cache = AnswerCache(cache_folder) if cache_folder and not self.pool.accepts_code_change else None
        try:
            while True:
                self._conclude_complete(chains, plans, concluded)
                waiting = [chain for chain in chains if chain.stages and not chain.waits]
                if not waiting:
                    if self.poisoned:
                        raise PoisonedError("; ".join(map(str, self.poisoned)))
                    self.pool.finish_written(self.awaited, self.run, self.progress)
                    self.run.seal(probes=self.probes, stages=stages_of(self.probes, plans))
                    return tuple(concluded[name] for name in self.probes)
                if self.pool.elsewhere is not None and cache is None:
                    self._ask_side_by_side(waiting, lambda: self._conclude_complete(chains, plans, concluded))
                    continue
                label = self._next_model(waiting)
                for chain in waiting:
                    while chain.stages and not chain.waits and chain.answering.name == label:
                        self._ask_next(chain, cache, self.progress)
        finally:
            if cache is not None:
                cache.close()

    def _ask_side_by_side(self, waiting: list[_Chain], finished: Callable[[], None]) -> None:
        """Ask several stages at once, the chains of one model after those of the other."""
        cluster = self.pool.elsewhere
        assert cluster is not None
        shared = SharedProgress(self.progress)

        def ask(chain: _Chain) -> None:
            while chain.stages and not chain.waits:
                self._ask_next(chain, None, shared.stage())

        side_by_side(
            sorted(waiting, key=lambda chain: self.pool.labels.index(chain.plan.model.name)),
            ask,
            at_once=cluster.at_once,
            finished=lambda _: finished(),
            meanwhile=lambda: shared.workers(cluster),
            stop=cluster.close,
        )

    def _ask_next(self, chain: _Chain, cache: AnswerCache | None, progress: Progress) -> None:
        """Ask the next stage of a chain; one that cannot be completed now stops its chain, and no other."""
        alone = self.sending if self.pool.is_sent(chain.answering.name) else contextlib.nullcontext()
        try:
            with alone:
                self._ask(chain.probe, chain.plan, chain.stages[0], cache, progress)
        except AwaitedError as error:
            self.awaited.setdefault(chain.answering.name, []).extend(error.calls)
            chain.waits = True
        except PoisonedError as error:
            stage = f"{chain.probe.name} · {chain.plan.model.name} · {chain.stages[0].name}"
            progress.note(f"{stage}: {error}")
            self.poisoned.append(PoisonedError(f"{stage}: {error}"))
            chain.waits = True
        else:
            chain.stages.popleft()

    def _conclude_complete(
        self, chains: list[_Chain], plans: Mapping[str, list[Plan]], concluded: dict[str, Findings]
    ) -> None:
        """Conclude the audits of which every stage is answered."""
        for name, probe in self.probes.items():
            if name not in concluded and not any(c.stages for c in chains if c.probe.name == name):
                concluded[name] = self._conclude(probe, plans[name])

    def _next_model(self, waiting: list[_Chain]) -> str:
        """Choose whose turn it is: models under audit come first, so that an assistant is needed once."""
        audited = {info.name for info in self.run.models}
        labels = {chain.answering.name for chain in waiting}
        return min(
            labels, key=lambda name: (name not in audited, not self.pool.holds(name), self.pool.labels.index(name))
        )

    def _ask(self, probe: Probe, plan: Plan, stage: Stage, cache: AnswerCache | None, progress: Progress) -> None:
        answering = plan.answers(stage)
        key = StageKey(probe=probe.name, model=plan.model.name, stage=stage.name)
        done = self.run.done(key)
        windows = self._windows(probe, plan, stage)
        if (first := next(windows, None)) is None:  # such as when no answer of the stage before can be used
            return
        # 0 where more than a window must be made to know
        total = stage.size or (len(first) if len(first) < WINDOW else 0)
        label = f"{probe.name} · {plan.model.name} · {stage.name}"
        progress.begin(label, total=total, done=min(len(done), total) if total else len(done))
        run_stage(
            itertools.chain([first], windows),
            run=self.run,
            key=key,
            done=done,
            identity=RequestIdentity(answering, version=self.run.key_version),
            worker=lambda: self.pool.worker(answering),
            cache=cache if answering.family != "answers" else None,  # a file answers faster, and may change
            progress=progress,
            by=self._session,
        )
        self.run.compact(key)
        progress.end()

    def _session(self) -> Mapping[str, Any]:
        """Say who computes. Asked when a part is about to be written; the first time, the run records it."""
        with self.lock:
            there = self.pool.elsewhere.session() if self.pool.elsewhere else {}
            known = self.session or {}
            if known and known.get(_ACCEPTED, {}) == self.pool.accepted and there.items() <= known.items():
                return known
            described = dict(there) or describe_session(release=__version__, device=self.pool.device)
            self.session = {**described, **({_ACCEPTED: dict(self.pool.accepted)} if self.pool.accepted else {})}
            self.run.add_session(with_time(self.session))
            return self.session

    def _windows(self, probe: Probe, plan: Plan, stage: Stage) -> Iterator[Items]:
        """Return the questions of a stage, a window at a time."""
        windows = self.first.take(probe, plan, stage) if self.first else None
        return windows or in_windows(probe.questions(stage, plan, RunRecords(self.run, probe.name)), WINDOW)

    def _conclude(self, probe: Probe, plans: list[Plan]) -> Findings:
        self.progress.note(f"{probe.name}: reading the answers")
        found = conclude(probe, plans, self.run)
        self.run.write_findings(found)
        return found
