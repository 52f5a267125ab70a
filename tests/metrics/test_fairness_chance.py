"""Shuffles in turns: p stays exact, and what may matter gets all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clinometer.metrics import fairness_chance, fairness_null, fairness_nulls, pair_null, pair_nulls
from clinometer.metrics.fairness_chance import ENOUGH, Tally, against_chance, turns
from clinometer.metrics.fairness_epsilon import worst_by_chance


def tallied(observed, shuffled):
    """Count shuffles (draws, statistics) in turns, with NaN where no more are wanted."""
    tally = Tally(observed)
    for turn in turns(len(shuffled)):
        rows = shuffled[turn.first : turn.last]
        tally.add(np.where(tally.unsure, rows, np.nan))
        tally.look()
    return tally


@pytest.mark.parametrize("draws", [1, 3, 4, 99, 1000, 1999])
def test_turns_are_all_shuffles_in_order(draws):
    every = turns(draws)
    assert [number for turn in every for number in range(turn.first, turn.last)] == list(range(draws))
    assert all(turn.shuffles <= turn.first for turn in every[1:])  # never more than twice as many as before


def test_a_tally_by_hand():
    """Of 400 shuffles 0, 1, …, 399 in a mixed order, so that each turn has its share of the large ones."""
    shuffled = np.arange(400).reshape(4, 100).T.ravel()[:, None]  # 0, 100, 200, 300, 1, 101, …
    observed = np.array([10.0, 250.0, 395.0, 1000.0, np.nan])
    found = tallied(observed, np.repeat(shuffled, 5, axis=1).astype(float)).against_chance()
    # The first 100 are 0–24, 100–124, 200–224, 300–324. As large as 10: 15 + 75 = 90, enough: 91/101. As large as
    # 250: 25, not enough. After 200 (0–49, …, 300–349): 50, enough: 51/201. 395: 5 of all 400. 1000: none.
    assert found.p[:4] == pytest.approx([91 / 101, 51 / 201, 6 / 401, 1 / 401])
    first, second = np.mean([12, 112, 212, 312]), np.mean([24.5, 124.5, 224.5, 324.5])
    assert found.null[:4] == pytest.approx([first, second, 199.5, 199.5])
    assert found.excess[2] == pytest.approx(395 - 199.5)
    assert found.null_low[:4] == pytest.approx([np.quantile(shuffled[:100], 0.025)] * 4)
    assert all(math.isnan(part[4]) for part in (found.null, found.p, found.excess))


@pytest.mark.parametrize("draws", [400, 2000])
def test_p_is_exact_in_turns(draws):
    """Nothing differs in 20,000 tests: p ≤ α in no more than α of them, and in not much fewer."""
    rng = np.random.default_rng(1)
    observed = rng.normal(size=20_000)
    found = tallied(observed, rng.normal(size=(draws, 20_000)).astype(np.float32)).against_chance()
    for alpha in (0.005, 0.01, 0.05, 0.1, 0.2, 0.5):
        error = math.sqrt(alpha * (1 - alpha) / 20_000)
        share = np.mean(found.p <= alpha + 1e-12)
        assert share <= alpha + 4 * error
        assert share >= alpha - 1.1 / ENOUGH * alpha - 1 / draws - 4 * error


def test_what_is_large_gets_every_shuffle():
    rng = np.random.default_rng(2)
    found = tallied(np.array([9.0, 0.0]), rng.normal(size=(999, 2))).against_chance()
    assert found.p[0] == 1 / 1000
    assert found.p[1] * 250 == pytest.approx(round(found.p[1] * 250))  # 249 shuffles settled it


def test_all_at_once_is_one_turn():
    rows = np.random.default_rng(3).normal(size=(200, 3))
    found = against_chance(rows)
    assert found.p == pytest.approx((1 + (rows[1:] >= rows[0]).sum(axis=0)) / 200)
    assert found.null == pytest.approx(rows[1:].mean(axis=0))
    assert found.null_high == pytest.approx(np.quantile(rows[1:], 0.975, axis=0))


@pytest.mark.parametrize("missing", [False, True])
def test_pairs_of_many_sets_are_tested_as_those_of_each_alone(missing):
    """One that differs everywhere takes part in every turn, one that does not leaves early."""
    rng = np.random.default_rng(4)
    quiet, loud = rng.uniform(size=(2, 3, 4, 20))
    loud += np.arange(4)[:, None]
    if missing:
        quiet[0, 1, 12:], quiet[1, 2] = np.nan, np.nan
        loud[np.isnan(quiet)] = np.nan
    together = pair_nulls([quiet, loud], rng=np.random.default_rng(5), draws=800)
    for scores, found in zip((quiet, loud), together, strict=True):
        (alone,) = pair_nulls([scores], rng=np.random.default_rng(5), draws=800)
        for one, other in ((found.pairs.p, alone.pairs.p), (found.template_p, alone.template_p)):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(found.pairs.null, alone.pairs.null)
    off = ~np.eye(4, dtype=bool)
    assert together[1].pairs.p[off] == pytest.approx(1 / 801)
    assert np.nanmax(together[0].pairs.p) > 0.3


def test_many_that_may_differ_need_few_shuffles_by_hand():
    """q = m/(k · shuffles) of the k unsure among m: no more are asked for once it can be 0.01."""
    for unsure, enough in ((1, 400), (2, 200), (4, 100)):
        observed = np.array([9.0] * unsure + [-9.0] * (4 - unsure) + [np.nan])  # of 4 that can be tested
        for shuffles, settled in ((enough - 1, False), (enough, True)):
            tally = Tally(observed)
            tally.add(np.zeros((ENOUGH, 5)))
            tally.look()
            assert tally.unsure.sum() == unsure
            tally.settle(shuffles)
            assert (not tally.unsure.any()) == settled


def test_few_pairs_that_differ_are_followed_longer_than_many():
    rng = np.random.default_rng(6)
    few, many = rng.uniform(size=(2, 2, 7, 12))
    few[:, 0] += (
        1  # six of 21 pairs: 400 · 6 · 0.01 = 24 is enough, 200 · 6 · 0.01 = 12 with others by chance is not
    )
    many += np.arange(7)[:, None]  # all 21: 100 · 21 · 0.01 = 21
    for scores, enough in ((few, 400), (many, 100)):
        found = pair_null(scores, rng=np.random.default_rng(7), draws=100, further=1600)
        assert found.pairs.p[0, 1:] == pytest.approx([1 / (1 + enough)] * 6)
        assert found.draws == 1600


def test_p_of_a_pair_is_exact_beside_pairs_that_differ():
    """How long a pair is followed depends on how many others differ: its p must not."""
    p = []
    for seed in range(120):
        rng = np.random.default_rng([seed, 8])
        scores = rng.uniform(size=(1, 6, 10))
        scores[:, :3] += np.arange(1, 4)[:, None] * rng.uniform()
        p += pair_null(scores, rng=rng, draws=60, further=600).pairs.p[3:, 3:][np.triu_indices(3, 1)].tolist()
    # 360 p-values, three of each seed dependent: the standard error is at most √3 times that of independent ones
    for alpha in (0.02, 0.05, 0.1, 0.3):
        assert np.mean(np.array(p) <= alpha) <= alpha + 3.5 * math.sqrt(3 * alpha * (1 - alpha) / 360)
    assert np.mean(np.array(p) <= 0.5) > 0.35


def test_what_is_left_out_of_a_turn_moves_nothing_that_is_in_it(monkeypatch):
    """Sets, templates and subgroups stop at different turns; what goes on has the p that all shuffles give."""
    rng = np.random.default_rng(5)
    scores = rng.uniform(size=(6, 3, 6, 12))
    for at, lean in enumerate((0.25, 0.3, 0.35)):
        scores[2 * at, at, at] += lean  # in one template alone
        scores[2 * at + 1, :, 5 - at] += lean
    groups = ["x", "x", "y", "y", "z", "z"]

    def shuffled():
        return fairness_nulls(list(scores), subgroups=groups, rng=np.random.default_rng(1), draws=600)

    stopped = shuffled()
    monkeypatch.setattr(fairness_chance, "ENOUGH", 10_000)
    went_on = ended = 0
    for found, full in zip(stopped, shuffled(), strict=True):
        for name in ("individual", "group", "templates", "subgroups", "disparity"):
            mine, every = getattr(found, name), getattr(full, name)
            few = every.p < (1 + ENOUGH) / 601
            np.testing.assert_allclose(mine.p[few], every.p[few], rtol=1e-12)
            np.testing.assert_allclose(mine.null[few], every.null[few], rtol=1e-9)
            went_on, ended = went_on + few.sum(), ended + (mine.p != every.p).sum()
    assert went_on > 20
    assert ended > 10


def test_another_statistic_has_all_shuffles():
    scores = np.array([[[0, 3, 4, 7], [1, 2, 5, 6]]]) / 7  # all else ends after a quarter of them
    (found,) = fairness_nulls(
        [scores], also=lambda each: each.means[:, 0], rng=np.random.default_rng(1), draws=400
    )
    assert found.also.shape == (401, 2)
    assert len(np.unique(found.also[:, 0].round(9))) == 17  # four of 0 to 7 sum to 6, 7, … or 22


def test_the_same_sum_in_another_order_is_as_large():
    tally = Tally(np.array([0.1 + 0.2]))  # the last bit is one more than that of 0.3
    tally.add(np.array([[0.3], [0.29]]))
    assert tally.against_chance().p[0] == pytest.approx(2 / 3)


def test_a_pair_that_is_a_little_nearer_is_not_as_far():
    # one of 0, 1 and 2.01 against the other two: 1.505, 1.005 and 1.51 apart
    found = pair_null([[[2.01, np.nan], [0.0, 1.0]]], rng=np.random.default_rng(1), draws=2000)
    assert found.pairs.estimate[0, 1] == pytest.approx(1.51)
    assert found.pairs.p[0, 1] == pytest.approx(1 / 3, abs=0.1)
    assert found.template_p[0, 0, 1] == pytest.approx(1 / 3, abs=0.1)


def test_pairs_that_are_as_far_in_single_precision_are_as_far():
    # nothing is further apart than these are: 2 of the 20 ways to choose three of six, in another order of sums
    rng = np.random.default_rng(0)
    for _ in range(20):
        lower, upper = np.sort(rng.uniform(size=6)).reshape(2, 3)
        found = pair_null([[lower, upper]], rng=rng, draws=2000)
        assert found.pairs.p[0, 1] == pytest.approx(2 / 20, abs=0.06)
        assert found.template_p[0, 0, 1] == pytest.approx(2 / 20, abs=0.06)


def test_a_distance_of_exactly_epsilon_is_not_below_it():
    (found,) = worst_by_chance([[[[0.2], [0.3]]]], epsilon=0.1, rng=np.random.default_rng(1), draws=9)
    np.testing.assert_array_equal(found.share, 1.0)


def test_values_with_the_same_scores_are_not_apart():
    # what counts of 0.1 and of 0.7 sums to nothing, up to rounding, which must not decide
    scores = np.tile([0.1, 0.1, 0.1, 0.7, 0.7, 0.7, 0.7], (2, 3, 1))
    found = fairness_null(scores, rng=np.random.default_rng(1), draws=200)
    np.testing.assert_array_equal(found.templates.estimate, 0.0)
    np.testing.assert_array_equal(found.templates.p, 1.0)
    assert found.individual.estimate == 0
    assert found.individual.p == 1


def test_a_template_of_one_value_tells_nothing():
    scores = np.random.default_rng(2).uniform(size=(2, 3, 5))
    scores[1, 1:] = np.nan
    found = fairness_null(scores, rng=np.random.default_rng(1), draws=50)
    assert np.isnan([found.templates.estimate[1], found.templates.p[1], found.templates.null[1]]).all()
    alone = fairness_null(scores[:1], rng=np.random.default_rng(1), draws=50)
    assert found.individual.estimate == pytest.approx(float(alone.individual.estimate))
