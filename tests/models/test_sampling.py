"""The draw: from the softmax, and a function of (seed, text, sample, step) alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest

from clinometer.errors import ModelError
from clinometer.models.sampling import draw, levels_of, uniforms


def test_a_draw_worked_by_hand():
    # probabilities 0.1, 0.2, 0.3, 0.4: the left half has 0.3; its left token 1/3 of that, the right half's 3/7
    logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()
    # the number that chooses a half comes last
    cases = {(0.30, 0.29): 0, (0.34, 0.29): 1, (0.42, 0.31): 2, (0.44, 0.31): 3, (0.0, 0.0): 0, (0.999, 0.999): 3}
    numbers = torch.tensor(list(cases))
    assert draw(logits.expand(len(cases), -1), numbers).tolist() == list(cases.values())


def test_what_has_no_probability_is_never_drawn():
    logits = torch.full((1, 9), -torch.inf)
    logits[0, 8] = 3.0  # alone at the end of an odd vocabulary
    for value in (0.0, 0.5, 1 - 2.0**-24):
        assert draw(logits, torch.full((1, levels_of(9)), value)).tolist() == [8]


def test_draws_follow_the_softmax():
    size, n = 37, 40_000  # not a power of two
    logits = torch.linspace(-2.0, 2.0, size)
    numbers = uniforms(seed=1, text="chi square", samples=range(n), steps=1, levels=levels_of(size))[:, 0]
    drawn = draw(logits.expand(n, -1), torch.from_numpy(numbers))
    expected = logits.double().softmax(dim=0).numpy() * n
    assert chisquare(np.bincount(drawn.numpy(), minlength=size), expected * n / expected.sum()).pvalue > 0.01


def test_logits_that_are_not_numbers():
    with pytest.raises(ModelError, match="float32"):
        draw(torch.tensor([[0.0, torch.nan]]), torch.zeros(1, 1))


def test_numbers_are_uniform_and_unrelated():
    numbers = uniforms(seed=0, text="a", samples=range(200), steps=20, levels=5)
    assert numbers.dtype == np.float32
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert kstest(numbers.ravel(), "uniform").pvalue > 0.01
    for axis in range(3):
        a, b = (np.take(numbers, at, axis=axis).ravel() for at in (0, 1))
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.25


def test_a_number_depends_on_its_own_coordinates_alone():
    whole = uniforms(seed=3, text="The man", samples=range(10), steps=8, levels=4)
    part = uniforms(seed=3, text="The man", samples=range(4, 7), steps=5, levels=4)
    assert np.array_equal(whole[4:7, :5], part)
    for other in ({"seed": 4}, {"text": "The woman"}, {"samples": range(10, 20)}):
        given = {"seed": 3, "text": "The man", "samples": range(10), "steps": 8, "levels": 4} | other
        assert not np.isin(uniforms(**given), whole).mean() > 0.01


def test_rounding_errors_hardly_ever_change_a_draw():
    # Logits as a language model of real size gives them, and the same with errors as between two batch sizes.
    rng = np.random.default_rng(0)
    size, n = 50_000, 400
    logits = torch.from_numpy(rng.normal(0, 3, size).astype(np.float32))
    shaken = logits + torch.from_numpy(rng.normal(0, 1e-5, size).astype(np.float32))
    numbers = uniforms(seed=0, text="x", samples=range(n), steps=1, levels=levels_of(size))[:, 0]
    changed = draw(logits.expand(n, -1), torch.from_numpy(numbers)) != draw(
        shaken.expand(n, -1), torch.from_numpy(numbers)
    )
    # one number on the cumulative sum of the whole vocabulary, on average: several in a thousand draws change
    sums, other = (np.cumsum(x.double().softmax(dim=0).numpy()) for x in (logits, shaken))
    same = np.minimum(sums, other)[1:] - np.maximum(sums, other)[:-1]
    assert 1 - same.clip(0).sum() > 1e-3
    assert int(changed.sum()) == 0
