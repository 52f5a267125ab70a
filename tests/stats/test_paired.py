"""Two paired leans: the distance from 0 by hand, its interval, its error rate, and letters for many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinometer.stats import Sure, distance_change, independent_change, letters_of, mean_leans, paired_leans


def sure(estimate, low, high, p=0.01):
    return Sure(estimate=np.array([estimate]), low=np.array([low]), high=np.array([high]), p=np.array([p]))


@pytest.mark.parametrize(
    ("before", "after", "farther"),
    [(0.2, 0.5, 0.3), (-0.2, -0.5, 0.3), (0.2, -0.5, 0.3), (-0.5, 0.2, -0.3), (0.3, -0.3, 0.0), (0.0, -0.4, 0.4)],
)
def test_the_distance_counts_and_not_the_sign(before, after, farther):
    change, both = after - before, after + before
    found = distance_change(sure(change, change, change), sure(both, both, both))
    assert found.estimate[0] == pytest.approx(farther)


def test_the_interval_is_without_0_only_where_change_and_sum_both_are():
    away, across = sure(0.3, 0.1, 0.5), sure(0.3, -0.1, 0.7)
    assert distance_change(away, away).low[0] > 0
    for change, both in ((away, across), (across, away), (across, across)):
        found = distance_change(change, both)
        assert found.low[0] <= 0 <= found.high[0]


def test_p_is_that_of_the_less_sure_of_the_two():
    found = distance_change(sure(0.3, 0.1, 0.5, p=0.001), sure(0.3, 0.1, 0.5, p=0.2))
    assert found.p[0] == 0.2
    assert distance_change(sure(0.3, 0.1, 0.5, p=0.2), sure(0.3, 0.1, 0.5, p=0.001)).p[0] == 0.2


@given(
    ends=st.lists(st.floats(-2, 2), min_size=4, max_size=4),
    inside=st.lists(st.floats(0, 1), min_size=2, max_size=2),
)
def test_every_change_and_sum_within_their_intervals_gives_a_distance_within_its_own(ends, inside):
    (dl, dh), (sl, sh) = sorted(ends[:2]), sorted(ends[2:])
    change, both = dl + inside[0] * (dh - dl), sl + inside[1] * (sh - sl)
    found = distance_change(sure(change, dl, dh), sure(both, sl, sh))
    distance = (abs(both + change) - abs(both - change)) / 2
    assert found.low[0] - 1e-9 <= distance <= found.high[0] + 1e-9


def test_leans_are_weighted_means_of_parts():
    before = np.array([1.0, 3.0, 10.0, 20.0])
    found = paired_leans(before, before * 2, [0, 0, 1, 1], [1.0, -0.5], rng=np.random.default_rng(0))
    assert found.before.tolist() == [2 - 0.5 * 15]
    assert found.after.tolist() == [4 - 0.5 * 30]
    assert np.isnan(found.distance.low[0])  # two units are too few for an interval
    assert np.isnan(found.distance.p[0])


def test_a_unit_that_one_lacks_counts_for_neither():
    before, after = np.arange(10.0), np.arange(10.0) + 1
    after[0] = np.nan
    found = paired_leans(before, after, [0] * 10, [1.0], rng=np.random.default_rng(0))
    assert (found.before[0], found.after[0], found.n[0]) == (5.0, 6.0, 9)


def test_models_that_answer_alike_have_changed_nothing():
    values = np.random.default_rng(0).normal(0.3, 0.1, size=40)
    found = paired_leans(values, values, [0] * 20 + [1] * 20, [1.0, -1.0], rng=np.random.default_rng(0))
    assert (found.distance.estimate[0], found.distance.low[0], found.distance.high[0]) == (0.0, 0.0, 0.0)
    assert found.distance.p[0] == 1.0


@pytest.mark.parametrize("lean", [0.0, 0.5])
@pytest.mark.parametrize("parts", [1, 2])
def test_pairs_that_are_alike_are_rarely_called(lean, parts):
    rng = np.random.default_rng(7)
    own = rng.standard_normal((60, 600))
    sides = [own + 0.5 * rng.standard_normal(own.shape) for _ in range(2)]
    of_part = np.arange(60) % parts
    weights = [1.0, -1.0][:parts]
    sides = [side + lean * (of_part == 0)[:, None] for side in sides]
    found = paired_leans(*sides, of_part.tolist(), weights, rng=rng, draws=499).distance
    called = (found.p < 0.05) & ((found.low > 0) | (found.high < 0))
    assert called.mean() < 0.07
    covers = (found.low <= 0) & (found.high >= 0)
    assert covers.mean() > 0.93


def test_a_change_from_nothing_is_found_whichever_its_sign():
    rng = np.random.default_rng(3)
    own = rng.standard_normal((60, 200))
    for change in (0.9, -0.9):
        after = own + 0.5 * rng.standard_normal(own.shape) + change
        own_now = own - own.mean(axis=0)
        found = paired_leans(own_now, after - own.mean(axis=0), [0] * 60, [1.0], rng=rng, draws=499).distance
        assert ((found.low > 0) & (found.p < 0.05)).mean() > 0.8


def test_shares_have_an_interval_where_nothing_varies():
    found = paired_leans(np.zeros(20), np.zeros(20), [0] * 20, [1.0], rng=np.random.default_rng(0), signed=False,
                         shares=True)  # fmt: skip
    assert found.distance.low[0] < 0 < found.distance.high[0]


def test_few_clusters_have_no_interval():
    values = np.random.default_rng(0).standard_normal(40)
    arguments = {"rng": np.random.default_rng(0), "signed": False}
    four = paired_leans(values, values + 1, [0] * 40, [1.0], clusters=[i % 4 for i in range(40)], **arguments)
    eight = paired_leans(values, values + 1, [0] * 40, [1.0], clusters=[i % 8 for i in range(40)], **arguments)
    assert np.isnan(four.distance.low[0])
    assert eight.distance.low[0] > 0


def test_independent_numbers_add_their_uncertainty():
    found = independent_change(sure(0.0, -0.3, 0.3), sure(1.0, 0.6, 1.4))
    assert (found.low[0], found.high[0]) == (pytest.approx(0.5), pytest.approx(1.5))
    assert found.p[0] < 0.001
    assert independent_change(sure(0.2, 0.1, 0.3), sure(0.2, 0.1, 0.3)).p[0] == 1.0


def test_the_lean_of_each_model_is_that_of_pairs():
    values = np.random.default_rng(0).standard_normal((30, 2))
    parts = [0] * 12 + [1] * 18
    leans = mean_leans(values, parts, [1.0, -1.0], rng=np.random.default_rng(0))
    pair = paired_leans(values[:, 0], values[:, 1], parts, [1.0, -1.0], rng=np.random.default_rng(0))
    assert leans.estimate.tolist() == pytest.approx([pair.before[0], pair.after[0]])


@given(st.integers(2, 7).flatmap(lambda n: st.lists(st.booleans(), min_size=n * n, max_size=n * n)))
def test_two_share_a_letter_exactly_where_they_are_not_apart(flags):
    n = int(len(flags) ** 0.5)
    apart = [[i != j and flags[min(i, j) * n + max(i, j)] for j in range(n)] for i in range(n)]
    letters = letters_of(apart)
    for i in range(n):
        for j in range(n):
            assert bool(set(letters[i]) & set(letters[j])) == (not apart[i][j])  # 7 models need 12 letters at most


def test_many_models_get_letters_in_time():
    rng = np.random.default_rng(0)
    apart = rng.random((50, 50)) < 0.5  # nothing like an order: the worst case
    apart = np.triu(apart, 1) | np.triu(apart, 1).T
    letters = letters_of(apart.tolist())
    assert len(letters) == 50
    assert all(letters)
    for i in range(50):
        for j in range(50):
            assert not (apart[i, j] and set(letters[i]) & set(letters[j]))
