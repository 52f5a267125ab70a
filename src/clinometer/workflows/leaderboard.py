"""Many models side by side: the lean of each, and letters for those that cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from string import ascii_lowercase

import numpy as np

from clinometer.probes.kit import Floats, is_found, model_rng, with_q
from clinometer.probes.kit.asking import VALUES, comparable
from clinometer.probes.kit.compare import Units
from clinometer.stats import Sure, cluster_bootstrap, independent_change, paired_leans, two_group_bootstrap
from clinometer.types import Finding

DRAWS = 1999
MOST_LETTERS = 200  # sets of a letter display; beyond, neighbours share letters


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One model on one measure."""

    model: str
    asked: str
    lean: float
    low: float
    high: float
    letters: str  # "": it cannot be judged
    reason: str = ""
    n: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All models on one measure, nearest to even-handed first."""

    audit: str
    measure: str
    places: tuple[Place, ...]

    def rows(self) -> Iterator[Finding]:
        """Yield one finding for each model."""
        for each in self.places:
            labels: dict[str, str | int | float] = {"audit": self.audit, "measure": self.measure}
            labels |= {"model": each.model, "group": each.letters, "asked": each.asked, "reason": each.reason}
            yield Finding(labels=labels, estimate=each.lean, low=each.low, high=each.high, n=each.n)


def standings_of(audit: str, units: Mapping[str, Sequence[Units]], *, seed: int = 0) -> Iterator[Standing]:
    """Yield the standing of all models on each question of an audit that at least two were asked."""
    questions = dict.fromkeys(each.question for given in units.values() for each in given)
    for question in questions:
        asked = {}
        for model, given in units.items():
            of_question = [each for each in given if each.question == question]
            if of_question:
                asked[model] = next((each for each in of_question if not each.gate), of_question[0])
        if len(asked) < 2:
            continue
        places: list[Place] = []
        number = 0
        for alike in _comparable(audit, asked):
            judged = {model: each for model, each in alike.items() if not each.gate and each.names}
            places += _placed(judged, seed=seed, first=number)
            number += 1
            places += [
                Place(model=model, asked=each.asked, lean=math.nan, low=math.nan, high=math.nan, letters="",
                      reason=each.gate or "nothing was measured")
                for model, each in alike.items()
                if model not in judged
            ]  # fmt: skip
        title = next(iter(asked.values())).title
        yield Standing(audit=audit, measure=title, places=tuple(places))


def _comparable(audit: str, asked: Mapping[str, Units]) -> list[dict[str, Units]]:
    """Return models in sets whose values compare: the same question, measure, and whatever must be the same."""
    sets: list[dict[str, Units]] = []
    for model, each in asked.items():
        for known in sets:
            other = next(iter(known.values()))
            same = other.measure == each.measure and dict(other.same) == dict(each.same)
            if same and comparable(audit, other.asked, each.asked).how == VALUES:
                known[model] = each
                break
        else:
            sets.append({model: each})
    return sets


def _placed(judged: Mapping[str, Units], *, seed: int, first: int) -> list[Place]:
    if not judged:
        return []
    names = list(judged)
    leans = _leans(judged, seed=seed)
    order = sorted(range(len(names)), key=lambda i: _distance(judged[names[i]], leans.estimate[i]))
    apart = _apart(judged, seed=seed)
    letters = letters_of([[apart[i, j] for j in order] for i in order])
    mark = "′" * first  # letters of another set mean something else
    return [
        Place(
            model=names[i],
            asked=judged[names[i]].asked,
            lean=float(leans.estimate[i]),
            low=float(leans.low[i]),
            high=float(leans.high[i]),
            letters=" ".join(f"{letter}{mark}" for letter in letters[at]),
            n=len(judged[names[i]].names),
        )
        for at, i in enumerate(order)
    ]


def _distance(units: Units, lean: float) -> float:
    if math.isnan(lean):
        return math.inf
    return abs(lean) if units.form == "signed" else lean


def _table(judged: Mapping[str, Units]) -> tuple[Floats, list[int], list[float]]:
    """Return values (units × models) over all units that any model has, the part of each unit, and weights."""
    parts: dict[str, str] = {}
    for each in judged.values():
        parts |= dict(zip(each.names, each.parts or ("",) * len(each.names), strict=True))
    weights = next(iter(judged.values())).weights
    order = {part: number for number, part in enumerate(weights)}
    names = {name: at for at, name in enumerate(name for name in parts if parts[name] in order)}
    values = np.full((len(names), len(judged)), np.nan)
    for column, each in enumerate(judged.values()):
        present = ~np.isnan(each.values)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(present, each.values, 0.0).sum(axis=1) / present.sum(axis=1)
        if each.form == "share":
            means = np.where(np.isnan(means), np.nan, means > 0.5)
        for name, value in zip(each.names, means, strict=True):
            if name in names:
                values[names[name], column] = value
    return values, [order[parts[name]] for name in names], list(weights.values())


def _leans(judged: Mapping[str, Units], *, seed: int) -> Sure:
    """Return the lean of each model over its own units, with an interval."""
    given = list(judged.values())
    if given[0].form == "measured":
        return _of_whole(given)
    values, parts, weights = _table(judged)
    rng = model_rng(seed, "standing")
    sides = [weights[part] * values[np.array(parts) == part] for part in range(len(weights))]
    if any(not len(side) for side in sides):
        nothing = np.full(len(given), np.nan)
        return Sure(estimate=nothing, low=nothing, high=nothing, p=nothing)
    found = (
        cluster_bootstrap(sides[0], rng=rng, draws=DRAWS)
        if len(sides) == 1
        else two_group_bootstrap(sides[0], -sides[1], rng=rng, draws=DRAWS)
    )
    return Sure(estimate=found.estimate, low=found.low, high=found.high, p=found.p)


def _of_whole(given: Sequence[Units]) -> Sure:
    rows = [each.whole or Finding(labels={}, estimate=math.nan) for each in given]
    columns = [[getattr(row, name) for row in rows] for name in ("estimate", "low", "high", "p")]
    estimate, low, high, p = (np.array(column, dtype=np.float64) for column in columns)
    return Sure(estimate=estimate, low=low, high=high, p=p)


def _apart(judged: Mapping[str, Units], *, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return which models can be told apart, by paired tests of all pairs at once; q over the pairs."""
    given = list(judged.values())
    pairs = list(combinations(range(len(given)), 2))
    apart = np.zeros((len(given), len(given)), dtype=np.bool_)
    if not pairs:
        return apart
    one, other = ([pair[at] for pair in pairs] for at in (0, 1))
    if given[0].form == "measured":
        leans = _of_whole(given)
        sides = [
            Sure(estimate=leans.estimate[at], low=leans.low[at], high=leans.high[at], p=leans.p[at])
            for at in (one, other)
        ]
        found = independent_change(*sides)
    else:
        values, parts, weights = _table(judged)
        if not all(part in parts for part in range(len(weights))):
            return apart
        found = paired_leans(
            values[:, one],
            values[:, other],
            parts,
            weights,
            rng=model_rng(seed, "pairs"),
            signed=given[0].form == "signed",
            shares=given[0].form == "share",
            draws=DRAWS,
        ).distance
    rows = with_q(
        Finding(labels={}, estimate=e, low=low, high=high, p=p)
        for e, low, high, p in zip(
            found.estimate.tolist(), found.low.tolist(), found.high.tolist(), found.p.tolist(), strict=True
        )
    )
    for (i, j), row in zip(pairs, rows, strict=True):
        apart[i, j] = apart[j, i] = is_found(row)
    return apart


def letters_of(apart: Sequence[Sequence[bool]]) -> list[tuple[str, ...]]:
    """Return letters so that two share one exactly where they cannot be told apart; rows come in order.

    Piepho, An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons (2004): begin with one set of
    all; split each set that holds two that are apart; drop sets that are parts of others.

    >>> letters_of([[False, False, True], [False, False, False], [True, False, False]])
    [('a',), ('a', 'b'), ('b',)]
    """
    sets = [frozenset(range(len(apart)))]
    for i, j in combinations(range(len(apart)), 2):
        if not apart[i][j]:
            continue
        split = []
        for each in sets:
            split += [each - {i}, each - {j}] if {i, j} <= each else [each]
        unique = sorted(set(split), key=len, reverse=True)
        sets = []
        for each in unique:
            if not any(each < kept for kept in sets):
                sets.append(each)
        if len(sets) > MOST_LETTERS:
            sets = _neighbours(apart)
            break
    ordered = sorted(sets, key=sorted)
    named = {each: _letter(number) for number, each in enumerate(ordered)}
    return [tuple(named[each] for each in ordered if i in each) for i in range(len(apart))]


def _neighbours(apart: Sequence[Sequence[bool]]) -> list[frozenset[int]]:
    """Return the longest runs of neighbours of which no two are apart: coarser than letters, but few."""
    runs: list[frozenset[int]] = []
    for start in range(len(apart)):
        end = start + 1
        while end < len(apart) and not any(apart[end][i] for i in range(start, end)):
            end += 1
        run = frozenset(range(start, end))
        if not any(run <= known for known in runs):
            runs.append(run)
    return runs


def _letter(number: int) -> str:
    """Return a, b, …, z, aa, ab, …

    >>> _letter(0), _letter(25), _letter(26)
    ('a', 'z', 'aa')
    """
    return (_letter(number // 26 - 1) if number >= 26 else "") + ascii_lowercase[number % 26]
