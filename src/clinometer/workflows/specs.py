"""The spec of an audit, built alike for the library and the command line, and the folder of its run."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from clinometer.errors import SpecError, nearest
from clinometer.models.load import capabilities_of
from clinometer.models.protocols import Model
from clinometer.models.providers.protocol import models_by_name
from clinometer.probes import PROBES, get_probe
from clinometer.spec import build
from clinometer.types import SPEC_VERSION, AskedAs, AuditSpec, ModelSpec
from clinometer.workflows.plans import probes_for

# the models to audit if none is named, by what the audits need; chat models are slow, so they must be named
_DEFAULT_MODELS = {
    "fill": ("builtin:masked",),
    "sample": ("builtin:causal",),
    "classify": ("builtin:sentiment", "builtin:opinion-words"),
}


Auditable = str | ModelSpec | Model


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAudit:
    """The spec of an audit, and those of its models that are in memory, by name."""

    spec: AuditSpec
    loaded: Mapping[str, Model]


def describe_audit(
    models: Sequence[Auditable],
    *,
    probes: Sequence[str] | None,
    profile: str,
    seed: int,
    options: Mapping[str, Mapping[str, Any]],
    roles: Mapping[str, Sequence[Auditable]],
    where: str,
) -> PlannedAudit:
    """Return the audit with its spec checked like a spec file; errors begin with `where`.

    Without `probes`, it has every audit that can ask one of the models.
    """
    loaded: dict[str, Model] = {}
    audited = [_model_spec(model, loaded) for model in models]
    players = {role: [_model_spec(model, loaded) for model in models] for role, models in roles.items()}
    values = {
        "version": SPEC_VERSION,
        "probes": list(probes_for(audited, loaded=loaded) if probes is None else probes),
        "models": [asdict(model) for model in audited],
        "roles": {role: [asdict(model) for model in models] for role, models in players.items()},
        "profile": profile,
        "seed": seed,
        "options": options,
    }
    return PlannedAudit(spec=build(AuditSpec, values, where=where), loaded=loaded)


def _model_spec(model: Auditable, loaded: dict[str, Model]) -> ModelSpec:
    """Return the spec of a model; one in memory is added to those `loaded`."""
    if isinstance(model, str):
        return ModelSpec(name=model)
    if isinstance(model, ModelSpec):
        return model
    loaded |= models_by_name([*loaded.values(), model])
    return ModelSpec(name=model.info.name)


GROUP_FILES = {"stereotypes": "groups_file", "stigma": "groups_file", "counterfactual": "attribute_file"}


def with_groups(spec: AuditSpec, file: str) -> AuditSpec:
    """Return the audit about the groups of a file (`data.people`), in every probe that asks about groups."""
    takers = {probe: option for probe, option in GROUP_FILES.items() if probe in spec.probes}
    if not takers:
        raise SpecError(f"--groups {file}: none of these audits asks about groups: {', '.join(spec.probes)}")
    options = {probe: dict(given) for probe, given in spec.options.items()}
    for probe, option in takers.items():
        if option in options.get(probe, {}):
            raise SpecError(f"{probe}.{option} is given twice, by --set and by --groups; give it once")
        options.setdefault(probe, {})[option] = file
    return replace(spec, options=options)


def asked_as(models: Sequence[ModelSpec], given: Sequence[str]) -> list[ModelSpec]:
    """Return the models as they are to be asked: `given` is "chat", "causal", or NAME=chat for one of them.

    Without a name, it holds for every model that continues text; the others are asked as they always are. Both
    ways for one model make two models of the run.
    """
    everyone = [model.alias or model.name for model in models]
    known: dict[str, AskedAs] = {"chat": "chat", "causal": "causal"}
    ways: dict[str, list[AskedAs]] = {}
    for text in given:
        name, equals, named = text.rpartition("=")
        if (way := known.get(named)) is None:
            raise SpecError(f"--as {text}: expected chat or causal, or NAME=chat for one of several models")
        if equals and name not in everyone:
            raise SpecError(f"--as {text}: {name!r} is not a model of this audit; {nearest(name, everyone)}")
        fitting = (
            [name] if equals else [each for each, model in zip(everyone, models, strict=True) if _talks(model)]
        )
        if not fitting:
            raise SpecError(f"--as {text}: none of these models continues text: {', '.join(everyone)}")
        for each in fitting:
            if way not in ways.setdefault(each, []):
                ways[each].append(way)
    return [
        replace(model, kind=way) if way else model
        for each, model in zip(everyone, models, strict=True)
        for way in ways.get(each, [""])
    ]


def _talks(model: ModelSpec) -> bool:
    return not {"sample", "ask"}.isdisjoint(capabilities_of(model))


def default_models(probes: Sequence[str] | None) -> list[str]:
    """Return the built-in models that the audits can ask, each once.

    >>> default_models(["counterfactual"])
    ['builtin:causal', 'builtin:sentiment', 'builtin:opinion-words']
    """
    chosen = (
        model
        for name in probes or sorted(PROBES)
        for need, models in _DEFAULT_MODELS.items()
        if need in get_probe(name).capabilities
        for model in models
    )
    return list(dict.fromkeys(chosen))


def new_run_folder(spec: AuditSpec) -> Path:
    """Return where a run goes if no folder is named: runs/<date>-<model>-<profile>, numbered if taken."""
    if not spec.models:
        raise SpecError("the list of models is empty; name at least one, such as builtin:causal")
    model = re.sub(r"[^A-Za-z0-9]+", "-", Path(spec.models[0].name).name).strip("-").lower()[:40] or "model"
    more = f"-and-{len(spec.models) - 1}-more" if len(spec.models) > 1 else ""
    name = f"{datetime.datetime.now():%Y%m%d-%H%M%S}-{model}{more}-{spec.profile}"
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(path for path in (Path("runs", each) for each in names) if not path.exists())
