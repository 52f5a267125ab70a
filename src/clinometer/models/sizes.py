"""Whether a model is as large as its files: a configuration may promise a million layers. No torch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clinometer.errors import ModelError

MOST_LAYERS = 10_000  # the deepest that anybody has trained have a thousand
_LAYERS = re.compile(r"(num|n|encoder|decoder)_(\w+_)?layers?|num_layers|n_layers?|num_hidden_groups")
_SIZE = re.compile(r"\w*(size|dim|positions?|position_embeddings|embd|inner|width|d_model|d_ff|experts|heads?)")


def is_plain(path: Path) -> bool:
    """Tell whether a path leads to an ordinary file or a folder, and not to a device or a pipe."""
    return path.is_file() or path.is_dir()


def require_few_layers(config: Mapping[str, Any], *, model: str) -> None:
    """Raise ModelError for more layers than any model has: making them would fill the memory."""
    for name, value in _numbers(config):
        if _LAYERS.fullmatch(name) and not 0 <= value <= MOST_LAYERS:
            raise ModelError(
                f"config.json of {model!r} has {name} = {str(value)[:20]}; expected 0 to {MOST_LAYERS:,}: put "
                "back the one that was saved with the weights"
            )


def largest_size(config: Mapping[str, Any]) -> int:
    """Return the largest number that a configuration gives as a size.

    >>> largest_size({"hidden_size": 32, "text_config": {"vocab_size": 99}, "rope_theta": 1000000})
    99
    """
    return max((value for name, value in _numbers(config) if _SIZE.fullmatch(name)), default=0)


def _numbers(config: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield every number of a configuration with its name, those in tables within it, too."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _numbers(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield str(name), value
