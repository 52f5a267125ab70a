"""Intervals of correlations: Fisher's, and the jackknife's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clinometer.stats import jackknife_correlation, pearson_interval


def test_by_hand():
    # deviations −2 −1 0 1 2 and −2 0 −1 2 1: products 4 + 0 + 0 + 2 + 2 = 8, squares 10 and 10: r = 0.8
    # artanh 0.8 = 1.098612; ± 1.959964/√2 = 1.385904: tanh(−0.287292) = −0.279643, tanh(2.484516) = 0.986203
    found = pearson_interval([1, 2, 3, 4, 5], [1, 3, 2, 5, 4])
    assert found.estimate == pytest.approx(0.8)
    assert found.low == pytest.approx(-0.279643, abs=1e-5)
    assert found.high == pytest.approx(0.986203, abs=1e-5)


def test_intervals_cover():
    # as many items as there are conditions in the stigma audit, and its correlation
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 122))
    y = 0.79 * x + math.sqrt(1 - 0.79**2) * rng.normal(size=x.shape)
    found = [pearson_interval(a, b) for a, b in zip(x, y, strict=True)]
    assert 0.93 <= np.mean([one.low <= 0.79 <= one.high for one in found]) <= 0.97


def test_missing_items_are_left_out():
    found = pearson_interval([1, 2, 3, 4, 5, math.nan, 7], [1, 3, 2, 5, 4, 1, math.nan])
    assert found.n == 5
    assert found.estimate == pytest.approx(0.8)


def test_a_measure_that_never_varies_has_no_correlation():
    found = pearson_interval([1, 2, 3, 4], [5, 5, 5, 5])
    assert math.isnan(found.estimate)
    assert found.n == 4


def test_three_items_have_no_interval():
    found = pearson_interval([1, 2, 3], [1, 3, 2])
    assert found.estimate == pytest.approx(0.5)
    assert math.isnan(found.low)


def test_measures_of_different_items_are_refused():
    with pytest.raises(ValueError, match="same items"):
        pearson_interval([1, 2, 3], [1, 2])


def test_jackknife_by_hand():
    # artanh of .4 .5 .6 .5 .45: .42365 .54931 .69315 .54931 .48470, mean .54002, squares of deviations .04022
    # s = √(4/5 · .04022) = .17939; t with 4 degrees 2.77645: .54931 ± .49806, back by tanh
    found = jackknife_correlation(0.5, [0.4, 0.5, 0.6, 0.5, 0.45])
    assert found.low == pytest.approx(math.tanh(0.54931 - 0.49806), abs=1e-4)
    assert found.high == pytest.approx(math.tanh(0.54931 + 0.49806), abs=1e-4)


def test_edges():
    assert math.isnan(jackknife_correlation(0.5, [0.4, 0.5, 0.6]).low)
    assert math.isnan(jackknife_correlation(math.nan, [0.4] * 9).low)
    same = jackknife_correlation(1.0, [1.0] * 9)
    assert (same.low, same.high) == (1.0, 1.0)
    missing = jackknife_correlation(0.5, [0.4, math.nan, 0.5, 0.6, 0.5, 0.45])
    assert missing == jackknife_correlation(0.5, [0.4, 0.5, 0.6, 0.5, 0.45])


def test_a_plain_correlation_is_covered():
    """Pearson's r of 40 normal pairs, ρ = .6, 500 draws: standard deviation of the coverage 1 %."""
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(500):
        x = rng.standard_normal(40)
        y = 0.6 * x + 0.8 * rng.standard_normal(40)
        left_out = [np.corrcoef(np.delete(x, i), np.delete(y, i))[0, 1] for i in range(40)]
        found = jackknife_correlation(np.corrcoef(x, y)[0, 1], left_out)
        covered += found.low <= 0.6 <= found.high
    assert 0.92 < covered / 500 < 0.98
