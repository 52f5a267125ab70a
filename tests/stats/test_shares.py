"""Intervals of shares: against scipy, by hand, and by how often they hold the truth."""

import numpy as np
import pytest
from scipy import stats

from clinometer.stats import paired_share_interval, share_interval


@pytest.mark.parametrize(("found", "n"), [(0, 20), (3, 20), (20, 20), (57, 213)])
def test_wilson_agrees_with_scipy(found, n):
    interval = share_interval(found / n, n)
    expected = stats.binomtest(found, n).proportion_ci(method="wilson")
    assert (float(interval.low), float(interval.high)) == pytest.approx((expected.low, expected.high))


def test_nothing_is_known_without_items():
    assert np.isnan(share_interval([np.nan], [0]).low).all()
    assert np.isnan(paired_share_interval(0, 0, 0).high)


def test_paired_shares_by_hand():
    # 2 + 1 and 0 + 1 of 8 + 2: a = .3, b = .1, d = .2; √((.4 − .04)/10) = .18974; ± 1.95996 · .18974 = .37188
    interval = paired_share_interval(2, 0, 8)
    assert (float(interval.low), float(interval.high)) == pytest.approx((-0.17188, 0.57188), abs=1e-5)
    # all items on one side: within −1 and 1, and still of some length
    whole = paired_share_interval(50, 0, 50)
    assert float(whole.low) < float(whole.high) <= 1


@pytest.mark.parametrize("shares", [(0.4, 0.3), (0.1, 0.02), (0.0, 0.0)])
def test_paired_shares_hold_the_truth(shares):
    """4,000 draws of 60 items: standard deviation of the coverage .3 %; rare properties get longer intervals."""
    counts = np.random.default_rng(0).multinomial(60, [*shares, 1 - sum(shares)], size=4000)
    interval = paired_share_interval(counts[:, 0], counts[:, 1], 60)
    truth = shares[0] - shares[1]
    assert 0.94 < ((interval.low <= truth) & (interval.high >= truth)).mean() <= 1
