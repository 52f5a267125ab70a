"""Pearson's correlation with Fisher's interval."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clinometer.stats import pearson_interval


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
