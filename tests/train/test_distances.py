"""The cosine distance: the formula in numpy, its gradient, and vectors without a direction."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from clinometer.train.regularisers import cosine_distance


def by_hand(a, b):
    """1 − a·b/(‖a‖‖b‖), one pair at a time, in float64."""
    distances = []
    for one, other in zip(a.astype(np.float64), b.astype(np.float64), strict=True):
        product = sum(x * y for x, y in zip(one, other, strict=True))
        lengths = math.sqrt(sum(x * x for x in one)) * math.sqrt(sum(y * y for y in other))
        distances.append(1 - product / lengths)
    return np.array(distances)


@pytest.mark.parametrize("size", [1e-3, 1.0, 800.0])
def test_it_is_the_formula(size):
    rng = np.random.default_rng(0)
    a = (rng.normal(size=(50, 128)) * size).astype(np.float32)
    b = (a * 0.9 + rng.normal(size=(50, 128)) * size * 0.2).astype(np.float32)
    found = cosine_distance(torch.tensor(a), torch.tensor(b))
    assert found.shape == (50,)
    np.testing.assert_allclose(found.numpy(), by_hand(a, b), atol=1e-6)


def test_pairs_worked_by_hand():
    a = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [3.0, 4.0]])
    b = torch.tensor([[5.0, 0.0], [-2.0, -2.0], [-2.0, 1.0], [4.0, 3.0]])
    # same direction 0; opposite 2; orthogonal 1; 1 − 24/25
    assert cosine_distance(a, b).tolist() == pytest.approx([0.0, 2.0, 1.0, 0.04], abs=1e-6)


def test_the_gradient_is_right():
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(4, 6, dtype=torch.float64, generator=generator, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(cosine_distance, (a, b))
    short = (a.detach() * 1e-3).requires_grad_()
    assert torch.autograd.gradcheck(cosine_distance, (short, b), eps=1e-9, atol=1e-3)


@pytest.mark.parametrize("nothing", [0.0, 1e-30])
def test_vectors_without_a_direction_have_a_distance_and_a_finite_gradient(nothing):
    a = torch.tensor([[nothing, 0.0], [nothing, 0.0], [1.0, 2.0]], requires_grad=True)
    b = torch.tensor([[0.0, nothing], [1.0, 1.0], [0.0, 0.0]], requires_grad=True)
    distances = cosine_distance(a, b)
    assert distances.tolist() == [0.0, 1.0, 1.0]  # both none: equal; one: orthogonal
    distances.sum().backward()
    assert a.grad.isfinite().all()
    assert b.grad.isfinite().all()
    assert a.grad[0].tolist() == [0.0, 0.0]  # two that are equal do not pull


def test_half_precision_is_computed_in_float32():
    rng = np.random.default_rng(1)
    a = torch.tensor(rng.normal(size=(20, 128)), dtype=torch.bfloat16)
    b = (a + torch.tensor(rng.normal(size=(20, 128)) * 0.05)).to(torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = cosine_distance(a, b)
    assert found.dtype == torch.float32
    # distances near 0.001: bfloat16, whose step below 1 is 0.004, would give 0
    np.testing.assert_allclose(found.numpy(), by_hand(a.float().numpy(), b.float().numpy()), atol=1e-6)
