"""Weights on their way to another machine: each file once per machine, piece by piece, never whole in memory."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from filelock import FileLock

from clinometer.errors import ModelError
from clinometer.folders import cache_folder

PIECE = 64 * 2**20  # bytes in one message
_FOLDER = "cluster"  # in the cache folder of a machine: models that came from another


@final
class FileServer:
    """Gives out the files of one model's folder, and of no other."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def files(self) -> dict[str, int]:
        """Return the plain files below the folder, and how long they are."""
        paths = (path for path in sorted(self._folder.rglob("*")) if path.is_file())
        return {path.relative_to(self._folder).as_posix(): path.stat().st_size for path in paths}

    def piece(self, name: str, start: int) -> bytes:
        """Return one piece of a file."""
        if name not in self.files():
            raise ModelError(f"{name!r} is not a file of this model")
        with open(self._folder / name, "rb") as file:
            file.seek(start)
            return file.read(PIECE)


def fetch_from(server: Any, key: str) -> str:
    """Return the folder of a model on this machine; its files are brought here if they are not."""
    import ray

    return str(
        fetched(
            key,
            files=lambda: ray.get(server.files.remote()),
            piece=lambda name, start: ray.get(server.piece.remote(name, start)),
        )
    )


def fetched(key: str, *, files: Callable[[], Mapping[str, int]], piece: Callable[[str, int], bytes]) -> Path:
    """Return the folder of a model on this machine; the first worker that needs it brings it, the others wait.

    `key` has the checksum of the weights, so that a folder is the right one or is not there.
    """
    home = cache_folder() / _FOLDER
    home.mkdir(parents=True, exist_ok=True)
    target = home / key
    with FileLock(home / f"{key}.lock"):
        if target.is_dir():
            return target
        unfinished = home / f".tmp-{secrets.token_hex(8)}"
        try:
            for name, size in files().items():
                place = unfinished / name
                place.parent.mkdir(parents=True, exist_ok=True)
                with open(place, "xb") as file:
                    while file.tell() < size:
                        some = piece(name, file.tell())
                        if not some:
                            raise ModelError(f"{name} was cut short on its way to this machine; try again")
                        file.write(some)
            os.replace(unfinished, target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return target
