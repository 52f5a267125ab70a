"""How many neutral words are called biased (the % columns of Tables 1 and 2), and how many chance would call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from clinometer.probes.kit.numbers import Ints, Label, with_q
from clinometer.probes.sentiment_words.calls import (
    ALL_KS,
    ASSOCIATION,
    SHIFT,
    Calls,
    at_m,
    main_calls,
    sign_choices,
)
from clinometer.probes.sentiment_words.options import LABELS
from clinometer.probes.sentiment_words.shares import share_finding
from clinometer.probes.sentiment_words.verdicts import NAMES, PAPER, RULES, SIGNS, by_rule
from clinometer.probes.sentiment_words.view import View
from clinometer.types import Finding

AS_LABELLED, SHUFFLED = "as labelled", "labels shuffled"
TRULY_NEUTRAL = "truly neutral"


def count_rows(view: View) -> list[Finding]:
    """Return the share of neutral words that each test calls biased, with the main template and label words."""
    rows: list[Finding] = []
    for calls in main_calls(view):
        for rule in RULES:
            rows += _counted(view, calls, rule)
    rows += _truly_neutral(view)
    return with_q(rows)


def verification_rows(view: View) -> Iterator[Finding]:
    """Yield which share of the positive and negative words gets its own sign, and which the other one."""
    for rule in RULES:
        for test, at, classes, called in _verdicts(view, rule):
            for listed in LABELS[:2]:
                members = called[classes == listed]
                for sign in SIGNS if len(members) else ():
                    labels = {"model": view.model, "test": test, "m_or_k": at, "rule": rule, "listed_as": listed}
                    count = int((members == sign).sum())
                    yield share_finding(count, len(members), {**labels, "found": NAMES[sign]})


def _verdicts(view: View, rule: str) -> Iterator[tuple[str, str, NDArray[np.str_], Ints]]:
    """Yield the verdicts of each test on words of all classes, by a rule."""
    association = view.associations.get(view.options.main_template)
    if association is not None:
        for m, signs in association.polarity.items():
            yield ASSOCIATION, at_m(m), view.classes, by_rule(signs, association.q, rule)
    if view.main_shift is not None:
        called = by_rule(view.main_shift.signs, view.main_shift.strength_q, rule)
        yield SHIFT, ALL_KS, view.shift_classes, called


def _counted(view: View, calls: Calls, rule: str) -> Iterator[Finding]:
    called = calls.by_rule(rule)
    chance = view.chances[view.options.main_template] if calls.test == ASSOCIATION else None
    m = next((m for m in view.options.ms if at_m(m) == calls.at), 0.0)
    for name, signs in sign_choices():
        chosen = np.isin(called, signs)
        count, n = int(chosen.sum()), len(called)
        either = name == "either"
        p = chance.p_of(count / n, m=m, rule=rule) if chance and either else float("nan")
        labels = _labels(view, calls.test, calls.at, rule, name, AS_LABELLED)
        yield share_finding(count, n, labels, p=p)
    if chance:
        shares = chance.shares[m, rule]
        low, high = np.quantile(shares, [0.025, 0.975])
        labels = _labels(view, calls.test, calls.at, rule, "either", SHUFFLED)
        yield Finding(
            labels=labels, estimate=float(shares.mean()), low=float(low), high=float(high),
            n=len(shares),
        )  # fmt: skip


def _truly_neutral(view: View) -> Iterator[Finding]:
    if view.main_shift is None:
        return
    neutral = view.shift_classes == "neutral"
    for place, k in enumerate(view.options.ks):
        chosen = view.main_shift.truly_neutral[neutral, place]
        labels = _labels(view, SHIFT, f"K = {k}", PAPER, TRULY_NEUTRAL, AS_LABELLED)
        yield share_finding(int(chosen.sum()), len(chosen), labels)


def _labels(view: View, test: str, at: str, rule: str, sign: str, reviews: str) -> dict[str, Label]:
    return {"model": view.model, "test": test, "m_or_k": at, "rule": rule, "sign": sign, "reviews": reviews}
