"""The front door: what a user of the library calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from clinometer.engine import Progress
from clinometer.errors import InputError, SpecError
from clinometer.models.load import load_model
from clinometer.models.protocols import Model
from clinometer.probes.protocol import Probe
from clinometer.results import Run
from clinometer.store import RunFolder
from clinometer.store.atomic import write_atomically
from clinometer.types import AuditSpec, Dtype, ModelSpec, Profile
from clinometer.workflows import (
    AuditRequest,
    Execution,
    ResumeRequest,
    Verification,
    VerifyRequest,
    report_run,
    run_audit,
    run_resume,
    run_verify,
)
from clinometer.workflows.checkpoints import audit_beside, check_audit, short_name, working_in
from clinometer.workflows.specs import make_spec, new_run_folder

if TYPE_CHECKING:
    from clinometer.train import LabellingSettings, MitigationSettings

__all__ = ["audit", "load_model", "mitigate", "open_run", "resume", "verify", "write_report"]


Auditable = str | ModelSpec | Model

MITIGATION_LOCK = "mitigate.lock"
HELD_OUT = "held-out.txt"  # beside the checkpoints of a mitigation: the text that perplexity is measured on
# by what a mitigated model is measured, before and after
MITIGATION_PROBES: Mapping[str, tuple[str, ...]] = {
    "causal": ("counterfactual",),
    "masked": ("stereotypes", "stigma", "counterexamples"),
}


def audit(
    models: Auditable | Iterable[Auditable],
    *,
    probes: str | Probe | Iterable[str | Probe] | None = None,
    profile: Profile = "standard",
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    roles: Mapping[str, Sequence[Auditable]] | None = None,
    folder: str | Path | None = None,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> Run:
    """Audit one or more models, write the report and return what was found.

    A model is a hub id, a folder, a built-in name, a `ModelSpec`, or any object that follows
    `clinometer.models.protocols` (see `clinometer.models.fake`). A probe is the name of an audit, or an object
    that follows `clinometer.probes.protocol`; without `probes`, every audit that can ask one of the models is run.
    `roles` name models that take part without being audited, such as the classifiers that score generated text.
    Without `folder`, the run goes to `runs/`, named by date, model and profile.
    """
    single = isinstance(models, (str, ModelSpec)) or hasattr(models, "info")
    given = [cast(Auditable, models)] if single else list(cast(Iterable[Auditable], models))
    if probes is None or isinstance(probes, str) or not isinstance(probes, Iterable):
        named = [] if probes is None else [probes]
    else:
        named = list(probes)
    spec, loaded = _spec(
        given,
        probes=None if probes is None else [each if isinstance(each, str) else each.name for each in named],
        profile=profile,
        seed=seed,
        options=options,
        roles=roles,
    )
    request = AuditRequest(
        spec=spec,
        folder=Path(folder) if folder is not None else new_run_folder(spec),
        models=loaded,
        probes=tuple(each for each in named if not isinstance(each, str)),
        execution=execution or Execution(),
    )
    return run_audit(request, progress=progress)


def mitigate(
    model: str,
    *,
    corpus: str | Path | Sequence[str | Path],
    attribute: str = "occupation",
    attribute_file: str | Path | None = None,
    methods: Sequence[str] = ("embedding",),
    strengths: Sequence[float] = (10.0,),
    settings: MitigationSettings | None = None,
    labelling: LabellingSettings | None = None,
    held_out: int = 100,
    out: str | Path,
    profile: Profile = "standard",
    options: Mapping[str, Mapping[str, Any]] | None = None,
    roles: Mapping[str, Sequence[Auditable]] | None = None,
    execution: Execution | None = None,
    dtype: Dtype = "auto",
    progress: Progress | None = None,
) -> Run:
    """Train a model to depend less on an attribute, once for each method and strength, and audit before and after.

    `model` is a causal or masked model by name; `attribute` one of ours, or your own in `attribute_file`. Strength
    0 is the control: the same training without the fairness loss. Checkpoints and the run, `out`/audit, go below
    `out`; what is there already of the same settings is not made again. Of `settings` the method and the strength
    are set here; `options` and `roles` are those of the audits.
    """
    from clinometer.data import load_attribute, read_attribute
    from clinometer.models.load import kind_of
    from clinometer.models.source import resolve
    from clinometer.train import LabellingSettings, MitigationSettings, mitigate_all, read_material, variants

    place, execution = Path(out), execution or Execution()
    sensitive = read_attribute(str(attribute_file)) if attribute_file else load_attribute(attribute)
    common = settings or MitigationSettings()
    wanted = variants(methods, strengths, model=short_name(model), attribute=sensitive.name, common=common)
    kind = kind_of(resolve(ModelSpec(name=model)))
    if kind not in MITIGATION_PROBES:
        raise SpecError(f"{model!r} is a {kind} model; causal and masked models can be mitigated")
    needed = mitigation_options(kind, sensitive.name, attribute_file, place)
    given = {name: dict(values) for name, values in (options or {}).items()}
    for name, values in needed.items():
        if twice := set(values) & set(given.get(name, {})):
            raise SpecError(f"{name}.{min(twice)} follows from what is mitigated; leave it out of options")
    labelling = labelling or LabellingSettings(seed=common.seed)
    spec, loaded = _spec(
        [model, *(str((place / each.name).resolve()) for each in wanted)],
        probes=MITIGATION_PROBES[kind],
        profile=profile,
        seed=common.seed,
        options={name: {**needed.get(name, {}), **given.get(name, {})} for name in {**needed, **given}},
        roles=roles,
    )
    material = read_material(corpus, sensitive, held_out=held_out, seed=common.seed)
    with working_in(place, lock=MITIGATION_LOCK):
        write_held_out(place, material.held_out_text)
        check_audit(spec, place, device=execution.device, loaded=loaded)
        mitigate_all(
            model,
            material,
            wanted,
            out=place,
            labelling=labelling,
            device=execution.device,
            dtype=dtype,
            progress=progress,
        )
        return audit_beside(spec, place, execution=execution, loaded=loaded, progress=progress)


def write_held_out(place: Path, text: str) -> None:
    """Write the text that is held out of a mitigation; once something was trained, no other may take its place."""
    file = place / HELD_OUT
    begun = any(path.is_dir() for path in place.iterdir())
    if begun and file.exists() and file.read_bytes() != text.encode():
        raise InputError(
            f"in {place} a training was begun with other documents held out; give the same --corpus, --held-out"
            " and --seed, or another --out"
        )
    write_atomically(file, text.encode(), run=place)


def mitigation_options(
    kind: str, attribute: str, attribute_file: str | Path | None, place: Path
) -> dict[str, dict[str, Any]]:
    """Return options for the audit of a mitigation: ask about what was trained, read what was not trained on."""
    if kind != "causal":
        return {}
    asked: dict[str, Any] = {"attributes": [attribute]}
    if attribute_file is not None:
        asked = {"attributes": [], "attribute_file": str(attribute_file)}
    return {"counterfactual": {**asked, "text_file": str(place / HELD_OUT)}}


def resume(
    run: Run | RunFolder | str | Path,
    *,
    models: Sequence[Model] = (),
    probes: Sequence[Probe] = (),
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> Run:
    """Complete a run that was stopped, and write its report.

    `models` and `probes` are those that only exist in memory.
    """
    request = ResumeRequest(
        run=_folder(run),
        models={model.info.name: model for model in models},
        probes=tuple(probes),
        execution=execution or Execution(),
    )
    return run_resume(request, progress=progress)


def open_run(path: str | Path) -> Run:
    """Open a run folder to read its findings and records."""
    return Run(RunFolder.open(Path(path)))


def verify(run: Run | RunFolder | str | Path, *, probes: Sequence[Probe] = ()) -> Verification:
    """Check the checksums of a run, and that its findings follow from its records."""
    return run_verify(VerifyRequest(run=_folder(run), probes=tuple(probes)))


def write_report(run: Run | RunFolder | str | Path, *, probes: Sequence[Probe] = ()) -> Path:
    """Write the run's HTML report from its records and findings, and return where it is."""
    return report_run(_folder(run), probes={probe.name: probe for probe in probes})


def _folder(run: Run | RunFolder | str | Path) -> RunFolder:
    if isinstance(run, Run):
        return run.folder
    return run if isinstance(run, RunFolder) else RunFolder.open(Path(run))


def _spec(
    models: Sequence[Auditable],
    *,
    probes: Iterable[str] | None,
    profile: Profile,
    seed: int,
    options: Mapping[str, Mapping[str, Any]] | None,
    roles: Mapping[str, Sequence[Auditable]] | None,
) -> tuple[AuditSpec, dict[str, Model]]:
    """Return the spec that the arguments describe, and the models in memory."""
    players = {role: list(models) for role, models in (roles or {}).items()}
    everyone = [*models, *(model for models in players.values() for model in models)]
    loaded = _by_name(model for model in everyone if not isinstance(model, (str, ModelSpec)))
    spec = make_spec(
        [_model_spec(model) for model in models],
        probes=None if probes is None else list(probes),
        profile=profile,
        seed=seed,
        options=options or {},
        roles={role: [_model_spec(model) for model in models] for role, models in players.items()},
        loaded=loaded,
        where="audit()",
    )
    return spec, loaded


def _by_name(models: Iterable[Model]) -> dict[str, Model]:
    """Return models in memory by name; if two shared a name, one would answer for both."""
    found: dict[str, Model] = {}
    for model in models:
        if not hasattr(model, "info"):
            raise SpecError(
                f"{model!r} is not a model; give a name, a ModelSpec or an adapter, and wrap a function that "
                "scores texts in clinometer.models.callable_scorer.CallableScorer"
            )
        if found.setdefault(model.info.name, model) is not model:
            raise SpecError(f"two models in memory are named {model.info.name!r}; give each a name of its own")
    return found


def _model_spec(model: Auditable) -> ModelSpec:
    if isinstance(model, str):
        return ModelSpec(name=model)
    return model if isinstance(model, ModelSpec) else ModelSpec(name=model.info.name)
