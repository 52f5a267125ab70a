"""Comparing models: what is paired, by which rule one is called worse, and in which words.

An audit says which of its tables hold the units of its primary measures (`Probe.compared`, optional). Two models
are compared on the units that both have, if the table of ways of asking allows it. A model is *worse* where it is
farther from even-handed, whichever the sign, *better* where it is nearer, by the one rule that every audit
concludes by. Several trainings of one kind are compared as one, and what differs between them is in the interval:
`stats/trainings.py` has the equations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clinometer.probes.kit.asking import (
    Matched,
    Units,
    above_half,
    joined,
    match_units,
    matched,
    mean_of,
    same_question,
)
from clinometer.probes.kit.numbers import Floats, model_rng, with_q
from clinometer.probes.kit.verdicts import BLUNT, NO_CHANGE, UNTOLD, WORSE, change_state, is_found
from clinometer.stats import (
    PairedLeans,
    Sure,
    critical_value,
    detectable_change,
    detectable_from_interval,
    distance_change,
    freedom_with_noise,
    independent_change,
    letters_of,
    mean_leans,
    paired_leans,
    training_noise,
    with_training_noise,
)
from clinometer.types import ChangeState, ChangeVerdict, Finding

POWER_OF_EACH = 0.9  # of two tests that must both succeed, so that both do four times in five


# ---------------------------------------------------------------------------------------------------------
# The numbers


def measure_change(match: Matched, *, seed: int = 0) -> PairedLeans:
    """Return the leans of both models over what they share, and how they differ; of nothing shared, NaN.

    Where the audit has measured the change itself, in the run of both, its number is taken.
    """
    units, own = match.before, match.own
    if match.obstacle:
        return _nothing()
    if units.form == "measured" and own is not None:
        first, second = (np.array([float(own.labels[name])]) for name in ("before", "after"))
        return _distances(first, second, sure_of([own]), n=len(match.names))
    if units.form == "measured" and units.whole and match.after.whole and _asked_alike(match):
        sides = [sure_of([units.whole]), sure_of([match.after.whole])]
        # texts that two models wrote are drawn apart
        change = independent_change(*sides)
        return _distances(sides[0].estimate, sides[1].estimate, change, n=len(match.names))
    order = {part: number for number, part in enumerate(units.weights)}
    counted = [i for i, part in enumerate(match.parts) if part in order]
    if not counted:
        return _nothing()
    # a mean in which units count several times is the plain mean of values scaled by their counts
    heavy = np.array([match.counts[i] / _mean_count(match, match.parts[i]) for i in counted])
    first, second = match.first[counted], match.second[counted]
    if units.form == "share":
        first, second = above_half(first), above_half(second)
    rng = model_rng(seed, f"{units.model}\0{match.after.model}\0{units.title}")
    found = paired_leans(
        first * heavy,
        second * heavy,
        [order[match.parts[i]] for i in counted],
        list(units.weights.values()),
        signed=units.form == "signed",
        shares=units.form == "share",
        clusters=[match.clusters[i] for i in counted] if match.clusters else None,
        rng=rng,
    )
    if own is not None and math.isclose(own.estimate, float(found.change.estimate[0]), abs_tol=1e-9):
        change = sure_of([own])
        return replace(found, change=change, distance=distance_change(change, found.both))
    return found


def _mean_count(match: Matched, part: str) -> float:
    known = ~np.isnan(match.first + match.second)
    return float(
        np.mean([match.counts[i] for i, each in enumerate(match.parts) if each == part and known[i]] or [1])
    )


def _asked_alike(match: Matched) -> bool:
    return set(match.before.names) == set(match.after.names)


def _distances(before: Floats, after: Floats, change: Sure, *, n: int) -> PairedLeans:
    """Return two leans that are distances themselves: how they differ is all there is."""
    return PairedLeans(before=before, after=after, change=change, both=change, distance=change, n=np.array([n]))


def sure_of(rows: Sequence[Finding]) -> Sure:
    """Return the numbers of rows."""
    estimate, low, high, p = np.array([(each.estimate, each.low, each.high, each.p) for each in rows]).T
    alike = (estimate == 0) & (low == 0) & (high == 0)  # the same answers have no p
    return Sure(estimate=estimate, low=low, high=high, p=np.where(alike, 1.0, p))


def _nothing() -> PairedLeans:
    nan = np.array([np.nan])
    unknown = Sure(estimate=nan, low=nan, high=nan, p=nan)
    return _distances(nan, nan, unknown, n=0)


def detectable(measured: Measured, *, tests: int) -> float:
    """Return the smallest change of the distance that is found four times in five, among so many tests.

    Where the lean before is not sure to have a sign, the change and the sum must both be found, and the less sure
    of the two decides.
    """
    match, found = measured.match, measured.found
    if match.before.form == "share":
        counted = np.array([part in match.before.weights for part in match.parts])
        first, second = (side[counted] > 0.5 for side in (match.first, match.second))
        lost, gained = int((first & ~second).sum()), int((second & ~first).sum())
        unsure = found.distance.low[0] <= 0 <= found.distance.high[0]
        exchanged = lost + gained if unsure else 2 * min(lost, gained)  # what is no change of the share
        return detectable_change(exchanged, items=int(found.n[0]), tests=tests)
    sizes = [match.parts.count(part) for part in match.before.weights]
    units = len(set(match.clusters)) if match.clusters else min(sizes, default=0)
    freedom = min(max(units - 1, 1) if match.before.form != "measured" else math.inf, measured.freedom)
    settled = match.before.form != "signed" or not found.both.low[0] <= 0 <= found.both.high[0]
    sides = [found.change] if settled else [found.change, found.both]
    reach = [max(float(s.estimate[0] - s.low[0]), float(s.high[0] - s.estimate[0])) for s in sides]
    if any(map(math.isnan, reach)) or not reach[0] > 0:  # models that answer alike have nothing to detect
        return math.nan
    # a distance that has grown varies more, too
    power = 0.8 if settled and match.before.form != "distance" else POWER_OF_EACH
    return detectable_from_interval(-max(reach), max(reach), tests=tests, power=power, freedom=freedom)


# ---------------------------------------------------------------------------------------------------------
# Several trainings of one kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two models, or a model and several trainings of it that differ in their seed alone: units by audit."""

    before: str  # the names that a reader knows them by
    after: str
    audits: Mapping[str, Sequence[tuple[Sequence[Units], Sequence[Units]]]]  # before and after, for each training
    obstacles: Mapping[str, str] = field(default_factory=dict)  # by audit, why nothing of it can be compared
    role: str = ""  # of the first, for a training: BEFORE or CONTROL; "": two models that nobody links
    seeds: tuple[str, ...] = ()  # of the trainings
    fewer_controls: bool = False  # than trainings
    family: str = ""  # pairs whose questions are corrected together; "": each alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One question of a pair: what is shared, the numbers, and the lean after each training."""

    audit: str
    match: Matched
    found: PairedLeans
    each: tuple[PairedLeans, ...]  # after each training
    freedom: float = math.inf  # degrees of freedom of the interval, where training noise is in it

    @property
    def error(self) -> float:
        """The standard error that the change has from units alone."""
        change = self.found.change
        return float(change.high[0] - change.low[0]) / (2 * critical_value(0.975))


def measured_pairs(pairs: Sequence[Compared], *, seed: int = 0) -> list[list[Measured]]:
    """Return the numbers of every question of each pair; what differs between trainings is in the intervals."""
    found = [list(_measured(pair, seed=seed)) for pair in pairs]
    cells: dict[tuple[str, str, int], dict[int, dict[str, int]]] = {}
    for arm, (pair, of_pair) in enumerate(zip(pairs, found, strict=True)):
        for at, each in enumerate(of_pair):
            if len(each.each) > 1:
                # changes against a control have the noise of two trainings in them, and are pooled apart
                kind = pair.role, each.audit, len(each.each)
                cells.setdefault(kind, {}).setdefault(arm, {})[each.match.before.title] = at
    for (_, _, trainings), arms in cells.items():
        titles = list(dict.fromkeys(title for of_arm in arms.values() for title in of_arm))
        changes = np.full((len(arms), len(titles), trainings), np.nan)
        errors = np.full((len(arms), len(titles)), np.nan)
        for row, (arm, of_arm) in enumerate(arms.items()):
            for title, at in of_arm.items():
                of_each = [float(each.change.estimate[0]) for each in found[arm][at].each]
                changes[row, titles.index(title)] = of_each
                errors[row, titles.index(title)] = found[arm][at].error
        noise = training_noise(changes, errors)
        for row, (arm, of_arm) in enumerate(arms.items()):
            for title, at in of_arm.items():
                variance, freedom = noise.of(row, titles.index(title))
                found[arm][at] = _noisy(found[arm][at], variance, freedom=freedom)
    return found


def _noisy(measured: Measured, variance: float, *, freedom: float) -> Measured:
    """Put the variance between trainings into the intervals."""
    given, trainings = measured.found, len(measured.each)
    change, both = (
        with_training_noise(each, variance, freedom=freedom, trainings=trainings)
        for each in (given.change, given.both)
    )
    distance = distance_change(change, both) if measured.match.before.form == "signed" else change
    of_interval = freedom_with_noise(given.change, variance, freedom=freedom, trainings=trainings)
    return replace(
        measured,
        found=replace(given, change=change, both=both, distance=distance),
        freedom=float(of_interval[0]),
    )


def _measured(pair: Compared, *, seed: int) -> Iterator[Measured]:
    for audit, trainings in pair.audits.items():
        first, *more = [list(matched(audit, ours, theirs)) for ours, theirs in trainings]
        for match in first:
            alike = [match, *(each for of_one in more for each in of_one if same_question(each, match))]
            stopped = pair.obstacles.get(audit, "") or next((each.obstacle for each in alike if each.obstacle), "")
            if len(alike) < len(trainings):
                stopped = stopped or "it was not measured after every training"
            alike = [replace(each, obstacle=stopped, own=each.after.changes.get(pair.role)) for each in alike]
            found = tuple(measure_change(each, seed=seed) for each in alike)
            together = joined(alike) if len(alike) > 1 else alike[0]
            of_all = _mean_change(together, found, seed=seed) if len(found) > 1 else found[0]
            yield Measured(audit=audit, match=together, found=of_all, each=found)


def _mean_change(together: Matched, found: Sequence[PairedLeans], *, seed: int) -> PairedLeans:
    """Return the change of the mean over trainings, as sure as units make it."""
    if together.before.form != "measured" or together.obstacle:
        return measure_change(together, seed=seed)
    # the trainings were asked about the same templates and values: they are as sure together as each alone
    change = Sure(
        **{
            name: np.mean([getattr(each.change, name) for each in found], axis=0)
            for name in ("estimate", "low", "high", "p")
        }
    )
    leans = [np.mean([getattr(each, side) for each in found], axis=0) for side in ("before", "after")]
    return _distances(leans[0], leans[1], change, n=len(together.names))


# ---------------------------------------------------------------------------------------------------------
# What follows


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One question of one pair of models, with numbers and conclusion."""

    match: Matched
    found: PairedLeans
    verdict: ChangeVerdict


def compare_models(
    audits: Mapping[str, tuple[Sequence[Units], Sequence[Units]]], *, before: str, after: str, seed: int = 0
) -> list[Change]:
    """Conclude on every question that two models were both asked, by audit."""
    each = {audit: [sides] for audit, sides in audits.items()}
    (found,) = compare_all([Compared(before=before, after=after, audits=each)], seed=seed)
    return found


def compare_all(pairs: Sequence[Compared], *, seed: int = 0) -> list[list[Change]]:
    """Conclude on every question of each pair; q is corrected over the questions of an audit.

    So no audit changes what follows from another, and a run says the same of its checkpoints as a comparison does.
    """
    measured = measured_pairs(pairs, seed=seed)
    families: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for at, (pair, of_pair) in enumerate(zip(pairs, measured, strict=True)):
        for place, each in enumerate(of_pair):
            families.setdefault((pair.family or str(at), each.audit), []).append((at, place))
    changes: dict[tuple[int, int], Change] = {}
    for places in families.values():
        rows = with_q(_row(measured[at][place].found) for at, place in places)
        tests = max(sum(not math.isnan(row.p) for row in rows), 1)
        for (at, place), row in zip(places, rows, strict=True):
            each = measured[at][place]
            smallest = math.nan if each.match.obstacle else detectable(each, tests=tests)
            verdict = conclude_change(pairs[at], each, row, smallest=smallest)
            changes[at, place] = Change(match=each.match, found=each.found, verdict=verdict)
    return [[changes[at, place] for place in range(len(of_pair))] for at, of_pair in enumerate(measured)]


def _row(found: PairedLeans) -> Finding:
    distance = found.distance
    return Finding(
        labels={},
        estimate=float(distance.estimate[0]),
        low=float(distance.low[0]),
        high=float(distance.high[0]),
        p=float(distance.p[0]),
        n=int(found.n[0]),
    )


def conclude_change(pair: Compared, measured: Measured, row: Finding, *, smallest: float) -> ChangeVerdict:
    """Return what follows from the change of a distance from even-handed, with its q."""
    match, found, units = measured.match, measured.found, measured.match.before
    change = Finding(
        labels={},
        estimate=float(found.change.estimate[0]),
        low=float(found.change.low[0]),
        high=float(found.change.high[0]),
        q=float(found.change.p[0]),
        n=row.n,
    )
    leans = float(found.before[0]), float(found.after[0])
    turned = is_found(change) and leans[0] * leans[1] < 0
    obstacle = match.obstacle
    if not obstacle and change_state(row) == NO_CHANGE and not turned and smallest > BLUNT * units.full:
        obstacle = f"only a change of {smallest:.2f} or more would have been found, of {units.full:g} possible"
    state = change_state(row, obstacle=obstacle)
    reason = obstacle if state == UNTOLD else ""
    if state == UNTOLD and not reason:
        shared = f"only {row.n} {units.unit}s are shared" if row.n else "nothing was measured of both"
        reason = shared if units.form != "measured" else "too little was measured for an interval"
    told = row if state != UNTOLD else Finding(labels={}, estimate=math.nan, n=len(match.names))
    return ChangeVerdict(
        audit=measured.audit,
        before=pair.before,
        after=pair.after,
        measure=units.title,
        state=state,
        estimate=told.estimate,
        low=told.low,
        high=told.high,
        p=row.p,
        q=row.q,
        n=told.n,
        unit=units.unit,
        lean_before=leans[0],
        lean_after=leans[1],
        change=change.estimate,
        change_low=change.low,
        change_high=change.high,
        change_p=change.q,  # of this one test
        detectable=smallest,
        sentence=_sentence(pair, match, state, leans, n=row.n, turned=turned, reason=reason),
        reason=reason,
        trainings=tuple(float(each.after[0]) for each in measured.each) if pair.role else (),
        training_changes=tuple(float(each.change.estimate[0]) for each in measured.each) if pair.role else (),
        seeds=pair.seeds,
        fewer_controls=pair.fewer_controls,
    )


def _sentence(
    pair: Compared,
    match: Matched,
    state: ChangeState,
    leans: tuple[float, float],
    *,
    n: int,
    turned: bool,
    reason: str,
) -> str:
    units = match.before
    if state == UNTOLD:
        return f"{pair.after} and {pair.before} cannot be compared: {reason}."
    if state == NO_CHANGE and turned:
        return f"{pair.after} leans the other way than {pair.before}, about as far."
    if state == NO_CHANGE:
        return f"{pair.after} shows no change from {pair.before} that this comparison could see."
    counts = f" ({round(leans[1] * n)} of {n}, before {round(leans[0] * n)})" if units.form == "share" else ""
    return f"{pair.after} {units.more if state == WORSE else units.less} than {pair.before}{counts}."


def most_changed(change: Change, *, most: int = 0) -> Iterator[tuple[str, str, float, float]]:
    """Yield the units on which two models differ most: name, part, value before, value after; 0: all of them."""
    match = change.match
    gaps = np.abs(match.second - match.first)
    order = [int(i) for i in np.argsort(-np.nan_to_num(gaps), kind="stable") if not math.isnan(gaps[i])]
    for i in order[: most or None]:
        yield match.names[i], match.parts[i], float(match.first[i]), float(match.second[i])


# ---------------------------------------------------------------------------------------------------------
# Many models


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One model on one measure, with the letters that it shares with those it cannot be told from."""

    model: str
    units: Units
    lean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    letters: tuple[str, ...] = ()  # none: it cannot be judged


def places_of(audit: str, asked: Mapping[str, Units], *, seed: int = 0) -> list[Place]:
    """Return all models on one question, nearest to even-handed first; letters only tell of comparable models.

    Every two models are compared by the rule of `compare_models`, on the units that both have; q over all pairs.
    """
    judged = {model: each for model, each in asked.items() if not each.gate and each.names}
    sets: list[dict[str, Units]] = []
    for model, each in judged.items():
        fitting = (known for known in sets if not match_units(audit, next(iter(known.values())), each).obstacle)
        known = next(fitting, None)
        if known is None:
            sets.append({model: each})
        else:
            known[model] = each
    places: list[Place] = []
    for number, known in enumerate(sets):
        for place in _placed(known, seed=seed):
            # letters of another set mean something else
            places.append(replace(place, letters=tuple(f"{letter}{'′' * number}" for letter in place.letters)))
    return places + [Place(model=model, units=each) for model, each in asked.items() if model not in judged]


def _placed(judged: Mapping[str, Units], *, seed: int) -> list[Place]:
    given = list(judged.values())
    pairs = [(i, j) for i in range(len(given)) for j in range(i + 1, len(given))]
    one, other = ([pair[at] for pair in pairs] for at in (0, 1))
    form, weights = given[0].form, list(given[0].weights.values())
    if form == "measured":
        rows = [each.whole or Finding(labels={}, estimate=math.nan) for each in given]
        leans = sure_of(rows)
        sides = [sure_of([rows[i] for i in at]) for at in (one, other)]
        found = independent_change(*sides) if pairs else leans
    else:
        values, parts = _together(given)
        leans = mean_leans(values, parts, weights, rng=model_rng(seed, "leans"))
        found = leans
        if pairs:
            rng = model_rng(seed, "pairs")
            found = paired_leans(
                values[:, one], values[:, other], parts, weights, rng=rng, draws=1999,
                signed=form == "signed", shares=form == "share",
            ).distance  # fmt: skip
    numbers = [getattr(found, name).tolist() for name in ("estimate", "low", "high", "p")]
    rows = with_q(
        Finding(labels={}, estimate=e, low=low, high=high, p=p) for e, low, high, p in zip(*numbers, strict=True)
    )
    apart = {pair: is_found(row) for pair, row in zip(pairs, rows, strict=False)}
    distance = [abs(lean) if form == "signed" else lean for lean in leans.estimate.tolist()]
    order = sorted(range(len(given)), key=lambda i: math.inf if math.isnan(distance[i]) else distance[i])
    letters = letters_of([[apart.get((min(i, j), max(i, j)), False) for j in order] for i in order])
    names = list(judged)
    places = []
    for at, i in enumerate(order):
        lean, own = float(leans.estimate[i]), given[i].whole
        # one lean has one interval, which the page of its run shows
        same = own is not None and math.isclose(own.estimate, lean, abs_tol=1e-9)
        low, high = (own.low, own.high) if own and same else (float(leans.low[i]), float(leans.high[i]))
        letter = letters[at] if not math.isnan(lean) else ()
        places.append(Place(model=names[i], units=given[i], lean=lean, low=low, high=high, letters=letter))
    return places


def _together(given: Sequence[Units]) -> tuple[Floats, list[int]]:
    """Return values (units × models) over the units that any model has, and the part of each unit."""
    part_of: dict[str, str] = {}
    for each in given:
        part_of |= dict(zip(each.names, each.parts or ("",) * len(each.names), strict=True))
    order = {part: number for number, part in enumerate(given[0].weights)}
    place = {name: at for at, name in enumerate(name for name in part_of if part_of[name] in order)}
    values = np.full((len(place), len(given)), np.nan)
    for column, each in enumerate(given):
        means = mean_of(each.values, range(len(each.variants)))
        means = above_half(means) if each.form == "share" else means
        for name, value in zip(each.names, means.tolist(), strict=True):
            if name in place:
                values[place[name], column] = value
    return values, [order[part_of[name]] for name in place]
