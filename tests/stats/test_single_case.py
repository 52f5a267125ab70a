"""One case against a few controls, by hand, against scipy and by simulation."""

import numpy as np
import pytest
from scipy import stats

from clinometer.stats import single_case_test


def test_by_hand():
    # controls 1, 2, 3: m = 2, s = 1; case 6: t = 4 / √(1 + 1/3) = 3.4641 with 2 degrees of freedom.
    # For 2 degrees the tail is known: p = 1 − t / √(2 + t²) = 1 − 3.4641 / √14 = .07418
    found = single_case_test([6.0, -2.0, 2.0], [1.0, 2.0, 3.0])
    assert found.estimate == pytest.approx([4, -4, 0])
    assert found.p == pytest.approx([0.07418, 0.07418, 1], abs=1e-5)
    assert found.n.tolist() == [3, 3, 3]


def test_as_a_two_sample_t_test_with_one_sample_of_one():
    """With one value on one side the pooled variance is the other side's: Student's test is the same."""
    rng = np.random.default_rng(0)
    controls = rng.normal(size=12)
    for case in (-2.0, 0.1, 3.0):
        expected = stats.ttest_ind([case], controls, equal_var=True).pvalue
        assert single_case_test([case], controls).p[0] == pytest.approx(expected)


def test_missing_values_and_controls_without_spread():
    found = single_case_test([1.0, np.nan], [0.0, np.nan, 0.5, 0.2])
    assert found.n.tolist() == [3, 0]
    assert np.isnan(found.p).tolist() == [False, True]
    assert np.isnan(single_case_test([1.0], [0.1 + 0.2, 0.3, 0.3]).p).all()
    assert np.isnan(single_case_test([1.0], [0.3]).p).all()
    assert np.isnan(single_case_test([1.0], []).estimate).all()


def test_error_rate():
    """20,000 cases from the controls' own distribution: p ≤ .05 in 5 %, standard deviation .15 %."""
    rng = np.random.default_rng(1)
    p = [single_case_test(rng.normal(size=20), rng.normal(size=8)).p for _ in range(1000)]
    assert (np.concatenate(p) <= 0.05).mean() == pytest.approx(0.05, abs=0.01)  # 1,000 sets of controls
