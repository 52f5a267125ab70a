"""Verdicts for other programs (JSON) and for a pull request (Markdown), and what they mean for an exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from clinometer.report.rounding import estimate_text, interval_text, json_number
from clinometer.types import EVERY_MEASURE, ChangeVerdict, State, Verdict

FORMAT = 1  # of the JSON file
MOST_NOTES = 20
MOST_ROWS = 100  # of a Markdown table: a comment on a pull request holds 65,536 characters

BROKEN = 3  # exit code: a verdict is what the caller does not accept
UNKNOWN = 4  # exit code: nothing is broken, but something could not be told

FailOn = Literal["", "lean", "worse"]
Limits = Mapping[str, Mapping[str, float]]  # audit -> aspect or measure, or "*" -> the largest effect accepted

_ORDER: tuple[State, ...] = ("lean", "none found", "cannot tell")
_CHANGES = ("worse", "better", "no change found", "cannot tell")
_MARKS = re.compile(r"([\\`*_{}\[\]()#+!|<>~])")


class _Judged(Protocol):
    """What lean and change have in common."""

    @property
    def audit(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def estimate(self) -> float: ...
    @property
    def sentence(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a caller does not accept: an exit code, and why it is not 0."""

    code: int = 0
    reasons: tuple[str, ...] = ()  # one sentence each; markup in them is a model's or a user's


_ACCEPTED = Judgement()


def is_of_a_lean(verdict: Verdict) -> bool:
    """Tell whether a verdict counts where leans are counted: on the first screen, in headings, for the exit code.

    That a model refuses some groups more is a lean. That it refuses all alike must not make a model look fair
    whose answers cannot be judged.
    """
    return verdict.concerns == "lean" or (verdict.concerns == "refusals" and verdict.state == "lean")


def state_text(verdict: Verdict) -> str:
    """Return a state as a reader sees it: that something moves a model which should not is no lean."""
    return "not robust" if verdict.concerns == "robustness" and verdict.state == "lean" else verdict.state


def judged(
    verdicts: Sequence[Verdict], *, fail_on: FailOn, allow_cannot_tell: bool = False, limits: Limits | None = None
) -> Judgement:
    """Return code 3 if a lean was found that is not accepted, 4 if only something could not be told, else 0.

    With `limits`, a lean is accepted up to the limit of its audit and aspect, and only what has a limit counts. A
    run without any verdict could not tell anything. That a model is not robust is not a lean.
    """
    if not fail_on and limits is None:
        return Judgement()
    counted = [(each, each.aspect) for each in verdicts if is_of_a_lean(each)]
    return _judged(counted, broken="lean", limits=limits, allow_cannot_tell=allow_cannot_tell)


def judged_changes(
    verdicts: Sequence[ChangeVerdict],
    *,
    fail_on: FailOn,
    allow_cannot_tell: bool = False,
    limits: Limits | None = None,
) -> Judgement:
    """Return code 3 if a model became worse, by more than its limit where there is one; 4 and 0 as `judged`."""
    if not fail_on and limits is None:
        return Judgement()
    counted = [
        # what only one of two models was asked could be told of no measure that has a limit
        (
            each,
            next(iter((limits or {}).get(each.audit, {})), "") if each.measure == EVERY_MEASURE else each.measure,
        )
        for each in verdicts
    ]
    return _judged(counted, broken="worse", limits=limits, allow_cannot_tell=allow_cannot_tell)


def _judged(
    counted: Iterable[tuple[_Judged, str]], *, broken: str, limits: Limits | None, allow_cannot_tell: bool
) -> Judgement:
    given = list(counted)
    beyond: list[str] = []
    # a limit of an audit that nobody ran would hold for ever
    untold = [
        f"{audit} has a limit and was not run"
        for audit in limits or ()
        if all(verdict.audit != audit for verdict, _ in given)
    ]
    seen = len(untold)
    for verdict, name in given:
        limit = 0.0 if limits is None else limit_of(limits, verdict.audit, name)
        if limit is None:
            continue
        seen += 1
        about = f"{verdict.audit}, {name}: {verdict.sentence}"
        if verdict.state == "cannot tell":
            untold.append(about)
        elif verdict.state == broken and abs(verdict.estimate) > limit:
            effect = f" The effect is {abs(verdict.estimate):.3f}, the limit {limit:g}." if limits else ""
            beyond.append(f"{about}{effect}")
    if beyond:
        return Judgement(code=BROKEN, reasons=tuple(beyond))
    if allow_cannot_tell or (seen and not untold):
        return Judgement()
    return Judgement(code=UNKNOWN, reasons=tuple(untold) or ("there is no verdict that it could rest on",))


def limit_of(limits: Limits, audit: str, name: str) -> float | None:
    """Return the limit of an aspect or measure; None where it has none.

    >>> limits = {"stigma": {"*": 0.1, "single conditions": 0.3}}
    >>> [limit_of(limits, "stigma", name) for name in ("single conditions", "other")], limit_of(limits, "x", "y")
    ([0.3, 0.1], None)
    """
    of_audit = limits.get(audit, {})
    return of_audit.get(name, of_audit.get("*"))


def verdicts_json(
    run: str,
    verdicts: Sequence[Verdict],
    changes: Sequence[ChangeVerdict] = (),
    judgement: Judgement = _ACCEPTED,
) -> str:
    """Return the verdicts as JSON, and those on what training changed; what was not computed is null."""
    return json.dumps(
        {
            "format": FORMAT,
            "run": run,
            "judgement": asdict(judgement),
            "verdicts": [_plain(asdict(verdict)) for verdict in verdicts],
            "changes": [_plain(asdict(change)) for change in changes],
        },
        indent=2,
        ensure_ascii=False,
        allow_nan=False,
    )


def verdicts_markdown(run: str, verdicts: Sequence[Verdict], judgement: Judgement = _ACCEPTED) -> str:
    """Return the verdicts as a Markdown table, leans first; whatever a model or user wrote stays text."""
    counted = ", ".join(
        f"{number} × {state}"
        for state in _ORDER
        if (number := sum(each.state == state for each in verdicts if is_of_a_lean(each)))
    )
    lines = [
        f"### Clinometer: {counted or 'no verdicts'}",
        "",
        *_reasons(judgement),
        *verdict_table(verdicts),
        "",
        f"Run: {_text(run)}",
        "",
    ]
    return "\n".join(lines)


def verdict_table(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the lines of a Markdown table of verdicts, leans first."""
    ordered = sorted(verdicts, key=lambda verdict: _ORDER.index(verdict.state))
    lines = [
        "| verdict | model | audit | effect, 95 % interval | detectable | what follows |",
        "|---|---|---|---|---|---|",
        *(_line(verdict) for verdict in ordered[:MOST_ROWS]),
    ]
    if len(ordered) > MOST_ROWS:
        lines += ["", f"{len(ordered) - MOST_ROWS} more verdicts are in the report."]
    return lines


def changes_json(
    name: str,
    verdicts: Sequence[ChangeVerdict],
    leans: Mapping[str, Sequence[Verdict]],
    notes: Sequence[str],
    judgement: Judgement = _ACCEPTED,
) -> str:
    """Return what changed as JSON, with what the audits say of each model; what was not computed is null."""
    document = {
        "format": FORMAT,
        "comparison": name,
        "judgement": asdict(judgement),
        "changes": [_plain(asdict(each)) for each in verdicts],
        "models": {model: [_plain(asdict(each)) for each in given] for model, given in leans.items()},
        "notes": list(notes),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def changes_markdown(
    name: str, verdicts: Sequence[ChangeVerdict], notes: Sequence[str], judgement: Judgement = _ACCEPTED
) -> str:
    """Return what changed as a Markdown table, the worst first, short enough for a comment on a pull request."""
    ordered = sorted(verdicts, key=lambda each: _CHANGES.index(each.state))
    states = [each.state for each in verdicts]
    counted = ", ".join(f"{states.count(state)} × {state}" for state in _CHANGES if state in states)
    lines = [
        f"### Clinometer, before and after: {counted or 'nothing to compare'}",
        "",
        *_reasons(judgement),
        "| verdict | audit | farther from even-handed by, 95 % interval | detectable | what follows |",
        "|---|---|---|---|---|",
        *(_change_line(each) for each in ordered[:MOST_ROWS]),
    ]
    if len(ordered) > MOST_ROWS:
        lines += ["", f"{len(ordered) - MOST_ROWS} more are on the page of the comparison."]
    if notes:
        lines += ["", *(f"- {_text(note)}" for note in notes[:MOST_NOTES])]
    lines += ["", f"Compared: {_text(name)}", ""]
    return "\n".join(lines)


def _reasons(judgement: Judgement) -> list[str]:
    """Return the lines of Markdown that say why a check failed; none where it did not."""
    if not judgement.code:
        return []
    title = "Not accepted" if judgement.code == BROKEN else "Could not be told"
    told = [f"- {_text(each)}" for each in judgement.reasons[:MOST_NOTES]]
    if len(judgement.reasons) > MOST_NOTES:
        told.append(f"- and {len(judgement.reasons) - MOST_NOTES} more")
    return [f"**{title} (exit code {judgement.code}):**", "", *told, ""]


def _change_line(verdict: ChangeVerdict) -> str:
    told = verdict.state != "cannot tell"
    effect = f"{estimate_text(verdict.estimate)} {interval_text(verdict.low, verdict.high)}" if told else "–"
    cells = (
        f"**{verdict.state}**" if verdict.state == "worse" else verdict.state,
        f"{_text(verdict.audit)}: {_text(verdict.measure)}",
        _text(effect),
        _text(estimate_text(verdict.detectable)),
        _text(verdict.sentence),
    )
    return f"| {' | '.join(cells)} |"


def _line(verdict: Verdict) -> str:
    told = verdict.state != "cannot tell"
    effect = f"{estimate_text(verdict.estimate)} {interval_text(verdict.low, verdict.high)}" if told else "–"
    size = f" ({_text(verdict.size)})" if verdict.size else ""
    cells = (
        f"**{state_text(verdict)}**" if verdict.state == "lean" else verdict.state,
        _text(verdict.model),
        f"{_text(verdict.audit)}: {_text(verdict.aspect)}",
        _text(effect),
        _text(estimate_text(verdict.detectable)),
        f"{_text(verdict.sentence)}{size}",
    )
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    """Write text so that Markdown reads it as nothing but text, on one line.

    >>> _text("a|b <script> *c*")
    'a\\\\|b \\\\<script\\\\> \\\\*c\\\\*'
    """
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
