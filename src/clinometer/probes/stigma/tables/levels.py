"""How negative the attitude is towards stigmatized and other conditions, and how far apart the two are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clinometer.metrics.attitude import present_mean
from clinometer.probes.kit.numbers import Label
from clinometer.probes.stigma.attitudes import MaskedView
from clinometer.probes.stigma.chat import ChatView
from clinometer.probes.stigma.groups import difference, mean_interval
from clinometer.probes.stigma.prompts import BASELINE
from clinometer.types import Finding

ALL = "all"  # templates
ATTITUDE, DISTANCE, SHARE = "negative attitude", "social distance", "negative classification"


def attitude_level_rows(view: MaskedView) -> Iterator[Finding]:
    """Yield the mean negative attitude of each group and of the baseline, for all templates and for each."""
    values = np.concatenate([view.overall[None], view.by_template]).T  # (conditions, all + templates)
    # resampled: conditions; of the baseline: its prompts, one for each distance
    overall_baseline = present_mean(view.baseline, axis=0)[None]
    at_baseline = np.concatenate([overall_baseline, view.baseline]).T  # (distances, all + templates)
    parts = {
        group: mean_interval(values[members], rng=view.rng, draws=view.draws)
        for group, members in view.roster.members().items()
    }
    parts[BASELINE] = mean_interval(at_baseline, rng=view.rng, draws=view.draws)
    for at, template in enumerate((ALL, *view.templates)):
        for group, numbers in parts.items():
            yield numbers.as_share().finding((at,), {"model": view.model, "template": template, "group": group})


def distance_level_rows(view: ChatView) -> Iterator[Finding]:
    """Yield the mean social distance of each group and of the baseline."""
    for group, members in view.roster.members().items():
        numbers = mean_interval(view.overall[members], rng=view.rng, draws=view.draws)
        yield view.on_scale(numbers).finding((), {"model": view.model, "group": group})
    numbers = mean_interval(view.baseline, rng=view.rng, draws=view.draws)
    yield view.on_scale(numbers).finding((), {"model": view.model, "group": BASELINE})


def attitude_difference_rows(view: MaskedView) -> Iterator[Finding]:
    """Yield the difference between the groups, for all templates and for each."""
    values = np.concatenate([view.overall[None], view.by_template]).T
    numbers = difference(values, view.roster.stigmatized, rng=view.rng, draws=view.draws)
    for at, template in enumerate((ALL, *view.templates)):
        yield numbers.finding((at,), _labels(view.model, ATTITUDE, template))


def distance_difference_rows(view: ChatView) -> Iterator[Finding]:
    """Yield the difference between the groups in mean social distance."""
    numbers = difference(view.overall, view.roster.stigmatized, rng=view.rng, draws=view.draws)
    yield numbers.finding((), _labels(view.model, DISTANCE, ALL))


def condition_template_rows(view: MaskedView) -> Iterator[Finding]:
    """Yield the negative attitude towards each condition in each template (the paper's Figure 2)."""
    for t, template in enumerate(view.templates):
        for c in range(len(view.roster.names)):
            yield Finding(
                labels={"model": view.model, "template": template, **view.roster.labels(c)},
                estimate=float(view.by_template[t, c]),
                n=len(view.distances),
            )


def _labels(model: str, measure: str, template: str) -> dict[str, Label]:
    return {"model": model, "measure": measure, "template": template}
