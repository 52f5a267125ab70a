"""What tuning does to the negativity of the groups' attributes, and to how unequal it is between groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clinometer.probes.kit.numbers import Floats, Label, Numbers, model_rng, with_q
from clinometer.probes.stereotypes.tables.emotions import FEWEST
from clinometer.probes.stereotypes.tables.negativity import group_negativity
from clinometer.probes.stereotypes.tunings import Tuning
from clinometer.probes.stereotypes.view import ALL, View
from clinometer.stats import cluster_bootstrap, sign_flip_test
from clinometer.types import Finding

NEGATIVITY, INEQUALITY = "negativity", "distance from the mean"
MEASURES = (NEGATIVITY, INEQUALITY)
FLIPS = 9999


def negativity_change_rows(views: Sequence[View], tunings: Sequence[Tuning]) -> list[Finding]:
    """Return both measures of each checkpoint minus those of its base, by category."""
    rows: list[Finding] = []
    for tuning in tunings:
        before, after = paired_measures(*(group_negativity(views[i]) for i in (tuning.base, tuning.tuned)))
        view = views[tuning.tuned]
        rng = model_rng(view.plan.seed, f"{views[tuning.base].model}\0{view.model}")
        of_tuning = []
        for category in (ALL, *view.categories) if len(view.categories) > 1 else view.categories:
            chosen = view.members(category)
            chosen = chosen[~np.isnan(before[chosen, 0])]
            numbers = _change(after[chosen] - before[chosen], rng=rng, draws=view.options.draws)
            for at, measure in enumerate(MEASURES):
                labels: dict[str, Label] = {
                    **tuning.labels(views),
                    "category": category,
                    "measure": measure,
                    "before": float(before[chosen, at].mean()) if len(chosen) else np.nan,
                    "after": float(after[chosen, at].mean()) if len(chosen) else np.nan,
                }
                of_tuning.append(numbers.finding((at,), labels))
        rows += with_q(of_tuning)
    return rows


def paired_measures(before: Floats, after: Floats) -> tuple[Floats, Floats]:
    """Return both measures of every group, (groups, 2) before and after; NaN in both where one has no number."""
    missing = np.isnan(before) | np.isnan(after)
    first, second = (np.where(missing, np.nan, each) for each in (before, after))
    return _with_distance(first), _with_distance(second)


def _with_distance(negativity: Floats) -> Floats:
    present = negativity[~np.isnan(negativity)]
    centre = present.mean() if len(present) else np.nan
    return np.stack([negativity, np.abs(negativity - centre)], axis=1)


def _change(change: Floats, *, rng: np.random.Generator, draws: int) -> Numbers:
    """Return the mean change over groups, (groups, measures) -> (measures,)."""
    n = np.full(change.shape[1], len(change))
    if not len(change):
        return Numbers(estimate=np.full(change.shape[1], np.nan), n=n)
    if len(change) < FEWEST:
        return Numbers(estimate=change.mean(axis=0), n=n)
    found = cluster_bootstrap(change, rng=rng, draws=draws)
    p = sign_flip_test(change, rng=rng, draws=FLIPS).p
    return Numbers(estimate=found.estimate, low=found.low, high=found.high, p=p, n=n)
