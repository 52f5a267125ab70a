"""Verdicts for other programs (JSON) and for a pull request (Markdown), and what they mean for an exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

from clinometer.report.rounding import estimate_text, interval_text, json_number
from clinometer.types import State, Verdict

FORMAT = 1  # of the JSON file
MOST_ROWS = 100  # of a Markdown table: a comment on a pull request holds 65,536 characters

BROKEN = 3  # exit code: a verdict is what the caller does not accept
UNKNOWN = 4  # exit code: nothing is broken, but something could not be told

FailOn = Literal["", "lean"]

_ORDER: tuple[State, ...] = ("lean", "none found", "cannot tell")
_MARKS = re.compile(r"([\\`*_{}\[\]()#+!|<>~])")


def exit_code(verdicts: Sequence[Verdict], *, fail_on: FailOn, allow_cannot_tell: bool = False) -> int:
    """Return 3 if a lean was found and leans are not accepted, 4 if only something could not be told, else 0.

    A run without any verdict could not tell anything. That a model is not robust is not a lean.
    """
    states = [verdict.state for verdict in verdicts if verdict.concerns == "lean"]
    if not fail_on:
        return 0
    if "lean" in states:
        return BROKEN
    return UNKNOWN if not allow_cannot_tell and ("cannot tell" in states or not states) else 0


def verdicts_json(run: str, verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts as JSON; what was not computed is null."""
    return json.dumps(
        {"format": FORMAT, "run": run, "verdicts": [_plain(asdict(verdict)) for verdict in verdicts]},
        indent=2,
        ensure_ascii=False,
        allow_nan=False,
    )


def verdicts_markdown(run: str, verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts as a Markdown table, leans first; whatever a model or user wrote stays text."""
    counted = ", ".join(
        f"{number} × {state}"
        for state in _ORDER
        if (number := sum(each.state == state for each in verdicts if each.concerns == "lean"))
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


def _line(verdict: Verdict) -> str:
    told = verdict.state != "cannot tell"
    effect = f"{estimate_text(verdict.estimate)} {interval_text(verdict.low, verdict.high)}" if told else "–"
    size = f" ({_text(verdict.size)})" if verdict.size else ""
    cells = (
        f"**{verdict.state}**" if verdict.state == "lean" else verdict.state,
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
