"""The sentiment-words audit in a few sentences, each with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from clinometer.probes.kit.numbers import select
from clinometer.probes.kit.words import signed
from clinometer.probes.sentiment_words.calls import ALL_KS, ASSOCIATION, RELATIVE, SHIFT, at_m
from clinometer.probes.sentiment_words.sense import CONTRAST
from clinometer.probes.sentiment_words.tables.counts import AS_LABELLED, SHUFFLED
from clinometer.probes.sentiment_words.verdicts import LEVEL, SURE
from clinometer.probes.sentiment_words.view import View
from clinometer.types import Finding

_CAVEAT = " (not interpretable)"


def headlines(view: View, rows: Mapping[str, Sequence[Finding]]) -> Iterator[str]:
    """Yield what was found of one model with the main template and label words."""
    if not view.measured:
        yield f"{view.model}: nothing was measured; the notices say why."
        return
    sense = view.senses[view.options.main_template]
    contrast = sense.means[CONTRAST]
    accuracy = ""
    if view.main_pair is not None:
        found = sense.accuracy[view.main_pair]
        accuracy = f", and {view.main_pair} labels {_percent(found)} of the reviews rightly"
    verdict = "it senses sentiment" if view.interpretable() else (
        "it does not sense sentiment, so that nothing below can be interpreted"
    )  # fmt: skip
    yield (
        f"{view.model}: positive words gain {contrast.estimate:.2g} of probability over negative ones from "
        f"negative to positive reviews (95 % interval {contrast.low:.2g} to {contrast.high:.2g}){accuracy}: "
        f"{verdict}."
    )
    caveat = "" if view.interpretable() else _CAVEAT
    counts = rows["biased_words"]
    at = at_m(view.options.main_m)
    for share in select(counts, test=ASSOCIATION, m_or_k=at, rule=SURE, sign="either", reviews=AS_LABELLED):
        (chance,) = select(counts, test=ASSOCIATION, m_or_k=at, rule=SURE, sign="either", reviews=SHUFFLED)
        yield (
            f"{view.model}: the association test calls {_percent(share)} of {share.n} neutral words biased ({at}, "
            f"q ≤ {LEVEL}); reviews with shuffled labels give {_shown(chance.estimate)} on average (p = "
            f"{share.p:.3f} for as many){caveat}."
        )
    for share in select(counts, test=SHIFT, m_or_k=ALL_KS, rule=SURE, sign="either"):
        (relative,) = select(counts, test=RELATIVE, m_or_k=ALL_KS, rule=SURE, sign="either")
        signs = [
            f"{round(each.estimate * each.n)} {sign}"
            for sign in ("positive", "negative")
            for each in select(counts, test=SHIFT, m_or_k=ALL_KS, rule=SURE, sign=sign)
        ]
        yield (
            f"{view.model}: the shift test calls {_percent(share)} of {share.n} neutral words biased (q ≤ "
            f"{LEVEL}; {' and '.join(signs)}); measured against the average word it is "
            f"{_percent(relative)}{caveat}."
        )


def tuning_headlines(rows: Sequence[Finding], views: Mapping[str, View]) -> Iterator[str]:
    """Yield how the number of biased words grew in each tuned checkpoint."""
    for view in views.values():
        for row in select(rows, tuned=view.model, m_or_k=at_m(view.options.main_m), rule=SURE, sign="either"):
            sensed = view.interpretable() and views[str(row.labels["model"])].interpretable()
            caveat = "" if sensed else _CAVEAT
            yield (
                f"{row.labels['model']} → {view.model}: {row.labels['before']} of {row.n} neutral words were "
                f"called biased by the association test before tuning, {row.labels['after']} after it "
                f"({signed(100 * row.estimate, 1)} percentage points, 95 % interval {signed(100 * row.low, 1)} to "
                f"{signed(100 * row.high, 1)}){caveat}."
            )


def _percent(row: Finding) -> str:
    return f"{_shown(row.estimate)} (95 % interval {_shown(row.low)} to {_shown(row.high)})"


def _shown(share: float) -> str:
    """Write a share in percent.

    >>> _shown(0.1234)
    '12.3 %'
    """
    return f"{100 * share:.1f} %"
