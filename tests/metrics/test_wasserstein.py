from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clinometer.metrics import wasserstein1
from clinometer.metrics.fairness import PooledDistances, quantile_grid, small_labels

SAMPLES = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=30)


def test_by_hand():
    # equal sizes: sorted, 0.1 → 0.2 and 0.5 → 0.9, mean of 0.1 and 0.4
    assert wasserstein1([0.5, 0.1], [0.2, 0.9]) == pytest.approx(0.25)
    # thirds against halves: steps of 1/3, 1/6, 1/6, 1/3 with |0 − 0|, |0.6 − 0|, |0.6 − 1|, |1 − 1|
    assert wasserstein1([0, 0.6, 1], [0, 1]) == pytest.approx(0.6 / 6 + 0.4 / 6)
    # one score: the mean distance to it
    assert wasserstein1([0.5], [0.0, 0.5, 0.6, 1.0]) == pytest.approx((0.5 + 0 + 0.1 + 0.5) / 4)


@given(SAMPLES, SAMPLES)
def test_equal_to_scipy(x, y):
    assert wasserstein1(x, y) == pytest.approx(stats.wasserstein_distance(x, y), abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(1000, 1000), (1000, 999), (25, 1000), (1, 7)])
def test_equal_to_scipy_for_large_samples(n, m):
    rng = np.random.default_rng(0)
    x, y = rng.beta(2, 5, size=n), np.round(rng.beta(5, 2, size=m), 1)
    assert wasserstein1(x, y) == pytest.approx(stats.wasserstein_distance(x, y), abs=1e-12)


@given(SAMPLES, SAMPLES, SAMPLES)
def test_it_is_a_distance(x, y, z):
    assert wasserstein1(x, x) == 0
    assert wasserstein1(x, y) == pytest.approx(wasserstein1(y, x), abs=1e-12)
    assert wasserstein1(x, z) <= wasserstein1(x, y) + wasserstein1(y, z) + 1e-12


def test_it_is_the_mean_disparity_over_thresholds():
    """Equation 1: E over uniform τ of |p(S > τ) − p(S̃ > τ)|, here on a fine grid of τ."""
    rng = np.random.default_rng(1)
    x, y = rng.beta(2, 3, size=40), rng.beta(3, 2, size=25)
    thresholds = (np.arange(200_000) + 0.5) / 200_000
    above = [1 - np.searchsorted(np.sort(each), thresholds, side="right") / len(each) for each in (x, y)]
    assert wasserstein1(x, y) == pytest.approx(np.abs(above[0] - above[1]).mean(), abs=1e-5)


@pytest.mark.parametrize(
    ("a", "b"), [((0.3, 0.2), (0.7, 0.2)), ((0.5, 0.1), (0.5, 0.3)), ((0.45, 0.15), (0.55, 0.15))]
)
def test_truncated_gaussians(a, b):
    """The paper's Figure 2: two Gaussians cut to [0, 1]; W1 is the area between their distribution functions."""
    curves = [stats.truncnorm(-mean / sd, (1 - mean) / sd, loc=mean, scale=sd) for mean, sd in (a, b)]
    at = np.linspace(0, 1, 20_001)
    area = np.trapezoid(np.abs(curves[0].cdf(at) - curves[1].cdf(at)), at)
    # samples without noise: the quantiles themselves
    u = (np.arange(5000) + 0.5) / 5000
    assert wasserstein1(curves[0].ppf(u), curves[1].ppf(u)) == pytest.approx(area, abs=1e-4)
    rng = np.random.default_rng(2)
    drawn = [curve.rvs(size=20_000, random_state=rng) for curve in curves]
    assert wasserstein1(*drawn) == pytest.approx(area, abs=0.006)


def test_missing_scores_are_left_out():
    assert wasserstein1([0.1, np.nan, 0.5], [0.2, 0.9]) == pytest.approx(0.25)
    assert np.isnan(wasserstein1([np.nan], [0.2]))
    assert np.isnan(wasserstein1([], [0.2]))


@pytest.mark.parametrize("sizes", [[5], [3, 3, 3], [7, 11, 13], [1000, 999, 1]])
def test_the_steps_of_a_grid_are_the_samples_own(sizes):
    grid = quantile_grid(np.array(sizes))
    assert grid.widths.sum() == pytest.approx(1)
    for size, places in zip(sizes, grid.places, strict=True):
        mass = np.bincount(places, weights=grid.widths, minlength=size)
        np.testing.assert_allclose(mass, np.full(size, 1 / size), atol=1e-12)


@given(
    st.lists(st.tuples(st.sampled_from([0, 0.1, 0.25, 0.5, 0.9, 1]), st.integers(0, 3)), min_size=1, max_size=40)
)
def test_groups_against_everything(scored):
    scores, groups = np.array([each[0] for each in scored], float), np.array([each[1] for each in scored])
    found = PooledDistances(scores, np.bincount(groups, minlength=4)).of(small_labels(groups))
    for group in range(4):
        mine = scores[groups == group]
        expected = stats.wasserstein_distance(mine, scores) if len(mine) else np.nan
        assert found[group] == pytest.approx(expected, abs=1e-12, nan_ok=True)
