"""Whether a configuration describes a model of about the size of its weights, before memory is taken for it."""

from __future__ import annotations

from typing import Any

import torch
from safetensors import safe_open
from transformers import AutoModel

from clinometer.errors import ModelError
from clinometer.models.files import weight_files
from clinometer.models.providers.local import ModelSource
from clinometer.models.sizes import largest_size

_TIMES = 16  # packed weights hold several numbers in one
_ANYWAY = 10_000_000  # numbers that any model may have beside its weights


def require_fitting_size(auto_class: Any, source: ModelSource, *, trust_remote_code: bool) -> None:
    """Raise ModelError where config.json asks for far more numbers than the weights have.

    What the weights lack is filled with random numbers before it is reported as missing: a number too many in
    config.json could fill the memory of the machine.
    """
    longest, elements = 0, 0
    for path in weight_files(source.folder):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118
                shape = file.get_slice(name).get_shape()
                longest = max(longest, *shape, 0) if shape else longest
                elements += torch.Size(shape).numel()
    if largest_size(source.config.to_dict()) <= longest:  # every size in it is that of a tensor
        return
    make = getattr(auto_class, "from_config", AutoModel.from_config)
    with torch.device("meta"):
        model = make(source.config, trust_remote_code=trust_remote_code)
    wanted = sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))
    if wanted > _TIMES * elements + _ANYWAY:
        raise ModelError(
            f"config.json of {source.name!r} describes {wanted:,} numbers, the weights have {elements:,};"
            " put back the config.json that was saved with them"
        )
