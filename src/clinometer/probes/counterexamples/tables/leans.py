"""Which gender the model prefers, and how knowledge moves the preference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clinometer.probes.counterexamples.numbers import with_q
from clinometer.probes.counterexamples.view import View
from clinometer.types import Finding


def mass_rows(view: View) -> Iterator[Finding]:
    """Yield the probability of female and of male words, by kind and dominance (the paper's figures 2 to 4)."""
    masses = np.stack([view.measures.female, view.measures.male], axis=-1)  # (prompts, ks, genders)
    numbers = [view.estimate(masses, kind, view.means, test=False).as_share() for kind in view.kinds]
    for i, k in enumerate(view.ks):
        for kind, of_kind in zip(view.kinds, numbers, strict=True):
            for j, contrast in enumerate(view.means):
                for g, gender in enumerate(("female", "male")):
                    labels = view.labels(k, kind, dominance=contrast.dominance, gender=gender)
                    yield of_kind.finding((i, g, j), labels)


def lean_rows(view: View) -> list[Finding]:
    """Return margin and gap of every kind; only the base is tested, for changes have a table of their own."""
    numbers = [view.estimate(view.measures.gap, kind, view.leans, test=kind.name == "base") for kind in view.kinds]
    return with_q(
        of_kind.finding((i, j), view.labels(k, kind, measure=lean.measure, dominance=lean.dominance))
        for i, k in enumerate(view.ks)
        for kind, of_kind in zip(view.kinds, numbers, strict=True)
        for j, lean in enumerate(view.leans)
    )


def change_rows(view: View) -> list[Finding]:
    """Return what each kind of knowledge does to margin and gap of the same occupation's base prompt."""
    numbers = [view.estimate(view.gap_change, kind, view.leans, test=True) for kind in view.knowledge]
    return with_q(
        of_kind.finding(
            (i, j),
            view.labels(k, kind, expected=kind.expected, measure=lean.measure, dominance=lean.dominance),
        )
        for i, k in enumerate(view.ks)
        for kind, of_kind in zip(view.knowledge, numbers, strict=True)
        for j, lean in enumerate(view.leans)
    )
