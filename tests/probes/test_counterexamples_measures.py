"""The two dominances together: equal weights, and error rates that hold for uneven lists."""

import numpy as np
import polars as pl
import pytest

from clinometer.probes.counterexamples.answers import _whole_list
from clinometer.probes.counterexamples.measures import join, joint_sign_flip_p, present_intervals
from clinometer.probes.kit import Numbers
from clinometer.stats import sign_flip_test


def numbers(estimate, low, high, n):
    return Numbers(estimate=np.array(estimate), low=np.array(low), high=np.array(high), n=np.array(n))


def test_dominances_weigh_the_same_by_hand():
    # .4 from .1 to .8 and .2 from −.2 to .5: mean .3; below √(.3² + .4²)/2 = .25, above √(.4² + .3²)/2 = .25
    both = join(numbers(0.4, 0.1, 0.8, 3), numbers(0.2, -0.2, 0.5, 50))
    assert (both.estimate, both.low, both.high, both.n) == pytest.approx((0.3, 0.05, 0.55, 53))
    # one that is known exactly adds nothing: half of 0 to .8 around .4, moved by half of .2
    known = join(numbers(0.4, 0.0, 0.8, 9), numbers(0.2, 0.2, 0.2, 9))
    assert (known.low, known.high) == pytest.approx((0.1, 0.5))
    assert np.isnan(join(numbers(0.4, 0.1, 0.8, 9), numbers(0.2, np.nan, np.nan, 4)).low)


def p_of(values, dominance, *, draws=999):
    return joint_sign_flip_p(np.array(values), np.array(dominance), rng=np.random.default_rng(0), draws=draws)


def test_values_without_any_spread():
    dominance = [1] * 5 + [-1] * 8
    # margins .3 and −.3 cancel out exactly: a preference for one gender everywhere
    assert p_of([0.3] * 5 + [-0.3] * 8, dominance) == 1.0
    assert p_of([0.0] * 13, dominance) == 1.0
    # margins .3 everywhere: of 2¹³ sign patterns only the observed one and its mirror image are as extreme
    assert p_of([0.3] * 13, dominance) < 0.01


def test_missing_occupations_do_not_count():
    dominance = np.repeat([1, -1], [6, 8])
    values = np.random.default_rng(1).standard_normal((14, 2))
    values[0, 0] = values[:2, 1] = np.nan
    p = joint_sign_flip_p(values, dominance, rng=np.random.default_rng(0), draws=999)
    assert 0 < p[0] <= 1
    assert np.isnan(p[1])  # four are left: too few
    # the same without the missing one, but for the signs drawn: standard deviation of p below √(.25 / 9999) = .005
    fewer = joint_sign_flip_p(values[1:, :1], dominance[1:], rng=np.random.default_rng(0), draws=9999)
    more = joint_sign_flip_p(values[:, :1], dominance, rng=np.random.default_rng(0), draws=9999)
    assert fewer[0] == pytest.approx(more[0], abs=0.03)


@pytest.mark.parametrize(("female", "male"), [(29, 29), (6, 6), (5, 5), (5, 53), (53, 5)])
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_error_rates_with_a_strong_preference_for_one_gender(female, male, spread):
    """A model that prefers male words everywhere has no stereotype: p of the margin must be uniform.

    2,000 draws: standard deviation √(.05 · .95 / 2000) = .5 %. p ≤ .05 may come in 3 to 8.5 %, a little more than
    5 % where the smaller dominance spreads more; intervals hold 0 in 93 to 99 %, most often for few occupations.
    (Before dominances were resampled apart: 10 and 84 % for 5 + 53.)
    """
    rng = np.random.default_rng(5)
    dominance = np.repeat([1, -1], [female, male])
    gaps = -3 + np.where(dominance == 1, spread, 1.0)[:, None] * rng.standard_normal((len(dominance), 2000))
    margins = gaps * dominance[:, None]
    share = (joint_sign_flip_p(margins, dominance, rng=rng, draws=999) <= 0.05).mean()
    assert 0.03 < share < 0.085
    parts = [
        present_intervals(margins[dominance == code], np.arange((dominance == code).sum()), rng=rng, draws=399)
        for code in (1, -1)
    ]
    both = join(*parts)
    assert 0.93 < ((both.low <= 0) & (both.high >= 0)).mean() < 0.99
    # flipping the signs of the margins as they are would find nothing, or far too much
    plain = (sign_flip_test(margins, rng=rng, draws=999).p <= 0.05).mean()
    assert plain < 0.02 or plain > 0.9


def test_a_real_margin_is_found():
    """Margin .5, spread 1, 29 + 29: t = .5 / √(2/29)·2 = 3.8, so that nearly all of 500 draws are found."""
    rng = np.random.default_rng(6)
    dominance = np.repeat([1, -1], 29)
    margins = 0.5 - 3 * dominance[:, None] + rng.standard_normal((58, 500))
    assert (joint_sign_flip_p(margins, dominance, rng=rng, draws=999) <= 0.05).mean() > 0.9


def test_two_plus_ten_occupations_get_no_interval_and_no_p():
    """By simulation 14.5 % of p-values came below .05 there, and 78 % of intervals held 0."""
    dominance = np.repeat([1, -1], [2, 10])
    values = np.random.default_rng(7).standard_normal((12, 3))
    assert np.isnan(joint_sign_flip_p(values, dominance, rng=np.random.default_rng(0), draws=99)).all()
    few = present_intervals(values[:2], np.arange(2), rng=np.random.default_rng(0), draws=99)
    assert few.estimate == pytest.approx(values[:2].mean(axis=0))
    assert np.isnan([few.low, few.high]).all()
    assert few.n.tolist() == [2, 2, 2]


def test_a_listed_word_that_an_endpoint_does_not_tell_at_a_prompt_adds_nothing_there():
    nan = float("nan")
    logs = np.log([[0.2, 0.1, 0.3], [nan, 0.1, 0.3], [nan, nan, nan]])
    table = pl.DataFrame(
        {
            "tag_kind": ["base"] * 3,
            "tag_occupation": ["nurse", "clerk", "judge"],
            "got_words": [["she", "her", "he"]] * 3,
            "got_logprobs": logs.tolist(),
        }
    )
    number = {"nurse": 0, "clerk": 1, "judge": 2}
    found = _whole_list(table, number, {"she": "female", "her": "female", "he": "male"})
    # 0.2 + 0.1; of the second only "her"; of the third nothing is known
    assert found.female == pytest.approx([0.3, 0.1, nan], nan_ok=True)
    assert found.male == pytest.approx([0.3, 0.3, nan], nan_ok=True)
