"""Matrix products in float32 on a CPU, by oneDNN.

torch gives products in float32 to MKL, which on processors that are not Intel's uses half of their width. oneDNN,
which torch has for other number formats, uses all of it: on an AMD Zen 5 a layer's products take less than half of
the time. Rounding differs in the last bits, as between any two libraries.

Which of them computes is settled by what torch was built with, never by a race between them: a resumed run must
end in the same bits.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Embedding, Linear, Module, Parameter
from torch.nn import functional as plain
from transformers.pytorch_utils import Conv1D

# Families whose layers do nothing with the matrix of a linear layer but multiply by it, so that it may be kept in
# oneDNN's own order, which nobody else can read. In the others it is only turned round.
_PACKED = {
    *("albert", "bart", "bert", "camembert", "distilbert", "electra", "modernbert", "mpnet", "roberta"),
    *("xlm-roberta", "gpt2", "gpt_neo", "gpt_neox", "gemma", "gemma2", "gemma3_text", "granite", "llama"),
    *("mistral", "olmo", "olmo2", "phi", "phi3", "qwen2", "qwen3", "smollm3", "stablelm"),
}


def product(values: Tensor, weight: Tensor, bias: Tensor | None, *, then_gelu: bool = False) -> Tensor:
    """Return values · weightᵀ + bias, as `torch.nn.functional.linear` does; `weight` may lie in any order.

    With `then_gelu`, return x·Φ(x) of that: oneDNN does it while a value is still at hand.
    """
    if not (weight.is_mkldnn or _for_onednn(values, weight)):
        outcome = plain.linear(values, weight, bias)
        return plain.gelu(outcome) if then_gelu else outcome
    after, kind = ("gelu", "none") if then_gelu else ("none", "")
    return torch.ops.mkldnn._linear_pointwise(values, weight, bias, after, [], kind)  # type: ignore[no-any-return]


@functools.cache
def _has_onednn() -> bool:
    """Tell whether this torch can be asked for oneDNN's products; only tried on x86."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    wanted = ("_linear_pointwise", "_reorder_linear_weight")
    built_in = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return built_in and all(hasattr(torch.ops.mkldnn, name) for name in wanted)


def _for_onednn(*tensors: Tensor) -> bool:
    return (
        _has_onednn()
        and not torch.is_grad_enabled()  # it has no derivative
        and all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors)
    )


class _Linear(Linear):
    def forward(self, input: Tensor) -> Tensor:
        return product(input, self.weight, self.bias)


class _Conv1D(Conv1D):  # type: ignore[misc]
    """GPT-2's layer. Its matrix is turned round: size of the input × size of the output."""

    def forward(self, x: Tensor) -> Tensor:
        return product(x, self.weight if self.weight.is_mkldnn else self.weight.t(), self.bias)


_FASTER: dict[type[Module], type[Module]] = {Linear: _Linear, Conv1D: _Conv1D}


def is_plain(module: Module) -> bool:
    """Tell whether a module is a linear layer and nothing more, whoever computes it.

    A quantised layer is of another class, or its matrix is: that one says that it is float32, and is not.
    """
    return type(module) in (Linear, _Linear) and type(module.weight) is Parameter


def speed_up_products(model: Any) -> None:
    """Let the linear layers of a model on a CPU compute by oneDNN; then it can be asked, but not trained."""
    head = model.get_output_embeddings()
    speed_up_linear_layers(
        model, packed=model.config.model_type in _PACKED, also_read=[] if head is None else [head]
    )


@torch.no_grad()
def speed_up_linear_layers(model: Module, *, packed: bool, also_read: Sequence[Module] = ()) -> None:
    """Do so for whatever has linear layers, and put their matrices into the order that oneDNN reads fastest.

    A matrix that is also looked up row by row, as that of the vocabulary is, stays as it is.
    """
    looked_up = {id(module.weight) for module in model.modules() if isinstance(module, Embedding)}
    looked_up |= {id(module.weight) for module in also_read}
    for module in list(model.modules()):
        faster = _FASTER.get(type(module))  # a subclass may compute something else
        if faster is None or type(weight := module.weight) is not Parameter or not _for_onednn(weight):
            continue
        module.__class__ = faster
        if id(weight) in looked_up:
            continue
        if packed:
            by_output = weight if faster is _Linear else weight.t().contiguous()
            module.weight = Parameter(torch.ops.mkldnn._reorder_linear_weight(by_output), requires_grad=False)
        elif faster is _Linear:
            weight.data = weight.data.t().contiguous().t()
