"""Two ways to make the margin smaller, side by side: counterexamples in the prompt, and training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from clinometer.data import Kind
from clinometer.metrics.gendered import Floats
from clinometer.probes.counterexamples.measures import by_occupation
from clinometer.probes.counterexamples.view import View
from clinometer.probes.kit.before_after import pairs_of, training_of
from clinometer.probes.kit.numbers import Numbers, model_rng, with_q
from clinometer.probes.protocol import Plan
from clinometer.types import Finding, ModelInfo

BASE = "base"
SAME, ANOTHER = "same-occupation counterexample", "other-occupation counterexample"
PROMPTS = (BASE, SAME, ANOTHER)

MARGIN, CHANGE = "margin", "change"


def mitigation_rows(plans: Sequence[Plan], views: Sequence[View]) -> list[Finding]:
    """Return the margins of each model and of the checkpoints that began with it, and what each way changes.

    Every change is against the base prompt of the model as given, over the same occupations.
    """
    models = [plan.model for plan in plans]
    rows: list[Finding] = []
    for head, family in _families(models).items():
        changes: list[Finding] = []
        given = _margins(views[head])
        for each in family:
            margins = _margins(views[each])
            labels = {"base": models[head].name, "model": models[each].name, "training": training_of(models[each])}
            rng = model_rng(plans[each].seed, f"mitigation\0{models[each].name}")  # alike in every family
            levels = _estimates(replace(views[each], rng=rng), margins, test=False)
            rows += _rows(views[each], margins, levels, {**labels, "measure": MARGIN})
            against = {
                name: values - given[BASE]
                for name, values in margins.items()
                if (each, name) != (head, BASE)  # which is what all are compared with
            }
            rng = model_rng(plans[each].seed, f"mitigation\0{models[head].name}\0{models[each].name}")
            changed = _estimates(replace(views[each], rng=rng), against, test=True)
            changes += _rows(views[each], against, changed, {**labels, "measure": CHANGE})
        rows += with_q(changes)
    return rows


def is_counterexample(kind: Kind) -> bool:
    """Tell whether a kind of knowledge names a gender and should make the margin smaller."""
    return kind.expected == "smaller" and ("{pro_" in kind.knowledge or "{counter_" in kind.knowledge)


def _families(models: Sequence[ModelInfo]) -> Mapping[int, list[int]]:
    """Return each model as given with its checkpoints behind it, by their numbers."""
    pairs = pairs_of(models)
    tuned = {pair.after for pair in pairs}
    heads = [i for i in range(len(models)) if i not in tuned or any(pair.before == i for pair in pairs)]
    return {head: [head, *(pair.after for pair in pairs if pair.before == head)] for head in heads}


def _margins(view: View) -> dict[str, Floats]:
    """Return the margin of each occupation at the base prompt and after counterexamples, (occupations, ks)."""
    found = {}
    for name in PROMPTS:
        kinds = [
            kind.name
            for kind in view.kinds
            if (name == BASE and kind == view.kinds[0])
            or (name != BASE and is_counterexample(kind) and kind.has_background == (name == ANOTHER))
        ]
        rows = np.flatnonzero(np.isin(view.answers.kind, kinds))
        if len(rows):
            found[name] = by_occupation(view.measures.margin[rows], view.occupation[rows], len(view.dominance))
    return found


def _estimates(view: View, values: Mapping[str, Floats], *, test: bool) -> dict[str, Numbers]:
    """Return means over occupations by dominance, (prompts, ks) each."""
    if not values:
        return {}
    stacked = np.stack(list(values.values()), axis=1)  # (occupations, prompts, ks)
    return view.by_dominance(stacked, np.arange(len(stacked)), test=test)


def _rows(
    view: View, values: Mapping[str, Floats], numbers: Mapping[str, Numbers], labels: Mapping[str, str]
) -> Iterator[Finding]:
    for i, k in enumerate(view.ks):
        for at, prompt in enumerate(values):
            for dominance, found in numbers.items():
                yield found.finding((at, i), {**labels, "prompt": prompt, "k": k, "dominance": dominance})
