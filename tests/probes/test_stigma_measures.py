"""Stigmatized beside other conditions: by hand, against scipy, and the error rates that the captions promise."""

import numpy as np
import pytest
from scipy import stats

from clinometer.probes.kit import Numbers
from clinometer.probes.stigma import measures
from clinometer.probes.stigma.measures import (
    difference,
    mean_interval,
    minus,
    share_numbers,
    shuffled_p,
)
from clinometer.stats.two_groups import welch_t

STIGMATIZED = np.repeat([True, False], [93, 29])


def numbers(estimate, low, high, n):
    return Numbers(estimate=np.array(estimate), low=np.array(low), high=np.array(high), n=np.array(n))


def test_minus_by_hand():
    # .6 from .3 to .8 and .2 from .1 to .6: below √(.3² + .4²) = .5, above √(.2² + .1²) = .2236
    gap = minus(numbers(0.6, 0.3, 0.8, 9), numbers(0.2, 0.1, 0.6, 5))
    assert (gap.estimate, gap.low, gap.high, gap.n) == pytest.approx((0.4, -0.1, 0.6236, 14), abs=1e-4)
    assert minus(numbers(0.6, 0.3, 0.8, 9), Numbers(estimate=np.array(0.2), n=np.array(5))).low is None


def test_wilson_as_scipy():
    for count, n in ((0, 29), (3, 29), (29, 29), (78, 93)):
        expected = stats.binomtest(count, n).proportion_ci(method="wilson")
        found = share_numbers(np.array(count / n), np.array(n))
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert np.isnan(share_numbers(np.array(0.5), np.array(4)).low)


def test_welch_as_scipy_with_missing_values():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 3)) * [1, 10, 0.01] + [0, 1e6, 0]
    values[3, 1] = np.nan
    labels = rng.random((5, 20)) < 0.4
    found = welch_t(values, labels)
    for row, label in enumerate(labels):
        expected = stats.ttest_ind(values[label], values[~label], equal_var=False, nan_policy="omit").statistic
        assert found[row] == pytest.approx(np.asarray(expected), rel=1e-6)


def test_values_without_any_spread():
    labels = np.array([[True] * 5 + [False] * 5])
    assert welch_t(np.full(10, 0.3), labels)[0] == 0
    assert welch_t(np.repeat([0.6, 0.4], 5), labels)[0] > 1e6
    assert shuffled_p(np.full(10, 0.3), labels[0], rng=np.random.default_rng(0)) == 1
    # of C(10, 5) = 252 ways to shuffle, this one and its mirror image are as extreme
    p = shuffled_p(np.repeat([0.6, 0.4], 5), labels[0], rng=np.random.default_rng(0))
    assert p == pytest.approx(2 / 252, abs=0.004)


def test_few_conditions_give_no_interval_and_no_p():
    values, few = np.random.default_rng(1).normal(size=(20, 2)), np.repeat([True, False], [4, 16])
    found = difference(values, few, rng=np.random.default_rng(0), draws=199)
    assert np.isnan([found.low, found.high, found.p]).all()
    assert found.estimate == pytest.approx(values[:4].mean(axis=0) - values[4:].mean(axis=0))
    values[14:, 1] = np.nan  # of the second column, four are left on the other side
    p = shuffled_p(values, np.repeat([True, False], [10, 10]), rng=np.random.default_rng(0))
    assert np.isnan(p).tolist() == [False, True]
    empty = mean_interval(values[:0], rng=np.random.default_rng(0), draws=199)
    assert np.isnan(empty.estimate).all()
    assert empty.n.tolist() == [0, 0]


def test_clusters_are_counted_and_missing_ones_are_not():
    values = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, np.nan], [7.0, 6.0]])
    found = mean_interval(values, clusters=np.array([0, 1, 1, 2]), rng=np.random.default_rng(0), draws=199)
    assert found.estimate == pytest.approx([4, 4])
    assert found.n.tolist() == [3, 2]


@pytest.mark.parametrize(
    ("first", "second", "spread", "most"),
    [
        (93, 29, 1 / 3, 0.09),
        *((93, 29, spread, 0.075) for spread in (1.0, 3.0)),
        *((20, 29, spread, 0.085) for spread in (1.0, 3.0)),
        (5, 29, 1.0, 0.075),
        (5, 29, 3.0, 0.16),  # few conditions that spread three times as much: the page says so
    ],
)
def test_error_rates(monkeypatch, first, second, spread, most):
    """No difference, 1,000 draws: standard deviation √(.05 · .95 / 1000) = .7 %, so 5 % shows as 3 to 7 %."""
    monkeypatch.setattr(measures, "SHUFFLES", 999)
    rng = np.random.default_rng(5)
    stigmatized = np.repeat([True, False], [first, second])
    values = np.where(stigmatized, spread, 1.0)[:, None] * rng.standard_normal((first + second, 1000))
    found = difference(values, stigmatized, rng=rng, draws=399)
    assert 0.025 < (found.p <= 0.05).mean() < most
    assert 0.92 < ((found.low <= 0) & (found.high >= 0)).mean() < 0.99


def test_a_real_difference_is_found():
    """Half a standard deviation between 93 and 29: t = .5 / √(1/93 + 1/29) = 2.4, found in about two of three."""
    rng = np.random.default_rng(6)
    values = 0.5 * STIGMATIZED[:, None] + rng.standard_normal((122, 200))
    p = shuffled_p(values, STIGMATIZED, rng=rng)
    assert (p <= 0.05).mean() == pytest.approx(0.65, abs=0.1)


def test_intervals_over_seven_distances():
    """The interval of one condition resamples seven numbers: it should hold the truth in about 95 %."""
    rng = np.random.default_rng(7)
    for values in (rng.standard_normal((7, 2000)), rng.beta(2, 4, size=(7, 2000)) - 1 / 3):
        found = mean_interval(values, rng=rng, draws=399)
        assert 0.92 < ((found.low <= 0) & (found.high >= 0)).mean() < 0.98
