"""What a spec means for one run: its models by name, its probes with their options, its files."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import polars as pl

from clinometer import __version__
from clinometer.data.user_folder import added_file
from clinometer.errors import SpecError, StoreError, nearest
from clinometer.limits import TEXT, read_limited
from clinometer.models.load import capabilities_of
from clinometer.models.protocols import Model
from clinometer.probes import PROBES, get_probe
from clinometer.probes.protocol import Plan, Probe, questions_version
from clinometer.spec import build, parse_spec, with_files
from clinometer.store import INPUTS, RunFolder, StageKey, empty_records
from clinometer.types import AuditSpec, Findings, ModelInfo, ModelSpec, Notice
from clinometer.workflows.endpoint_notices import MISSING, endpoint_notices


def probe_options(probe: Probe, spec: AuditSpec) -> Any:
    """Return the probe's options: its defaults, then what the profile sets, then what the user says."""
    values = {**probe.profiles[spec.profile], **spec.options.get(probe.name, {})}
    return build(probe.options, values, where=f"options.{probe.name}")


def fits(probe: Probe, info: ModelInfo) -> bool:
    """Tell whether a model offers what an audit needs."""
    return bool(set(probe.capabilities) & set(info.capabilities))


def probes_for(models: Sequence[ModelSpec], *, loaded: Mapping[str, Model] | None = None) -> tuple[str, ...]:
    """Return the audits that can ask at least one of the models; `loaded` are those in memory, by name.

    Where there is none, all are returned: the check of a spec then says what each of them would need.
    """
    given = loaded or {}
    offered = {
        capability
        for model in models
        for capability in (given[model.name].info.capabilities if model.name in given else capabilities_of(model))
    }
    fitting = tuple(name for name in sorted(PROBES) if offered & set(get_probe(name).capabilities))
    return fitting or tuple(sorted(PROBES))


def probes_of(spec: AuditSpec, *, given: Sequence[Probe] = ()) -> dict[str, Probe]:
    """Return the audits of a spec by name, in its order; `given` are objects that nobody has registered."""
    objects: dict[str, Probe] = {}
    for probe in given:
        if probe.name in PROBES or objects.setdefault(probe.name, probe) is not probe:
            raise SpecError(f"two audits are named {probe.name!r}; give yours a name of its own")
    return {name: objects.get(name) or get_probe(name) for name in spec.probes}


def plans_of(probe: Probe, spec: AuditSpec, run: RunFolder) -> list[Plan]:
    """Return one plan for each model of the run that the probe can ask."""
    options = probe_options(probe, spec)
    known = {info.name: info for info in (*run.models, *run.assistants)}
    labels = labels_of(all_models(spec))
    # runs of format 1 name two folders of one last part by their whole paths
    if list(known) != labels and not (run.format == 1 and len(known) == len(labels)):
        raise StoreError(
            f"{run.path}: models.json names {', '.join(known) or 'no model'}, spec.toml {', '.join(labels)}; "
            "put back the file that was there"
        )
    players = players_of(spec, list(known.values()))
    roles = {role.name: players[role.name] for role in probe.roles}
    plans = [
        Plan(options=options, seed=spec.seed, model=model, roles=roles)
        for model in run.models
        if fits(probe, model)
    ]
    if not plans:
        raise StoreError(
            f"{run.path}: no model in models.json offers what {probe.name} asks; put back the file that was there"
        )
    return plans


def other_questions(run: RunFolder, probe: Probe) -> str:
    """Say that a run was asked by another version of an audit; "" where it was not, or did not record it."""
    asked = run.provenance.get("questions", {}).get(probe.name)
    now = questions_version(probe)
    if asked is None or asked == now:
        return ""
    which = "an older" if isinstance(asked, int) and asked < now else "another"
    release = run.provenance.get("packages", {}).get("clinometer", "unknown")
    return f"asked by {which} version of the audit: version {asked}, by release {release}; here is version {now}"


def stages_of(probes: Mapping[str, Probe], plans: Mapping[str, Sequence[Plan]]) -> list[StageKey]:
    """Return every stage that the audits ask, whose records belong to the run."""
    return [
        StageKey(probe=name, model=plan.model.name, stage=stage.name)
        for name in plans
        for plan in plans[name]
        for stage in probes[name].stages(plan)
    ]


def all_models(spec: AuditSpec) -> tuple[ModelSpec, ...]:
    """Return the models under audit, then their assistants, each once."""
    given = (*spec.models, *(model for name in sorted(spec.roles) for model in spec.roles[name]))
    return tuple({_identity(model): model for model in given}.values())


def players_of(spec: AuditSpec, infos: Sequence[ModelInfo]) -> dict[str, tuple[ModelInfo, ...]]:
    """Say who plays each role; `infos` belong to `all_models(spec)`, in their order."""
    known = dict(zip(map(_identity, all_models(spec)), infos, strict=True))
    return {role: tuple(known[_identity(model)] for model in models) for role, models in spec.roles.items()}


def _identity(model: ModelSpec) -> str:
    labels = sorted(model.label_map.items())
    return repr((model.name, model.dtype, model.trust_remote_code, labels, model.kind, model.base_url))


def with_roles(spec: AuditSpec, probes: Mapping[str, Probe]) -> AuditSpec:
    """Return the spec with a model for every role that its audits need: who is named, else the default."""
    needed = {role.name: role for probe in probes.values() for role in probe.roles}
    for name in spec.roles:
        if name not in needed:
            hint = nearest(name, needed) if needed else "these audits need none"
            raise SpecError(f"no role {name!r} in this audit; {hint}")
    roles = {
        name: spec.roles.get(name) or tuple(ModelSpec(name=model) for model in role.default)
        for name, role in needed.items()
    }
    for name, players in roles.items():
        if len({_identity(model) for model in players}) < len(players):
            raise SpecError(f"a model is named twice for the role {name!r}; name each once")
        if len(players) < needed[name].at_least:
            raise SpecError(
                f"{len(players)} model for the role {name!r}; name at least {needed[name].at_least}, such as "
                f"{', '.join(needed[name].default)}"
            )
    return replace(spec, roles=roles)


def labels_of(models: Sequence[ModelSpec]) -> list[str]:
    """Name each model: by its alias, a folder by as many of its last parts as tell it from the others.

    A model that is audited in two dtypes is named with its dtype; one that is asked in two ways, with the way.

    >>> labels_of([ModelSpec(name="/models/bert"), ModelSpec(name="gpt2"), ModelSpec(name="/x", alias="mine")])
    ['bert', 'gpt2', 'mine']
    >>> labels_of([ModelSpec(name="/a/run/best"), ModelSpec(name="/b/run/best")])
    ['a/run/best', 'b/run/best']
    >>> labels_of([ModelSpec(name="smol"), ModelSpec(name="smol", kind="chat")])
    ['smol', 'smol (chat)']
    """
    names = [model.alias or _short_name(model.name, {other.name for other in models}) for model in models]
    of_kind = [(name, model.kind) for name, model in zip(names, models, strict=True)]
    count, alike = collections.Counter(names), collections.Counter(of_kind)
    labels = []
    for model, name in zip(models, names, strict=True):
        told: list[str] = [model.kind] if model.kind and count[name] > alike[name, model.kind] else []
        told += [model.dtype] if alike[name, model.kind] > 1 else []
        labels.append(f"{name} ({', '.join(told)})" if told else name)
    return labels


def _short_name(name: str, everyone: set[str]) -> str:
    """Return the fewest last parts of a path that no other path ends in."""
    path = PurePath(name)
    if not path.is_absolute():
        return name
    parts = path.parts[1:]
    others = [PurePath(other).parts for other in everyone if other != name]
    for length in range(1, len(parts) + 1):
        end = parts[-length:]
        if all(other[-length:] != end for other in others):
            return "/".join(end)
    return "/".join(parts)


def with_user_data(spec: AuditSpec, probes: Mapping[str, Probe]) -> AuditSpec:
    """Return the spec with data sets that the user has added, where an audit uses one and no file is named."""
    options = dict(spec.options)
    for name, probe in probes.items():
        given = spec.options.get(name, {})
        added = {option: added_file(dataset) for option, dataset in probe.user_data.items() if option not in given}
        found = {option: str(file) for option, file in added.items() if file is not None}
        if found:
            options[name] = {**found, **given}
    return replace(spec, options=options)


def with_inputs(spec: AuditSpec) -> tuple[AuditSpec, dict[str, bytes]]:
    """Return the spec with its files inside the run folder, and those files: a run must be whole by itself."""
    inputs: dict[str, bytes] = {}

    def keep(file: str) -> str:
        plain = "".join(each if each.isprintable() and each != "\\" else "_" for each in Path(file).name)
        name = f"{len(inputs) + 1}-{plain}"
        inputs[name] = read_limited(Path(file), most=TEXT)
        return f"{INPUTS}/{name}"

    return with_files(spec, keep), inputs


def spec_of(run: RunFolder) -> AuditSpec:
    """Read the spec of a run, its files where the run keeps them; raise SpecError if it names any other file."""
    spec = parse_spec(run.spec, origin=str(run.path / "spec.toml"))
    return with_files(spec, lambda file: str(run.input_place(file)))


def conclude(probe: Probe, plans: Sequence[Plan], run: RunFolder) -> Findings:
    """Return what a probe finds in the records of a run, and which of the run's models it could not ask."""
    found = probe.findings(plans, RunRecords(run, probe.name))
    others = [info for info in run.models if not fits(probe, info)]
    notices = found.notices
    if others:
        named = ", ".join(f"{info.name} ({info.kind})" for info in others)
        text = f"Not asked here: {named}. This audit asks models that offer {' or '.join(probe.capabilities)}."
        notices = (*notices, Notice(level="info", text=text))
    notices = (*notices, *endpoint_notices(probe, plans, run))
    return replace(found, notices=notices, release=__version__)


class RunRecords:
    """What a probe sees of the run folder.

    A probe reads a stage once all that it asks is recorded; one without records had nothing to ask.
    """

    def __init__(self, run: RunFolder, probe: str) -> None:
        self._run = run
        self._probe = probe

    def table(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return the records of one stage."""
        key = StageKey(probe=self._probe, model=model, stage=stage)
        if self._run.is_empty(key):
            return empty_records(["index", "key"] if columns is None else columns)
        return next(self._answered(key, columns, lambda wanted: iter([self._run.table(key, columns=wanted)])))

    def batches(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """Yield the records of one stage, some ten thousand at a time."""
        key = StageKey(probe=self._probe, model=model, stage=stage)
        if self._run.is_empty(key):
            return iter(())
        return self._answered(key, columns, lambda wanted: self._run.batches(key, columns=wanted))

    def _answered(
        self,
        key: StageKey,
        columns: Sequence[str] | None,
        read: Callable[[Sequence[str] | None], Iterator[pl.DataFrame]],
    ) -> Iterator[pl.DataFrame]:
        """Read tables without the texts that are missing: a text that nobody wrote is no unclear answer."""
        of_texts = columns is None or "got_texts" in columns
        if not of_texts or "got_endings" not in self._run.column_names(key):
            yield from read(columns)
            return
        wanted = None if columns is None else list(dict.fromkeys([*columns, "got_endings"]))
        for table in read(wanted):
            yield _without_missing(table).select(columns or pl.all())


def _without_missing(table: pl.DataFrame) -> pl.DataFrame:
    absent = table["got_endings"].list.contains(MISSING).fill_null(value=False)
    if not absent.any():
        return table
    rows = zip(table["got_texts"].to_list(), table["got_endings"].to_list(), absent.to_list(), strict=True)
    texts = [
        [text for text, ending in zip(of_row, endings, strict=True) if ending != MISSING] if some else of_row
        for of_row, endings, some in rows
    ]
    return table.with_columns(pl.Series("got_texts", texts, dtype=table.schema["got_texts"]))
