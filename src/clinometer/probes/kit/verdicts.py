"""The rule by which an audit concludes: lean, none found, or cannot tell. It is decided here and nowhere else."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from clinometer.probes.kit.numbers import LEVEL
from clinometer.types import EVERY_MEASURE, ChangeState, ChangeVerdict, Finding, RowReference, State, Verdict

RULE = f"q < {LEVEL} and an interval without 0"
# why nothing is found beside an interval without 0: other tests count, or this one says no by itself
ALL_COUNTED = ", once all tests are counted"
NOT_BY_ITS_TEST = ", though the interval leaves out 0"
NOT_BY_ITS_INTERVAL = ", because the interval holds 0"  # beside a small q

BLUNT = 0.5  # of the largest lean possible: where only more than that would be found, nothing can be told

ONLY = "only a lean of"  # so begins the reason then: it is about this verdict, and hinders no comparison

LEAN: State = "lean"
NONE_FOUND: State = "none found"
CANNOT_TELL: State = "cannot tell"

WORSE: ChangeState = "worse"
BETTER: ChangeState = "better"
NO_CHANGE: ChangeState = "no change found"
UNTOLD: ChangeState = "cannot tell"


def is_found(finding: Finding) -> bool:
    """Tell whether a finding is called one: q is small, and the interval does not hold 0.

    >>> is_found(Finding(labels={}, estimate=0.2, low=0.1, high=0.3, q=0.01))
    True
    >>> is_found(Finding(labels={}, estimate=0.2, low=-0.1, high=0.5, q=0.01))
    False
    """
    return finding.q < LEVEL and (finding.low > 0 or finding.high < 0)


def state_of(finding: Finding, *, gate: str = "") -> State:
    """Return what follows from a finding whose estimate is 0 without a lean; `gate` says why it means nothing.

    >>> row = Finding(labels={}, estimate=0.2, low=0.1, high=0.3, q=0.01)
    >>> state_of(row), state_of(replace(row, q=0.2)), state_of(row, gate="it does not understand the question")
    ('lean', 'none found', 'cannot tell')
    >>> state_of(replace(row, low=math.nan))
    'cannot tell'
    """
    if gate or any(map(math.isnan, (finding.estimate, finding.low, finding.high, finding.q))):
        return CANNOT_TELL
    return LEAN if is_found(finding) else NONE_FOUND


def change_state(row: Finding, *, obstacle: str = "") -> ChangeState:
    """Return what follows from the change of a distance from even-handed: above 0 it has grown.

    >>> row = Finding(labels={}, estimate=0.2, low=0.1, high=0.3, q=0.01)
    >>> change_state(row), change_state(replace(row, estimate=-0.2, low=-0.3, high=-0.1))
    ('worse', 'better')
    >>> change_state(replace(row, q=0.2)), change_state(row, obstacle="asked otherwise")
    ('no change found', 'cannot tell')
    """
    state = state_of(row, gate=obstacle)
    if state == CANNOT_TELL:
        return UNTOLD
    if state != LEAN:
        return NO_CHANGE
    return WORSE if row.estimate > 0 else BETTER


def untold_change(*, audit: str, before: str, after: str, reason: str) -> ChangeVerdict:
    """Return that nothing of an audit can be told, because the two models were not asked the same."""
    return ChangeVerdict(
        audit=audit, before=before, after=after, measure=EVERY_MEASURE, state=UNTOLD, n=0, unit="",
        estimate=math.nan, low=math.nan, high=math.nan, p=math.nan, q=math.nan, lean_before=math.nan,
        lean_after=math.nan, change=math.nan, change_low=math.nan, change_high=math.nan, detectable=math.nan,
        sentence=f"{after} and {before} cannot be compared: {reason}.", reason=reason,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The sentences of an aspect, for each state; a lean above and one below 0 are told apart.

    Each is at most 25 words, without jargon, and begins with what the model does: it follows the model's name.
    """

    above: str
    below: str
    none: str


def conclude(
    finding: Finding,
    *,
    audit: str,
    model: str,
    aspect: str,
    table: str,
    said: Said,
    gate: str = "",
    detectable: float = math.nan,
    size: str = "",
    null: float = 0.0,
    full: float = math.inf,
) -> Verdict:
    """Return the verdict on one row of a table; `null` is the value of the estimate where there is no lean.

    `gate` is empty for a model that understood the question, else why not: then no number may be read as a lean,
    nor as the absence of one. Nor may the absence be told by what is blind to half of the largest lean, `full`.
    """
    from_null = replace(
        finding, estimate=finding.estimate - null, low=finding.low - null, high=finding.high - null
    )
    if not gate and state_of(from_null) == NONE_FOUND and detectable > BLUNT * full:
        gate = f"{ONLY} {detectable:.2f} or more would have been found, of {full:g} possible"
    state = state_of(from_null, gate=gate)
    reason = gate if state == CANNOT_TELL else ""
    if state == CANNOT_TELL and not gate:
        reason = (
            "nothing was measured" if math.isnan(finding.estimate) else "too little was measured for an interval"
        )
    beside = ""
    if not from_null.low <= 0 <= from_null.high:
        beside = NOT_BY_ITS_TEST if finding.p >= LEVEL else ALL_COUNTED
    elif finding.q < LEVEL:
        beside = NOT_BY_ITS_INTERVAL
    sentences = {
        LEAN: said.above if from_null.estimate > 0 else said.below,
        NONE_FOUND: said.none + beside,
        CANNOT_TELL: f"cannot be judged: {reason}",
    }
    return Verdict(
        audit=audit,
        model=model,
        aspect=aspect,
        state=state,
        estimate=finding.estimate,
        low=finding.low,
        high=finding.high,
        p=finding.p,
        q=finding.q,
        n=finding.n,
        detectable=detectable,
        size=size if state != CANNOT_TELL else "",
        sentence=f"{model} {sentences[state]}.",
        reason=reason,
        rows=(RowReference(table=table, labels=dict(finding.labels)),),
    )
