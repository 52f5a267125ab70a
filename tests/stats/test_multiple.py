"""False-discovery rate: agrees with scipy, and holds on a mixture of nulls and effects."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from clinometer.stats import benjamini_hochberg, sign_flip_test

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
