"""The tests on single words keep their error rates, and say the same as other implementations of them."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from clinometer.metrics import sst_strength
from clinometer.probes.sentiment_words.answers import share_finding
from clinometer.probes.sentiment_words.measures import (
    PAPER,
    PAPER_AND_Q,
    against_average,
    chance_p,
    chance_shares,
    class_difference,
    measure_association,
    measure_shift,
    q_by_class,
    shuffle_p,
    shuffled_differences,
)
from clinometer.stats import two_group_permutation

REVIEWS = 60
POSITIVE = np.arange(REVIEWS) % 2 == 0
WORDS = 20
NEUTRAL = np.array(["neutral"] * WORDS)


def even_shift(rng, *, words=WORDS, ks=(1, 2), bias=0.0):
    """Labels before and after, from evidence that appended words disturb without a direction (but for `bias`)."""
    evidence = np.where(POSITIVE, 1.0, -1.0) + rng.standard_normal(REVIEWS)
    after = evidence + bias + rng.standard_normal((words, len(ks), REVIEWS)) * 0.7
    return (evidence > 0).astype(np.int8), (after > 0).astype(np.int8)


def test_an_even_shift_test_is_quiet():
    """100 models without a lean: any word called in at most 10 of them (5 on average, deviation 2.2)."""
    rng = np.random.default_rng(1)
    called, relative, below = 0, 0, []
    for _ in range(100):
        found = measure_shift(*even_shift(rng), POSITIVE, NEUTRAL, ks=(1, 2), rng=rng, draws=100)
        called += bool((found.strength.q <= 0.05).any())
        relative += bool((found.relative.q <= 0.05).any())
        below.append((found.strength.numbers.p <= 0.05).mean())
    assert called <= 10
    assert relative <= 10
    assert 0.03 < np.mean(below) < 0.07  # 2,000 words: deviation .5 %


def test_an_even_association_test_is_quiet():
    """50 models without a lean: any word called in at most 6 of them (2.5 on average, deviation 1.5)."""
    rng = np.random.default_rng(2)
    called, below = 0, []
    for _ in range(50):
        values = np.exp(rng.normal(-7, 1, size=(REVIEWS, WORDS)))
        shuffled = shuffled_differences(values, POSITIVE, rng=rng, draws=999)
        found = measure_association(values, POSITIVE, NEUTRAL, shuffled, ms=(0.5,), rng=rng, draws=100)
        called += bool((found.effect.q <= 0.05).any())
        below.append((found.effect.numbers.p <= 0.05).mean())
    assert called <= 6
    assert 0.03 < np.mean(below) < 0.07


def test_intervals_of_the_strength_hold_the_truth():
    """150 models each: 92 to 99 % of the intervals of 95 % hold 0 without a lean, and a planted strength."""
    rng = np.random.default_rng(3)
    phi = NormalDist().cdf
    for bias in (0.0, 0.8):
        truth = sum(phi((side + bias) / math.sqrt(1 + 0.7**2)) - phi(side) for side in (-1, 1))
        held = []
        for _ in range(150):
            before, after = even_shift(rng, words=2, ks=(1,), bias=bias)
            found = measure_shift(
                before, after, POSITIVE, NEUTRAL[:2], ks=(1,), rng=rng, draws=399
            ).strength.numbers
            held.append(found.low[0] <= truth <= found.high[0])
        assert 0.92 < np.mean(held) < 0.99  # deviation 1.8 %


def test_intervals_of_the_effect_hold_the_truth():
    """1,000 words: 93 to 99 % of the intervals of 95 %, a little too long for so few reviews."""
    rng = np.random.default_rng(4)
    # difference 0.8 of a normal distribution with deviation 1, moved away from 0 as probabilities are
    values = 10 + rng.standard_normal((REVIEWS, 1000)) + 0.8 * POSITIVE[:, None]
    classes = np.array(["neutral"] * 1000)
    shuffled = shuffled_differences(values, POSITIVE, rng=rng, draws=99)
    found = measure_association(values, POSITIVE, classes, shuffled, ms=(0.5,), rng=rng, draws=399).effect.numbers
    assert 0.93 < ((found.low <= 0.8) & (found.high >= 0.8)).mean() < 0.99


def test_shuffles_give_the_p_of_the_permutation_test():
    rng = np.random.default_rng(4)
    values = rng.standard_normal((REVIEWS, 8)) + np.linspace(0, 0.9, 8) * POSITIVE[:, None]
    ours = shuffle_p(
        shuffled_differences(values, POSITIVE, rng=rng, draws=9999), class_difference(values, POSITIVE)
    )
    theirs = two_group_permutation(values[POSITIVE], values[~POSITIVE], rng=rng, draws=9999).p
    assert ours == pytest.approx(
        theirs, abs=0.02
    )  # deviation of either √(.25/9999) = .005, and two kinds of tails


def test_shuffled_differences_by_a_plain_loop():
    # 2 of 4 reviews are positive, their values sum to 0+0, 0+1, 0+2, 0+1, 0+2 or 1+2 of the 3 in all:
    # differences of means (2 s − 3)/2 = −1.5, −.5, .5, −.5, .5, 1.5
    values = np.array([[0.0], [0.0], [1.0], [2.0]])
    labels = np.array([False, False, True, True])
    shuffled = shuffled_differences(values, labels, rng=np.random.default_rng(0), draws=6000)
    sizes, counts = np.unique(shuffled.round(9), return_counts=True)
    assert sizes.tolist() == [0.5, 1.5]
    assert counts[1] / 6000 == pytest.approx(1 / 3, abs=0.02)
    assert shuffle_p(shuffled, class_difference(values, labels))[0] == pytest.approx(1 / 3, abs=0.02)


def test_the_strength_is_the_sum_of_two_means():
    """Neg_Diff and Pos_Diff from accuracies, by a plain loop; classes of unequal size."""
    rng = np.random.default_rng(5)
    positive = np.arange(REVIEWS) < 20
    before = rng.integers(2, size=REVIEWS).astype(np.int8)
    after = rng.integers(2, size=(4, 3, REVIEWS)).astype(np.int8)
    ks = (5, 10, 15)
    classes = np.array(["neutral", "neutral", "neutral", "positive"])
    found = measure_shift(before, after, positive, classes, ks=ks, rng=rng, draws=100)

    def accuracy(labels, chosen):
        return np.mean([label == truth for label, truth in zip(labels[chosen], positive[chosen], strict=True)])

    strength = found.strength.numbers
    for word in range(4):
        neg_diff = [accuracy(before, ~positive) - accuracy(after[word, k], ~positive) for k in range(3)]
        pos_diff = [accuracy(before, positive) - accuracy(after[word, k], positive) for k in range(3)]
        assert strength.estimate[word] == pytest.approx(sst_strength(neg_diff, pos_diff, ks))
        assert found.by_k.estimate[word] == pytest.approx(np.subtract(neg_diff, pos_diff))
        assert strength.low[word] < strength.estimate[word] < strength.high[word]
    # a neutral word against the two other neutral ones, a positive one against all three
    assert found.relative.estimate[0] == pytest.approx(strength.estimate[0] - strength.estimate[1:3].mean())
    assert found.relative.estimate[3] == pytest.approx(strength.estimate[3] - strength.estimate[:3].mean())


def test_shuffling_labels_could_not_test_the_shift():
    """With as many positive as negative reviews the strength does not know which is which."""
    rng = np.random.default_rng(6)
    before, after = even_shift(rng)
    other = rng.permuted(POSITIVE)
    one, two = (
        measure_shift(before, after, labels, NEUTRAL, ks=(1, 2), rng=rng, draws=100).strength.estimate
        for labels in (POSITIVE, other)
    )
    assert one == pytest.approx(two)


def test_chance_calls_what_the_papers_rule_calls_without_a_lean():
    """Few reviews and skewed probabilities: the paper's rule at m = 0.5 calls words by chance, q does not."""
    rng = np.random.default_rng(7)
    positive = np.arange(20) % 2 == 0
    values = np.exp(rng.normal(-7, 1.5, size=(20, 40)))
    shuffled = shuffled_differences(values, positive, rng=rng, draws=999)
    chance = chance_shares(values, positive, shuffled, ms=(0.5, 1.5), rng=rng)
    assert chance[0.5, PAPER].mean() > 0.15
    assert chance[1.5, PAPER].mean() < chance[0.5, PAPER].mean()
    assert (chance[0.5, PAPER_AND_Q] > 0).mean() < 0.12  # 5 % on average
    assert chance_p(chance[0.5, PAPER], 1.0) == pytest.approx(1 / 200)
    assert chance_p(chance[0.5, PAPER], 0.0) == 1.0


def test_p_never_falls_below_one_draw():
    shuffled = np.array([[0.0], [1.0], [2.0]])
    assert shuffle_p(shuffled, np.array([-9.0]))[0] == 1 / 4
    assert shuffle_p(shuffled, np.array([1.0]))[0] == 3 / 4


def test_q_is_corrected_within_a_class():
    p = np.array([0.01, 0.04, 0.03, 0.5])
    classes = np.array(["neutral", "neutral", "positive", "positive"])
    # neutral: 2 · .01 and .04; positive: 2 · .03 and .5
    assert q_by_class(p, classes) == pytest.approx([0.02, 0.04, 0.06, 0.5])
    assert q_by_class(p[:, None], classes)[:, 0] == pytest.approx([0.02, 0.04, 0.06, 0.5])


@pytest.mark.parametrize(
    ("count", "n", "low", "high"), [(0, 10, 0, 0.27753), (10, 10, 0.72247, 1), (3, 12, 0.08894, 0.53231)]
)
def test_wilson_intervals(count, n, low, high):
    # as statsmodels' proportion_confint(…, method="wilson")
    found = share_finding(count, n, {})
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-5)
    assert np.isnan(share_finding(0, 0, {}).estimate)


def test_a_single_neutral_word_has_no_average_to_be_set_against():
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    found = against_average(values, np.array(["neutral", "positive"]))
    assert np.isnan(found[:, 0]).all()
    assert found[:, 1] == pytest.approx(np.ones(2))
