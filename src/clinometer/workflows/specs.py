"""The spec of an audit, built alike for the library and the command line, and the folder of its run."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clinometer.errors import SpecError
from clinometer.models.protocols import Model
from clinometer.probes import PROBES, get_probe
from clinometer.spec import build
from clinometer.types import SPEC_VERSION, AuditSpec, ModelSpec
from clinometer.workflows.plans import probes_for

# the models to audit if none is named, by what the audits need; chat models are slow, so they must be named
_DEFAULT_MODELS = {
    "fill": ("builtin:masked",),
    "sample": ("builtin:causal",),
    "classify": ("builtin:sentiment", "builtin:opinion-words"),
}


def make_spec(
    models: Sequence[ModelSpec],
    *,
    probes: Sequence[str] | None,
    profile: str,
    seed: int,
    options: Mapping[str, Mapping[str, Any]],
    roles: Mapping[str, Sequence[ModelSpec]],
    where: str,
    loaded: Mapping[str, Model] | None = None,
) -> AuditSpec:
    """Return the spec, checked like a spec file; errors begin with `where`.

    Without `probes`, it has every audit that can ask one of the models. `loaded` are models in memory, by name.
    """
    values = {
        "version": SPEC_VERSION,
        "probes": list(probes_for(models, loaded=loaded) if probes is None else probes),
        "models": [dataclasses.asdict(model) for model in models],
        "roles": {role: [dataclasses.asdict(model) for model in players] for role, players in roles.items()},
        "profile": profile,
        "seed": seed,
        "options": options,
    }
    return build(AuditSpec, values, where=where)


def default_models(probes: Sequence[str] | None) -> list[str]:
    """Return the built-in models that the audits can ask, each once.

    >>> default_models(["counterfactual"])
    ['builtin:causal']
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
    """Return where a run goes if no folder is named: runs/<date>-<model>-<profile>."""
    if not spec.models:
        raise SpecError("the list of models is empty; name at least one, such as builtin:causal")
    model = re.sub(r"[^A-Za-z0-9]+", "-", Path(spec.models[0].name).name).strip("-").lower()[:40] or "model"
    more = f"-and-{len(spec.models) - 1}-more" if len(spec.models) > 1 else ""
    return Path("runs", f"{datetime.datetime.now():%Y%m%d-%H%M%S}-{model}{more}-{spec.profile}")
