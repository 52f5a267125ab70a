"""Error rates: the false-discovery rate holds, and the test finds the effect that the formula promises."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, t

from clinometer.stats import benjamini_hochberg, minimum_detectable_effect, sign_flip_test

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_by_hand():
    # sorted 0.005, 0.009, 0.04, 0.041, 0.8 -> ×5/rank: 0.025, 0.0225, 0.0667, 0.05125, 0.8
    # running minimum from the right:                   0.0225, 0.0225, 0.05125, 0.05125, 0.8
    q = benjamini_hochberg([0.04, 0.8, 0.005, 0.041, 0.009])
    np.testing.assert_allclose(q, [0.05125, 0.8, 0.0225, 0.05125, 0.0225])


@settings(deadline=None)
@given(p_values)
def test_agrees_with_scipy(p):
    np.testing.assert_allclose(benjamini_hochberg(p), scipy.stats.false_discovery_control(p))


@settings(deadline=None)
@given(p_values, st.randoms(use_true_random=False))
def test_order_and_missing_values_do_not_matter(p, random):
    mixed = [*p, float("nan"), float("nan")]
    random.shuffle(mixed)
    q = benjamini_hochberg(mixed)
    asked = ~np.isnan(mixed)
    np.testing.assert_array_equal(np.isnan(q), ~asked)
    np.testing.assert_allclose(np.sort(q[asked]), np.sort(benjamini_hochberg(p)))
    assert (q[asked] >= np.array(mixed)[asked]).all()


def test_a_table_is_corrected_as_a_whole():
    p = np.array([[0.01, 0.2], [0.03, 0.5]])
    np.testing.assert_allclose(benjamini_hochberg(p).ravel(), benjamini_hochberg(p.ravel()))


def test_nothing_asked_nothing_corrected():
    assert benjamini_hochberg([]).shape == (0,)
    assert np.isnan(benjamini_hochberg([np.nan])).all()


def test_a_p_value_outside_0_to_1_is_refused():
    with pytest.raises(ValueError):
        benjamini_hochberg([0.5, 1.5])


def test_false_discoveries_stay_nominal_among_nulls_and_effects():
    # 100 audits of 100 words on 40 reviews; 20 words lean by 0.7 standard deviations.
    audits, words, leaning = 100, 100, 20
    rng = np.random.default_rng(0)
    lean = np.where(np.arange(words) < leaning, 0.7, 0.0)
    differences = rng.normal(size=(40, audits, words)) + lean
    p = sign_flip_test(differences, rng=rng, draws=4999).p
    called = np.stack([benjamini_hochberg(audit) for audit in p]) <= 0.05
    false_share = called[:, leaning:].sum(axis=1) / np.maximum(called.sum(axis=1), 1)
    # expected 0.05 × 80/100 = 0.04; spread of one audit's share about 0.045, of the mean of 100 about 0.0045
    assert 0.025 <= false_share.mean() <= 0.055
    assert called[:, :leaning].mean() > 0.85  # and the leaning words are found
    uncorrected = p <= 0.05
    naive = uncorrected[:, leaning:].sum(axis=1) / np.maximum(uncorrected.sum(axis=1), 1)
    assert naive.mean() > 0.1  # without the correction the same check fails


def test_many_nulls_and_no_effect_seldom_call_anything():
    rng = np.random.default_rng(1)
    p = sign_flip_test(rng.normal(size=(40, 300, 30)), rng=rng, draws=4999).p
    any_called = np.mean([(benjamini_hochberg(audit) <= 0.05).any() for audit in p])
    assert any_called <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def with_spread(n, sd):
    """Return n numbers whose standard deviation is exactly sd."""
    values = np.arange(n, dtype=float)
    return (values - values.mean()) / values.std(ddof=1) * sd


def test_large_samples_by_hand():
    # z₀.₉₇₅ + z₀.₈ = 1.95996 + 0.84162 = 2.80158 standard errors; sd 3, n = 10,000: s = 0.03
    assert minimum_detectable_effect(with_spread(10_000, 3.0)) == pytest.approx(0.0840475, rel=1e-3)


@pytest.mark.parametrize("n", [4, 10, 20, 58])
def test_small_samples_need_more(n):
    # T(δ) = (Z + δ)/√(χ²/df): averaging P(|Z + δ| > t · √(χ²/df)) over draws of χ² must give the power
    shift = minimum_detectable_effect(with_spread(n, 1.0)) * np.sqrt(n)
    scale = np.sqrt(np.random.default_rng(0).chisquare(n - 1, size=400_000) / (n - 1))
    critical = t.ppf(0.975, n - 1)
    found = norm.sf(critical * scale - shift) + norm.cdf(-critical * scale - shift)
    assert found.mean() == pytest.approx(0.8, abs=0.002)
    assert shift > 2.8016


@pytest.mark.parametrize(("clusters", "alpha", "power"), [(12, 0.05, 0.8), (58, 0.05, 0.8), (30, 0.01, 0.9)])
def test_the_test_finds_the_effect_as_often_as_stated(clusters, alpha, power):
    rng = np.random.default_rng(0)
    # cluster effects of variance 0.3 and five items of variance 0.7 each: a cluster mean has variance 0.3 + 0.14
    pilot = np.repeat(with_spread(clusters, np.sqrt(0.44)), 5)
    labels = np.repeat(np.arange(clusters), 5)
    effect = minimum_detectable_effect(pilot, clusters=labels, alpha=alpha, power=power)
    noise = rng.normal(size=(clusters, 1500))[labels] * np.sqrt(0.3)
    noise += rng.normal(size=(len(labels), 1500)) * np.sqrt(0.7)

    def found(shift):
        return (sign_flip_test(noise + shift, clusters=labels, rng=rng, draws=2999).p <= alpha).mean()

    assert found(effect) == pytest.approx(power, abs=3.5 * np.sqrt(power * (1 - power) / 1500))
    assert found(effect / 2) < power / 1.7
    # without its clusters the pilot promises too much
    assert minimum_detectable_effect(pilot, alpha=alpha, power=power) < 0.7 * effect


def test_missing_values_and_lone_clusters():
    with_holes = np.array([[1.0, 1.0], [np.nan, np.nan], [2.0, np.nan], [4.0, np.nan]])
    effect = minimum_detectable_effect(with_holes)
    assert effect[0] == pytest.approx(minimum_detectable_effect([1.0, 2.0, 4.0]))
    assert np.isnan(effect[1])
    assert np.isnan(minimum_detectable_effect([1.0, 2.0], clusters=["a", "a"]))


@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"power": 1.0}, {"alpha": 0.9, "power": 0.5}])
def test_bad_rates_are_named(wrong):
    with pytest.raises(ValueError, match="alpha"):
        minimum_detectable_effect([1.0, 2.0], **wrong)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-10, 10), min_size=3, max_size=12), st.floats(-5, 5), st.floats(0.5, 4))
def test_shift_leaves_it_and_scale_carries_over(values, shift, scale):
    plain = minimum_detectable_effect(values)
    assert minimum_detectable_effect(np.array(values) + shift) == pytest.approx(plain, abs=1e-6)
    assert minimum_detectable_effect(np.array(values) * -scale) == pytest.approx(plain * scale, abs=1e-6)
