"""Moves numbers to a device and back without waiting for what it is doing.

A plain copy to a GPU waits until everything before it is done, and then the GPU waits for Python. Copies from and
to pinned memory take their place in the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def send(values: Any, device: torch.device, dtype: torch.dtype = torch.long) -> Tensor:
    """Put numbers on the device, without waiting for what it is doing."""
    numbers = torch.as_tensor(values, dtype=dtype)
    return numbers.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else numbers.to(device)


def fetch(values: Tensor) -> Callable[[], Tensor]:
    """Begin to copy values from the device; what is returned waits for them, and for nothing begun later."""
    if values.device.type != "cuda":
        return values.cpu
    copy = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    copy.copy_(values, non_blocking=True)
    copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
    copied.record(torch.cuda.current_stream(values.device))  # of its own GPU, which need not be the current one

    def wait() -> Tensor:
        copied.synchronize()
        return copy

    return wait
