"""Every random choice of a training as a function of the seed and the place: no generator has to be saved."""

from __future__ import annotations

import contextlib
import random
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
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


def batched_order(
    lengths: npt.NDArray[np.int64], *, batch: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return the texts in random order, except that the texts of a batch are of about the same length.

    A batch is as wide as its longest text: among texts of all lengths half of it can be padding. So the texts are
    sorted within blocks of 50 batches, and then the batches are shuffled.
    """
    shuffled = rng.permutation(len(lengths))
    blocks = [shuffled[at : at + 50 * batch] for at in range(0, len(shuffled), 50 * batch)]
    grouped = np.concatenate([block[np.argsort(lengths[block], kind="stable")] for block in blocks])
    full = len(grouped) // batch * batch
    batches = rng.permutation(grouped[:full].reshape(-1, batch))  # rows change places; the last, small batch stays
    return np.concatenate([batches.reshape(-1), grouped[full:]])
