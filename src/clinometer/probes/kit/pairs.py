"""Two models beside each other, or a model and several trainings of it: what they share, and the numbers.

Several trainings of one kind differ in their seed alone. They are compared as one, the mean of each unit, and what
differs between them is in the interval: `stats/trainings.py` has the equations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clinometer.probes.kit.asking import Matched, Units, matched
from clinometer.probes.kit.numbers import Floats, model_rng
from clinometer.stats import (
    PairedLeans,
    Sure,
    critical_value,
    detectable_change,
    detectable_from_interval,
    distance_change,
    freedom_with_noise,
    independent_change,
    paired_leans,
    training_noise,
    with_training_noise,
)
from clinometer.types import Finding

POWER_OF_EACH = 0.9  # of two tests that must both succeed, so that both do four times in five


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


def above_half(values: Floats) -> Floats:
    """Return 1 where a value is more than one half, else 0."""
    return np.where(np.isnan(values), np.nan, (values > 0.5).astype(np.float64))


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
    one_control: bool = False  # one training is the control of several
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
            alike = [match, *(each for of_one in more for each in of_one if _same_question(each, match))]
            stopped = pair.obstacles.get(audit, "") or next((each.obstacle for each in alike if each.obstacle), "")
            if len(alike) < len(trainings):
                stopped = stopped or "it was not measured after every training"
            alike = [replace(each, obstacle=stopped, own=each.after.changes.get(pair.role)) for each in alike]
            found = tuple(measure_change(each, seed=seed) for each in alike)
            joined = _joined(alike) if len(alike) > 1 else alike[0]
            of_all = _mean_change(joined, found, seed=seed) if len(found) > 1 else found[0]
            yield Measured(audit=audit, match=joined, found=of_all, each=found)


def _same_question(one: Matched, other: Matched) -> bool:
    return (one.before.title, one.before.asked, one.after.asked, one.before.same) == (
        other.before.title, other.before.asked, other.after.asked, other.before.same,
    )  # fmt: skip


def _joined(alike: Sequence[Matched]) -> Matched:
    """Return several trainings as one model: the mean of each unit, over the units that all have."""
    one = alike[0]
    shared = [i for i, name in enumerate(one.names) if all(name in each.names for each in alike)]
    places = [[each.names.index(one.names[i]) for i in shared] for each in alike]
    sides = [
        [getattr(each, side)[at] for each, at in zip(alike, places, strict=True)] for side in ("first", "second")
    ]
    before = one.before
    if before.form == "share":  # a word that is called after two trainings of three is two thirds of a word
        sides = [[above_half(each) for each in side] for side in sides]
        before = replace(before, form="distance")
    first, second = (np.mean(side, axis=0) for side in sides)
    return replace(
        one,
        before=before,
        names=tuple(one.names[i] for i in shared),
        first=first,
        second=second,
        parts=tuple(one.parts[i] for i in shared),
        clusters=tuple(one.clusters[i] for i in shared) if one.clusters else (),
        counts=one.counts[shared],
        own=None,
    )


def _mean_change(joined: Matched, found: Sequence[PairedLeans], *, seed: int) -> PairedLeans:
    """Return the change of the mean over trainings, as sure as units make it."""
    if joined.before.form != "measured" or joined.obstacle:
        return measure_change(joined, seed=seed)
    # the trainings were asked about the same templates and values: they are as sure together as each alone
    change = Sure(
        **{
            name: np.mean([getattr(each.change, name) for each in found], axis=0)
            for name in ("estimate", "low", "high", "p")
        }
    )
    leans = [np.mean([getattr(each, side) for each in found], axis=0) for side in ("before", "after")]
    return _distances(leans[0], leans[1], change, n=len(joined.names))
