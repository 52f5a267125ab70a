"""Which outcomes the statements have, by group and by condition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from clinometer.metrics.attitude import Floats
from clinometer.probes.kit.numbers import Label, Numbers
from clinometer.probes.stigma.classes import (
    ALL_CLASSIFIERS,
    CLASSES,
    ClassifierView,
    negative_shares,
    per_condition,
)
from clinometer.probes.stigma.groups import mean_interval, minus, share_numbers, shuffled_p
from clinometer.probes.stigma.prompts import BASELINE, OTHER, STIGMATIZED
from clinometer.probes.stigma.tables.levels import ALL, SHARE
from clinometer.types import Finding


def class_rows(view: ClassifierView) -> Iterator[Finding]:
    """Yield the share of each class by group, for both templates and for each (the paper's figures 4, 8 and 9)."""
    names = (*CLASSES, *(name for name in view.classes if name not in CLASSES))
    for template, chosen in _templates(view):
        for group in (STIGMATIZED, OTHER, BASELINE):
            numbers = _baseline(view, chosen) if group == BASELINE else _shares(view, chosen, group)
            for name in names:
                labels: dict[str, Label] = {
                    "model": view.model,
                    "template": template,
                    "group": group,
                    "class": name,
                }
                if name in view.classes:
                    yield numbers.as_share().finding((view.classes.index(name),), labels)
                else:  # a classifier with two classes
                    yield Finding(labels=labels, estimate=math.nan)


def share_difference_rows(view: ClassifierView) -> Iterator[Finding]:
    """Yield the difference between the groups in the share of negative outcomes."""
    negative = view.classes.index("negative")
    for template, chosen in _templates(view):
        gap = minus(_shares(view, chosen, STIGMATIZED), _shares(view, chosen, OTHER))
        conditions = per_condition(view.negative[chosen].T, view.roster.condition_of, len(view.roster.names))
        p = shuffled_p(conditions, view.roster.stigmatized, rng=view.rng)
        gap = replace(gap, p=np.full(gap.estimate.shape, p))
        yield gap.finding((negative,), {"model": view.model, "measure": SHARE, "template": template})


def condition_share_rows(views: list[ClassifierView], *, rng: np.random.Generator) -> Iterator[Finding]:
    """Yield the share of negative outcomes of each condition (figures 10 to 12), over all and for each."""
    roster = views[0].roster
    overall = negative_shares(views)
    order = np.lexsort((-overall, ~roster.stigmatized))  # stigmatized first, as in every chart
    if len(views) > 1:
        each = np.stack([negative_shares([view]) for view in views])  # (classifiers, conditions)
        numbers = replace(mean_interval(each, rng=rng, draws=views[0].draws).as_share(), estimate=overall)
        for c in order:
            yield numbers.finding((int(c),), {"model": ALL_CLASSIFIERS, **roster.labels(int(c))})
    for view in views:
        shares = negative_shares([view])
        counts = np.bincount(roster.condition_of) * len(view.templates)
        for c in order:
            yield Finding(
                labels={"model": view.model, **roster.labels(int(c))},
                estimate=float(shares[c]),
                n=int(counts[c]),
            )


def _templates(view: ClassifierView) -> Iterator[tuple[str, list[int]]]:
    every = list(range(len(view.templates)))
    yield ALL, every
    if len(every) > 1:
        for at in every:
            yield view.templates[at], [at]


def _shares(view: ClassifierView, chosen: list[int], group: str) -> Numbers:
    """Return the share of each class over the sentences of a group; conditions are resampled, then sentences.

    A class that never or always comes has nothing to resample: its interval is Wilson's, as of so many conditions.
    """
    members = np.flatnonzero(view.roster.members()[group][view.roster.condition_of])
    outcomes: Floats = view.outcomes[chosen][:, members].reshape(-1, len(view.classes))
    clusters = np.tile(view.roster.condition_of[members], len(chosen))
    found = mean_interval(outcomes, clusters=clusters, rng=view.rng, draws=view.draws)
    exact, same = share_numbers(found.estimate, found.n), np.isin(found.estimate, (0.0, 1.0))
    if found.low is None or found.high is None or exact.low is None or exact.high is None:
        return found  # a group without conditions
    return replace(found, low=np.where(same, exact.low, found.low), high=np.where(same, exact.high, found.high))


def _baseline(view: ClassifierView, chosen: list[int]) -> Numbers:
    """Return the outcome of one or two sentences: a count, without an interval."""
    outcomes = view.baseline[chosen]
    return Numbers(estimate=outcomes.mean(axis=0), n=np.full(outcomes.shape[1], len(chosen), dtype=np.int64))
