"""Loads a model's weights, safely and completely."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers.utils import logging

from clinometer.errors import ModelError
from clinometer.models.reasons import reason
from clinometer.models.source import ModelSource, torch_dtype, weight_files
from clinometer.types import ModelSpec


def load_weights(auto_class: Any, source: ModelSource, spec: ModelSpec, device: torch.device) -> Any:
    """Load a model with all of its weights, ready to be asked on the device.

    A weight that the files do not have, or have in another shape, would be filled with random numbers: that is an
    error here.
    """
    dtype = torch_dtype(spec.dtype, device)
    _require_sound_files(source)
    try:
        with _quiet():
            model, report = auto_class.from_pretrained(
                source.folder,
                config=source.config,
                dtype=dtype,
                trust_remote_code=spec.trust_remote_code,
                use_safetensors=True,
                ignore_mismatched_sizes=True,  # they are in the report, by name
                output_loading_info=True,
            )
    except MemoryError:
        raise
    except Exception as error:  # a configuration that makes no model makes transformers raise anything
        raise ModelError(
            f"no model can be made of config.json and the weights of {source.name!r} ({reason(error)});"
            " check that config.json is the one that was saved with the weights"
        ) from error
    if misfits := sorted(report["mismatched_keys"]):
        shapes = [f"{name}: {_shape(saved)}, not {_shape(wanted)}" for name, saved, wanted in misfits[:3]]
        raise ModelError(
            f"config.json of {source.name!r} does not fit the weights, {len(misfits)} of which have another shape"
            f" than it says ({'; '.join(shapes)}{'; …' if len(misfits) > 3 else ''});"
            " put back the config.json that was saved with them"
        )
    if missing := sorted(report["missing_keys"]):
        raise ModelError(
            f"the weights of {source.name!r} lack {len(missing)} parts that {type(model).__name__} needs"
            f" ({', '.join(missing[:3])}{', …' if len(missing) > 3 else ''});"
            " choose a model that was saved with this head"
        )
    return model.to(device).eval()


def _require_sound_files(source: ModelSource) -> None:
    """Read the header of every file, so that one that is cut short is named."""
    for path in weight_files(source.folder):
        try:
            with safe_open(path, framework="pt"):
                pass
        except (SafetensorError, OSError) as error:
            raise ModelError(
                f"the weights of {source.name!r} cannot be read: {path.name} is missing, cut short or damaged"
                f" ({reason(error)}); copy or download the model again"
            ) from error


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape))


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
