"""A folder of checkpoints with the audit of before and after: what tuning, shifting and mitigating share."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinometer.engine import Progress
from clinometer.errors import InputError, SpecError
from clinometer.models.load import check_model, inspect_model
from clinometer.models.protocols import Model
from clinometer.probes.protocol import Probe
from clinometer.results import Run
from clinometer.spec import is_file_option, with_folders
from clinometer.store import RunFolder
from clinometer.store.atomic import write_atomically
from clinometer.store.lock import hold_lock
from clinometer.types import AuditSpec, Profile
from clinometer.workflows.audit import AuditRequest, ResumeRequest, run_audit, run_resume
from clinometer.workflows.checks import FirstQuestions, check_spec
from clinometer.workflows.places import with_places
from clinometer.workflows.plans import all_models, probes_of, spec_of, with_roles, with_user_data
from clinometer.workflows.pool import Execution
from clinometer.workflows.specs import Auditable, PlannedAudit, describe_audit

if TYPE_CHECKING:
    from clinometer.train import Checkpoint

AUDIT = "audit"  # the run folder, beside the checkpoints
USUAL_TRAININGS = 3  # of one kind, where nothing is said and the audit is not a quick one
MOST_TRAININGS = 10  # by their number alone: who wants more names the seeds

Seeds = int | Sequence[int] | None  # how many trainings of a kind, or their seeds; None: what the profile allows


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointAudit:
    """How a model and its checkpoints are audited: as `clinometer.audit()` takes it."""

    profile: Profile = "standard"
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    roles: Mapping[str, Sequence[Auditable]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What a training leaves: its checkpoints, and the run that audits them (None without an audit).

    Of several processes that train together, the first one alone has the run.
    """

    checkpoints: tuple[Checkpoint, ...]
    run: Run | None

    def weights_of(self, checkpoint: Checkpoint) -> str:
        """Return the SHA-256 of a checkpoint's weights; a file that the audit has hashed is not read again."""
        from clinometer.models.files import weights_checksum

        known = {info.name: info.weights for info in self.run.models} if self.run else {}
        return known.get(checkpoint.folder.name) or weights_checksum(checkpoint.folder)


def seeds_of(
    given: Seeds, *, first: int, audit: CheckpointAudit | None, usual: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return the seeds of the trainings of each kind; `usual` are taken in place of those that follow the first.

    >>> seeds_of(None, first=0, audit=CheckpointAudit())
    (0, 1, 2)
    >>> seeds_of(None, first=0, audit=CheckpointAudit(profile="quick"))
    (0,)
    >>> seeds_of(2, first=7, audit=None), seeds_of([5, 9, 5], first=7, audit=None)
    ((7, 8), (5, 9))
    """
    if given is not None and not isinstance(given, int):
        found = tuple(dict.fromkeys(given))
    else:
        # without intervals nobody asks how sure they are
        allowed = 1 if audit is None or audit.profile == "quick" else USUAL_TRAININGS
        count = allowed if given is None else given
        if count > MOST_TRAININGS:
            raise InputError(
                f"{count} trainings of each kind are many; name their seeds, such as --seeds 13 21 42"
            )
        found = tuple(usual[:count]) if len(usual) >= count else tuple(range(first, first + max(count, 0)))
    if not found:
        raise InputError("at least one training is needed, such as --seeds 1")
    return found


def with_seed(name: str, seed: int, seeds: Sequence[int]) -> str:
    """Return the name of a folder, with the seed where there are several trainings of a kind.

    >>> with_seed("m-news-1", 0, [0]), with_seed("m-news-1", 2, [0, 2])
    ('m-news-1', 'm-news-1-seed-2')
    """
    return name if len(seeds) == 1 else f"{name}-seed-{seed}"


def short_name(model: str) -> str:
    """Return a name for a folder that is made from a model.

    >>> short_name("builtin:masked"), short_name("/models/BERT base")
    ('builtin-masked', 'BERT-base')
    """
    return re.sub(r"[^A-Za-z0-9._]+", "-", Path(model).name).strip("-") or "model"


def check_corpora(files: Iterable[Path]) -> None:
    """Raise InputError for a file that is not there."""
    for file in files:
        if not file.is_file():
            raise InputError(f"no corpus '{file}'; give the path of a file .txt or .jsonl, also as .xz or .gz")


def plan_audit(
    audit: CheckpointAudit | None,
    model: str,
    folders: Sequence[Path],
    *,
    probes: Sequence[str],
    seed: int,
    follows: Mapping[str, Mapping[str, Any]],
    written_later: Collection[str] = (),
) -> PlannedAudit | None:
    """Return the audit of a model and its checkpoints, which need not be there yet; None where none is wanted.

    `follows` are options that follow from the training; the files of those named in `written_later` are not there
    yet. Everything that can be checked without loading a model is checked here.
    """
    if audit is None:
        return None
    for probe, options in follows.items():
        if twice := set(options) & set(audit.options.get(probe, {})):
            raise SpecError(f"{probe}.{min(twice)} follows from what is trained; leave it out of the options")
    planned = describe_audit(
        [model, *(str(folder.resolve()) for folder in folders)],
        probes=probes,
        profile=audit.profile,
        seed=seed,
        options={
            probe: {**audit.options.get(probe, {}), **follows.get(probe, {})}
            for probe in {**audit.options, **follows}
        },
        roles=audit.roles,
        where="the audit",
    )
    _check_planned(planned.spec, planned.loaded, written_later)
    return planned


def _check_planned(spec: AuditSpec, loaded: Mapping[str, Model], written_later: Collection[str]) -> None:
    there = {
        probe: {name: value for name, value in options.items() if name not in written_later}
        for probe, options in spec.options.items()
    }
    probes = probes_of(spec)
    complete = _completed(replace(spec, options=there), probes)
    check_spec(complete, probes)
    for player in (player for players in complete.roles.values() for player in players):
        if player.name not in loaded:
            check_model(player)


def check_place(out: Path, *, lock: str) -> None:
    """Raise where a command may not work: a file, a folder with something else, one that another command holds."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; name another place with --out")
    if out.is_dir() and any(out.iterdir()) and not (out / lock).exists():
        raise InputError(f"{out} exists and holds something else; name another place with --out")
    if (out / lock).exists() and _is_main_process():
        with hold_lock(out / lock):
            pass


def train_and_audit(
    out: Path,
    train: Callable[[], Iterable[Checkpoint]],
    *,
    lock: str,
    audit: PlannedAudit | None,
    execution: Execution,
    progress: Progress,
    files: Mapping[str, bytes] | None = None,
) -> Tuned:
    """Train in a folder, then audit what is there now, or complete both.

    `files` are written first. Of several processes that train together, the first one does all but the training.
    """
    from clinometer.train.processes import end_processes

    run = None
    with working_in(out, lock=lock, files=files or {}):
        if audit is not None and _is_main_process():
            check_audit(audit, out, device=execution.device)
        checkpoints = tuple(train())
        end_processes()
        if audit is not None and _is_main_process():
            run = audit_beside(audit, out, execution=execution, progress=progress)
    return Tuned(checkpoints=checkpoints, run=run)


@contextlib.contextmanager
def working_in(out: Path, *, lock: str, files: Mapping[str, bytes]) -> Iterator[None]:
    """Make the folder with its first files, or resume in it; no other command may be at work there.

    `lock` is the file that says whose folder it is. A command that fails before it has made anything leaves
    nothing behind.
    """
    if not _is_main_process():
        yield
        return
    check_place(out, lock=lock)
    missing = [folder for folder in (out, *out.parents) if not folder.exists()]
    fresh = out in missing or not any(out.iterdir())
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out} cannot be made: {error.strerror}; name another place with --out") from None
    held = False
    try:
        with hold_lock(out / lock):
            held = True
            _write_first(out, files)
            yield
    finally:
        if held and fresh and {path.name for path in out.iterdir()} <= {lock, *files}:
            for name in (lock, *files):
                (out / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # somebody else may have put something there
                for folder in missing:
                    folder.rmdir()


def _write_first(out: Path, files: Mapping[str, bytes]) -> None:
    """Write the files that checkpoints are measured with; once one was begun, no others may take their place."""
    begun = any(path.is_dir() for path in out.iterdir())
    for name, data in files.items():
        if (out / name).exists() and (out / name).read_bytes() == data:
            continue
        if begun and (out / name).exists():
            raise InputError(
                f"in {out} a training was begun with other documents held out; give the same --corpus, --held-out"
                " and --seed, or another --out"
            )
        write_atomically(out / name, data, run=out)


def check_audit(audit: PlannedAudit, out: Path, *, device: str) -> None:
    """Find out before hours of training what would be wrong with the audit after it.

    The models that are there already are looked at for that: the base, which must be able to read the longest
    prompt, and those that play a part beside it, such as a classifier whose labels must be understood.
    """
    spec = audit.spec
    probes = probes_of(spec)
    check_spec(spec, probes)
    if _is_run(out / AUDIT):
        _refuse_other_audit(spec, out / AUDIT)
        return
    base = inspect_model(spec.models[0], device=device)
    FirstQuestions(spec, probes).check(base, base.info)
    for player in (player for players in spec.roles.values() for player in players):
        if player.name not in audit.loaded:
            inspect_model(player, device=device)


def audit_beside(audit: PlannedAudit, out: Path, *, execution: Execution, progress: Progress) -> Run:
    """Audit the models of before and after in one run, or complete that run."""
    place = out / AUDIT
    if _is_run(place):
        _refuse_other_audit(audit.spec, place)
        trusted = [model for model in all_models(audit.spec) if model.trust_remote_code]
        again = ResumeRequest(
            run=RunFolder.open(place),
            models=audit.loaded,
            execution=execution,
            trusted=tuple(model.name for model in trusted),
        )
        return run_resume(again, progress=progress)
    request = AuditRequest(spec=audit.spec, folder=place, models=audit.loaded, execution=execution)
    return run_audit(request, progress=progress)


def _is_main_process() -> bool:
    from clinometer.train.processes import is_main_process  # loads torch

    return is_main_process()


def _is_run(place: Path) -> bool:
    return (place / "provenance.json").is_file()  # written last when a run is made


def _refuse_other_audit(spec: AuditSpec, place: Path) -> None:
    run = RunFolder.open(place)
    before = _comparable(with_places(spec_of(run), run.path))
    now = _comparable(_completed(spec, probes_of(spec)))
    differing = [
        f"{name} {_shown(name, before)}, now {_shown(name, now)}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]
    if differing:
        raise InputError(
            f"the audit in {place} was begun with {'; '.join(differing)}; give the same again, another --out,"
            f" or remove {place}: finished trainings are kept, and taken up where their names are the same"
        )


def _completed(spec: AuditSpec, probes: Mapping[str, Probe]) -> AuditSpec:
    """Return the spec as a run keeps it: with folders, the user's data and who plays each role."""
    return with_roles(with_user_data(with_folders(spec, base=Path.cwd()), probes), probes)


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
