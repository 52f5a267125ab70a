"""What tuning does to the negative attitude: a checkpoint beside its base, condition by condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from clinometer.metrics.attitude import Floats, present_mean
from clinometer.probes.kit.before_after import pairs_of, training_of
from clinometer.probes.kit.numbers import Numbers, model_rng, with_q
from clinometer.probes.protocol import Plan
from clinometer.probes.stigma.attitudes import MaskedView
from clinometer.probes.stigma.groups import FEWEST, SHUFFLES, difference, mean_interval
from clinometer.probes.stigma.tables.levels import ALL
from clinometer.stats import sign_flip_test
from clinometer.types import Finding, ModelInfo

DIFFERENCE = "stigmatized − other"


def change_rows(plans: Sequence[Plan], views: Sequence[MaskedView]) -> list[Finding]:
    """Return what each checkpoint changed of its base: of both groups and of their difference, by template."""
    view_of = {view.model: view for view in views}
    models = [plan.model for plan in plans]
    rows: list[Finding] = []
    for pair in pairs_of(models):
        base, tuned = models[pair.before], models[pair.after]
        rng = model_rng(plans[pair.after].seed, f"{base.name}\0{tuned.name}")
        rows += _pair_rows(base, tuned, view_of[base.name], view_of[tuned.name], rng=rng)
    return rows


def _pair_rows(
    base: ModelInfo, tuned: ModelInfo, before: MaskedView, after: MaskedView, *, rng: np.random.Generator
) -> list[Finding]:
    values = [np.concatenate([view.overall[None], view.by_template]).T for view in (before, after)]
    change = values[1] - values[0]  # (conditions, all + templates)
    first, second = (np.where(np.isnan(change), np.nan, each) for each in values)  # the same conditions in both
    found: dict[str, Numbers] = {}
    means: dict[str, tuple[Floats, Floats]] = {}
    for group, members in before.roster.members().items():
        numbers = mean_interval(change[members], rng=rng, draws=before.draws)
        p = sign_flip_test(change[members], rng=rng, draws=SHUFFLES).p if members.any() else np.nan
        found[group] = replace(numbers, p=np.where(numbers.n < FEWEST, np.nan, p))
        means[group] = present_mean(first[members], axis=0), present_mean(second[members], axis=0)
    found[DIFFERENCE] = difference(change, before.roster.stigmatized, rng=rng, draws=before.draws)
    (stigmatized, other) = means.values()
    means[DIFFERENCE] = stigmatized[0] - other[0], stigmatized[1] - other[1]
    return with_q(
        numbers.finding(
            (at,),
            {
                "base": base.name,
                "model": tuned.name,
                "training": training_of(tuned),
                "template": template,
                "measure": measure,
                "before": float(means[measure][0][at]),
                "after": float(means[measure][1][at]),
            },
        )
        for at, template in enumerate((ALL, *before.templates))
        for measure, numbers in found.items()
    )
