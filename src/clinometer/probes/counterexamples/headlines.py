"""The counterexamples audit in a few sentences, each with its interval."""

from __future__ import annotations

from collections.abc import Iterator

from clinometer.probes.counterexamples.model_findings import ModelFindings
from clinometer.types import Finding

_LEVEL = 0.05  # of q: what a sentence calls a change


def headlines(found: ModelFindings) -> Iterator[str]:
    """Yield what was found of one model, at the largest k."""
    top = max(found.gendered, default=0)
    margins = _select(found.rows["lean"], k=top, kind="base", measure="margin", dominance="all")
    for lean in margins:
        verdict = "not distinguishable from 0"
        if lean.q < _LEVEL:
            verdict = "follows the stereotype" if lean.estimate > 0 else "runs against the stereotype"
        yield (
            f"{found.model}: at the base prompt, pro- minus anti-stereotypical probability (top {top}) is "
            f"{_number(lean)}: {verdict}."
        )
    changes = _select(found.rows["change"], k=top, measure="margin", dominance="all")
    if not changes:
        return
    sure = [row for row in changes if row.q < _LEVEL]
    sentence = f"{found.model}: {len(sure)} of {len(changes)} kinds of knowledge change that margin (q < {_LEVEL})"
    if sure:
        largest = max(sure, key=lambda row: abs(row.estimate))
        sentence += f"; most of all '{largest.labels['kind']}', by {_number(largest)}"
    yield sentence + "."
    for unrelated in _select(changes, kind="unrelated"):
        yield f"{found.model}: unrelated knowledge changes it by {_number(unrelated)}."


def _select(rows: list[Finding], **labels: str | int) -> list[Finding]:
    return [row for row in rows if all(row.labels[name] == value for name, value in labels.items())]


def _number(row: Finding) -> str:
    p = "q < 0.001" if row.q < 0.001 else f"q = {row.q:.3f}"
    return f"{_signed(row.estimate)} [{_signed(row.low)}, {_signed(row.high)}], {p}"


def _signed(value: float) -> str:
    """Write a number with its sign, but no sign for what rounds to nothing.

    >>> _signed(0.1234), _signed(-0.0001)
    ('+0.123', '0.000')
    """
    text = f"{value:+.3f}"
    return text[1:] if float(text) == 0 else text
