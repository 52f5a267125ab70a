"""Cohen's kappa, worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinometer.stats import cohens_kappa, pairwise_kappa


def from_table(table):
    """Return the two raters' ratings behind a table of counts, first rater's categories down."""
    pairs = [(i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def test_two_categories_by_hand():
    # 50 items: both yes 20, yes/no 5, no/yes 10, both no 15.
    # p_o = 35/50 = 0.7; yes: 25/50 and 30/50, no: 25/50 and 20/50; p_e = 0.5·0.6 + 0.5·0.4 = 0.5; κ = 0.2/0.5
    found = cohens_kappa(*from_table([[20, 5], [10, 15]]))
    assert found.observed == pytest.approx(0.7)
    assert found.expected == pytest.approx(0.5)
    assert found.estimate == pytest.approx(0.4)
    assert (found.n, found.missing) == (50, 0)


def test_four_attitudes_by_hand():
    # rows 13, 6, 6, 5 of 30; columns 12, 8, 5, 5; diagonal 10 + 5 + 4 + 4 = 23
    # p_e = (13·12 + 6·8 + 6·5 + 5·5)/900 = 259/900; κ = (690 − 259)/(900 − 259) = 431/641
    found = cohens_kappa(*from_table([[10, 2, 1, 0], [1, 5, 0, 0], [1, 0, 4, 1], [0, 1, 0, 4]]))
    assert found.expected == pytest.approx(259 / 900)
    assert found.estimate == pytest.approx(431 / 641)


def fleiss_cohen_everitt(table):
    """Variance of kappa as printed in Fleiss, Cohen & Everitt (1969), equation 13, cell by cell."""
    p = np.array(table) / np.sum(table)
    row, column = p.sum(axis=1), p.sum(axis=0)
    observed, expected = np.trace(p), row @ column
    total = 0.0
    for i in range(len(p)):
        total += p[i, i] * ((1 - expected) - (column[i] + row[i]) * (1 - observed)) ** 2
        for j in range(len(p)):
            if i != j:
                total += (1 - observed) ** 2 * p[i, j] * (column[i] + row[j]) ** 2
    total -= (observed * expected - 2 * expected + observed) ** 2
    return total / (np.sum(table) * (1 - expected) ** 4)


@pytest.mark.parametrize("table", [[[20, 5], [10, 15]], [[10, 2, 1], [1, 5, 3], [1, 0, 40]]])
def test_interval_is_the_published_one(table):
    found = cohens_kappa(*from_table(table))
    half = 1.959964 * math.sqrt(fleiss_cohen_everitt(table))
    assert found.high - found.estimate == pytest.approx(half, rel=1e-6)
    assert found.estimate - found.low == pytest.approx(half, rel=1e-6)


def test_intervals_cover():
    # The second rater copies the first with probability 0.6 and else draws from the same shares: κ = 0.6.
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(1000):
        first = rng.choice(3, size=150, p=[0.5, 0.3, 0.2])
        second = np.where(rng.random(150) < 0.6, first, rng.choice(3, size=150, p=[0.5, 0.3, 0.2]))
        found = cohens_kappa(first.tolist(), second.tolist())
        inside.append(found.low <= 0.6 <= found.high)
    assert 0.93 <= np.mean(inside) <= 0.97


def test_missing_ratings_are_dropped_and_counted():
    found = cohens_kappa(["a", None, "b", "b", "a"], ["a", "b", float("nan"), "b", "b"])
    # left: aa, bb, ab: p_o = 2/3, p_e = 2/3·1/3 + 1/3·2/3 = 4/9, κ = (6 − 4)/(9 − 4)
    assert (found.n, found.missing) == (3, 2)
    assert found.estimate == pytest.approx(0.4)


def test_one_category_only_says_nothing():
    found = cohens_kappa(["a", "a"], ["a", "a"])
    assert (found.observed, found.expected) == (1.0, 1.0)
    assert math.isnan(found.estimate)
    assert math.isnan(found.low)


def test_perfect_agreement_is_one_without_an_interval():
    found = cohens_kappa(["a", "b", "a"], ["a", "b", "a"])
    assert found.estimate == 1.0
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_nothing_rated_by_both():
    found = cohens_kappa([None, "a"], ["a", None])
    assert (found.n, found.missing) == (0, 2)
    assert math.isnan(found.estimate)


def test_ratings_of_different_items_are_refused():
    with pytest.raises(ValueError, match="2 and 1 ratings"):
        cohens_kappa(["a", "b"], ["a"])


def test_every_pair_of_raters_once():
    ratings = {"ann": ["x", "y", "x"], "bob": ["x", "y", "y"], "cy": ["x", None, "x"]}
    pairs = pairwise_kappa(ratings)
    assert [(pair.first, pair.second) for pair in pairs] == [("ann", "bob"), ("ann", "cy"), ("bob", "cy")]
    assert pairs[0].kappa == cohens_kappa(ratings["ann"], ratings["bob"])
    assert pairs[1].kappa.missing == 1


rated = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=2, max_size=30)


@settings(deadline=None)
@given(rated, st.permutations("abc"), st.randoms(use_true_random=False))
def test_order_names_and_who_is_first_do_not_matter(pairs, names, random):
    def numbers(some):
        found = cohens_kappa([a for a, _ in some], [b for _, b in some])
        return [found.estimate, found.low, found.high, found.expected]

    rename = dict(zip("abc", names, strict=True))
    changed = [(rename[b], rename[a]) for a, b in pairs]
    random.shuffle(changed)
    np.testing.assert_allclose(numbers(changed), numbers(pairs), atol=1e-9)


@settings(deadline=None)
@given(rated)
def test_kappa_stays_between_minus_one_and_one(pairs):
    found = cohens_kappa([a for a, _ in pairs], [b for _, b in pairs])
    assert math.isnan(found.estimate) or -1 <= found.estimate <= 1
    assert math.isnan(found.low) or -1 <= found.low <= found.estimate <= found.high <= 1
