"""Which neutral words a test calls biased, in one shape for both tests: counts and comparisons are made of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clinometer.probes.kit.numbers import Floats, Ints
from clinometer.probes.sentiment_words.verdicts import NAMES, SIGNS, by_rule, named
from clinometer.probes.sentiment_words.view import View

ASSOCIATION, SHIFT, RELATIVE = "association", "shift", "shift against average"
ALL_KS = "all K"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """What one test says of each neutral word of one model: a sign, a q-value, and how strong."""

    test: str
    at: str  # the threshold m or the K
    words: tuple[str, ...]
    signs: Ints
    q: Floats
    size: Floats

    def by_rule(self, rule: str) -> Ints:
        """Return the signs that a rule lets stand."""
        return by_rule(self.signs, self.q, rule)

    def found(self, rule: str, sign: int) -> frozenset[str]:
        """Return the words that are called biased with that sign."""
        called = self.by_rule(rule)
        return frozenset(word for word, each in zip(self.words, called, strict=True) if each == sign)

    def named(self, chosen: NDArray[np.bool_]) -> str:
        """Return the chosen words as text, the strongest first."""
        return named(self.words, self.size, chosen)


def at_m(m: float) -> str:
    """Return how tables name a threshold.

    >>> at_m(1.0), at_m(0.5)
    ('m = 1', 'm = 0.5')
    """
    return f"m = {m:g}"


def association_calls(view: View, template: str | None = None) -> Iterator[Calls]:
    """Yield what the association test says, for each m; without a template: with the main one."""
    found = view.associations.get(template or view.options.main_template)
    if found is None:
        return
    neutral = view.classes == "neutral"
    words = _chosen(view.words, neutral)
    for m, polarity in found.polarity.items():
        yield Calls(
            test=ASSOCIATION,
            at=at_m(m),
            words=words,
            signs=polarity[neutral],
            q=found.q[neutral],
            size=found.effect.estimate[neutral],
        )


def shift_calls(view: View, key: tuple[str, str] | None = None) -> Iterator[Calls]:
    """Yield what the shift test says: of the strength, against the average word, and for each K."""
    found = view.main_shift if key is None else view.shifts.get(key)
    if found is None:
        return
    neutral = view.shift_classes == "neutral"
    words = _chosen(view.shift_words, neutral)
    parts = [
        (SHIFT, ALL_KS, found.signs, found.strength_q, found.strength.estimate),
        (RELATIVE, ALL_KS, found.relative_signs, found.relative_q, found.relative.estimate),
    ]
    for place, k in enumerate(view.options.ks):
        parts.append(
            (SHIFT, f"K = {k}", found.signs_by_k[:, place], found.by_k_q[:, place], found.by_k.estimate[:, place])
        )
    for test, at, signs, q, size in parts:
        yield Calls(test=test, at=at, words=words, signs=signs[neutral], q=q[neutral], size=size[neutral])


def main_calls(view: View) -> tuple[Calls, ...]:
    """Return what both tests say with the main template and label words."""
    return (*association_calls(view), *shift_calls(view))


def sign_choices() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the names under which words of one sign, or of either, are counted."""
    yield from ((NAMES[sign], (sign,)) for sign in SIGNS)
    yield "either", SIGNS


def _chosen(words: tuple[str, ...], chosen: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(word for word, kept in zip(words, chosen, strict=True) if kept)
