"""What shuffled labels alone decide, by hand and against loops: weights of I.F., sums of cells, two groups."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from clinometer.metrics.fairness import group_values
from clinometer.metrics.fairness_pooled import PooledDistances
from clinometer.metrics.fairness_ranks import Cells, CountedPairs, label_shuffles
from clinometer.metrics.fairness_shuffles import fairness_null
from clinometer.metrics.fairness_tables import ScoreTable
from clinometer.metrics.products import product


def test_weights_by_hand():
    """Three values with two samples each, at places 0 3 | 1 2 | 4 5 of the sorted scores.

    The lower samples lie at 0 < 1 < 4 and weigh −2, 0, 2; the upper ones at 2 < 3 < 5 as well; each step is half.
    """
    pairs = CountedPairs(group_values(3, None), across=False)
    found = pairs.weights(np.array([[0, 3, 1, 2, 4, 5]]), np.array([2, 2, 2]))
    assert found.tolist() == [[-1, 0, -1, 0, 1, 1]]
    # with the first two in one subgroup their own pair is taken off: −1, 1 at 0 < 1 and at 2 < 3
    across = CountedPairs(group_values(3, ["x", "x", "y"]), across=True)
    assert across.weights(np.array([[0, 3, 1, 2, 4, 5]]), np.array([2, 2, 2])).tolist() == [
        [-0.5, -0.5, -0.5, -0.5, 1, 1]
    ]
    assert (pairs.number(np.ones(3, bool)), across.number(np.ones(3, bool))) == (3, 2)


@pytest.mark.parametrize("sizes", [[[4, 4, 4], [4, 4, 4]], [[4, 2, 5], [0, 3, 1]], [[7, 0, 0], [2, 2, 0]]])
@pytest.mark.parametrize("across", [False, True])
def test_weighted_scores_are_the_distances_of_every_pair(sizes, across):
    """I.F. of each shuffle and template, against scipy in a loop; places are those of whole templates."""
    rng = np.random.default_rng(2)
    cells = Cells(np.array(sizes))
    groups = group_values(3, ["x", "y", "x"])
    scores = [np.sort(np.round(rng.random(int(total)), 1)) for total in cells.sizes.sum(axis=1)]
    everything = np.concatenate(scores)
    for shuffles in label_shuffles(cells, CountedPairs(groups, across=across), rng=rng, draws=5):
        for places, weights in zip(shuffles.places, shuffles.weights, strict=True):
            assert sorted(places) == list(range(len(everything)))
            dealt = np.split(everything[places], np.cumsum(cells.sizes)[:-1])
            for template, of in enumerate(cells.templates):
                mine = dealt[3 * template : 3 * template + 3]
                counted = [
                    stats.wasserstein_distance(mine[one], mine[other])
                    for one, other in itertools.combinations(range(3), 2)
                    if len(mine[one]) and len(mine[other])
                    if not across or groups.of_value[one] != groups.of_value[other]
                ]
                expected = np.mean(counted) if counted else 0.0
                assert weights[of] @ everything[of] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("sizes", [[[3, 3], [3, 3]], [[3, 0], [1, 4]], [[0, 0], [1, 4]]])
@pytest.mark.parametrize("sets", [1, 2, 3])
def test_sets_side_by_side_are_moved_as_each_alone(sizes, sets):
    """Sums, squares and counts of each value of each shuffle by loops; I.F. by the weights of the shuffle."""
    rng = np.random.default_rng(4)
    cells = Cells(np.array(sizes))
    scores = list(rng.normal(size=(sets, int(cells.sizes.sum()))))
    (shuffles,) = label_shuffles(cells, CountedPairs(group_values(2, None), across=False), rng=rng, draws=6)
    table = ScoreTable(cells, scores, [each > 0.3 for each in scores])
    last = sets - 1
    both = np.ones(2, dtype=np.bool_)
    found = table.move(shuffles, individual=np.array([True, False]), moments=True, positive=[last])
    for each, moved in zip(scores, found, strict=True):
        dealt = [np.split(each[places], np.cumsum(cells.sizes)[:-1]) for places in shuffles.places]
        expected = np.array([[(part.sum(), (part**2).sum()) for part in parts] for parts in dealt])
        np.testing.assert_allclose(moved.sums.reshape(6, -1), expected[..., 0], atol=1e-12)
        np.testing.assert_allclose(moved.squares.reshape(6, -1), expected[..., 1], atol=1e-12)
        of = cells.templates[0]
        np.testing.assert_allclose(moved.individual[:, 0], shuffles.weights[:, of] @ each[of], atol=1e-12)
        assert np.isnan(moved.individual[:, 1]).all()
        (alone,) = ScoreTable(cells, [each], [each > 0.3]).move(
            shuffles, individual=both, moments=True, positive=[0]
        )
        np.testing.assert_array_equal(alone.sums, moved.sums)  # to the bit
        np.testing.assert_array_equal(alone.squares, moved.squares)
        np.testing.assert_array_equal(alone.individual[:, 0], moved.individual[:, 0])
        counts = [[(part > 0.3).sum() for part in parts] for parts in dealt]
        np.testing.assert_array_equal(alone.positive.reshape(6, -1), counts)
    np.testing.assert_array_equal(found[last].positive.reshape(6, -1), counts)
    assert all(np.isnan(moved.positive).all() for moved in found[:last])


def test_of_two_groups_one_tells_the_other():
    rng = np.random.default_rng(0)
    scores = rng.random(50)
    pool = PooledDistances(scores, np.array([20, 30]))
    found = pool.of_two(np.sort(pool.ranks[:20])[None])[0]
    np.testing.assert_allclose(found, pool.of((np.arange(50) >= 20).astype(np.uint8)))
    expected = [stats.wasserstein_distance(part, scores) for part in (scores[:20], scores[20:])]
    np.testing.assert_allclose(found, expected)


def test_the_distance_of_large_groups_keeps_its_digits():
    """Sums over 20,000 scores would lose the last five of them."""
    scores = np.random.default_rng(1).beta(2, 2, size=20_001)
    labels = (np.arange(20_001) % 3 == 0).astype(np.uint8)
    found = PooledDistances(scores, np.bincount(labels)).of(labels)
    ordered = np.sort(scores).astype(np.longdouble)
    for group in range(2):
        below = np.cumsum(labels[np.argsort(scores)] == group).astype(np.longdouble)[:-1] / (labels == group).sum()
        expected = (np.abs(below - np.arange(1, 20_001) / np.longdouble(20_001)) * np.diff(ordered)).sum()
        assert found[group] == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize(
    ("rows", "inner", "columns"),
    [(1, 1, 1), (48, 157, 64), (100, 700, 70), (100, 321, 129), (3, 0, 2), (11, 1500, 64), (800, 700, 2)],
)
def test_a_product_in_tiles_is_the_product(rows, inner, columns):
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 99, (rows, inner)), rng.integers(0, 99, (inner, columns))
    found = product(first.astype(np.float32), second.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, first @ second)  # whole numbers below 2²⁴ are exact


def test_a_product_of_few_rows_takes_no_more_memory_than_its_factors():
    first, second = np.ones((8, 29_000)), np.ones((29_000, 2))
    tracemalloc.start()
    product(first, second)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < first.nbytes + second.nbytes


@pytest.mark.parametrize(("rows", "inner", "columns"), [(12, 199, 19_900), (25, 119, 406), (640, 119, 406)])
def test_a_product_has_the_same_bits_with_any_number_of_threads(rows, inner, columns):
    code = (
        "import numpy as np, hashlib; from clinometer.metrics.products import product;"
        " rng = np.random.default_rng(3);"
        f" first, second = (rng.random(shape, np.float32) for shape in (({rows}, {inner}), ({inner}, {columns})));"
        " print(hashlib.sha256(product(first, second).tobytes()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(found) == 1


@pytest.mark.parametrize("score", [0.1, 0.3, 0.77])
def test_where_all_scores_are_equal_nothing_is_found(score):
    # the mean of 340 times 0.3 is not 0.3, and its rounding must not decide
    scores = np.full((2, 34, 10), score)
    scores[1] = np.random.default_rng(0).uniform(size=(34, 10))
    found = fairness_null(scores, rng=np.random.default_rng(1), draws=200)
    assert found.templates.estimate[0] == 0
    assert found.templates.p[0] == 1
    alone = fairness_null(scores[:1], rng=np.random.default_rng(1), draws=200)
    assert alone.individual.p == 1
