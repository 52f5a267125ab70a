"""The stigmatized conditions of each category beside all non-stigmatized ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clinometer.metrics.attitude import present_mean
from clinometer.probes.kit.numbers import with_q
from clinometer.probes.stigma.attitudes import MaskedView
from clinometer.probes.stigma.groups import difference
from clinometer.types import Finding


def category_rows(view: MaskedView) -> list[Finding]:
    """Return the excess of each category, the most negative first."""
    rows = sorted(_rows(view), key=lambda row: -row.estimate if row.estimate == row.estimate else np.inf)
    return with_q(rows)


def _rows(view: MaskedView) -> Iterator[Finding]:
    categories, stigmatized = np.array(view.roster.categories), view.roster.stigmatized
    for name in dict.fromkeys(categories[stigmatized].tolist()):
        members = stigmatized & (categories == name)
        compared = members | ~stigmatized
        excess = difference(view.overall[compared], members[compared], rng=view.rng, draws=view.draws)
        level = float(present_mean(view.overall[members], axis=0))
        labels = {
            "model": view.model,
            "category": name,
            "conditions": int(members.sum()),
            "negative_attitude": level,
        }
        yield excess.finding((), labels)
