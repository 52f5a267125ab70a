"""The detectable effect: what the formula promises, the test keeps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, t

from clinometer.stats import minimum_detectable_effect, sign_flip_test


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
