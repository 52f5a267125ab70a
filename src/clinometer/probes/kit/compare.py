"""Comparing two models: what is paired, by which rule one is called worse, and in which words.

An audit says which of its tables hold the units of its primary measures (`Probe.compared`, optional). Two models
are compared on the units that both have, if the table of ways of asking allows it. A model is *worse* where it is
farther
from even-handed, whichever the sign, *better* where it is nearer, by the one rule that every audit concludes by.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from clinometer.probes.kit.asking import NOT, VALUES, comparable
from clinometer.probes.kit.numbers import Floats, model_rng, with_q
from clinometer.probes.kit.verdicts import CANNOT_TELL, NO_CHANGE, UNTOLD, WORSE, change_state, is_found
from clinometer.stats import (
    PairedLeans,
    Sure,
    detectable_change,
    detectable_from_interval,
    independent_change,
    letters_of,
    mean_leans,
    paired_leans,
    rank_correlation,
)
from clinometer.types import ChangeState, ChangeVerdict, Finding, Findings

# What a lean is: "signed" may be above or below 0; "distance" is 0 or more, unit by unit; "share" counts units
# with a value above one half; "measured" is one number with an interval of its own, which no other model's answers
# touch.
Form = Literal["signed", "distance", "share", "measured"]

POWER_OF_EACH = 0.9  # of two tests that must both succeed, so that both do four times in five


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """What one model gives on one question of an audit, unit by unit.

    The lean is the weighted sum of the means of the parts. `values` has a column for each variant (a template):
    two models are compared on the variants that both have.
    """

    model: str  # as the tables name it: "m", or "m (blank)"
    question: str  # "stigmatized and other conditions": the same for every way of asking
    measure: str  # "negative attitude"
    asked: str  # the way of asking
    unit: str  # what a unit is called: "condition"
    names: tuple[str, ...]
    values: Floats  # (units, variants); NaN is missing
    more: str  # "tells stigmatized from other conditions more by negative words": follows a name, before "than …"
    less: str
    parts: tuple[str, ...] = ()  # the part of each unit; (): all are in one
    weights: Mapping[str, float] = field(default_factory=lambda: {"": 1.0})
    variants: tuple[str, ...] = ("",)
    form: Form = "signed"
    same: Mapping[str, str] = field(default_factory=dict)  # what must be the same on both sides: a template, k
    gate: str = ""  # why nothing follows from this model
    whole: Finding | None = None  # of a "measured" lean
    clusters: tuple[str, ...] = ()  # units that are resampled together
    counts: tuple[int, ...] = ()  # how often a unit counts in the mean of its part; (): once each

    @property
    def title(self) -> str:
        """How a reader finds the measure: the same for every model."""
        return f"{self.question} ({self.measure})"


def gate_of(findings: Findings, model: str, aspect: str) -> str:
    """Return why an audit can say nothing of a model, from the verdict on an aspect; "" where it can."""
    found = [each for each in findings.verdicts if each.model == model and each.aspect == aspect]
    return next((each.reason or "nothing was measured" for each in found if each.state == CANNOT_TELL), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Two models on one question: what they share, or why they cannot be compared."""

    before: Units
    after: Units
    names: tuple[str, ...]  # shared units, in the order of the first model
    first: Floats  # (shared units,), means over the shared variants
    second: Floats
    parts: tuple[str, ...]
    clusters: tuple[str, ...]
    counts: Floats  # (shared units,), how often each counts
    obstacle: str = ""
    ranks: float = math.nan  # Spearman's ρ of the units, where only their order may be compared


def matched(audit: str, before: Sequence[Units], after: Sequence[Units]) -> Iterator[Matched]:
    """Pair the questions of two models; of several ways of asking, the most comparable are paired."""
    for question in dict.fromkeys(each.question for each in before):
        ours, theirs = ([each for each in side if each.question == question] for side in (before, after))
        options = [_match(audit, one, other) for one in ours for other in theirs]
        # stable: the first way that a model was asked in comes first
        best = sorted(options, key=_hindrance)
        taken: set[str] = set()
        for each in best:
            names = {f"before\0{each.before.model}\0{each.before.measure}"}
            names |= {f"after\0{each.after.model}\0{each.after.measure}"}
            if taken and (each.obstacle or names & taken):
                continue
            taken |= names
            yield each


def _hindrance(each: Matched) -> tuple[bool, bool, bool]:
    same_view = each.before.model.partition(" (")[2] == each.after.model.partition(" (")[2]
    return bool(each.obstacle), each.before.asked != each.after.asked, not same_view


def _match(audit: str, before: Units, after: Units) -> Matched:
    variants = [each for each in before.variants if each in after.variants]
    place = {name: at for at, name in enumerate(after.names)}
    names = tuple(name for name in before.names if name in place)
    at = [i for i, name in enumerate(before.names) if name in place]
    first = _mean_of(before.values[at], [before.variants.index(each) for each in variants])
    second = _mean_of(after.values[[place[name] for name in names]], [after.variants.index(v) for v in variants])
    parts = tuple(before.parts[i] for i in at) if before.parts else ("",) * len(names)
    clusters = tuple(before.clusters[i] for i in at) if before.clusters else ()
    found = Matched(
        before=before, after=after, names=names, first=first, second=second, parts=parts, clusters=clusters,
        counts=np.array([before.counts[i] for i in at] if before.counts else [1.0] * len(at)),
    )  # fmt: skip
    way = comparable(audit, before.asked, after.asked)
    differing = [name for name in before.same if before.same[name] != after.same.get(name, before.same[name])]
    obstacle = ""
    if way.how != VALUES:
        only = "" if way.how == NOT else "; only the order may be compared"
        obstacle = f"one was asked by {before.asked}, the other by {after.asked}{only}"
        ranks = math.nan if way.how == NOT else rank_correlation(first, second)
        return replace(found, obstacle=obstacle, ranks=ranks)
    if before.gate or after.gate:
        which = before if before.gate else after
        obstacle = f"{which.model}: {which.gate}"
    elif before.measure != after.measure:
        obstacle = f"one was measured by {before.measure}, the other by {after.measure}"
    elif differing:
        obstacle = _other(differing[0], before.same[differing[0]], after.same[differing[0]])
    elif not variants:
        obstacle = "no template was asked of both"
    elif not names:
        obstacle = f"no {before.unit} was asked of both"
    return replace(found, obstacle=obstacle)


def _other(name: str, one: str, other: str) -> str:
    return f"another {name}" + (f" ({one}; {other})" if len(one) + len(other) <= 40 else "")


def _mean_of(values: Floats, columns: Sequence[int]) -> Floats:
    chosen = values[:, list(columns)]
    present = ~np.isnan(chosen)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = np.where(present, chosen, 0.0).sum(axis=1) / present.sum(axis=1)
    return mean


# ---------------------------------------------------------------------------------------------------------
# The numbers


def measure_change(match: Matched, *, seed: int = 0) -> PairedLeans:
    """Return the leans of both models over what they share, and how they differ; of nothing shared, NaN."""
    units = match.before
    if match.obstacle:
        return _nothing()
    if units.form == "measured" and units.whole and match.after.whole and _asked_alike(match):
        return _of_whole(units.whole, match.after.whole, n=len(match.names))
    order = {part: number for number, part in enumerate(units.weights)}
    counted = [i for i, part in enumerate(match.parts) if part in order]
    if not counted:
        return _nothing()
    # a mean in which units count several times is the plain mean of values scaled by their counts
    heavy = np.array([match.counts[i] / _mean_count(match, match.parts[i]) for i in counted])
    first, second = match.first[counted], match.second[counted]
    if units.form == "share":
        first, second = _above_half(first), _above_half(second)
    rng = model_rng(seed, f"{units.model}\0{match.after.model}\0{units.title}")
    return paired_leans(
        first * heavy,
        second * heavy,
        [order[match.parts[i]] for i in counted],
        list(units.weights.values()),
        signed=units.form == "signed",
        shares=units.form == "share",
        clusters=[match.clusters[i] for i in counted] if match.clusters else None,
        rng=rng,
    )


def _mean_count(match: Matched, part: str) -> float:
    known = ~np.isnan(match.first + match.second)
    return float(
        np.mean([match.counts[i] for i, each in enumerate(match.parts) if each == part and known[i]] or [1])
    )


def _above_half(values: Floats) -> Floats:
    return np.where(np.isnan(values), np.nan, (values > 0.5).astype(np.float64))


def _asked_alike(match: Matched) -> bool:
    return set(match.before.names) == set(match.after.names)


def _of_whole(before: Finding, after: Finding, *, n: int) -> PairedLeans:
    """Compare two numbers that have intervals of their own: texts that two models wrote are drawn apart."""
    sides = [_sure([before]), _sure([after])]
    change = independent_change(*sides)
    return PairedLeans(
        before=sides[0].estimate, after=sides[1].estimate, change=change, both=change, distance=change,
        n=np.array([n]),
    )  # fmt: skip


def _sure(rows: Sequence[Finding]) -> Sure:
    estimate, low, high, p = (
        np.array([getattr(x, name) for x in rows]) for name in ("estimate", "low", "high", "p")
    )
    return Sure(estimate=estimate, low=low, high=high, p=p)


def _nothing() -> PairedLeans:
    nan = np.array([np.nan])
    unknown = Sure(estimate=nan, low=nan, high=nan, p=nan)
    return PairedLeans(
        before=nan, after=nan, change=unknown, both=unknown, distance=unknown, n=np.zeros(1, dtype=np.int64)
    )


def detectable(match: Matched, found: PairedLeans, *, tests: int) -> float:
    """Return the smallest change of the distance that is found four times in five, among so many tests.

    Where the lean before is not sure to have a sign, the change and the sum must both be found, and the less sure
    of the two decides.
    """
    if match.before.form == "share":
        counted = np.array([part in match.before.weights for part in match.parts])
        first, second = (side[counted] > 0.5 for side in (match.first, match.second))
        lost, gained = int((first & ~second).sum()), int((second & ~first).sum())
        unsure = found.distance.low[0] <= 0 <= found.distance.high[0]
        exchanged = lost + gained if unsure else 2 * min(lost, gained)  # what is no change of the share
        return detectable_change(exchanged, items=int(found.n[0]), tests=tests)
    sizes = [match.parts.count(part) for part in match.before.weights]
    units = len(set(match.clusters)) if match.clusters else min(sizes, default=0)
    freedom = max(units - 1, 1) if match.before.form != "measured" else math.inf
    settled = match.before.form != "signed" or not found.both.low[0] <= 0 <= found.both.high[0]
    sides = [found.change] if settled else [found.change, found.both]
    reach = [max(float(s.estimate[0] - s.low[0]), float(s.high[0] - s.estimate[0])) for s in sides]
    if any(map(math.isnan, reach)) or not reach[0] > 0:  # models that answer alike have nothing to detect
        return math.nan
    # a distance that has grown varies more, too
    power = 0.8 if settled and match.before.form != "distance" else POWER_OF_EACH
    return detectable_from_interval(-max(reach), max(reach), tests=tests, power=power, freedom=freedom)


# ---------------------------------------------------------------------------------------------------------
# What follows


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One question of one pair of models, with numbers and conclusion."""

    match: Matched
    found: PairedLeans
    verdict: ChangeVerdict


def compare_models(
    audits: Mapping[str, tuple[Sequence[Units], Sequence[Units]]],
    *,
    before: str,
    after: str,
    seed: int = 0,
    obstacles: Mapping[str, str] | None = None,
) -> list[Change]:
    """Conclude on every question that two models were both asked, by audit; q is corrected over all of them.

    `before` and `after` are the names that a reader knows the two by; `obstacles` say, by audit, why nothing of it
    can be compared.
    """
    stopped = obstacles or {}
    asked = [
        (audit, replace(match, obstacle=match.obstacle or stopped.get(audit, "")))
        for audit, (ours, theirs) in audits.items()
        for match in matched(audit, ours, theirs)
    ]
    measured = [measure_change(match, seed=seed) for _, match in asked]
    rows = with_q(_row(found) for found in measured)
    tests = max(sum(not math.isnan(row.p) for row in rows), 1)
    return [
        Change(
            match=match,
            found=found,
            verdict=conclude_change(
                row, found, match, audit=audit, before=before, after=after,
                smallest=detectable(match, found, tests=tests) if not match.obstacle else math.nan,
            ),
        )
        for (audit, match), found, row in zip(asked, measured, rows, strict=True)
    ]  # fmt: skip


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


def conclude_change(
    row: Finding,
    found: PairedLeans,
    match: Matched,
    *,
    audit: str,
    before: str,
    after: str,
    smallest: float = math.nan,
) -> ChangeVerdict:
    """Return what follows from the change of a distance from even-handed, with its q."""
    state = change_state(row, obstacle=match.obstacle)
    reason = match.obstacle if state == UNTOLD else ""
    if state == UNTOLD and not reason:
        shared = f"only {row.n} {match.before.unit}s are shared" if row.n else "nothing was measured of both"
        reason = shared if match.before.form != "measured" else "too little was measured for an interval"
    signed = replace(
        row,
        estimate=float(found.change.estimate[0]),
        low=float(found.change.low[0]),
        high=float(found.change.high[0]),
        q=float(found.change.p[0]),
    )
    leans = float(found.before[0]), float(found.after[0])
    return ChangeVerdict(
        audit=audit,
        before=before,
        after=after,
        measure=match.before.title,
        state=state,
        estimate=row.estimate if state != UNTOLD else math.nan,
        low=row.low if state != UNTOLD else math.nan,
        high=row.high if state != UNTOLD else math.nan,
        p=row.p,
        q=row.q,
        n=row.n if state != UNTOLD else len(match.names),
        unit=match.before.unit,
        lean_before=leans[0],
        lean_after=leans[1],
        change=signed.estimate,
        change_low=signed.low,
        change_high=signed.high,
        detectable=smallest,
        sentence=_sentence(state, signed, leans, match, before=before, after=after, reason=reason),
        reason=reason,
    )


def _sentence(
    state: ChangeState,
    signed: Finding,
    leans: tuple[float, float],
    match: Matched,
    *,
    before: str,
    after: str,
    reason: str,
) -> str:
    units = match.before
    if state == UNTOLD:
        return f"{after} and {before} cannot be compared: {reason}."
    if state == NO_CHANGE and is_found(signed) and leans[0] * leans[1] < 0:
        return f"{after} leans the other way than {before}, about as far."
    if state == NO_CHANGE:
        return f"{after} shows no change from {before} that this comparison could see."
    counts = ""
    if units.form == "share":
        n = int(signed.n)
        counts = f" ({round(leans[1] * n)} of {n}, before {round(leans[0] * n)})"
    return f"{after} {units.more if state == WORSE else units.less} than {before}{counts}."


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
        fitting = (known for known in sets if not _match(audit, next(iter(known.values())), each).obstacle)
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
        leans = _sure(rows)
        sides = [_sure([rows[i] for i in at]) for at in (one, other)]
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
    return [
        Place(
            model=names[i],
            units=given[i],
            lean=float(leans.estimate[i]),
            low=float(leans.low[i]),
            high=float(leans.high[i]),
            letters=letters[at] if not math.isnan(leans.estimate[i]) else (),
        )
        for at, i in enumerate(order)
    ]


def _together(given: Sequence[Units]) -> tuple[Floats, list[int]]:
    """Return values (units × models) over the units that any model has, and the part of each unit."""
    part_of: dict[str, str] = {}
    for each in given:
        part_of |= dict(zip(each.names, each.parts or ("",) * len(each.names), strict=True))
    order = {part: number for number, part in enumerate(given[0].weights)}
    place = {name: at for at, name in enumerate(name for name in part_of if part_of[name] in order)}
    values = np.full((len(place), len(given)), np.nan)
    for column, each in enumerate(given):
        means = _mean_of(each.values, range(len(each.variants)))
        means = _above_half(means) if each.form == "share" else means
        for name, value in zip(each.names, means.tolist(), strict=True):
            if name in place:
                values[place[name], column] = value
    return values, [order[part_of[name]] for name in place]
