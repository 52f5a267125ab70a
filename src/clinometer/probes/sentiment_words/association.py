"""The Sentiment Association Test of one template: how much more probable a word is after positive reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clinometer.metrics import sat_effect, sat_polarity
from clinometer.probes.kit.numbers import Floats, Ints, Numbers
from clinometer.probes.sentiment_words.answers import Bools
from clinometer.probes.sentiment_words.label_shuffles import LabelShuffles, class_difference
from clinometer.probes.sentiment_words.verdicts import q_by_class
from clinometer.stats import two_group_bootstrap


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """What the test says of every word: the effect with interval and p, q within its class, and the polarity."""

    effect: Numbers  # (words,), in standard deviations
    q: Floats
    polarity: Mapping[float, Ints]  # m -> (words,)


def measure_association(
    probability: Floats,
    positive: Bools,
    classes: NDArray[np.str_],
    shuffles: LabelShuffles,
    *,
    ms: Sequence[float],
    rng: np.random.Generator,
    draws: int,
) -> Association:
    """Test every word: (reviews, words) -> (words,).

    The interval resamples positive and negative reviews apart. p shuffles the labels of the reviews and asks
    whether the two means differ, so it does not depend on m. A word whose probability does not vary within a class
    has no interval.
    """
    first, second = probability[positive], probability[~positive]
    effect = sat_effect(first, second)
    low, high = np.full(effect.shape, np.nan), np.full(effect.shape, np.nan)
    varies = (np.ptp(first, axis=0) > 0) & (np.ptp(second, axis=0) > 0)
    if varies.any():
        # the scale of a word does not matter to its effect; without it, squares of tiny numbers would be lost
        scale = probability[:, varies].max(axis=0)
        scaled = (first[:, varies] / scale, second[:, varies] / scale)
        moments = [np.stack([part, part**2], axis=-1) for part in scaled]
        interval = two_group_bootstrap(*moments, statistic=_effect_of_moments, rng=rng, draws=draws)
        low[varies], high[varies] = interval.low, interval.high
    p = shuffles.p_of(class_difference(probability, positive))
    n = np.full(effect.shape, len(probability), dtype=np.int64)
    return Association(
        effect=Numbers(estimate=effect, low=low, high=high, p=p, n=n),
        q=q_by_class(p, classes),
        polarity={m: sat_polarity(first, second, m=m) for m in ms},
    )


def _effect_of_moments(first: Floats, second: Floats) -> Floats:
    """Return the effect from the means of p and p² in both classes: (draws, words, 2) twice -> (draws, words)."""
    difference = first[..., 0] - second[..., 0]
    below = np.where((difference > 0)[..., None], second, first)  # the deviation is that of the smaller mean
    variance = below[..., 1] - below[..., 0] ** 2
    deviation = np.sqrt(np.maximum(variance, 1e-12 * below[..., 1]))
    effect: Floats = difference / deviation
    return effect
