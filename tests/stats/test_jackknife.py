"""The jackknife interval of a correlation."""

import math

import numpy as np
import pytest

from clinometer.stats import jackknife_correlation


def test_by_hand():
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
