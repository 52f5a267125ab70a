"""How far apart texts are as texts, against loops over every two texts."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from clinometer.metrics import output_difference, outputs


def written(rng, *, templates=3, values=4, samples=6, dimensions=5, missing=()):
    vectors = rng.normal(size=(templates, values, samples, dimensions))
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    for template, value, first in missing:
        vectors[template, value, first:] = np.nan
    return vectors


def by_loops(texts):
    """Mean cosine within and between the values of one template: lists of vectors, two or more each."""
    within = [np.mean([a @ b for a, b in combinations(of, 2)]) for of in texts]
    between = [np.mean([a @ b for a, b in product(one, other)]) for one, other in combinations(texts, 2)]
    return np.mean(within), np.mean(between)


@pytest.mark.parametrize("missing", [(), [(0, 1, 3), (0, 2, 1), (2, 0, 0), (2, 3, 5)]])
def test_equal_to_loops_over_every_two_texts(missing):
    """Values with fewer than two texts in a template are left out of it."""
    vectors = written(np.random.default_rng(1), missing=missing)
    expected = np.mean(
        [
            by_loops([found for of in template if len(found := of[~np.isnan(of[:, 0])]) > 1])
            for template in vectors
        ],
        axis=0,
    )
    found = output_difference(vectors, rng=np.random.default_rng(0), draws=9)
    assert (found.within, found.between) == pytest.approx(tuple(expected), abs=1e-12)
    assert found.difference == pytest.approx(expected[0] - expected[1], abs=1e-12)


@pytest.mark.parametrize("sizes", [[3, 3, 3], [2, 4, 3], [5, 2, 2]])
def test_dealt_anew_is_measured_as_given(sizes, monkeypatch):
    """Each shuffle has what loops find for it, in batches too."""
    monkeypatch.setattr(outputs, "_BATCH", 20)
    sizes, ends = np.array(sizes), np.cumsum(sizes)[:-1]
    texts = written(np.random.default_rng(2), templates=1, values=1, samples=int(sizes.sum()))[0, 0]
    found = outputs._dealt(texts, sizes, rng=np.random.default_rng(3), draws=7)
    orders = np.tile(np.arange(len(texts)), (7, 1))
    orders = [np.arange(len(texts)), *np.random.default_rng(3).permuted(orders, axis=1)]
    expected = [by_loops(np.split(texts[order], ends)) for order in orders]
    np.testing.assert_allclose(found.T, expected, atol=1e-12)


@pytest.mark.parametrize("missing", [(), [(0, 1, 3), (0, 2, 2), (1, 3, 2)]])
def test_chance_is_as_often_below_any_p(missing):
    rng = np.random.default_rng(4)
    p = [output_difference(written(rng, missing=missing), rng=rng, draws=39).p for _ in range(200)]
    # of 200 uniform p-values 20 and 100 are up to 0.1 and 0.5, standard errors 4.2 and 7.1
    assert abs(np.sum(np.array(p) <= 0.1) - 20) <= 4 * 4.2
    assert abs(np.sum(np.array(p) <= 0.5) - 100) <= 4 * 7.1


def test_few_texts_that_differ_are_found_beside_many():
    rng = np.random.default_rng(5)
    vectors = written(rng, samples=40, missing=[(at, 0, 8) for at in range(3)])
    vectors[:, 0, :, 0] += 2.0
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    found = output_difference(vectors, rng=rng, draws=199)
    assert found.p == 1 / 200
    assert found.difference > 0.1


def test_ties_are_ties_in_single_precision():
    """Of 20 ways to deal them two are alike: no p is below 2/20, but for how few were dealt."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        vectors = rng.normal(scale=0.1, size=(1, 2, 3, 8))
        vectors[0, :, :, 0] += np.array([[1.0], [-1.0]])  # nothing is further apart than these are
        vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
        assert output_difference(vectors.astype(np.float32), rng=rng, draws=400).p > 0.05


def test_texts_without_a_vector_are_not_compared():
    found = output_difference(np.zeros((1, 2, 3, 0)), rng=np.random.default_rng(0))
    assert found.texts == 0
    assert np.isnan(found.difference)
