"""Loads a model's weights, safely and completely."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from transformers.utils import logging

from clinometer.errors import ModelError
from clinometer.models.source import ModelSource, torch_dtype
from clinometer.types import ModelSpec


def load_weights(auto_class: Any, source: ModelSource, spec: ModelSpec, device: torch.device) -> Any:
    """Load a model with all of its weights, ready to be asked on the device.

    A weight that the files do not have would be filled with random numbers: that is an error here.
    """
    with _quiet():
        model, report = auto_class.from_pretrained(
            source.folder,
            config=source.config,
            dtype=torch_dtype(spec.dtype, device),
            trust_remote_code=spec.trust_remote_code,
            use_safetensors=True,
            output_loading_info=True,
        )
    if missing := sorted(report["missing_keys"]):
        raise ModelError(
            f"the weights of {source.name!r} lack {len(missing)} parts that {type(model).__name__} needs"
            f" ({', '.join(missing[:3])}{', …' if len(missing) > 3 else ''});"
            " choose a model that was saved with this head"
        )
    return model.to(device).eval()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from printing: what matters in its loading report is raised as an error."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
