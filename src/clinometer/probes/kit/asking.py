"""In which ways models are asked, what they give, and what of it may be compared.

Which ways may be compared, in values, in rank only, or not at all, is data: `data/asking/comparable.toml`, one row
for each audit and pair of ways. A way is always comparable with itself.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

import numpy as np

from clinometer.data.comparability import Comparison, load_comparisons
from clinometer.probes.kit.numbers import Floats
from clinometer.probes.kit.verdicts import CANNOT_TELL, ONLY
from clinometer.stats import rank_correlation
from clinometer.types import Finding, Findings, ModelInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a model is asked: the name that tables write, what it needs, and whether probabilities are exact."""

    name: str
    capability: str  # what a model must offer
    exact: bool = True  # read from the model; False: counted in what was drawn


FILL = Way(name="fill", capability="fill")
RESCORED = Way(name="fill by rescoring", capability="rescore")
NEXT_WORD = Way(name="next word", capability="next_word")
ANSWER = Way(name="answer", capability="answer_word")
DRAWN = Way(name="drawn answers", capability="ask", exact=False)
SCALE = Way(name="scale", capability="ask", exact=False)
SAMPLED = Way(name="samples", capability="sample", exact=False)
CONTINUED = Way(name="drawn continuations", capability="ask", exact=False)
LABEL = Way(name="own label", capability="classify")
WAYS = (FILL, RESCORED, NEXT_WORD, ANSWER, DRAWN, SCALE, SAMPLED, CONTINUED, LABEL)

VALUES, RANKS, NOT = "values", "ranks", "not"
BEFORE, CONTROL = "before", "control"  # what a checkpoint is compared with: the model it began with, its control


def way_of(model: ModelInfo, ways: Collection[Way]) -> Way:
    """Return the first of an audit's ways in which a model can be asked, in the order of `ways`.

    A chat model never reads as a causal one here: its kind is a part of what it offers.
    """
    return next(way for way in ways if way.capability in model.capabilities)


@cache
def _comparisons() -> dict[tuple[str, frozenset[str]], Comparison]:
    found = load_comparisons(tuple(way.name for way in WAYS))
    return {(each.audit, frozenset((each.first, each.second))): each for each in found}


def comparable(audit: str, first: str, second: str) -> Comparison:
    """Return whether two ways of asking give numbers that may be compared, and why.

    What is not listed may not be compared.

    >>> comparable("stigma", "fill", "fill by rescoring").how
    'values'
    >>> comparable("counterfactual", "samples", "own label").how
    'not'
    """
    if first == second:
        why = "the same question, asked in the same way"
        return Comparison(audit=audit, first=first, second=second, how=VALUES, why=why)
    listed = _comparisons().get((audit, frozenset((first, second))))
    if listed is not None:
        return listed
    return Comparison(audit=audit, first=first, second=second, how=NOT, why="nothing is asked alike")


# ---------------------------------------------------------------------------------------------------------
# What one model gives, and what two of them share

# What a lean is: "signed" may be above or below 0; "distance" is 0 or more, unit by unit; "share" counts units
# with a value above one half; "measured" is one number with an interval of its own, which no other model's answers
# touch.
Form = Literal["signed", "distance", "share", "measured"]


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
    whole: Finding | None = None  # the lean with the interval that the audit's own tables give it
    # what the audit itself measured of a checkpoint, prompt by prompt: the change since the model that it began
    # with (BEFORE), and against its control (CONTROL)
    changes: Mapping[str, Finding] = field(default_factory=dict)
    full: float = 1.0  # the largest distance from even-handed that the measure can show
    clusters: tuple[str, ...] = ()  # units that are resampled together
    counts: tuple[int, ...] = ()  # how often a unit counts in the mean of its part; (): once each

    @property
    def title(self) -> str:
        """How a reader finds the measure: the same for every model."""
        return f"{self.question} ({self.measure})"


def gate_of(findings: Findings, model: str, aspect: str) -> str:
    """Return why an audit can say nothing of a model, from the verdict on an aspect; "" where it can.

    A lean too small to be found is no reason: a comparison has a rule of its own for what it would have found.
    """
    found = [each for each in findings.verdicts if each.model == model and each.aspect == aspect]
    untold = (each.reason for each in found if each.state == CANNOT_TELL and not each.reason.startswith(ONLY))
    return next((reason or "nothing was measured" for reason in untold), "")


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
    own: Finding | None = None  # the change as the audit itself measured it, where both are of one run
    ranks: float = math.nan  # Spearman's ρ of the units, where only their order may be compared


def matched(audit: str, before: Sequence[Units], after: Sequence[Units]) -> Iterator[Matched]:
    """Pair the questions of two models; of several ways of asking, the most comparable are paired."""
    for question in dict.fromkeys(each.question for each in before):
        ours, theirs = ([each for each in side if each.question == question] for side in (before, after))
        options = [match_units(audit, one, other) for one in ours for other in theirs]
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


def match_units(audit: str, before: Units, after: Units) -> Matched:
    """Return what two models share of one question, or why they cannot be compared."""
    variants = [each for each in before.variants if each in after.variants]
    place = {name: at for at, name in enumerate(after.names)}
    names = tuple(name for name in before.names if name in place)
    at = [i for i, name in enumerate(before.names) if name in place]
    first = mean_of(before.values[at], [before.variants.index(each) for each in variants])
    second = mean_of(after.values[[place[name] for name in names]], [after.variants.index(v) for v in variants])
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


def mean_of(values: Floats, columns: Sequence[int]) -> Floats:
    """Return the mean of each unit over some variants; what is missing is left out."""
    chosen = values[:, list(columns)]
    present = ~np.isnan(chosen)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = np.where(present, chosen, 0.0).sum(axis=1) / present.sum(axis=1)
    return mean


def above_half(values: Floats) -> Floats:
    """Return 1 where a value is more than one half, else 0."""
    return np.where(np.isnan(values), np.nan, (values > 0.5).astype(np.float64))


def same_question(one: Matched, other: Matched) -> bool:
    """Tell whether two matches are about one question, asked alike."""
    return (one.before.title, one.before.asked, one.after.asked, one.before.same) == (
        other.before.title, other.before.asked, other.after.asked, other.before.same,
    )  # fmt: skip


def joined(alike: Sequence[Matched]) -> Matched:
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
