"""How far the two tests agree on the neutral words that both were asked about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clinometer.probes.kit.numbers import Label
from clinometer.probes.sentiment_words.calls import ASSOCIATION, SHIFT, Calls, association_calls, at_m, shift_calls
from clinometer.probes.sentiment_words.shares import share_finding
from clinometer.probes.sentiment_words.verdicts import NAMES, RULES, SIGNS, SURE
from clinometer.probes.sentiment_words.view import View
from clinometer.types import Finding

UNION = "all models together"
TOP = 50  # words at each end of a ranking (§4.4); of a shorter one the halves are compared


def overlap_rows(views: Sequence[View]) -> Iterator[Finding]:
    """Yield which share of one test's words the other calls biased too, by model and over all (footnote 3)."""
    for view in views:
        for association, shift in _both(view):
            yield from _overlaps(view.model, [(association, shift)])
    if len(views) > 1:
        every = [list(_both(view)) for view in views]
        for at_same_m in zip(*(pairs for pairs in every if pairs), strict=True):
            yield from _overlaps(UNION, at_same_m)


def top_words_rows(view: View) -> Iterator[Finding]:
    """Yield how many of the strongest and weakest words of the shift test the association test finds too."""
    for association, shift in _both(view):
        for rule in RULES:
            for sign in SIGNS:
                known = set(association.words)
                order = sorted(
                    (
                        (abs(float(size)), word)
                        for word, size in zip(shift.words, shift.size, strict=True)
                        if word in shift.found(rule, sign) and word in known
                    ),
                    reverse=True,
                )
                ranked = [word for _, word in order]
                count = min(TOP, len(ranked) // 2)
                found = association.found(rule, sign)
                for part, words in (("strongest", ranked[:count]), ("weakest", ranked[len(ranked) - count :])):
                    labels: dict[str, Label] = {
                        "model": view.model,
                        "association_at": association.at,
                        "rule": rule,
                        "sign": NAMES[sign],
                        "part": part,
                    }
                    yield share_finding(len(found & set(words)), len(words), labels)


def scatter_rows(view: View) -> Iterator[Finding]:
    """Yield the strength of each neutral word beside its effect in the association test."""
    found = view.main_shift
    association = next((each for each in association_calls(view) if each.at == at_m(view.options.main_m)), None)
    shift = next(shift_calls(view), None)
    if found is None or association is None or shift is None:
        return
    effect = dict(zip(association.words, association.size, strict=True))
    by_association = dict(zip(association.words, association.by_rule(SURE), strict=True))
    by_shift = dict(zip(shift.words, shift.by_rule(SURE), strict=True))
    for at, word in enumerate(view.shift_words):
        if word in by_shift:
            labels: dict[str, Label] = {
                "model": view.model,
                "word": word,
                "association_effect": float(effect[word]),
                "called_by": _called_by(by_association[word], by_shift[word]),
            }
            yield found.strength.finding((at,), labels)


def _called_by(association: int, shift: int) -> str:
    if association and shift:
        return "both" if association == shift else "both, with opposite signs"
    if association:
        return ASSOCIATION
    return SHIFT if shift else "neither"


def _both(view: View) -> Iterator[tuple[Calls, Calls]]:
    """Yield the association test at each m beside the shift test over all K."""
    shift = next(shift_calls(view), None)
    if shift is not None:
        yield from ((association, shift) for association in association_calls(view))


def _overlaps(model: str, tests: Sequence[tuple[Calls, Calls]]) -> Iterator[Finding]:
    for rule in RULES:
        for sign in SIGNS:
            # words that only one of the tests was asked about say nothing of their agreement
            association = frozenset[str]().union(
                *(one.found(rule, sign) & frozenset(other.words) for one, other in tests)
            )
            shift = frozenset[str]().union(*(other.found(rule, sign) for _, other in tests))
            labels: dict[str, Label] = {
                "model": model,
                "association_at": tests[0][0].at,
                "rule": rule,
                "sign": NAMES[sign],
            }
            shared = len(association & shift)
            yield share_finding(shared, len(association), {**labels, "of_the_words_of": ASSOCIATION})
            yield share_finding(shared, len(shift), {**labels, "of_the_words_of": SHIFT})
