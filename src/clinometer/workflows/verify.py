"""Whether a run is whole, whether every file in it is as it was written, and whether its findings follow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from clinometer import __version__
from clinometer.engine import Checked, RequestIdentity, check_stage
from clinometer.engine.provenance import DRAWING_LIBRARY, package_version
from clinometer.errors import StoreError
from clinometer.probes.protocol import Plan, Probe
from clinometer.store import LOCK, SEAL, RunFolder, StageKey, changed_csvs, compare_findings
from clinometer.types import Findings
from clinometer.workflows.checks import check_spec
from clinometer.workflows.plans import (
    RunRecords,
    conclude,
    other_questions,
    plans_of,
    probes_of,
    spec_of,
    stages_of,
)
from clinometer.workflows.report import page_of


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """A run to check; `probes` are audits that are neither built in nor installed."""

    run: RunFolder
    probes: tuple[Probe, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What is wrong with a run (nothing, when `problems` is empty), and what could not be compared (`notes`)."""

    problems: tuple[str, ...]
    records: int
    findings: int
    notes: tuple[str, ...] = ()
    digest: str = ""  # of the whole run, the page apart; "": the run is not complete, or of format 1 or 2
    older: tuple[str, ...] = ()  # audits with tables of an older estimator, which were not compared


def run_verify(request: VerifyRequest) -> Verification:
    """Check every file, that every request has its answer, and that findings and page follow from the records.

    Numbers are compared wherever stored and present estimator have one version, words only when this release
    wrote them. Reads only; needs no model and no torch.
    """
    found = _verified(request)
    if request.run.origin is None:
        return found
    # the files of a bundle are in a temporary folder, which says nothing to the reader
    here, there = str(request.run.path), str(request.run.origin)
    return replace(
        found,
        problems=tuple(text.replace(here, there) for text in found.problems),
        notes=tuple(text.replace(here, there) for text in found.notes),
    )


def _verified(request: VerifyRequest) -> Verification:
    run = request.run
    files = _check_files(run)
    if files.wrong:
        return Verification(problems=(*files.wrong, *files.missing), records=0, findings=0, notes=files.notes)
    spec = spec_of(run)
    probes = probes_of(spec, given=request.probes)
    check_spec(spec, probes)
    older = {name: text for name, probe in probes.items() if (text := other_questions(run, probe))}
    plans = {name: plans_of(probe, spec, run) for name, probe in probes.items()}
    problems = [*files.missing]
    problems += (f"{part}: no session in provenance.json computed it" for part in run.strangers())
    notes = [*files.notes]
    concluded: list[Findings] = []
    for name, probe in probes.items():
        checked = () if name in older else plans[name]
        lacking = [lack for plan in checked for lack in _lacking(probe, plan, run)]
        if lacking and (release := _release_before(run, name)):
            older[name] = (
                f"asked by an older version of the audit: by release {release}; of what is asked now, {lacking[0]}"
            )
        if name in older:
            problems += (f"{name}: {hole}" for hole in _holes(run, name))
            notes.append(f"{name}: {older[name]}; its findings were not recomputed")
        elif lacking:
            problems += [f"{name}: {lack}" for lack in lacking]
            problems.append(f"{name}: run `clinometer resume {run.path}` to complete it")
        else:
            concluded.append(conclude(probe, plans[name], run))
    problems += _unasked(run, stages_of(probes, plans), probes, older)
    records = sum(len(run.done(key)) for key in run.stages())
    wrong, untold, by_older = _compared(run, concluded)
    problems += wrong
    notes += untold
    if not problems and run.format > 2 and not run.digest:
        problems.append(f"{run.path / SEAL} is missing: run `clinometer resume {run.path}` to complete the run")
    if not problems:
        wrong, untold = _compare_page(run, probes)
        problems += wrong
        notes += untold
    return Verification(
        problems=tuple(problems),
        records=records,
        findings=len(concluded),
        notes=tuple(notes),
        digest="" if problems else run.digest,
        older=by_older,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    wrong: tuple[str, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...] = ()


def _check_files(run: RunFolder) -> _Files:
    """Hash every file of the run; each that is wrong is named once."""
    wrong = {str(run.path / name): text for name, text in run.changed_documents().items()}
    wrong |= {str(part.path): f"{part.path}: {part.reason}" for part in run.check()}
    if run.format < 3:
        untold = "spec, models, inputs, provenance and tags have no checksums, so they were not checked"
        return _Files(wrong=tuple(wrong.values()), missing=(), notes=(f"a run of format {run.format}: {untold}",))
    if not run.digest:
        return _Files(wrong=tuple(wrong.values()), missing=())
    sealed = run.check_seal()
    wrong = {**{str(run.path / path): text for path, text in sealed.wrong.items()}, **wrong}
    missing = [text for path, text in sealed.missing.items() if str(run.path / path) not in wrong]
    return _Files(
        wrong=tuple(wrong.values()),
        missing=tuple(missing),
        notes=(
            *(f"{run.path / path} is not part of the run, and no checksum covers it" for path in sealed.others),
            # where the system cannot lock files, the lock is removed when nobody works on the run
            *(
                []
                if run.origin or (run.path / LOCK).exists()
                else [f"{run.path / LOCK} is missing; it holds nothing to be read"]
            ),
        ),
    )


def _release_before(run: RunFolder, audit: str) -> str:
    """Return which release completed an audit when versions of questions were not recorded yet; "": this one.

    Where something is missing by today's questions, and another release concluded, that release asked fewer.
    """
    if run.format > 2 or audit not in run.concluded():
        return ""
    recorded = str(run.provenance.get("packages", {}).get("clinometer", "unknown"))
    concluded = {found.probe: found.release for found in run.read_findings()}.get(audit) or recorded
    return "" if concluded == __version__ else concluded


def _holes(run: RunFolder, audit: str) -> Iterator[str]:
    """Say where answers are missing among those of an older audit: indices are counted without gaps."""
    for key in run.stages():
        done = run.done(key)
        if key.probe == audit and len(done) < done.size:
            yield f"{key.model}, {key.stage}: {done.size - len(done):,} of {done.size:,} answers are missing"


def _unasked(
    run: RunFolder, stages: Sequence[StageKey], probes: Mapping[str, Probe], older: Collection[str]
) -> Iterator[str]:
    """Name records and findings of audits, models and stages that the spec does not ask for."""
    for key in run.stages():
        if key not in stages and key.probe not in older:
            yield f"{run.path}: there are records of {key}, which the spec does not ask for"
    for name in run.concluded():
        if name not in probes:
            yield f"{run.path}: there are findings of {name!r}, an audit that the spec does not name"


def _lacking(probe: Probe, plan: Plan, run: RunFolder) -> Iterator[str]:
    """Say what is wrong with the records of the first stage that is not whole; later stages depend on it."""
    for stage in probe.stages(plan):
        done = run.done(StageKey(probe=probe.name, model=plan.model.name, stage=stage.name))
        questions = probe.questions(stage, plan, RunRecords(run, probe.name))
        identity = RequestIdentity(plan.answers(stage), version=run.key_version)
        checked = check_stage(questions, identity=identity, done=done)
        if not checked.whole:
            yield from (f"{plan.model.name}, {stage.name}: {text}" for text in _described(checked))
            return


def _described(checked: Checked) -> Iterator[str]:
    if checked.missing:
        yield f"{checked.missing:,} of {checked.asked:,} answers are missing"
    if checked.relabelled:
        yield f"{checked.relabelled:,} of {checked.asked:,} answers have other tags than this audit gives them"
    if checked.extra:
        yield f"{checked.extra:,} more answers than the {checked.asked:,} questions asked"


def _compared(run: RunFolder, concluded: Sequence[Findings]) -> tuple[list[str], list[str], tuple[str, ...]]:
    """Return what is wrong with stored findings, what could not be compared, and which audits that concerns."""
    try:
        stored = {found.probe: found for found in run.read_findings()}
    except StoreError as error:
        return [str(error)], [], ()
    problems, notes, older = [], [], []
    for found in concluded:
        if found.probe not in stored:
            problems.append(f"{found.probe}: findings are missing; run `clinometer resume {run.path}`")
            continue
        before = stored[found.probe]
        compared = compare_findings(before, found)
        problems += [
            f"{found.probe}: the stored findings are not those that follow from the records: {each}"
            for each in compared.numbers
        ]
        notes += [f"{found.probe}: made by an older estimator, not compared: {each}" for each in compared.versions]
        older += [found.probe] if compared.versions else []
        if compared.wording and compared.versions:
            notes.append(f"{found.probe}: its words rest on numbers of an older estimator; they were not compared")
        elif compared.wording and before.release == found.release:
            problems.append(
                f"{found.probe}: {', '.join(compared.wording)}: not the words of release {found.release}, which "
                "is named as their author"
            )
        elif compared.wording:
            by = f"release {before.release}" if before.release else "an earlier release"
            notes.append(f"{found.probe}: worded by {by}; its numbers were compared, its words were not")
        if before.release == found.release:
            problems += changed_csvs(run.path / "findings" / found.probe, before)
    return problems, notes, tuple(older)


def _compare_page(run: RunFolder, probes: Mapping[str, Probe]) -> tuple[list[str], list[str]]:
    """Build the page again and compare it; another release, or another drawing library, draws another page."""
    again = f"`clinometer report {run.path}` writes it again"
    if not run.report_path.is_file():
        return [f"{run.report_path} is missing; {again}"], []
    releases = {found.release for found in run.read_findings()}
    if releases != {__version__}:
        named = sorted(releases - {"", __version__})
        by = f"release {', '.join(named)}" if named else "an earlier release"
        return [], [f"{run.report_path} was drawn by {by}, so it was not compared; {again}"]
    if run.read_report() == page_of(run, probes=probes):
        return [], []
    drawn, here = run.provenance.get("packages", {}).get(DRAWING_LIBRARY), package_version(DRAWING_LIBRARY)
    if drawn != here:
        with_ = f"was drawn with {DRAWING_LIBRARY} {drawn}, here is {here}"
        return [], [f"{run.report_path} {with_}, so it was not compared; {again}"]
    return [f"{run.report_path} is not the page that follows from this run; {again}"], []
