"""The sentiment classifier: a frozen encoder, low-rank changes to its matrices, mean pooling and a small head."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from transformers import BertModel

PAD, CLS, SEP = 0, 101, 102
SENTENCE_ENDS = frozenset((1012, 999, 1029))
LENGTH = 384
# A long review opens with what the film is and closes with the verdict: keep a third from the front.
FRONT = 127


def shorten(ids: list[int]) -> list[int]:
    """Frame token ids with [CLS] and [SEP]; of a long text keep its first 127 tokens and its last 255.

    >>> len(shorten(list(range(1000, 2000))))
    384
    """
    room = LENGTH - 2
    kept = ids if len(ids) <= room else ids[:FRONT] + ids[FRONT - room :]
    return [CLS, *kept, SEP]


class SentimentNet(nn.Module):
    """Gives one logit per text, above zero for positive."""

    def __init__(self, encoder: BertModel) -> None:
        super().__init__()
        width = encoder.config.hidden_size
        self.encoder = encoder
        self.inner = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)
        self.outer = nn.Linear(width, 1)

    def forward(self, ids: Tensor) -> Tensor:
        """Return (rows,) logits of (rows, length) padded ids."""
        real = ids != PAD
        hidden = self.encoder(input_ids=ids, attention_mask=real.long()).last_hidden_state
        weight = real[:, :, None].to(hidden.dtype)
        mean = (hidden * weight).sum(1) / weight.sum(1)
        logits: Tensor = self.outer(self.dropout(nn.functional.gelu(self.inner(self.dropout(mean))))).squeeze(-1)
        return logits


class LowRank(nn.Module):
    """Adds the product of two thin matrices to a weight; starts at no change."""

    def __init__(self, rows: int, columns: int, *, rank: int) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, columns) / columns**0.5)
        self.up = nn.Parameter(torch.zeros(rows, rank))

    def forward(self, weight: Tensor) -> Tensor:
        """Return weight + up · down."""
        return weight + self.up @ self.down


def adapt(net: SentimentNet, *, rank: int) -> None:
    """Freeze the encoder but for its biases and norms, and add a low-rank change to each matrix of its layers."""
    for name, parameter in net.encoder.named_parameters():
        parameter.requires_grad = "layer" in name and parameter.ndim == 1
    for module in net.encoder.encoder.modules():
        if isinstance(module, nn.Linear):
            rows, columns = module.weight.shape
            parametrize.register_parametrization(module, "weight", LowRank(rows, columns, rank=rank))


def adapter_tensors(net: SentimentNet) -> dict[str, Tensor]:
    """Return what was trained, in bf16: all that has to be shipped beside the encoder.

    `encoder.….query.up` (rows, rank) and `….down` (rank, columns) stand for up · down, to be added to the
    weight of that name; everything else replaces what the encoder has, or is the head (`inner`, `outer`).
    """
    return {
        name: parameter.detach().to("cpu", torch.bfloat16).contiguous()
        for name, parameter in _trained(net).items()
    }


def load_adapter(net: SentimentNet, tensors: dict[str, Tensor]) -> None:
    """Put what `adapter_tensors` returned into a net over the same encoder, adapted or not."""
    if not any(name.endswith(".up") for name in _trained(net)):
        adapt(net, rank=next(value.shape[1] for name, value in tensors.items() if name.endswith(".up")))
    trained = _trained(net)
    if trained.keys() != tensors.keys():
        raise ValueError(f"the adapter and the net differ in {sorted(trained.keys() ^ tensors.keys())[:3]}")
    with torch.no_grad():
        for name, parameter in trained.items():
            parameter.copy_(tensors[name])


def _trained(net: SentimentNet) -> dict[str, nn.Parameter]:
    return {
        name.replace("parametrizations.weight.0.", ""): parameter
        for name, parameter in net.named_parameters()
        if parameter.requires_grad
    }
