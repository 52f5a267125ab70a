"""How verdicts change with the template and with the label words (Appendix A.2)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clinometer.probes.kit.numbers import Label
from clinometer.probes.sentiment_words.calls import Calls, association_calls, shift_calls
from clinometer.probes.sentiment_words.shares import share_finding
from clinometer.probes.sentiment_words.verdicts import RULES
from clinometer.probes.sentiment_words.view import View
from clinometer.stats import cohens_kappa
from clinometer.types import Finding


def variant_rows(view: View) -> Iterator[Finding]:
    """Yield how many words keep their verdict when another template or pair of label words is used."""
    for template in list(view.associations)[1:]:
        for main, other in zip(association_calls(view), association_calls(view, template), strict=True):
            yield from _compared(view, template, "", main, other)
    for template, pair in list(view.shifts)[1:]:
        for main, other in zip(shift_calls(view), shift_calls(view, (template, pair)), strict=True):
            yield from _compared(view, template, pair, main, other)


def _compared(view: View, template: str, pair: str, main: Calls, other: Calls) -> Iterator[Finding]:
    for rule in RULES:
        first, second = main.by_rule(rule), other.by_rule(rule)
        changed = first != second
        labels: dict[str, Label] = {
            "model": view.model,
            "test": main.test,
            "m_or_k": main.at,
            "rule": rule,
            "template": template,
            "labels": pair,
        }
        shown = main.named(changed)
        same = {**labels, "measure": "same verdict", "changed_words": shown}
        yield share_finding(int(np.sum(~changed)), len(changed), same)
        kappa = cohens_kappa(first.tolist(), second.tolist())
        yield Finding(
            labels={**labels, "measure": "kappa", "changed_words": shown},
            estimate=kappa.estimate,
            low=kappa.low,
            high=kappa.high,
            n=kappa.n,
        )
