"""What is checked before a run folder is made, so that a mistake leaves nothing behind."""

from __future__ import annotations

import collections
import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from clinometer.engine import WINDOW, Progress
from clinometer.errors import InputError, ModelError, SpecError
from clinometer.models.endpoint.address import Address
from clinometer.models.protocols import Model
from clinometer.probes import PROBES, get_probe
from clinometer.probes.protocol import Plan, Probe, Stage
from clinometer.questions import Items, in_windows
from clinometer.types import AuditSpec, ModelInfo
from clinometer.workflows.plans import all_models, fits, labels_of, players_of, probe_options

_KEPT_ITEMS = 100_000  # of first windows: about 100 MB; what is beyond is made twice


def check_spec(spec: AuditSpec, probes: Mapping[str, Probe]) -> None:
    """Raise InputError for whatever is wrong with a spec that is well-formed, or with the files that it names."""
    if not spec.probes:
        raise SpecError(f"the list of probes is empty; valid: {', '.join(sorted(PROBES))}")
    if not spec.models:
        raise SpecError("the list of models is empty; name at least one, such as builtin:masked")
    if spec.seed < 0:
        raise SpecError(f"seed = {spec.seed} is not valid; expected a whole number, 0 or more")
    models = [(model.name, model.dtype, f"{model.kind} {model.base_url}") for model in spec.models]
    for kind, names in (("probe", [(name, "", "") for name in spec.probes]), ("model", models)):
        (repeated, count), *_ = collections.Counter(names).most_common(1)
        if count > 1:
            raise SpecError(f"{kind} {repeated[0]!r} is named twice; name it once")
    for model in all_models(spec):
        for name, value in model.price.items():
            if name not in ("input", "output") or not 0 <= value < math.inf:
                raise SpecError(f"price of {model.name}: {name} = {value} is not valid; expected input and output")
    for probe in probes.values():
        probe.check(probe_options(probe, spec))
    (label, count), *_ = collections.Counter(labels_of(all_models(spec))).most_common(1)
    if count > 1:
        raise SpecError(f"two models are called {label!r}; give one another alias")
    for name in spec.options:
        if name not in probes:
            get_probe(name)
            raise SpecError(f"there are options for {name!r}, which this audit does not run; add it to the probes")


def check_addresses(spec: AuditSpec) -> None:
    """Raise ModelError for an address elsewhere that only the folder of a run names: it may come from anybody."""
    for model in all_models(spec):
        address = Address.of(model.base_url)
        if model.base_url and not (address.is_here or address.is_openai or address.is_named):
            raise ModelError(
                f"this run asks {model.name} at {address.url}, and a run may come from anybody; if that is your "
                f"endpoint, say so with --base-url {address.url}"
            )


def check_place(folder: Path) -> None:
    """Raise InputError where no folder can be made, before any work is done for it."""
    parent = next(parent for parent in folder.absolute().parents if parent.exists())
    if not parent.is_dir():
        raise InputError(f"{folder} cannot be made: {parent} is not a folder; name another place with --out")
    if not os.access(parent, os.W_OK):
        raise InputError(f"{folder} cannot be made: {parent} may not be written; name another place with --out")


def check_capabilities(probes: Mapping[str, Probe], infos: Sequence[ModelInfo], progress: Progress) -> None:
    """See that every audit has a model to ask, and every model an audit; show in one table who is asked what."""
    complete = True
    for name, probe in probes.items():
        for info in infos:
            if fits(probe, info):
                continue
            misfit = (
                f"the audit {name!r} needs a model that offers {' or '.join(probe.capabilities)}; "
                f"{info.name} (kind: {info.kind}) offers {', '.join(info.capabilities)}"
            )
            useless = not any(fits(other, info) for other in probes.values())
            if useless or not any(fits(probe, other) for other in infos):
                raise ModelError(misfit)
            complete = False
    if not complete:
        for line in who_is_asked_what(probes, infos):  # a note is one line: breaks in it would be escaped
            progress.note(line)


def who_is_asked_what(probes: Mapping[str, Probe], infos: Sequence[ModelInfo]) -> list[str]:
    """Return the lines of a table of models and audits, for a fixed-width font."""
    rows = [["", "asked as", *probes]]
    for info in infos:
        asked = ["yes" if fits(probe, info) else "–" for probe in probes.values()]
        rows.append([info.name, info.kind, *asked])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return ["Who is asked what (–: the audit has no way to ask this kind of model):", *lines]


def check_roles(spec: AuditSpec, probes: Mapping[str, Probe], infos: Sequence[ModelInfo]) -> None:
    """See that whoever plays a role in an audit offers what the role needs."""
    players = players_of(spec, infos)
    for name, probe in probes.items():
        for role in probe.roles:
            for info in players[role.name]:
                if role.capability not in info.capabilities:
                    raise ModelError(
                        f"the audit {name!r} needs a model that offers {role.capability} as its {role.name}; "
                        f"{info.name} (kind: {info.kind}) offers {', '.join(info.capabilities)}"
                    )


class FirstQuestions:
    """The first window of questions of each audit: measured before a run folder is made, and not made again."""

    def __init__(self, spec: AuditSpec, probes: Mapping[str, Probe]) -> None:
        self._spec = spec
        self._probes = probes
        self._made: dict[tuple[str, str], Iterator[Items]] = {}
        self._kept = 0

    def check(self, model: Model, info: ModelInfo) -> None:
        """Let the model measure them: a text that cannot be asked shows here."""
        for name, probe in self._probes.items():
            if fits(probe, info):
                plan = Plan(options=probe_options(probe, self._spec), seed=self._spec.seed, model=info)
                windows = in_windows(probe.questions(probe.stages(plan)[0], plan, NoRecords()), WINDOW)
                window = next(windows, None)
                if window is not None:
                    model.cost(window.requests)
                    self._kept += len(window)
                if self._kept <= _KEPT_ITEMS:
                    self._made[name, info.name] = itertools.chain([] if window is None else [window], windows)

    def take(self, probe: Probe, plan: Plan, stage: Stage) -> Iterator[Items] | None:
        """Return the questions of a first stage, once; None for what was not made, or not kept."""
        if stage != probe.stages(plan)[0]:
            return None
        return self._made.pop((probe.name, plan.model.name), None)


class NoRecords:
    """Before the first answer: the first stage of a probe depends on none."""

    def table(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Refuse."""
        raise LookupError(f"the first stage asked for the records of {stage!r}")

    def batches(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """Refuse."""
        raise LookupError(f"the first stage asked for the records of {stage!r}")
