"""Comparing models: by which rule one is called worse than another, in which words, and many at once.

An audit says which of its tables hold the units of its primary measures (`Probe.compared`, optional). Two models
are compared on the units that both have, if the table of ways of asking allows it. A model is *worse* where it is
farther from even-handed, whichever the sign, *better* where it is nearer, by the one rule that every audit
concludes by. The numbers of a pair are made in `pairs.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clinometer.probes.kit.asking import Matched, Units, match_units, mean_of
from clinometer.probes.kit.numbers import Floats, model_rng, with_q
from clinometer.probes.kit.pairs import Compared, Measured, above_half, detectable, measured_pairs, sure_of
from clinometer.probes.kit.verdicts import NO_CHANGE, UNTOLD, WORSE, change_state, is_found
from clinometer.stats import PairedLeans, independent_change, letters_of, mean_leans, paired_leans
from clinometer.types import ChangeState, ChangeVerdict, Finding

BLUNT = 0.5  # of the largest distance possible: where only more than that would be found, nothing can be told


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
        detectable=smallest,
        sentence=_sentence(pair, match, state, leans, n=row.n, turned=turned, reason=reason),
        reason=reason,
        trainings=tuple(float(each.after[0]) for each in measured.each) if pair.role else (),
        training_changes=tuple(float(each.change.estimate[0]) for each in measured.each) if pair.role else (),
        seeds=pair.seeds,
        one_control=pair.one_control,
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
