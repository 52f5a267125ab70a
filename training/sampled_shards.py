"""Token ids in shards that travel: xz files of a few MiB each, and a list of their checksums."""

from __future__ import annotations

import hashlib
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np

LISTED = "sampled.json"
_TOKEN = np.dtype("<u2")


def write_shard(folder: Path, number: int, tokens: np.ndarray) -> dict[str, Any]:
    """Write a shard and return its line of the list."""
    ids = tokens.astype(_TOKEN)
    # Little is gained by a higher preset, and a lower one is four times as fast.
    packed = lzma.compress(ids.tobytes(), preset=1)
    path = folder / f"sampled-{number:03}.xz"
    path.with_suffix(".part").write_bytes(packed)
    path.with_suffix(".part").replace(path)
    return {
        "file": path.name,
        "tokens": len(ids),
        "bytes": len(packed),
        "sha256": hashlib.sha256(packed).hexdigest(),
    }


def read_shards(folder: Path) -> np.ndarray:
    """Return the token ids of all shards on the list; ValueError names one that is missing or damaged."""
    parts = []
    for shard in json.loads((folder / LISTED).read_text(encoding="utf-8"))["shards"].values():
        path = folder / shard["file"]
        packed = path.read_bytes() if path.exists() else b""
        if hashlib.sha256(packed).hexdigest() != shard["sha256"]:
            raise ValueError(f"{path} is {'damaged' if packed else 'missing'}: sample it again, or fetch it again")
        parts.append(np.frombuffer(lzma.decompress(packed), dtype=_TOKEN))
    return np.concatenate(parts).astype(np.uint16)


class Shards:
    """The list of a folder's shards, written again after each; one that was made with other options is refused."""

    def __init__(self, folder: Path, made_with: dict[str, object]) -> None:
        self.path = folder / LISTED
        self.made_with = made_with
        self.shards: dict[str, dict[str, Any]] = {}
        if not self.path.exists():
            return
        listed = json.loads(self.path.read_text(encoding="utf-8"))
        if differ := {key for key in made_with if listed["made_with"].get(key) != made_with[key]}:
            raise ValueError(f"{folder} was begun with another {', '.join(sorted(differ))}: give another --out")
        for number, shard in listed["shards"].items():
            path = folder / shard["file"]
            # a shard that was lost or damaged is drawn again
            if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == shard["sha256"]:
                self.shards[number] = shard

    @property
    def tokens(self) -> int:
        """How many tokens there are."""
        return sum(shard["tokens"] for shard in self.shards.values())

    def add(self, number: int, shard: dict[str, Any]) -> None:
        """Put a shard on the list, and write it."""
        self.shards[str(number)] = shard
        content = {"made_with": self.made_with, "tokens": self.tokens}
        ordered = {key: self.shards[key] for key in sorted(self.shards, key=int)}
        self.path.with_suffix(".part").write_text(
            json.dumps(content | {"shards": ordered}, indent=1) + "\n", encoding="utf-8"
        )
        self.path.with_suffix(".part").replace(self.path)
