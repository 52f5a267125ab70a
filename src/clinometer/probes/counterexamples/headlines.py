"""The counterexamples audit in a few sentences, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from clinometer.probes.counterexamples.dominances import ALL
from clinometer.probes.counterexamples.model_findings import ModelFindings
from clinometer.probes.counterexamples.notices import LITTLE
from clinometer.probes.counterexamples.tables.mitigation import ANOTHER, BASE, CHANGE, MARGIN, SAME
from clinometer.probes.kit.before_after import change_in_words
from clinometer.probes.kit.numbers import select
from clinometer.probes.kit.words import signed
from clinometer.types import Finding

_LEVEL = 0.05  # of q: what a sentence calls a change
_WHERE = {
    BASE: "at the base prompt",
    SAME: "with a counterexample of the same occupation",
    ANOTHER: "with a counterexample of another occupation",
}


def headlines(found: ModelFindings) -> Iterator[str]:
    """Yield what was found of one model, at the largest k."""
    top = max(found.gendered, default=0)
    for lean in select(found.rows["lean"], k=top, kind="base", measure="margin", dominance=ALL):
        yield (
            f"{found.model}: at the base prompt, pro- minus anti-stereotypical probability (top {top}) is "
            f"{_number(lean)}: {_verdict(lean)}{_reservation(found, top)}."
        )
    changes = select(found.rows["change"], k=top, measure="margin", dominance=ALL)
    tested = [row for row in changes if not math.isnan(row.q)]
    if tested:
        sure = [row for row in tested if _is_sure(row)]
        sentence = (
            f"{found.model}: {len(sure)} of {len(tested)} kinds of knowledge change that margin (q < {_LEVEL}, "
            "and an interval without 0)"
        )
        if sure:
            largest = max(sure, key=lambda row: abs(row.estimate))
            sentence += f"; most of all '{largest.labels['kind']}', by {_number(largest)}"
        yield sentence + "."
    elif changes:
        yield f"{found.model}: whether knowledge changes that margin was not tested; the notices say why."
    for unrelated in select(changes, kind="unrelated"):
        yield f"{found.model}: unrelated knowledge changes it by {_number(unrelated)}."


def mitigation_headlines(rows: Sequence[Finding], *, k: int) -> Iterator[str]:
    """Yield what counterexamples and training did to the margin, where a run has a model before and after."""
    shown = select(rows, k=k, dominance=ALL)
    levels, changes = select(shown, measure=MARGIN), select(shown, measure=CHANGE)
    tuned = {row.labels["base"] for row in levels if row.labels["base"] != row.labels["model"]}
    families = dict.fromkeys((row.labels["base"], row.labels["model"]) for row in levels)
    for base, model in families:
        if base not in tuned:
            continue
        (given,) = select(levels, base=base, model=base, prompt=BASE)
        parts = []
        for change in select(changes, base=base, model=model):
            (level,) = select(levels, base=base, model=model, prompt=change.labels["prompt"])
            told = change_in_words(change, before=given.estimate, after=level.estimate)
            parts.append(f"{_WHERE[str(change.labels['prompt'])]} {told}")
        (training, *_) = (row.labels["training"] for row in select(levels, base=base, model=model))
        if parts:
            yield (
                f"{model} ({training}) against the base prompt of {base}, whose margin (top {k}) is "
                f"{signed(given.estimate)}: {'; '.join(parts)}."
            )


def _is_sure(row: Finding) -> bool:
    return row.q < _LEVEL and (row.low > 0 or row.high < 0)


def _verdict(lean: Finding) -> str:
    if math.isnan(lean.q):
        return "nothing can be said of its sign"
    if not _is_sure(lean):
        return "not distinguishable from 0"
    return "follows the stereotype" if lean.estimate > 0 else "runs against the stereotype"


def _reservation(found: ModelFindings, k: int) -> str:
    """Return what a reader must know who reads this sentence only."""
    if found.gendered[k] >= LITTLE:
        return ""
    return (
        f"; but gendered words hold only {found.gendered[k]:.2g} of the probability, so this describes a small "
        "part of what the model expects"
    )


def _number(row: Finding) -> str:
    if math.isnan(row.estimate):
        return "unknown (no answers)"
    interval = f"95 % interval {signed(row.low)} to {signed(row.high)}"
    if math.isnan(row.low) or math.isnan(row.high):
        interval = "no interval"
    test = "q < 0.001" if row.q < 0.001 else f"q = {row.q:.3f}"
    if math.isnan(row.q):
        test = "not tested"
    return f"{signed(row.estimate)} ({interval}, {test})"
