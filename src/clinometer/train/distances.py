"""How far apart the vectors of a text and its counterfactual are."""

from __future__ import annotations

import torch
from torch import Tensor

_NOTHING = 1e-24  # squared length below which a vector has no direction; keeps gradients, of order 1/‖a‖, finite


def cosine_distance(a: Tensor, b: Tensor) -> Tensor:
    r"""Return the cosine distance of each pair of rows.

        d(a, b) = 1 − a·b / (‖a‖ ‖b‖)

    Huang et al. 2020, Reducing Sentiment Bias in Language Models via Counterfactual Evaluation, §4. A hidden layer
    with ReLU can be all zeros, where the formula is 0/0. Two zero vectors are equal, so their distance is 0; a
    zero vector shares no direction with any other, so its distance to one is 1, as if they were orthogonal.
    Computed in float32 at least, also where autocast makes the vectors bfloat16: close vectors differ by less than
    its rounding.

    Args:
        a: of shape (n, d).
        b: of shape (n, d).

    Returns:
        distances from 0 to 2, of shape (n,).

    >>> a, b = torch.tensor([[1.0, 0.0], [3.0, 4.0]]), torch.tensor([[0.0, 2.0], [4.0, 3.0]])
    >>> [round(distance, 3) for distance in cosine_distance(a, b).tolist()]
    [1.0, 0.04]
    """
    a, b = (vectors.to(torch.promote_types(vectors.dtype, torch.float32)) for vectors in (a, b))
    square_a, square_b = (a * a).sum(-1), (b * b).sum(-1)
    none_a, none_b = square_a < _NOTHING, square_b < _NOTHING
    # 1 in place of a zero length, before the root: the root's gradient at 0 is infinite, and times 0 it is NaN
    lengths = square_a.masked_fill(none_a, 1.0).sqrt() * square_b.masked_fill(none_b, 1.0).sqrt()
    return (1 - (a * b).sum(-1) / lengths).masked_fill(none_a & none_b, 0.0)
