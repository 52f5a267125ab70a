"""The sentiment projection: a small network from the hidden states of a language model to sentiment."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

WIDTH = 128


@final
class Projection(nn.Module):
    """A 3-layer perceptron of width 128 that tells positive (1) from negative (0) by a hidden state.

        hidden(x) = ReLU(W₂ ReLU(W₁ x + b₁) + b₂),   logits = W₃ hidden(x) + b₃

    Huang et al. 2020, Reducing Sentiment Bias in Language Models via Counterfactual Evaluation, §4 and appendix B.
    Computed in the precision of its weights, also under autocast.
    """

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.first = nn.Linear(dimensions, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.last = nn.Linear(WIDTH, 2)

    def hidden(self, states: Tensor) -> Tensor:
        """Return the last hidden layer, which the sentiment regulariser compares: (…, d) to (…, 128)."""
        with torch.autocast(states.device.type, enabled=False):
            inner = self.first(states.to(self.first.weight.dtype)).relu()
            return self.second(inner).relu()  # type: ignore[no-any-return]

    def forward(self, states: Tensor) -> Tensor:
        """Return the logits of negative and positive: (…, d) to (…, 2)."""
        hidden = self.hidden(states)
        with torch.autocast(states.device.type, enabled=False):
            return self.last(hidden)  # type: ignore[no-any-return]

    @torch.no_grad()
    def take_in_scaling(self, mean: Tensor, scale: Tensor) -> None:
        """Change the first layer so that it reads x as it read (x − mean) · scale before."""
        weight = self.first.weight.double() * scale.double()
        self.first.bias.copy_(self.first.bias.double() - weight @ mean.double())
        self.first.weight.copy_(weight)
