"""Tests of tests: exact where they can be counted, honest under the null, alive when there is an effect."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clinometer.stats import difference_of_means, permutation_test, sign_flip_test

NOISE = 0.015  # three standard errors of a share of 5 % among 2,000


def test_sign_flips_counted_by_hand():
    # sums of ±1 ±2 ±4: |sum| ≥ |1 + 2 − 4| = 1 always; |sum| ≥ 7 for 2 of 8; |sum| ≥ |−1 + 2 + 4| = 5 for 4 of 8
    rng = np.random.default_rng(0)
    flipped = sign_flip_test([[1.0, 1.0, -1.0], [2.0, 2.0, 2.0], [-4.0, 4.0, 4.0]], rng=rng)
    assert flipped.p.tolist() == [1.0, 2 / 8, 4 / 8]
    np.testing.assert_allclose(flipped.estimate, [-1 / 3, 7 / 3, 5 / 3])
    assert flipped.null.tolist() == [0, 0, 0]
    assert flipped.n.tolist() == [3, 3, 3]


def test_clusters_flip_as_one():
    # two clusters with sums 3 and 4: of the four patterns ++ and −− reach 7, p = 1/2; item by item it is 2/8
    assert sign_flip_test([1.0, 2.0, 4.0], clusters=["a", "a", "b"], rng=np.random.default_rng(0)).p == 0.5


def test_sign_flips_agree_with_scipy():
    differences = np.random.default_rng(3).normal(0.5, 1.0, size=10)
    theirs = scipy.stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", alternative="two-sided", n_resamples=np.inf
    )
    ours = sign_flip_test(differences, rng=np.random.default_rng(0))
    assert ours.p == pytest.approx(theirs.pvalue, abs=1e-12)
    sampled = sign_flip_test(differences, rng=np.random.default_rng(0), draws=500)  # 2⁹ patterns are more than 500
    assert sampled.p == pytest.approx(theirs.pvalue, abs=0.05)
    assert sampled.p != ours.p


def test_p_is_never_zero():
    found = sign_flip_test(np.ones(60), rng=np.random.default_rng(0), draws=99)
    assert found.p == 1 / 100
    rng = np.random.default_rng(0)
    assert permutation_test(np.arange(40.0), np.arange(40) < 20, rng=rng, draws=99).p == 2 / 100


def test_no_difference_at_all_is_no_evidence():
    assert sign_flip_test(np.zeros(30), rng=np.random.default_rng(0)).p == 1.0
    assert permutation_test(np.full(9, 0.1), [0, 1, 1] * 3, rng=np.random.default_rng(0)).p == 1.0


def test_sign_flips_leave_missing_values_out():
    differences = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, np.nan], [3.0, np.nan]])
    found = sign_flip_test(differences, rng=np.random.default_rng(0))
    assert found.n.tolist() == [3, 0]
    assert found.p[0] == 0.25
    assert found.estimate[0] == 2.0
    assert np.isnan([found.p[1], found.estimate[1]]).all()


@pytest.mark.parametrize("clusters", [10, 30])  # all patterns, and sampled ones
def test_sign_flips_keep_the_error_rate_when_items_are_correlated(clusters):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(clusters), 5)
    differences = rng.normal(size=(clusters, 2000))[labels] + rng.laplace(size=(len(labels), 2000))
    p = sign_flip_test(differences, clusters=labels, rng=rng, draws=1999).p
    assert 0.05 - NOISE <= (p <= 0.05).mean() <= 0.05 + NOISE
    assert 0.2 - 3 * NOISE <= (p <= 0.2).mean() <= 0.2 + 3 * NOISE
    # flipping item by item believes in five times as many observations, and finds what is not there
    assert (sign_flip_test(differences, rng=rng, draws=499).p <= 0.05).mean() > 0.15


def test_shuffled_labels_agree_with_scipy():
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(0, 1, 5), rng.normal(1, 1, 7)])
    labels = np.repeat(["a", "b"], [5, 7])
    theirs = scipy.stats.permutation_test(
        (values[5:], values[:5]),
        lambda x, y, axis: x.mean(axis) - y.mean(axis),
        vectorized=True,
        n_resamples=np.inf,
    )
    ours = permutation_test(values, labels, rng=rng, draws=19_999)
    assert ours.estimate == pytest.approx(theirs.statistic)
    assert ours.p == pytest.approx(theirs.pvalue, abs=0.01)


def test_difference_of_means_by_hand():
    # label 1: items 1, 2; label 0: item 0, item 3 (missing in the second column)
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 8.0], [7.0, np.nan]])
    np.testing.assert_allclose(difference_of_means(values, np.array([[0, 1, 1, 0]])), [[4 - 4, 6 - 2]])
    with pytest.raises(ValueError, match="3 distinct labels"):
        difference_of_means(values, np.array([[0, 1, 2, 0]]))


def test_labels_shuffle_within_their_group_only():
    seen = []

    def look(values, labels):
        seen.append(labels)
        return np.zeros(len(labels))

    labels = np.array(["x", "y", "z", "u", "v", "w", "w"])
    groups = [1, 2, 1, 2, 1, 2, 2]
    permutation_test(
        np.arange(7.0), labels, groups=groups, statistic=look, rng=np.random.default_rng(0), draws=200
    )
    shuffled = np.concatenate(seen)[1:]
    assert {tuple(sorted(row)) for row in shuffled[:, [0, 2, 4]]} == {("v", "x", "z")}
    assert {tuple(sorted(row)) for row in shuffled[:, [1, 3, 5, 6]]} == {("u", "w", "w", "y")}
    assert len({tuple(row) for row in shuffled[:, [0, 2, 4]]}) == 6  # every order of the three turns up


def test_shuffles_within_templates_keep_the_error_rate():
    # Templates differ a lot, and half of them hold mostly label 1: shuffling across templates would be fooled.
    rng = np.random.default_rng(0)
    templates = np.repeat(np.arange(8), 10)
    labels = np.concatenate([(np.arange(10) < (8 if template % 2 else 2)) for template in range(8)])
    level = np.where(templates % 2, 1.0, 0.0)[:, None]
    values = level + rng.normal(size=(80, 2000))
    inside = permutation_test(values, labels, groups=templates, rng=rng, draws=999)
    share = (inside.p <= 0.05).mean()
    assert 0.05 - NOISE <= share <= 0.05 + NOISE
    across = permutation_test(values, labels, rng=rng, draws=999)
    assert (across.p <= 0.05).mean() > 0.3


def spread_of_means(values, labels):
    """Mean distance between the means of three groups: never negative, positive by chance alone."""
    means = np.stack([((labels == name) @ values) / (labels[0] == name).sum() for name in range(3)])
    return np.abs(means - means.mean(axis=0)).mean(axis=0)


def test_a_distance_has_a_null_above_zero_and_uniform_p_values():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 8)
    even = permutation_test(
        rng.normal(size=(24, 2000)), labels, statistic=spread_of_means, alternative="greater", rng=rng, draws=399
    )
    assert even.null.mean() == pytest.approx(even.estimate.mean(), rel=0.05)
    assert even.null.mean() > 0.1
    # p = (1 + rank)/(draws + 1): uniform over its steps; Kolmogorov–Smirnov distance of 2,000 below 1.63/√2000
    steps = np.arange(1, 401) / 400
    assert np.abs((even.p[:, None] <= steps).mean(axis=0) - steps).max() < 1.63 / np.sqrt(2000)

    leaning = permutation_test(
        rng.normal(size=24) + 2.0 * (labels == 2),
        labels,
        statistic=spread_of_means,
        alternative="greater",
        rng=rng,
    )
    assert leaning.p < 0.01
    assert leaning.estimate - leaning.null > 0.3


def test_bad_input_is_named():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="one label for each item"):
        permutation_test([1.0, 2.0], [0], rng=rng)
    with pytest.raises(ValueError, match="alternative='less'"):
        permutation_test([1.0, 2.0], [0, 1], alternative="less", rng=rng)
    with pytest.raises(ValueError, match="one row for each"):
        permutation_test([1.0, 2.0], [0, 1], statistic=lambda values, labels: values.mean(), rng=rng)


numbers = hnp.arrays(np.float64, (8,), elements=st.floats(-100, 100).map(lambda x: round(x, 3)))


@settings(deadline=None, max_examples=40)
@given(numbers, st.permutations(range(8)), st.sampled_from([0.5, 2.0, 7.0, -1.0]))
def test_sign_flip_p_ignores_order_scale_and_sign(differences, order, scale):
    rng = np.random.default_rng(0)
    plain = sign_flip_test(differences, rng=rng).p
    assert sign_flip_test(differences[list(order)] * scale, rng=rng).p == plain
    assert 2 / 2**8 <= plain <= 1


@settings(deadline=None, max_examples=40)
@given(numbers, st.floats(-50, 50), st.integers(0, 2**32 - 1))
def test_shuffle_p_ignores_a_shift_and_a_seed_repeats(values, shift, seed):
    labels = np.repeat([0, 1], 4)

    def p(of):
        return permutation_test(of, labels, rng=np.random.default_rng(seed), draws=99).p

    assert p(values) == p(values)
    assert p(values + round(shift)) == pytest.approx(p(values), abs=0.02)
