"""Which requests of a stage are already answered."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from clinometer.store.parts import DamagedPart, IntactPart
from clinometer.store.schema import KEY_BYTES


class Done:
    """The indices of a stage that are recorded and intact, each with the content key of its request.

    Takes 17 bytes for each index up to the highest: an index is an item's place in its stage.
    """

    def __init__(self, parts: Iterable[IntactPart | DamagedPart]) -> None:
        damaged: list[DamagedPart] = []
        indices: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
        keys: list[bytes] = []
        for part in parts:
            if isinstance(part, DamagedPart):
                damaged.append(part)
                continue
            table = part.read(["index", "key"])
            indices.append(table["index"].to_numpy())
            keys.append(b"".join(table["key"].cast(pl.Binary).to_list()))
        self.damaged: tuple[DamagedPart, ...] = tuple(damaged)
        size = max((int(index.max()) + 1 for index in indices if index.size), default=0)
        recorded = np.zeros(size, np.bool_)
        by_index = np.zeros((size, KEY_BYTES), np.uint8)
        for index, key in zip(indices, keys, strict=True):
            recorded[index] = True
            by_index[index] = np.frombuffer(key, np.uint8).reshape(-1, KEY_BYTES)  # a later part overrules
        self._count = int(recorded.sum())
        self._recorded = recorded.tobytes()  # bytes: indexing them is ten times as fast as indexing an array
        self._keys = by_index.tobytes()

    def __len__(self) -> int:
        return self._count

    def matches(self, index: int, key: bytes) -> bool:
        """Tell whether this very request is recorded at this index."""
        if not 0 <= index < len(self._recorded) or not self._recorded[index]:
            return False
        return self._keys[index * KEY_BYTES : (index + 1) * KEY_BYTES] == key
