"""What is checked before a run folder is made, so that a mistake leaves nothing behind."""

from __future__ import annotations

import collections
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from clinometer.engine import WINDOW, Progress
from clinometer.errors import InputError, ModelError, SpecError
from clinometer.models.protocols import Model
from clinometer.probes import PROBES, get_probe
from clinometer.probes.protocol import Plan
from clinometer.questions import items_of
from clinometer.types import AuditSpec, ModelInfo
from clinometer.workflows.plans import fits, players_of, probe_options


def check_spec(spec: AuditSpec) -> None:
    """Raise InputError for whatever is wrong with a spec that is well-formed, or with the files that it names."""
    if not spec.probes:
        raise SpecError(f"the list of probes is empty; valid: {', '.join(sorted(PROBES))}")
    if not spec.models:
        raise SpecError("the list of models is empty; name at least one, such as builtin:masked")
    if spec.seed < 0:
        raise SpecError(f"seed = {spec.seed} is not valid; expected a whole number, 0 or more")
    models = [(model.name, model.dtype) for model in spec.models]
    for kind, names in (("probe", [(name, "") for name in spec.probes]), ("model", models)):
        (repeated, count), *_ = collections.Counter(names).most_common(1)
        if count > 1:
            raise SpecError(f"{kind} {repeated[0]!r} is named twice; name it once")
    for name in spec.probes:
        probe = get_probe(name)
        probe.check(probe_options(probe, spec))
    for name in spec.options:
        get_probe(name)
        if name not in spec.probes:
            raise SpecError(f"there are options for {name!r}, which this audit does not run; add it to the probes")


def check_place(folder: Path) -> None:
    """Raise InputError where no folder can be made, before any work is done for it."""
    parent = next(parent for parent in folder.absolute().parents if parent.exists())
    if not parent.is_dir():
        raise InputError(f"{folder} cannot be made: {parent} is not a folder; name another place with --out")
    if not os.access(parent, os.W_OK):
        raise InputError(f"{folder} cannot be made: {parent} may not be written; name another place with --out")


def check_capabilities(spec: AuditSpec, infos: Sequence[ModelInfo], progress: Progress) -> None:
    """See that every audit has a model to ask, and every model an audit; say which pairs are left out."""
    for name in spec.probes:
        probe = get_probe(name)
        for info in infos:
            if fits(probe, info):
                continue
            misfit = (
                f"the audit {name!r} needs a model that offers {' or '.join(probe.capabilities)}; "
                f"{info.name} (kind: {info.kind}) offers {', '.join(info.capabilities)}"
            )
            useless = not any(fits(get_probe(other), info) for other in spec.probes)
            if useless or not any(fits(probe, other) for other in infos):
                raise ModelError(misfit)
            progress.note(f"{misfit}: left out")


def check_roles(spec: AuditSpec, infos: Sequence[ModelInfo]) -> None:
    """See that whoever plays a part in an audit offers what the part needs."""
    players = players_of(spec, infos)
    for name in spec.probes:
        for role in get_probe(name).roles:
            for info in players[role.name]:
                if role.capability not in info.capabilities:
                    raise ModelError(
                        f"the audit {name!r} needs a model that offers {role.capability} as its {role.name}; "
                        f"{info.name} (kind: {info.kind}) offers {', '.join(info.capabilities)}"
                    )


def check_first_requests(model: Model, info: ModelInfo, spec: AuditSpec) -> None:
    """Let the model measure the first requests of each audit: a text that cannot be asked shows here."""
    for name in spec.probes:
        probe = get_probe(name)
        if fits(probe, info):
            plan = Plan(options=probe_options(probe, spec), seed=spec.seed, model=info)
            items = items_of(probe.questions(probe.stages(plan)[0], plan, _NoRecords()))
            model.cost([item.request for item in itertools.islice(items, WINDOW)])


class _NoRecords:
    """Before the first answer: the first stage of a probe depends on none."""

    def table(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        raise LookupError(f"the first stage asked for the records of {stage!r}")

    def batches(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        raise LookupError(f"the first stage asked for the records of {stage!r}")
