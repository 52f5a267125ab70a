"""A run beside the checkpoints that it audits: made, resumed, or refused where it is another one."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from clinometer.engine import Progress
from clinometer.errors import InputError
from clinometer.models.load import load_model
from clinometer.models.protocols import Model
from clinometer.results import Run
from clinometer.spec import is_file_option, parse_spec, with_files, with_folders
from clinometer.store import RunFolder
from clinometer.store.lock import hold_lock
from clinometer.types import AuditSpec
from clinometer.workflows.audit import AuditRequest, ResumeRequest, run_audit, run_resume
from clinometer.workflows.checks import FirstQuestions, check_spec
from clinometer.workflows.plans import probes_of, with_roles, with_user_data
from clinometer.workflows.pool import Execution

AUDIT = "audit"  # the run folder, beside the checkpoints
# what a run folder holds that was killed while it was made: no answer yet
_UNBORN = {"spec.toml", "models.json", "inputs", "run.lock"}


def short_name(model: str) -> str:
    """Return a name for a folder that comes of a model.

    >>> short_name("builtin:masked"), short_name("/models/BERT base")
    ('builtin-masked', 'BERT-base')
    """
    return re.sub(r"[^A-Za-z0-9._]+", "-", Path(model).name).strip("-") or "model"


@contextlib.contextmanager
def working_in(out: Path, *, lock: str) -> Iterator[None]:
    """Make the folder, or go on in it; no other command may be at work there. `lock` tells whose folder it is."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; name another place with --out")
    if out.is_dir() and any(out.iterdir()) and not (out / lock).exists():
        raise InputError(f"{out} exists and holds something else; name another place with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out} cannot be made: {error.strerror}; name another place with --out") from None
    with hold_lock(out / lock):
        yield


def check_audit(spec: AuditSpec, out: Path, *, device: str, loaded: Mapping[str, Model] | None = None) -> None:
    """Find out before hours of training what would be wrong with the audit after it.

    The models that are there already are loaded for that: the base, which must be able to read the longest prompt,
    and those that play a part beside it, such as a classifier whose labels must be understood, unless
    they are `loaded`.
    """
    probes = probes_of(spec)
    check_spec(spec, probes)
    if _is_run(out / AUDIT):
        _refuse_other_audit(spec, out / AUDIT)
        return
    base = load_model(spec.models[0], device=device)
    FirstQuestions(spec, probes).check(base, base.info)
    for player in (player for players in spec.roles.values() for player in players):
        if player.name not in (loaded or {}):
            load_model(player, device=device)


def audit_beside(
    spec: AuditSpec,
    out: Path,
    *,
    execution: Execution,
    loaded: Mapping[str, Model] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Audit the models of before and after in one run, or complete that run."""
    place = out / AUDIT
    if _is_run(place):
        _refuse_other_audit(spec, place)
        return run_resume(
            ResumeRequest(run=RunFolder.open(place), models=loaded or {}, execution=execution), progress=progress
        )
    if place.is_dir() and {path.name for path in place.iterdir() if not path.name.startswith(".tmp-")} <= _UNBORN:
        shutil.rmtree(place)
    return run_audit(
        AuditRequest(spec=spec, folder=place, models=loaded or {}, execution=execution), progress=progress
    )


def _is_run(place: Path) -> bool:
    return (place / "provenance.json").is_file()  # written last when a run is made


def _refuse_other_audit(spec: AuditSpec, place: Path) -> None:
    begun = parse_spec((place / "spec.toml").read_text(encoding="utf-8"), origin=str(place / "spec.toml"))
    before = _comparable(with_files(begun, lambda file: str(place / file)))
    placed = with_folders(spec, base=Path.cwd())
    probes = probes_of(placed)
    now = _comparable(with_roles(with_user_data(placed, probes), probes))
    differing = [
        f"{name} {_shown(name, before)}, now {_shown(name, now)}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]
    if differing:
        raise InputError(
            f"the audit in {place} was begun with {'; '.join(differing)}; give the same again, another --out,"
            f" or remove {place}"
        )


def _comparable(spec: AuditSpec) -> dict[str, tuple[str, ...]]:
    """Return what decides the answers, as texts; of a file its checksum, as the run keeps a copy elsewhere."""
    return {
        "models": tuple(model.name for model in spec.models),
        "profile": (spec.profile,),
        "seed": (str(spec.seed),),
        **{role: tuple(player.name for player in players) for role, players in spec.roles.items()},
        **{
            f"the label map of {Path(player.name).name}": tuple(
                f"{label}={meaning}" for label, meaning in sorted(player.label_map.items())
            )
            for players in spec.roles.values()
            for player in players
            if player.label_map
        },
        **{
            f"{probe}.{name}": _texts(name, value)
            for probe, options in spec.options.items()
            for name, value in options.items()
        },
    }


def _texts(option: str, value: object) -> tuple[str, ...]:
    if is_file_option(option, value) and Path(str(value)).is_file():
        return (f"with checksum {hashlib.sha256(Path(str(value)).read_bytes()).hexdigest()[:8]}",)
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)


def _shown(name: str, values: Mapping[str, tuple[str, ...]]) -> str:
    if name not in values:
        return "not given"
    return ", ".join(Path(text).name if name == "models" else text for text in values[name])
