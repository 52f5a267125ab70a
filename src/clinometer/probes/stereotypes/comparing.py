"""What is said of several models: which are alike, and what training changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from clinometer.data.printed_values import load_printed_values
from clinometer.data.stereotypes_data import load_published_values
from clinometer.probes.kit import interval, select, written
from clinometer.probes.kit.before_after import arms_of, change_headline, differ
from clinometer.probes.kit.trainings import TRAININGS, between_arms
from clinometer.probes.kit.verdicts import BETTER, WORSE
from clinometer.probes.stereotypes.answers import ALL
from clinometer.probes.stereotypes.measures import INEQUALITY, NEGATIVITY
from clinometer.types import ChangeVerdict, Finding, ModelInfo

GROUPS = "groups in general"  # the question by which models are compared


def similarity_headline(rows: Sequence[Finding], models: Sequence[ModelInfo]) -> Iterator[str]:
    """Yield which two models are most alike, if they are more so than the next two; else how alike models are."""
    pairs = sorted(between_arms(_overall(rows), models), key=lambda row: -row.estimate)
    if not pairs:
        return
    most, second, least = pairs[0], pairs[min(1, len(pairs) - 1)], pairs[-1]
    named = [f"{row.labels['model']} and {row.labels['other_model']}" for row in (most, second)]
    sure, noise = f"ρ = {_with_interval(most)}", _one_each(pairs) if any(each.tuning for each in models) else ""
    end = f"; by chance {float(most.labels['by_chance']):.2f}{noise}{_most_alike_in_the_paper()}."
    if len(pairs) == 1:
        yield f"Emotion profiles of {named[0]} are alike by {sure}{end}"
    elif differ(most, second):
        yield f"Emotion profiles are most alike in {named[0]}: {sure}{end}"
    else:
        yield (
            f"Emotion profiles of two models are alike by ρ = {written(least.estimate)} to "
            f"{written(most.estimate)} ({len(pairs)} pairs); which are nearest cannot be told: {named[0]} have "
            f"{_with_interval(most)}, {named[1]} {_with_interval(second)}{end}"
        )


def _one_each(rows: Iterable[Finding]) -> str:
    """Say that training noise is in none of the intervals, where that is so."""
    repeated = any(row.labels.get(TRAININGS, 1) != 1 for row in rows)
    return "" if repeated else "; one training each, so intervals leave out what another seed would change"


def _most_alike_in_the_paper() -> str:
    printed = [each for each in load_printed_values("stereotypes") if each.measure == "similarity over all groups"]
    most = max(printed, key=lambda each: each.value)
    return f"; the paper's most alike, {most.model}, have {most.printed}"


def shift_headline(rows: Sequence[Finding], models: Sequence[ModelInfo]) -> Iterator[str]:
    """Yield where tuning moved the emotion profiles most, if more than groups and trainings differ by chance."""
    names = {arm.name for arm in arms_of(models)}
    tuned = [row for row in _overall(rows) if not row.labels.get("attribute")]  # the mitigated have their own
    found = {str(row.labels["model"]): row for row in tuned if row.labels["model"] in names}
    if not found:
        return
    first, *others = sorted(found, key=lambda name: found[name].estimate)
    most, noise = found[first], _one_each(found.values())
    sure, paper, base = f"Δρ = {_with_interval(most)}", _beside_the_paper(), most.labels["base"]
    if not others or differ(most, found[others[0]]):
        yield f"Tuning moves the emotion profiles most in {first} (from {base}): {sure}{noise}{paper}."
        return
    yield (
        f"Tuning moves the emotion profiles in {first} (from {base}) by {sure}, not measurably more than in "
        f"{others[0]} ({_with_interval(found[others[0]])}){noise}{paper}."
    )


def _beside_the_paper() -> str:
    shifts = [each.value for each in load_published_values() if each.measure.startswith("shift")]
    return f"; the paper's models shift by {written(max(shifts))} to {written(min(shifts))} in single categories"


def _overall(rows: Sequence[Finding]) -> list[Finding]:
    return [row for row in select(rows, category=ALL) if not math.isnan(row.estimate)]


def _with_interval(row: Finding) -> str:
    return f"{written(row.estimate)} ({interval(row, write=written)})"


def change_headlines(
    changes: Sequence[ChangeVerdict], rows: Mapping[str, Sequence[Finding]], models: Sequence[ModelInfo]
) -> Iterator[str]:
    """Yield what training changed: of groups in general, then of the categories in which something was found."""
    for verdict in changes:
        if verdict.measure == f"{GROUPS} ({NEGATIVITY})":
            yield change_headline(verdict, models, more="; ".join(_moved(verdict, rows)))
        elif verdict.state in (WORSE, BETTER):
            yield change_headline(verdict, models)


def _moved(verdict: ChangeVerdict, rows: Mapping[str, Sequence[Finding]]) -> Iterator[str]:
    """Yield how far groups lie from their mean, and how far the emotion profiles moved, of one checkpoint."""
    where = {"base": verdict.before, "model": verdict.after}
    for row in select(rows.get("negativity_change", ()), measure=INEQUALITY, **where)[:1]:  # of all comes first
        before, after = (float(row.labels[name]) for name in ("before", "after"))
        yield (
            f"the negativity of a group's attributes lies {before:.3f} from the mean of all groups before and "
            f"{after:.3f} after"
        )
        (shift,) = select(rows.get("shift", ()), category=row.labels["category"], **where)
        if not math.isnan(shift.estimate):
            yield f"emotion profiles: Δρ = {_with_interval(shift)}"
