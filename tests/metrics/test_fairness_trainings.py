"""The mean change by several trainings, and its reduction: worked by hand, and never at odds with each other."""

import math
from dataclasses import replace

import numpy as np
import pytest

from clinometer.metrics import Change, Reduction, mean_change, paired_change, widened_reduction


def change_of(before, after, half, *, p=0.5):
    change = after - before
    return Change(before=before, after=after, change=change, low=change - half, high=change + half, p=p)


def two_trainings():
    rng = np.random.default_rng(0)
    before = rng.uniform(size=(8, 3, 60))
    before[:, 0] += 0.5
    for shift in (0.2, 0.3):
        after = rng.uniform(size=(8, 3, 60))
        after[:, 0] += shift
        yield paired_change(before, after)


def test_the_mean_change_is_as_sure_as_each_training():
    one, other = two_trainings()
    mean = mean_change([one, other])
    for name in ("individual", "group", "individual_excess", "group_excess"):
        for part in ("before", "after", "change", "low", "high", "p"):
            each = [getattr(getattr(found, name), part) for found in (one, other)]
            assert getattr(getattr(mean, name), part) == pytest.approx(sum(each) / 2)
    excess = mean.individual_excess
    assert mean.individual_reduction.share == pytest.approx(1 - excess.after / excess.before)
    assert mean_change([one]) == one


def test_a_reduction_without_more_noise_stays_as_it_is():
    one, _ = two_trainings()
    for shared in (False, True):
        same = widened_reduction(one.individual_reduction, one.individual_excess, shared=shared)
        assert (same.low, same.high) == pytest.approx(
            (one.individual_reduction.low, one.individual_reduction.high)
        )


def test_what_the_interval_is_longer_by_is_of_the_model_after_or_of_both_by_hand():
    # before 1 ± .2 and after .5 ± .3 (t times the errors), apart from each other: the change is −.5 ± √.13
    given = Reduction(share=0.5, low=0.0, high=0.0, spread=(0.04, 0.0, 0.09))
    wider = change_of(1.0, 0.5, 0.45)  # h² = .2025, which is .0725 more
    alone = widened_reduction(given, wider, shared=False)
    # (.5 − ρ)² = .1625 + .04 ρ²: .96 ρ² − ρ + .0875 = 0
    roots = [(1 + sign * math.sqrt(1 - 4 * 0.96 * 0.0875)) / 1.92 for sign in (1, -1)]
    assert (alone.low, alone.high) == pytest.approx((1 - roots[0], 1 - roots[1]))
    both = widened_reduction(given, wider, shared=True)
    # .03625 of it are of the control: (.5 − ρ)² = .12625 + .07625 ρ²
    roots = [(1 + sign * math.sqrt(1 - 4 * 0.92375 * 0.12375)) / (2 * 0.92375) for sign in (1, -1)]
    assert (both.low, both.high) == pytest.approx((1 - roots[0], 1 - roots[1]))


@pytest.mark.parametrize("shared", [False, True])
def test_change_and_reduction_leave_out_0_together(shared):
    one, _ = two_trainings()
    excess = one.individual_excess
    for share in (0.3, 0.8, 0.99, 1.01, 1.2):
        half = share * abs(excess.change)
        wider = replace(excess, low=excess.change - half, high=excess.change + half)
        found = widened_reduction(one.individual_reduction, wider, shared=shared)
        assert (found.low > 0) == (wider.high < 0) == (share < 1)


def test_without_an_interval_there_is_no_reduction():
    given = Reduction(share=0.5, low=0.0, high=0.0, spread=(0.04, 0.0, 0.09))
    assert math.isnan(widened_reduction(given, change_of(1.0, 0.5, math.nan), shared=False).share)
    assert math.isnan(widened_reduction(given, change_of(0.1, 0.5, 0.4), shared=False).share)  # before may be 0
    unknown = Reduction(share=math.nan, low=math.nan, high=math.nan)
    assert math.isnan(widened_reduction(unknown, change_of(1.0, 0.5, 0.4), shared=False).share)
