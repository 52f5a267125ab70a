"""In which order the texts of an epoch are read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


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
