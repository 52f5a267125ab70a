"""The Sentiment Shift Test of one template and one pair of label words: how appended words move the labels.

Let x be +1 where the label of a review became positive, −1 where it became negative, 0 where it stayed. Accuracy
on negative reviews falls by the mean of x over them, accuracy on positive ones rises by its mean over those, so

    Neg_Diff − Pos_Diff = mean of x over negative reviews + mean of x over positive reviews

and the strength is the same sum of two means of v = (1/n) Σ_K x_K / K², one value for each review. So an interval
resamples the two classes of reviews, and a test flips the signs of the reviews' values. Which review is positive
and which negative does not matter where there are as many of both: shuffling these labels could not test anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clinometer.metrics import sst_strength
from clinometer.probes.kit.numbers import Floats, Ints, Numbers
from clinometer.probes.sentiment_words.answers import Bools, Labels
from clinometer.probes.sentiment_words.verdicts import draws_for, q_by_class
from clinometer.stats import sign_flip_test, two_group_bootstrap

STRENGTH, RELATIVE = 0, 1  # columns of what is tested together; then come the ks


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """What the test says of every appended word."""

    neg_diff: Floats  # (words, ks): accuracy on negative reviews before minus after
    pos_diff: Floats
    strength: Numbers  # (words,): the paper's q
    strength_q: Floats
    relative: Numbers  # (words,): strength minus the mean strength of the other neutral words
    relative_q: Floats
    by_k: Numbers  # (words, ks): Neg_Diff − Pos_Diff
    by_k_q: Floats

    @property
    def signs(self) -> Ints:
        """The sign of each word's strength."""
        return _sign(self.strength.estimate)

    @property
    def relative_signs(self) -> Ints:
        """The sign of each word's strength against the average word."""
        return _sign(self.relative.estimate)

    @property
    def signs_by_k(self) -> Ints:
        """The sign of each word's shift at each K."""
        return _sign(self.by_k.estimate)

    @property
    def truly_neutral(self) -> NDArray[np.bool_]:
        """Whether both accuracies move, and the same way, at each K (§4.3): (words, ks)."""
        return np.sign(self.neg_diff) * np.sign(self.pos_diff) > 0


def measure_shift(
    before: Labels,
    after: Labels,
    positive: Bools,
    classes: NDArray[np.str_],
    *,
    ks: tuple[int, ...],
    rng: np.random.Generator,
    draws: int,
) -> Shift:
    """Test every appended word: labels before (reviews,) and after (words, ks, reviews), `classes` of words."""
    moved = (after - before[None, None]).astype(np.float64).transpose(2, 0, 1)  # (reviews, words, ks)
    value = (moved / np.square(ks, dtype=np.float64)).mean(axis=2)  # (reviews, words)
    tested = np.concatenate([value[..., None], _against_average(value, classes)[..., None], moved], axis=2)
    # the sum of two means is the difference of one and the other's negative
    interval = two_group_bootstrap(tested[~positive], -tested[positive], rng=rng, draws=draws)
    # the mean over all reviews of weighted values is the sum of the two classes' means
    weights = np.where(positive, len(positive) / positive.sum(), len(positive) / (~positive).sum())
    p = sign_flip_test(tested * weights[:, None, None], rng=rng, draws=draws_for(value.shape[1])).p
    n = np.full(p.shape, len(positive), dtype=np.int64)
    neg_diff, pos_diff = moved[~positive].mean(axis=0), -moved[positive].mean(axis=0)

    def numbers(columns: int | slice, estimate: Floats) -> Numbers:
        low, high = interval.low[:, columns], interval.high[:, columns]
        return Numbers(estimate=estimate, low=low, high=high, p=p[:, columns], n=n[:, columns])

    q = q_by_class(p, classes)
    of_k = slice(RELATIVE + 1, None)
    return Shift(
        neg_diff=neg_diff,
        pos_diff=pos_diff,
        strength=numbers(STRENGTH, sst_strength(neg_diff, pos_diff, ks)),
        strength_q=q[:, STRENGTH],
        relative=numbers(RELATIVE, interval.estimate[:, RELATIVE]),
        relative_q=q[:, RELATIVE],
        by_k=numbers(of_k, neg_diff - pos_diff),
        by_k_q=q[:, of_k],
    )


def _against_average(value: Floats, classes: NDArray[np.str_]) -> Floats:
    """Return each word's value minus the mean of the other neutral words: (reviews, words)."""
    neutral = classes == "neutral"
    others = np.full(value.shape[1], neutral.sum()) - neutral
    sums = value[:, neutral].sum(axis=1, keepdims=True) - np.where(neutral, value, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):  # a single neutral word has no others
        relative: Floats = value - sums / others
    return relative


def _sign(values: Floats) -> Ints:
    """Return the signs, 0 of what is missing; what is left of a difference of equal numbers is rounding."""
    known = np.nan_to_num(values)
    return np.where(np.abs(known) < 1e-12, 0, np.sign(known)).astype(np.int64)
