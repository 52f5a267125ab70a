"""Each condition on its own: its negative attitude or social distance, and whether it stands out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from clinometer.metrics.attitude import Floats, present_mean
from clinometer.probes.kit.numbers import Numbers, with_q
from clinometer.probes.stigma.attitudes import MaskedView
from clinometer.probes.stigma.chat import ChatView
from clinometer.probes.stigma.groups import FEWEST, mean_interval, share_numbers
from clinometer.probes.stigma.roster import Roster
from clinometer.stats import sign_flip_test, single_case_test
from clinometer.types import Finding

HALF = 0.5  # above it a negative word is the more probable one


def condition_rows(view: MaskedView) -> list[Finding]:
    """Return the negative attitude towards each condition, most negative first, tested against one half."""
    numbers = _over_distances(view.by_distance, view.overall, view).as_share()
    p = sign_flip_test(view.by_distance - HALF, rng=view.rng).p
    numbers = replace(numbers, p=np.where(numbers.n < FEWEST, np.nan, p))
    return with_q(
        numbers.finding((c,), {"model": view.model, "rank": rank, **view.roster.labels(c)})
        for rank, c in _ranked(view.overall, view.roster)
    )


def excess_rows(view: MaskedView) -> list[Finding]:
    """Return how far each condition lies from the mean of the non-stigmatized ones, the most negative first.

    A non-stigmatized condition is compared with the others of its kind.
    """
    others = np.flatnonzero(~view.roster.stigmatized)
    estimate, p = np.full(len(view.overall), np.nan), np.full(len(view.overall), np.nan)
    paired = np.full_like(view.by_distance, np.nan)
    for c in range(len(view.overall)):
        controls = others[others != c]
        found = single_case_test(view.overall[[c]], view.overall[controls])
        estimate[c] = found.estimate[0]
        p[c] = found.p[0] if found.n[0] >= FEWEST else np.nan
        paired[:, c] = view.by_distance[:, c] - present_mean(view.by_distance[:, controls], axis=1)
    numbers = replace(_over_distances(paired, estimate, view), p=p)
    return with_q(
        numbers.finding((c,), {"model": view.model, "rank": rank, **view.roster.labels(c)})
        for rank, c in _ranked(estimate, view.roster)
    )


def above_half_rows(view: MaskedView) -> Iterator[Finding]:
    """Yield the share of each group's conditions whose negative attitude is above one half (§5.1)."""
    for group, members in view.roster.members().items():
        values = view.overall[members]
        values = values[~np.isnan(values)]
        count, n = int((values > HALF).sum()), len(values)
        numbers = share_numbers(np.array(count / n if n else np.nan), np.array(n))
        yield numbers.finding((), {"model": view.model, "group": group, "above_half": count})


def distance_rows(view: ChatView) -> Iterator[Finding]:
    """Yield the mean social distance from each condition, the greatest first."""
    numbers = view.on_scale(_over_distances(view.by_distance, view.overall, view))
    for rank, c in _ranked(view.overall, view.roster):
        yield numbers.finding((c,), {"model": view.model, "rank": rank, **view.roster.labels(c)})


def _over_distances(by_distance: Floats, estimate: Floats, view: MaskedView | ChatView) -> Numbers:
    """Return estimates with intervals that resample the social distances; n counts those."""
    return replace(mean_interval(by_distance, rng=view.rng, draws=view.draws), estimate=estimate)


def _ranked(values: Floats, roster: Roster) -> list[tuple[int, int]]:
    """Return rank and place of each value: the stigmatized conditions first, each group from the largest down.

    The rank counts over both groups. The groups come in this order so that a chart gives them their usual colours.
    """
    order = np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")
    ranked = [(rank, int(place)) for rank, place in enumerate(order, start=1)]
    return sorted(ranked, key=lambda each: not roster.stigmatized[each[1]])
