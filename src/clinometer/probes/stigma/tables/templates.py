"""How much each template moves the result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clinometer.metrics.attitude import Floats, present_mean
from clinometer.probes.kit.numbers import with_q
from clinometer.probes.stigma.attitudes import MaskedView
from clinometer.probes.stigma.groups import difference, mean_interval
from clinometer.stats import sign_flip_test
from clinometer.types import Finding

LEVEL, DIFFERENCE = "negative attitude of all conditions", "difference stigmatized − other"


def template_rows(view: MaskedView) -> list[Finding]:
    """Return what each template shows minus what the others show on average; rank 1 moves the result most."""
    if len(view.templates) < 2:
        return []
    shifts = _shifts(view.by_template)
    level = mean_interval(shifts, rng=view.rng, draws=view.draws)
    level = replace(level, p=sign_flip_test(shifts, rng=view.rng).p)
    gap = difference(shifts, view.roster.stigmatized, rng=view.rng, draws=view.draws)
    rows = []
    for measure, numbers in ((DIFFERENCE, gap), (LEVEL, level)):
        size = np.abs(numbers.estimate)
        order = np.argsort(np.where(np.isnan(size), np.inf, -size), kind="stable")
        for rank, t in enumerate(order, start=1):
            labels = {"model": view.model, "measure": measure, "rank": rank, "template": view.templates[t]}
            rows.append(numbers.finding((int(t),), labels))
    return with_q(rows)


def _shifts(by_template: Floats) -> Floats:
    """Return each template's value minus the mean of the others', (conditions, templates)."""
    shifts = [
        by_template[t] - present_mean(np.delete(by_template, t, axis=0), axis=0) for t in range(len(by_template))
    ]
    return np.stack(shifts, axis=1)
