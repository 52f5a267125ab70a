"""Which gender the model prefers, and how knowledge moves the preference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clinometer.metrics.gendered import Floats
from clinometer.probes.counterexamples.dominances import ALL
from clinometer.probes.counterexamples.view import View
from clinometer.probes.kit.numbers import with_q
from clinometer.types import Finding

MEASURES = ("margin", "gap")


def mass_rows(view: View) -> Iterator[Finding]:
    """Yield the probability of female and of male words, by kind and dominance (the paper's figures 2 to 4)."""
    masses = np.stack([view.measures.female, view.measures.male], axis=-1)  # (prompts, ks, genders)
    numbers = [view.estimate(masses, kind, test=False) for kind in view.kinds]
    for i, k in enumerate(view.ks):
        for kind, of_kind in zip(view.kinds, numbers, strict=True):
            for dominance in view.dominances:
                for g, gender in enumerate(("female", "male")):
                    labels = view.labels(k, kind, dominance=dominance, gender=gender)
                    yield of_kind[dominance].as_share().finding((i, g), labels)


def lean_rows(view: View) -> list[Finding]:
    """Return margin and gap of every kind; only the base is tested, for changes have a table of their own."""
    values = _leans(view)
    numbers = [view.estimate(values, kind, test=kind.name == "base") for kind in view.kinds]
    return with_q(
        of_kind[dominance].finding((i, at), view.labels(k, kind, measure=MEASURES[at], dominance=dominance))
        for i, k in enumerate(view.ks)
        for kind, of_kind in zip(view.kinds, numbers, strict=True)
        for at, dominance in _shown(view)
    )


def change_rows(view: View) -> list[Finding]:
    """Return what each kind of knowledge does to margin and gap of the same occupation's base prompt."""
    values = view.change(_leans(view))
    numbers = [view.estimate(values, kind, test=True) for kind in view.knowledge]
    return with_q(
        of_kind[dominance].finding(
            (i, at), view.labels(k, kind, expected=kind.expected, measure=MEASURES[at], dominance=dominance)
        )
        for i, k in enumerate(view.ks)
        for kind, of_kind in zip(view.knowledge, numbers, strict=True)
        for at, dominance in _shown(view)
    )


def _leans(view: View) -> Floats:
    """Return the measures of every prompt, (prompts, ks, measures)."""
    return np.stack([view.measures.margin, view.measures.gap], axis=-1)


def _shown(view: View) -> Iterator[tuple[int, str]]:
    """Yield which measure stands for which dominance: within one, the gap is the margin but for the sign."""
    for dominance in view.dominances:
        yield MEASURES.index("margin"), dominance
    if ALL in view.dominances:
        yield MEASURES.index("gap"), ALL
