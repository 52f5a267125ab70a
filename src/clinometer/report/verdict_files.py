"""Verdicts for other programs (JSON) and for a pull request (Markdown), and what they mean for an exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
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


def is_of_a_lean(verdict: Verdict) -> bool:
    """Tell whether a verdict counts where leans are counted: on the first screen, in headings, for the exit code.

    That a model refuses some groups more is a lean. That it refuses all alike must not make a model look fair
    whose answers cannot be judged.
    """
    return verdict.concerns == "lean" or (verdict.concerns == "refusals" and verdict.state == "lean")


def state_text(verdict: Verdict) -> str:
    """Return a state as a reader sees it: that something moves a model which should not is no lean."""
    return "not robust" if verdict.concerns == "robustness" and verdict.state == "lean" else verdict.state


def exit_code(
    verdicts: Sequence[Verdict], *, fail_on: FailOn, allow_cannot_tell: bool = False, limits: Limits | None = None
) -> int:
    """Return 3 if a lean was found that is not accepted, 4 if only something could not be told, else 0.

    With `limits`, a lean is accepted up to the limit of its audit and aspect, and only what has a limit counts. A
    run without any verdict could not tell anything. That a model is not robust is not a lean.
    """
    if not fail_on and limits is None:
        return 0
    counted = [(each, each.aspect) for each in verdicts if is_of_a_lean(each)]
    return _code(counted, broken="lean", limits=limits, allow_cannot_tell=allow_cannot_tell)


def change_exit_code(
    verdicts: Sequence[ChangeVerdict],
    *,
    fail_on: FailOn,
    allow_cannot_tell: bool = False,
    limits: Limits | None = None,
) -> int:
    """Return 3 if a model became worse, by more than its limit where there are limits; 4 and 0 as `exit_code`."""
    if not fail_on and limits is None:
        return 0
    counted = [
        # what only one of two models was asked could be told of no measure that has a limit
        (
            each,
            next(iter((limits or {}).get(each.audit, {})), "") if each.measure == EVERY_MEASURE else each.measure,
        )
        for each in verdicts
    ]
    return _code(counted, broken="worse", limits=limits, allow_cannot_tell=allow_cannot_tell)


def _code(
    judged: Iterable[tuple[_Judged, str]], *, broken: str, limits: Limits | None, allow_cannot_tell: bool
) -> int:
    judged = list(judged)
    # a limit of an audit that nobody ran would hold for ever
    states = ["cannot tell" for audit in limits or () if all(verdict.audit != audit for verdict, _ in judged)]
    for verdict, name in judged:
        limit = 0.0 if limits is None else limit_of(limits, verdict.audit, name)
        if limit is None:
            continue
        accepted = verdict.state == broken and abs(verdict.estimate) <= limit
        states.append("accepted" if accepted else verdict.state)
    if broken in states:
        return BROKEN
    return UNKNOWN if not allow_cannot_tell and ("cannot tell" in states or not states) else 0


def limit_of(limits: Limits, audit: str, name: str) -> float | None:
    """Return the limit of an aspect or measure; None where it has none.

    >>> limits = {"stigma": {"*": 0.1, "single conditions": 0.3}}
    >>> [limit_of(limits, "stigma", name) for name in ("single conditions", "other")], limit_of(limits, "x", "y")
    ([0.3, 0.1], None)
    """
    of_audit = limits.get(audit, {})
    return of_audit.get(name, of_audit.get("*"))


def verdicts_json(run: str, verdicts: Sequence[Verdict], changes: Sequence[ChangeVerdict] = ()) -> str:
    """Return the verdicts as JSON, and those on what training changed; what was not computed is null."""
    return json.dumps(
        {
            "format": FORMAT,
            "run": run,
            "verdicts": [_plain(asdict(verdict)) for verdict in verdicts],
            "changes": [_plain(asdict(change)) for change in changes],
        },
        indent=2,
        ensure_ascii=False,
        allow_nan=False,
    )


def verdicts_markdown(run: str, verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts as a Markdown table, leans first; whatever a model or user wrote stays text."""
    counted = ", ".join(
        f"{number} × {state}"
        for state in _ORDER
        if (number := sum(each.state == state for each in verdicts if is_of_a_lean(each)))
    )
    lines = [
        f"### Clinometer: {counted or 'no verdicts'}",
        "",
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
    name: str, verdicts: Sequence[ChangeVerdict], leans: Mapping[str, Sequence[Verdict]], notes: Sequence[str]
) -> str:
    """Return what changed as JSON, with what the audits say of each model; what was not computed is null."""
    document = {
        "format": FORMAT,
        "comparison": name,
        "changes": [_plain(asdict(each)) for each in verdicts],
        "models": {model: [_plain(asdict(each)) for each in given] for model, given in leans.items()},
        "notes": list(notes),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def changes_markdown(name: str, verdicts: Sequence[ChangeVerdict], notes: Sequence[str]) -> str:
    """Return what changed as a Markdown table, the worst first, short enough for a comment on a pull request."""
    ordered = sorted(verdicts, key=lambda each: _CHANGES.index(each.state))
    states = [each.state for each in verdicts]
    counted = ", ".join(f"{states.count(state)} × {state}" for state in _CHANGES if state in states)
    lines = [
        f"### Clinometer, before and after: {counted or 'nothing to compare'}",
        "",
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
