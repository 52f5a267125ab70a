"""What makes a word "biased": a sign by the paper's rule, and a q-value beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clinometer.probes.kit.numbers import Floats, Ints
from clinometer.stats import benjamini_hochberg

LEVEL = 0.05  # of q
PAPER, SURE = "paper", f"q ≤ {LEVEL}"  # the paper's rule alone, and with the q-value
RULES = (PAPER, SURE)
NAMES = {1: "positive", -1: "negative", 0: "none"}
SIGNS = (1, -1)
FEWEST_DRAWS = 9_999


def draws_for(tests: int) -> int:
    """Return how many draws a test needs whose p-values are corrected over so many words."""
    return max(FEWEST_DRAWS, 20 * tests)


def q_by_class(p: Floats, classes: NDArray[np.str_]) -> Floats:
    """Return q-values corrected over the words of each class, column by column: (words,) or (words, ks)."""
    q = np.full(p.shape, np.nan)
    columns, corrected = p.reshape(len(p), -1), q.reshape(len(p), -1)
    for name in np.unique(classes):
        members = classes == name
        for column in range(columns.shape[1]):
            corrected[members, column] = benjamini_hochberg(columns[members, column])
    return q


def by_rule(signs: Ints, q: Floats, rule: str) -> Ints:
    """Return the signs that a rule lets stand, 0 elsewhere."""
    found: Ints = signs if rule == PAPER else np.where(q <= LEVEL, signs, 0)
    return found


def named(words: Sequence[str], strength: Floats, chosen: NDArray[np.bool_], *, most: int = 10) -> str:
    """Return the chosen words as text, the strongest first; of many only the first ones.

    >>> named(["a", "b", "c"], np.array([0.1, -0.3, 0.2]), np.array([True, True, True]), most=2)
    'b, c, …'
    """
    places = np.flatnonzero(chosen)
    order = places[np.argsort(-np.abs(strength[places]), kind="stable")]
    shown = [words[place] for place in order[:most]]
    return ", ".join([*shown, "…"] if len(order) > most else shown)
