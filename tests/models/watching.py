"""Watches which matrices are multiplied, whichever library does it."""

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = {"aten::addmm", "aten::mm", "aten::linear", "mkldnn::_linear_pointwise"}


class WatchedProducts(TorchDispatchMode):
    """Collects (rows, columns) of the outcome of every product with a matrix, and who computed it."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[tuple[int, int]] = []
        self.computed_by: set[str] = set()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        outcome = operation(*args, **(kwargs or {}))
        if operation._schema.name in PRODUCTS:
            assert isinstance(outcome, Tensor)
            self.computed_by.add(operation._schema.name)
            self.shapes.append((outcome.shape[:-1].numel(), outcome.shape[-1]))
        return outcome
