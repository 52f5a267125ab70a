"""Comparing models: of two runs, of many, or of one; needs no model, only what the runs hold."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinometer import __version__
from clinometer.errors import ClinometerError, InputError, nearest
from clinometer.limits import TEXT, read_limited
from clinometer.probes import PROBES, get_probe
from clinometer.probes.kit.asking import BEFORE, Units
from clinometer.probes.kit.before_after import arms_of, seeds_of
from clinometer.probes.kit.compare import Change, Compared, compare_all
from clinometer.probes.kit.verdicts import untold_change
from clinometer.probes.protocol import Probe
from clinometer.results import Comparison
from clinometer.store import RunFolder, open_any
from clinometer.types import ChangeVerdict, Finding, Findings, ModelInfo, Verdict
from clinometer.workflows.comparison_tables import standings_of, tables_of_comparison
from clinometer.workflows.plans import conclude, other_questions, plans_of, probe_options, spec_of, stages_of

MANY = 5  # models from which a page is a table of all, and not of pairs with the first
IN_ONE = "::"  # RUN::MODEL names one model of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest:
    """Runs (or bundles) to compare, and which is before: the first, or the one that `base` names.

    Of one run its models are compared. `RUN::MODEL` is one model of a run. `base` is one of the sources, or the
    name of a model. `probes` are audits that are neither built in nor installed.
    """

    sources: tuple[str | Path | RunFolder, ...]
    base: str = ""
    probes: tuple[Probe, ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A run, what it found, and which of its models are compared."""

    name: str  # the folder's
    given: str  # as the user wrote it
    run: RunFolder
    findings: Mapping[str, Findings]
    models: tuple[ModelInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One model of one run."""

    label: str  # what a reader knows it by: its name, with that of its run where two have one name
    source: Source
    model: ModelInfo

    def units(self, audit: str, probe: Probe) -> list[Units]:
        """Return what an audit measured of this model, unit by unit."""
        found = self.source.findings.get(audit)
        if found is None or not hasattr(probe, "compared"):
            return []
        return list(probe.compared(found, [self.model]))

    def verdicts(self) -> Iterator[Verdict]:
        """Yield what the audits say of this model, asked in whatever way."""
        for found in self.source.findings.values():
            for each in found.verdicts:
                if each.model == self.model.name or each.model.startswith(f"{self.model.name} ("):
                    yield each


@dataclass(frozen=True, slots=True, kw_only=True)
class SidePair:
    """A model, and what it is compared with: another, or several trainings of it that differ in their seed."""

    before: Side
    after: tuple[Side, ...]
    label: str  # of what comes after
    role: str = ""  # of the model before, where the others began with it
    seeds: tuple[str, ...] = ()  # of these trainings


def _pair(before: Side, after: Side) -> SidePair:
    return SidePair(before=before, after=(after,), label=after.label)


def run_compare(request: CompareRequest) -> Comparison:
    """Compare every model with the one before it; where there are many, all with each other, too."""
    given = {probe.name: probe for probe in request.probes}
    sources, left_out = _sources(request, given)
    found = dict.fromkeys(name for source in sources for name in source.findings)
    known = {name: probe for name in found if (probe := _probe(name, given)) is not None}
    sides = _sides(sources)
    tuned = len(sources) == 1 and bool(arms_of([side.model for side in sides]))
    many = len(sides) >= MANY and len(sources) != 2 and not tuned
    pairs = _pairs(sides, sources, base=request.base, many=many) if not many or request.base else []
    if pairs and not request.base and sources[0].given != _given(request.sources[0]):
        raise InputError(f"the first is before, and cannot be opened: {left_out[0].removeprefix('Left out: ')}")
    audits = {name: known[name] for name in sorted(known)}
    units = {(id(side), name): side.units(name, probe) for side in sides for name, probe in audits.items()}
    notes = [*left_out, *(f"{name}: this audit is not installed here." for name in found if name not in known)]
    sought: list[Compared] = []
    for pair in pairs:
        obstacles, told = _obstacles(pair.before, pair.after[0], audits)
        notes += told
        of_audits = {
            name: [(units[id(pair.before), name], units[id(after), name]) for after in pair.after]
            for name in audits
        }
        sought.append(
            Compared(
                before=pair.before.label,
                after=pair.label,
                audits=of_audits,
                obstacles=obstacles,
                role=pair.role,
                seeds=pair.seeds,
            )
        )
    made = compare_all(sought, seed=request.seed)
    changes = [change for of_pair in made for change in of_pair]
    shared = [row for pair, of_pair in zip(pairs, made, strict=True) for row in _shared(pair, of_pair)]
    verdicts = [change.verdict for change in changes]
    for pair, of_pair in zip(pairs, sought, strict=True):
        told, untold = _unpaired(pair, audits, of_pair)
        notes += told
        verdicts += untold
    notes += _alone(sides, pairs) if pairs else ()
    standings = [
        row
        for name in audits
        for row in standings_of(name, {side.label: units[id(side), name] for side in sides}, seed=request.seed)
    ]
    return Comparison(
        models=tuple(side.label for side in sides),
        pairs=tuple((pair.before.label, pair.label) for pair in pairs),
        after=tuple(dict.fromkeys(side.label for pair in pairs for side in pair.after)),
        verdicts=tuple(verdicts),
        leans={side.label: tuple(side.verdicts()) for side in sides},
        tables=tuple(tables_of_comparison(verdicts, changes, shared, standings, _similarity(sides, audits))),
        audits={name: probe.title for name, probe in audits.items()},
        notes=tuple(dict.fromkeys(notes)),
        sources=tuple(source.name for source in sources),
        left_out=left_out,
    )


# ---------------------------------------------------------------------------------------------------------
# What is compared


def _probe(name: str, given: Mapping[str, Probe]) -> Probe | None:
    return given.get(name) or (get_probe(name) if name in PROBES else None)


def _sources(request: CompareRequest, given: Mapping[str, Probe]) -> tuple[list[Source], list[str]]:
    """Open what is to be compared; of many, those that cannot be are left out, and it is said why."""
    if not request.sources:
        raise InputError("nothing to compare; name two runs, or one with several models")
    found: list[Source] = []
    left_out: list[str] = []
    for each in request.sources:
        try:
            found.append(_source(each, given))
        except ClinometerError as error:
            if len(request.sources) < 3:
                raise
            left_out.append(f"Left out: {error}.")
    return found, left_out


def _source(each: str | Path | RunFolder, given: Mapping[str, Probe]) -> Source:
    place, chosen = (each, "") if isinstance(each, RunFolder) else _split(each)
    run = place if isinstance(place, RunFolder) else open_source(place)
    models = run.models
    if chosen:
        models = tuple(info for info in models if info.name == chosen)
        if not models:
            names = [info.name for info in run.models]
            raise InputError(f"no model {chosen!r} in {run.path}; {nearest(chosen, names)}")
    return Source(name=run.path.name, given=_given(each), run=run, findings=findings_of(run, given), models=models)


def _given(each: str | Path | RunFolder) -> str:
    return str(each.path) if isinstance(each, RunFolder) else str(each)


def _split(given: str | Path) -> tuple[Path, str]:
    place, _, model = str(given).partition(IN_ONE)
    return Path(place), model


def open_source(place: Path) -> RunFolder:
    """Open a run folder, or a bundle of one: the one place that knows what a source may be."""
    return open_any(place)


def findings_of(run: RunFolder, given: Mapping[str, Probe]) -> dict[str, Findings]:
    """Return what the audits of a run found, made anew where another release, or an older table, made it."""
    stored = {found.probe: found for found in run.read_findings()}
    if not stored:
        raise InputError(f"{run.path} has no findings; complete it with `clinometer resume {run.path}`")
    spec = spec_of(run)
    for name, found in stored.items():
        probe = _probe(name, given)
        if probe is None or not hasattr(probe, "compared") or other_questions(run, probe):
            continue
        lacking = any(not each.names and not each.gate for each in probe.compared(found, run.models))
        if not lacking and found.release == __version__:
            continue
        plans = plans_of(probe, spec, run)
        # an older run may lack what the audit reads by now: then what it found is all there is
        if not any(run.is_empty(key) for key in stages_of({name: probe}, {name: plans})):
            stored[name] = conclude(probe, plans, run)
    return stored


def _sides(sources: Sequence[Source]) -> list[Side]:
    names = [info.name for source in sources for info in source.models]
    sides = []
    for source, of_run in zip(sources, _run_names(sources), strict=True):
        for info in source.models:
            label = info.name if names.count(info.name) == 1 else f"{info.name} [{of_run}]"
            sides.append(Side(label=label, source=source, model=info))
    if len(sides) < 2:
        raise InputError("only one model to compare; name another run, or a run with several models")
    return sides


def _run_names(sources: Sequence[Source]) -> Iterator[str]:
    """Name runs by their folders, with as many folders above as tell two apart; one given twice by a number."""
    simple = [source.name for source in sources]
    places = [Path(source.run.origin or source.run.path).absolute().parts for source in sources]
    for number, (name, place) in enumerate(zip(simple, places, strict=True)):
        if simple.count(name) == 1:
            yield name
            continue
        tails = (place[-depth:] for depth in range(1, len(place) + 1))
        short = "/".join(next(tail for tail in tails if _only(tail, place, places)))
        yield short if places.count(place) == 1 else f"{short}, {places[: number + 1].count(place)}"


def _only(tail: tuple[str, ...], place: tuple[str, ...], places: Sequence[tuple[str, ...]]) -> bool:
    return all(other[-len(tail) :] != tail for other in places if other != place)


def _pairs(sides: Sequence[Side], sources: Sequence[Source], *, base: str, many: bool) -> list[SidePair]:
    """Return which models are before and after: of one run its models, of several those of one name.

    Of many, a model that `base` names comes before all others.
    """
    named = [side for side in sides if base and base in (side.label, side.model.name)]
    if len(sources) == 1:
        before = named[0] if named else None
        if base and before is None:
            raise InputError(f"no model {base!r} to compare with; {nearest(base, [side.label for side in sides])}")
        models = [side.model for side in sides]
        arms = arms_of(models)
        if before is None and arms:
            return [
                SidePair(
                    before=sides[arm.pairs[0].before],
                    after=tuple(sides[pair.after] for pair in arm.pairs),
                    label=arm.name,
                    role=BEFORE,
                    seeds=seeds_of(arm, models),
                )
                for arm in arms
            ]
        before = before or sides[0]
        return [_pair(before, side) for side in sides if side is not before]
    first = _base_source(sources, sides, base)
    if many and named:
        return [_pair(named[0], side) for side in sides if side is not named[0]]
    ours = [side for side in sides if side.source is first and (side in named or not named)]
    pairs: list[SidePair] = []
    for source in sources:
        theirs = [side for side in sides if side.source is source]
        if source is first:
            continue
        alike = [_pair(one, other) for one in ours for other in theirs if one.model.name == other.model.name]
        if not alike and (len(ours) == 1 or len(theirs) == 1):
            alike = [_pair(one, other) for one in ours for other in theirs]
        pairs += alike
    if not pairs:
        raise InputError(
            f"the runs share no model by name: {', '.join(side.label for side in sides)}; name one of each run as "
            f"RUN{IN_ONE}MODEL"
        )
    return pairs


def _base_source(sources: Sequence[Source], sides: Sequence[Side], base: str) -> Source:
    if not base:
        return sources[0]
    for source in sources:
        if base in (source.given, source.name, str(source.run.path)) or Path(base) == source.run.path:
            return source
    for side in sides:
        if base in (side.label, side.model.name):
            return side.source
    names = [*(source.given for source in sources), *(side.label for side in sides)]
    raise InputError(f"--base {base!r} is neither one of the runs nor a model of theirs; {nearest(base, names)}")


# ---------------------------------------------------------------------------------------------------------
# What the two were asked


def _obstacles(before: Side, after: Side, audits: Mapping[str, Probe]) -> tuple[dict[str, str], list[str]]:
    """Return, by audit, why nothing of it compares, and in plain words which options differ."""
    obstacles, notes = {}, []
    runs = before.source.run, after.source.run
    if runs[0] is runs[1] or runs[0].path == runs[1].path:
        return {}, []
    specs = [spec_of(run) for run in runs]
    for name, probe in audits.items():
        if any(name not in side.source.findings for side in (before, after)):
            continue
        versions = [run.provenance.get("questions", {}).get(name) for run in runs]
        if versions[0] != versions[1]:
            obstacles[name] = "they were asked by two versions of this audit"
        options = [_values(probe_options(probe, spec)) for spec in specs]
        free = getattr(probe, "compared_freely", None)
        for option in sorted(options[0]):
            one, other = (each.get(option) for each in options)
            if one == other:
                continue
            notes.append(f"{name}: option {option} differs, {_short(one)} and {_short(other)}.")
            if free is not None and option not in free:
                obstacles.setdefault(name, f"they were asked with another {option}")
    return obstacles, notes


def _values(options: Any) -> dict[str, Any]:
    """Return options by name; a file by what is in it."""
    values = {each.name: getattr(options, each.name) for each in dataclasses.fields(options)}
    for name, value in values.items():
        if name.endswith("_file") and value:
            try:
                values[name] = f"a file ({hashlib.sha256(read_limited(Path(value), most=TEXT)).hexdigest()[:12]})"
            except OSError:
                values[name] = f"a file ({value})"
    return values


def _short(value: Any) -> str:
    text = "none" if value in ("", None, ()) else str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _shared(pair: SidePair, changes: Sequence[Change]) -> Iterator[Finding]:
    """Yield what two models share of what they were asked, question by question."""
    for change in changes:
        match = change.match
        counts = len(match.before.names), len(match.after.names), len(match.names)
        labels: dict[str, str | int | float] = {
            "audit": change.verdict.audit,
            "measure": change.verdict.measure,
            "before": pair.before.label,
            "after": pair.label,
            "unit": match.before.unit,
            "units_before": counts[0],
            "units_after": counts[1],
            "templates": ", ".join(each for each in match.before.variants if each in match.after.variants),
            "asked": " / ".join(dict.fromkeys((match.before.asked, match.after.asked))),
        }
        yield Finding(labels=labels, estimate=counts[2], n=counts[2])


def _unpaired(
    pair: SidePair, audits: Mapping[str, Probe], sought: Compared
) -> tuple[list[str], list[ChangeVerdict]]:
    """Return what of two models is not paired: notes, and what could not be told because one was not asked it."""
    notes, untold = [], []
    before, after = pair.before, pair.after[0]
    for name in audits:
        ours, theirs = sought.audits[name][0]
        has = [any(v.audit == name for v in side.verdicts()) for side in (before, after)]
        reason = ""
        if has[0] != has[1]:
            asked, other = (before.label, pair.label) if has[0] else (pair.label, before.label)
            reason = f"{asked} was asked, {other} was not"
        elif all(has) and not hasattr(audits[name], "compared"):
            notes.append(f"{name}: this audit names no units, so its verdicts are shown, and nothing is paired.")
        elif all(has) and not {each.question for each in ours} & {each.question for each in theirs}:
            reason = "they were not asked the same"
        if reason:
            untold.append(untold_change(audit=name, before=before.label, after=pair.label, reason=reason))
    return notes, untold


def _alone(sides: Sequence[Side], pairs: Sequence[SidePair]) -> Iterator[str]:
    paired = {id(side) for pair in pairs for side in (pair.before, *pair.after)}
    left = [side.label for side in sides if id(side) not in paired]
    if left:
        yield f"Not compared, because no other run has a model of that name: {', '.join(left)}."


# ---------------------------------------------------------------------------------------------------------
# How alike they are


def _similarity(sides: Sequence[Side], audits: Mapping[str, Probe]) -> list[Finding]:
    """Return how alike the models see groups (the RSA matrix), where an audit can say so."""
    rows = []
    for name, probe in audits.items():
        alike = getattr(probe, "alike", None)
        asked = [side for side in sides if any(v.audit == name for v in side.verdicts())]
        if alike is None or len(asked) < 2:
            continue
        rho, groups = alike([(side.source.findings[name], side.model.name) for side in asked])
        rows += [
            Finding(labels={"model": one.label, "other_model": other.label}, estimate=float(rho[i, j]), n=groups)
            for i, one in enumerate(asked)
            for j, other in enumerate(asked)
        ]
    return rows
