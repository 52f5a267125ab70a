"""The stereotypes audit in a few sentences, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from clinometer.data.counting import counted
from clinometer.probes.kit.before_after import change_in_words
from clinometer.probes.kit.numbers import select
from clinometer.probes.kit.words import signed, written
from clinometer.probes.stereotypes.recall import RANKING_NAMES, RANKINGS
from clinometer.probes.stereotypes.tables.negativity_change import INEQUALITY
from clinometer.probes.stereotypes.view import ALL, View
from clinometer.types import Finding

_LEVEL = 0.05  # of q: what a sentence calls a difference
_K = 25  # of the recall in a sentence


def headlines(views: Sequence[View], rows: Mapping[str, list[Finding]]) -> Iterator[str]:
    """Yield what was found of mitigated models against their bases, of each model, then of pairs of them."""
    yield from _mitigated(rows.get("shift", []), rows.get("negativity_change", []))
    for view in views:
        yield from _recall(view, rows.get("recall", []))
        yield from _negativity(view, rows["negativity"])
    yield from _similarity(rows.get("similarity", []))
    yield from _shift(rows.get("shift", []))


def _recall(view: View, rows: Sequence[Finding]) -> Iterator[str]:
    k = min(_K, view.options.top_k)
    # all categories, or the one there is: it comes first
    found = {str(row.labels["ranking"]): row for row in reversed(select(rows, model=view.model, k=k))}
    if found:
        typical, probable = (found[RANKING_NAMES[ranking]] for ranking in RANKINGS)
        yield (
            f"{view.model}: {_percent(typical)} of the human stereotypes are among the {k} most typical words, "
            f"{_percent(probable)} among the {k} most probable ones."
        )


def _negativity(view: View, rows: Sequence[Finding]) -> Iterator[str]:
    tested = [row for row in select(rows, model=view.model) if not math.isnan(row.q)]
    if not tested:
        yield f"{view.model}: too few attributes are in the emotion lexicon to test the groups."
        return
    called = [row for row in tested if row.q < _LEVEL and (row.low > 0 or row.high < 0)]
    negative = sorted((row for row in called if row.estimate > 0), key=lambda row: -row.estimate)
    positive = sorted((row for row in called if row.estimate < 0), key=lambda row: row.estimate)
    sentence = (
        f"{view.model}: of {counted(len(tested), 'group')}, the attributes of {len(negative)} are more negative "
        f"and those of {len(positive)} more positive than the mean of all (q < {_LEVEL} and no 0 in the interval)"
    )
    for side, found in (("negative", negative), ("positive", positive)):
        if found:
            sentence += f"; most {side}: {', '.join(_named(row) for row in found[:3])}"
    yield sentence + "."


def _similarity(rows: Sequence[Finding]) -> Iterator[str]:
    pairs = [
        row
        for row in rows
        if row.labels["category"] == ALL and str(row.labels["model"]) < str(row.labels["other_model"])
    ]
    pairs = [row for row in pairs if not math.isnan(row.estimate)]
    if pairs:
        most = max(pairs, key=lambda row: row.estimate)
        yield (
            f"Emotion profiles are most alike in {most.labels['model']} and {most.labels['other_model']}: ρ = "
            f"{_number(most)}; by chance {float(most.labels['by_chance']):.2f}."
        )


def _shift(rows: Sequence[Finding]) -> Iterator[str]:
    corpora = [row for row in rows if not row.labels.get("attribute")]  # the mitigated have their own sentences
    overall = [row for row in corpora if row.labels["category"] == ALL and not math.isnan(row.estimate)]
    if overall:
        most = min(overall, key=lambda row: row.estimate)
        yield (
            f"Tuning moves the emotion profiles most in {most.labels['model']} (from {most.labels['base']}): Δρ = "
            f"{_number(most)}."
        )


def _mitigated(shifts: Sequence[Finding], changes: Sequence[Finding]) -> Iterator[str]:
    mitigated = [row for row in changes if row.labels.get("attribute")]
    if not mitigated:
        return
    category = mitigated[0].labels["category"]  # all of them, or the one there is: it comes first
    for row in select(mitigated, category=category, measure=INEQUALITY):
        label = row.labels
        before, after = float(label["before"]), float(label["after"])
        (shift,) = select(shifts, category=category, base=label["base"], model=label["model"])
        profiles = "" if math.isnan(shift.estimate) else f"; emotion profiles: Δρ = {_number(shift)}"
        yield (
            f"{label['model']} ({label['method']} on {label['attribute']}, {label['amount']}) against "
            f"{label['base']}: the negativity of a group's attributes lies {before:.3f} from the mean of all "
            f"groups before and {after:.3f} after, {change_in_words(row, before=before, after=after)}{profiles}."
        )


def _named(row: Finding) -> str:
    return f"{row.labels['group']} {signed(row.estimate, 2)} ({_interval(row)})"


def _percent(row: Finding) -> str:
    if math.isnan(row.low):
        return f"{row.estimate:.0%} (no interval)"
    return f"{row.estimate:.0%} (95 % interval {row.low:.0%} to {row.high:.0%})"


def _number(row: Finding) -> str:
    return f"{written(row.estimate)} ({_interval(row)})"


def _interval(row: Finding) -> str:
    return "no interval" if math.isnan(row.low) else f"{written(row.low)} to {written(row.high)}"
