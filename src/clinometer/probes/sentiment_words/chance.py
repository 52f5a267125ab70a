"""How many words the association test would call biased if the labels of the reviews meant nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clinometer.metrics import sat_effect
from clinometer.probes.kit.numbers import Floats
from clinometer.probes.sentiment_words.answers import Bools
from clinometer.probes.sentiment_words.label_shuffles import LabelShuffles, class_difference
from clinometer.probes.sentiment_words.verdicts import LEVEL, PAPER, SURE
from clinometer.stats import benjamini_hochberg

SHUFFLES = 199  # p of the share itself can then get down to 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """Shares of words called biased, one for each shuffle."""

    shares: Mapping[tuple[float, str], Floats]  # m, rule -> (shuffles,)

    def p_of(self, share: float, *, m: float, rule: str) -> float:
        """Return how often chance calls at least this share of the words biased."""
        as_large = (self.shares[m, rule] >= share - 1e-12).sum()
        return float((1 + as_large) / (1 + len(self.shares[m, rule])))


def shuffled_shares(
    probability: Floats,
    positive: Bools,
    shuffles: LabelShuffles,
    *,
    ms: Sequence[float],
    rng: np.random.Generator,
) -> Chance:
    """Make the test, with its q-values, on reviews whose labels are shuffled: (reviews, words).

    `shuffles` of the same words give the p-values: what further shuffling makes of shuffled labels has the same
    distribution. A word is called biased at m where its effect is larger than m (see `sat_effect`).
    """
    shares: dict[tuple[float, str], list[float]] = {(m, rule): [] for m in ms for rule in (PAPER, SURE)}
    for labels in rng.permuted(np.tile(positive, (SHUFFLES, 1)), axis=1):
        size = np.abs(sat_effect(probability[labels], probability[~labels]))
        sure = benjamini_hochberg(shuffles.p_of(class_difference(probability, labels))) <= LEVEL
        for m in ms:
            shares[m, PAPER].append(float((size > m).mean()))
            shares[m, SURE].append(float(((size > m) & sure).mean()))
    return Chance(shares={key: np.array(values) for key, values in shares.items()})
