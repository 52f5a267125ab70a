"""The stigma audit in a few sentences, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from clinometer.probes.kit.before_after import change_in_words
from clinometer.probes.kit.numbers import select
from clinometer.probes.kit.words import signed, written
from clinometer.probes.stigma.attitudes import ALL_MASKED, MaskedView
from clinometer.probes.stigma.chat import ChatView
from clinometer.probes.stigma.classes import ClassifierView
from clinometer.probes.stigma.prompts import OTHER, STIGMATIZED
from clinometer.probes.stigma.scale import REFUSAL, UNCLEAR
from clinometer.probes.stigma.tables.change import DIFFERENCE
from clinometer.probes.stigma.tables.coverage import COVERED, ENOUGH
from clinometer.probes.stigma.tables.levels import ALL
from clinometer.types import Finding

_LEVEL = 0.05  # of q: what a sentence calls found
_NAMED = 3  # conditions named in a sentence

Rows = Mapping[str, Sequence[Finding]]


def headlines(
    rows: Rows, masked: Sequence[MaskedView], classifiers: Sequence[ClassifierView], chats: Sequence[ChatView]
) -> Iterator[str]:
    """Yield what was found: of what tuning changed, of masked models, classifiers, both together, chat models."""
    for change in select(rows["change"], template=ALL, measure=DIFFERENCE):
        yield _change(rows, change)
    for view in masked:
        yield from _masked(rows, view)
    for classifier in classifiers:
        (gap,) = select(rows["difference"], model=classifier.model, template=ALL)
        shares = select(rows["classes"], model=classifier.model, template=ALL)
        share = {row.labels["group"]: row.estimate for row in shares if row.labels["class"] == "negative"}
        yield (
            f"{classifier.model}: {share[STIGMATIZED]:.3f} of the statements about stigmatized and "
            f"{share[OTHER]:.3f} of those about other conditions are classified as negative, a difference of "
            f"{signed(gap.estimate)} ({_certainty(gap)}): {_verdict(gap)}."
        )
    for found in select(rows["correlation"], conditions=ALL):
        if not math.isnan(found.estimate):
            yield (
                "Over conditions, negative attitude and negative classification correlate with "
                f"r = {written(found.estimate)} (95 % interval {written(found.low)} to {written(found.high)}, "
                f"n = {found.n})."
            )
    for chat in chats:
        yield from _chat(rows, chat)


def _masked(rows: Rows, view: MaskedView) -> Iterator[str]:
    (gap,) = select(rows["difference"], model=view.model, template=ALL)
    level = {row.labels["group"]: row for row in select(rows["levels"], model=view.model, template=ALL)}
    yield (
        f"{view.model}: negative attitude is {level[STIGMATIZED].estimate:.3f} for stigmatized and "
        f"{level[OTHER].estimate:.3f} for other conditions, a difference of {signed(gap.estimate)} "
        f"({_certainty(gap)}): {_verdict(gap)}{_reservation(rows, view)}."
    )
    above = {row.labels["group"]: row for row in select(rows["above_half"], model=view.model)}
    excess = select(rows["excess"], model=view.model)
    out = sorted(
        (row for row in excess if row.q < _LEVEL and row.estimate > 0), key=lambda row: row.labels["rank"]
    )
    named = ", ".join(str(row.labels["condition"]) for row in out[:_NAMED])
    more = len(out) > _NAMED
    yield (
        f"{view.model}: negative words outweigh the rest for {above[STIGMATIZED].labels['above_half']} of "
        f"{above[STIGMATIZED].n} stigmatized and {above[OTHER].labels['above_half']} of {above[OTHER].n} other "
        f"conditions; {len(out)} {'stands' if len(out) == 1 else 'stand'} out above the non-stigmatized ones "
        f"(q < {_LEVEL})" + (f"{', most of all' if more else ':'} {named}." if named else ".")
    )


def _change(rows: Rows, gap: Finding) -> str:
    of_model = select(rows["change"], base=gap.labels["base"], model=gap.labels["model"], template=ALL)
    level = {row.labels["measure"]: row.labels for row in of_model}
    went = [f"{level[group]['before']:.3f} to {level[group]['after']:.3f}" for group in (STIGMATIZED, OTHER)]
    before, after = float(gap.labels["before"]), float(gap.labels["after"])
    return (
        f"{gap.labels['model']} ({gap.labels['training']}) against {gap.labels['base']}: negative attitude goes "
        f"from {went[0]} for stigmatized and from {went[1]} for other conditions; the difference between the two, "
        f"{signed(before)} before: {change_in_words(gap, before=before, after=after)}."
    )


def _chat(rows: Rows, view: ChatView) -> Iterator[str]:
    (gap,) = select(rows["difference"], model=view.model, template=ALL)
    total = view.counts.sum()
    off = {name: view.counts[..., view.readings.index(name)].sum() / total for name in (REFUSAL, UNCLEAR)}
    yield (
        f"{view.model}: on the scale from 0 to 3, its distance from stigmatized minus that from other conditions "
        f"is {signed(gap.estimate)} ({_certainty(gap)}): {_verdict(gap)}. It refused {off[REFUSAL]:.0%} of the "
        f"answers, and {off[UNCLEAR]:.0%} were unclear."
    )


def _verdict(gap: Finding) -> str:
    if math.isnan(gap.q):
        return "not tested"
    if not (gap.q < _LEVEL and (gap.low > 0 or gap.high < 0)):
        return "not distinguishable from no difference"
    return "worse for stigmatized conditions" if gap.estimate > 0 else "better for stigmatized conditions"


def _reservation(rows: Rows, view: MaskedView) -> str:
    """Return what a reader must know who reads this sentence only."""
    covered = select(rows["coverage"], template=ALL, part=COVERED)
    low = [row for row in covered if row.estimate < ENOUGH and view.model in (ALL_MASKED, row.labels["model"])]
    if not low:
        return ""
    held = [f"{row.estimate:.2f}" + f" ({row.labels['model']})" * (view.model == ALL_MASKED) for row in low]
    return f"; but rated words hold only {', '.join(held)} of the probability"


def _certainty(row: Finding) -> str:
    interval = f"95 % interval {signed(row.low)} to {signed(row.high)}"
    if math.isnan(row.low) or math.isnan(row.high):
        interval = "no interval"
    test = "q < 0.001" if row.q < 0.001 else f"q = {row.q:.3f}"
    return f"{interval}, {'not tested' if math.isnan(row.q) else test}"
