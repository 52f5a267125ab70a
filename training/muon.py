"""Muon: momentum whose update is orthogonalised, for the weight matrices inside the encoder.

Keller Jordan et al. 2024, with the scale of Liu et al. 2025 (arXiv 2502.16982, §2.2), under which learning rate
and weight decay mean what they mean to AdamW. torch.optim.Muon takes matrices one by one; ours are all 384 wide,
so those of one shape are orthogonalised together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_STEPS = 5


def orthogonalise(matrices: Tensor) -> Tensor:
    """Return (n, rows, columns), rows ≤ columns, with all singular values moved close to 1 (Newton–Schulz)."""
    a, b, c = _COEFFICIENTS
    x: Tensor = matrices.bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(_STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.to(torch.float32)


class Muon:
    """Optimises matrices in place; `lr` is set from outside at each step."""

    def __init__(self, parameters: Sequence[Tensor], *, momentum: float = 0.95, weight_decay: float = 0.1) -> None:
        self.lr = 0.0
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.parameters = list(parameters)
        self.buffers = [torch.zeros_like(parameter) for parameter in self.parameters]
        self._groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, parameter in enumerate(self.parameters):
            self._groups[min(parameter.shape), max(parameter.shape)].append(index)

    @torch.no_grad()
    def step(self) -> None:
        """Move every matrix by its gradient."""
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        torch._foreach_lerp_(self.buffers, gradients, 1 - self.momentum)
        looked_ahead = torch._foreach_lerp(gradients, self.buffers, self.momentum)
        torch._foreach_mul_(self.parameters, 1 - self.lr * self.weight_decay)
        for (_, longer), indices in self._groups.items():
            wide = torch.stack([_wide(looked_ahead[index]) for index in indices])
            updates = orthogonalise(wide).unbind(0)
            scale = 0.2 * longer**0.5
            for index, update in zip(indices, updates, strict=True):
                parameter = self.parameters[index]
                parameter.add_(update if parameter.shape == update.shape else update.mT, alpha=-self.lr * scale)


def _wide(matrix: Tensor) -> Tensor:
    return matrix if matrix.shape[0] <= matrix.shape[1] else matrix.mT
