"""Every random choice of a training as a function of the seed and the place: nothing has to be saved."""

from __future__ import annotations

import contextlib
import random
import zlib
from collections.abc import Iterator

import numpy as np
import torch


def rng_at(seed: int, purpose: str, *place: int) -> np.random.Generator:
    """Return the generator of one purpose ("order", "demonstrations", …) at one place of a training."""
    return np.random.default_rng((seed, zlib.crc32(purpose.encode()), *place))


def seed_at(seed: int, purpose: str, *place: int) -> int:
    """Return a seed for torch, made in the same way."""
    return int(rng_at(seed, purpose, *place).integers(1 << 62))


@contextlib.contextmanager
def own_randomness() -> Iterator[None]:
    """Give back the global generators as they were: dropout and the Trainer leave us no other ones."""
    python, legacy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)
