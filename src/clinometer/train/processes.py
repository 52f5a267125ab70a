"""The processes that compute a training together.

`accelerate launch` starts several processes that train one model together, one GPU each. Each computes its part of
every step; the first one alone writes files. Without a launcher there is one process.
"""

from __future__ import annotations

import os

import torch
from torch import Tensor, distributed

from clinometer.errors import ModelError


def process_count() -> int:
    """Return how many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def process_place() -> tuple[int, ...]:
    """Return what distinguishes this process from the first one, for seeds; empty for the first."""
    number = int(os.environ.get("RANK", "0"))
    return (number,) if number else ()


def is_main_process() -> bool:
    """Tell whether this process writes the files."""
    return not process_place()


def wait_for_all() -> None:
    """Wait until every process has got this far."""
    if process_count() > 1:
        from accelerate import PartialState

        PartialState().wait_for_everyone()


def join_processes() -> None:
    """Meet the other processes and take the GPU that is this one's.

    Refuses what splits a model over several GPUs: every process trains a copy of the whole model.
    """
    for variable, name in (("ACCELERATE_USE_FSDP", "FSDP"), ("ACCELERATE_USE_DEEPSPEED", "DeepSpeed")):
        if os.environ.get(variable, "false").lower() in ("1", "true"):
            raise ModelError(f"{name} is not supported here; launch with --multi_gpu, one copy of the model a GPU")
    if process_count() > 1:
        from accelerate import PartialState

        # without a GPU accelerate must be told so, or it thinks that this is the only process
        PartialState(cpu=not torch.cuda.is_available())


def mean_over_processes(part: Tensor) -> Tensor:
    """Return the mean of a tensor over all processes; each of them must ask for it."""
    if process_count() > 1:
        part = part.clone()
        distributed.all_reduce(part)
        part = part / process_count()
    return part


def end_processes() -> None:
    """Let the other processes go: what follows is done by the first one alone."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
