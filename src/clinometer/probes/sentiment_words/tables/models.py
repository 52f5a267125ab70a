"""What several models have in common, and what fine-tuning adds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from clinometer.probes.kit.numbers import Floats, Label, model_rng, with_q
from clinometer.probes.sentiment_words.calls import Calls, main_calls, sign_choices
from clinometer.probes.sentiment_words.shares import share_finding
from clinometer.probes.sentiment_words.verdicts import RULES, draws_for
from clinometer.probes.sentiment_words.view import View
from clinometer.stats import paired_share_interval, sign_flip_test
from clinometer.types import Finding


def shared_rows(views: Sequence[View]) -> Iterator[Finding]:
    """Yield which share of the words that any model leans on is shared by at least two models (§4.3)."""
    measured = [view for view in views if view.measured]
    if len(measured) < 2:
        return
    # the shift test may be missing in a model that lacks the label words
    by_test: dict[tuple[str, str], list[Calls]] = {}
    for view in measured:
        for calls in main_calls(view):
            by_test.setdefault((calls.test, calls.at), []).append(calls)
    for (test, at), models in by_test.items():
        if len(models) < 2:
            continue
        for rule in RULES:
            for name, signs in sign_choices():
                times = Counter(
                    (word, sign) for calls in models for sign in signs for word in sorted(calls.found(rule, sign))
                )
                shared = sorted({word for (word, _), count in times.items() if count > 1})
                count = sum(count > 1 for count in times.values())
                labels: dict[str, Label] = {
                    "models": len(models),
                    "test": test,
                    "m_or_k": at,
                    "rule": rule,
                    "sign": name,
                    "words": ", ".join([*shared[:10], "…"] if len(shared) > 10 else shared),
                }
                yield share_finding(count, len(times), labels)


def growth_rows(views: Sequence[View], *, seed: int) -> list[Finding]:
    """Return how the number of biased words changes from a model to the checkpoints tuned from it (§4.3)."""
    rows: list[Finding] = []
    for base, tuned in tuned_pairs(views):
        rng = model_rng(seed, f"{base.model}\0{tuned.model}")
        afterwards = {(calls.test, calls.at): calls for calls in main_calls(tuned)}
        for before in main_calls(base):
            after = afterwards.get((before.test, before.at))
            if after is not None and set(before.words) & set(after.words):
                for rule in RULES:
                    rows += _growth(base, tuned, before, after, rule, rng=rng)
    return with_q(rows)


def tuned_pairs(views: Sequence[View]) -> Iterator[tuple[View, View]]:
    """Yield each model with a checkpoint that was tuned from it."""
    for tuned in views:
        for base in views:
            if tuned.info.tuning.get("base") == base.info.weights:
                yield base, tuned


def _growth(
    base: View, tuned: View, before: Calls, after: Calls, rule: str, *, rng: np.random.Generator
) -> Iterator[Finding]:
    words = [word for word in before.words if word in set(after.words)]
    first = dict(zip(before.words, before.by_rule(rule), strict=True))
    second = dict(zip(after.words, after.by_rule(rule), strict=True))
    growths: list[float] = []
    for name, signs in sign_choices():
        had = np.array([first[word] in signs for word in words])
        has = np.array([second[word] in signs for word in words])
        growth = _percent(int(had.sum()), int(has.sum()))
        if name == "either":
            growth = float(np.mean(growths))  # the paper's footnote 2: averaged over positive and negative
        growths.append(growth)
        change: Floats = has.astype(np.float64) - had
        limits = paired_share_interval((has & ~had).sum(), (had & ~has).sum(), len(words))
        labels: dict[str, Label] = {
            "model": base.model,
            "tuned": tuned.model,
            "test": before.test,
            "m_or_k": before.at,
            "rule": rule,
            "sign": name,
            "before": int(had.sum()),
            "after": int(has.sum()),
            "kept": int((had & has).sum()),
            "lost": _names(words, had & ~has),
            "gained": _names(words, has & ~had),
            "growth_percent": "" if math.isnan(growth) else f"{growth:+.1f}",
        }
        yield Finding(
            labels=labels,
            estimate=float(change.mean()),
            low=float(limits.low),
            high=float(limits.high),
            p=float(sign_flip_test(change, rng=rng, draws=draws_for(1)).p),
            n=len(words),
        )


def _percent(before: int, after: int) -> float:
    return 100 * (after - before) / before if before else math.nan


def _names(words: Sequence[str], chosen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> str:
    named = [word for word, kept in zip(words, chosen, strict=True) if kept]
    shown = ", ".join([*named[:10], "…"] if len(named) > 10 else named)
    return f"{len(named)}: {shown}" if named else "0"
