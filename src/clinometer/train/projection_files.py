"""A sentiment projection on disk: one safetensors file with its weights and what is known of it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from clinometer.errors import StoreError
from clinometer.train.projection import Projection
from clinometer.train.work import WorkFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedProjection:
    """A projection as it was saved, frozen and on the CPU, with its notes."""

    projection: Projection
    notes: dict[str, Any]


def save_projection(path: Path, projection: Projection, notes: Mapping[str, Any]) -> None:
    """Write a projection and its notes (as JSON has them); the file takes its name when it is whole and synced.

    The same projection and notes give the same bytes.
    """
    weights = {name: weight.detach().cpu().contiguous() for name, weight in projection.state_dict().items()}
    told = json.dumps(dict(notes), sort_keys=True)
    # one entry: several would come in an order that changes from run to run
    header = json.dumps({"notes": told, "checksum": _checksum(weights, told)}, sort_keys=True)
    temporary = path.with_name(f".tmp-{path.name}")
    try:
        with WorkFolder(path).explained("the sentiment projection"):
            with temporary.open("wb") as file:
                file.write(save(weights, metadata={"projection": header}))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load_projection(path: Path) -> SavedProjection:
    """Read what `save_projection` wrote; StoreError for a file that is missing, damaged or something else."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read the sentiment projection {path}: {error.strerror}") from None
    try:
        weights = load(data)
        length = int.from_bytes(data[:8], "little")  # safetensors: the length of its JSON header, then the header
        header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["projection"])
        intact = header["checksum"] == _checksum(weights, header["notes"])
        notes = json.loads(header["notes"])
        with torch.device("meta"):  # no random first weights, which would use up the global generator
            projection = Projection(weights["first.weight"].shape[1])
        projection.load_state_dict(weights, assign=True)
    except (SafetensorError, ValueError, KeyError, TypeError, IndexError, RuntimeError):
        intact = False
    if not intact:
        raise StoreError(f"{path} is damaged or no sentiment projection; remove it to train a new one")
    return SavedProjection(projection=projection.requires_grad_(False).eval(), notes=notes)


def _checksum(weights: Mapping[str, Tensor], notes: str) -> str:
    digest = hashlib.sha256(notes.encode())
    for name, weight in sorted(weights.items()):
        digest.update(f"{name} {tuple(weight.shape)}".encode() + weight.contiguous().numpy().tobytes())
    return digest.hexdigest()
