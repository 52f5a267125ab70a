"""The front door: what a user of the library calls."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from clinometer.auditing import Execution, Verification, probes_for, resume_audit, start_audit, verify_audit
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

__all__ = ["audit", "load_model", "open_run", "resume", "run_name", "verify", "write_report"]


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
    players = {role: list(models) for role, models in (roles or {}).items()}
    everyone = [*given, *(model for models in players.values() for model in models)]
    loaded = _by_name(model for model in everyone if not isinstance(model, (str, ModelSpec)))
    if probes is None:
        names = list(probes_for([_model_spec(model) for model in given], loaded=loaded))
    else:
        names = [probes] if isinstance(probes, str) else list(probes)
    values = {
        "version": SPEC_VERSION,
        "probes": names,
        "models": [dataclasses.asdict(_model_spec(model)) for model in given],
        "roles": {
            role: [dataclasses.asdict(_model_spec(model)) for model in models] for role, models in players.items()
        },
        "profile": profile,
        "seed": seed,
        "options": options or {},
    }
    spec = build(AuditSpec, values, where="audit()")  # the checks that a spec file gets
    place = Path(folder) if folder is not None else Path("runs") / run_name(spec)
    run = start_audit(spec, place, loaded=loaded, execution=execution, progress=progress)
    write_report(run)
    return run


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
