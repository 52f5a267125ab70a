"""A model's files: which ones it is loaded from, and the checksums that identify them. No torch."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path

from clinometer.errors import ModelError, reason
from clinometer.limits import parse_json, parse_toml, read_limited

WEIGHTS, WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
CARD = "card.toml"  # beside the weights of a checkpoint of ours; its table [tuning] becomes `ModelInfo.tuning`

_VOCABULARY_FILES = re.compile(r"(tokenizer|tekken)\.json|(vocab|merges).*|.*\.(model|codes|tiktoken)")
_TOKENIZER_SETTINGS = re.compile(r"(tokenizer_config|special_tokens|added_tokens|chat_template).*")

# Checksums of this process, by how the files looked: gigabytes need not be read twice.
_known: dict[tuple[Path | None, tuple[tuple[str, int, int, int], ...]], str] = {}
# A file written again this soon (in nanoseconds) may keep its time: clocks of file systems tick slowly.
_TOO_FRESH = 100_000_000


def checksum(*files: Path, below: Path | None = None) -> str:
    """Return the SHA-256 of files, one after another; with `below`, of their paths below that folder as well.

    Files are read once per process: again only when the size, time or inode of one of them has changed.
    """
    begun = time.time_ns()
    looks = tuple(map(_looks, files))
    if found := _known.get((below, looks)):
        return found
    digest = hashlib.sha256()
    for path in files:
        if below is not None:
            digest.update(path.relative_to(below).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    if all(begun - modified > _TOO_FRESH for *_, modified in looks):
        _known[below, looks] = digest.hexdigest()
    return digest.hexdigest()


def _looks(path: Path) -> tuple[str, int, int, int]:
    status = path.stat()
    return str(path), status.st_ino, status.st_size, status.st_mtime_ns


def weight_files(folder: Path) -> list[Path]:
    """Return the files that a model's weights are loaded from, by name.

    That is model.safetensors; or the parts that model.safetensors.index.json names; or, in a folder with neither,
    every .safetensors file. What is in folders below (earlier checkpoints, exports) is not loaded.
    """
    whole, index = folder / WEIGHTS, folder / WEIGHTS_INDEX
    if whole.is_file():
        return [whole]
    if not index.is_file():
        return sorted(folder.glob("*.safetensors"))
    try:
        names = {str(name) for name in parse_json(read_limited(index))["weight_map"].values()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{str(index)!r} does not say in which files the weights are ({reason(error)}); save the model again"
        ) from error
    return [folder / name for name in sorted(names)]


def weights_checksum(folder: Path) -> str:
    """Return the SHA-256 of the weights: of `weight_files`, one after another."""
    return checksum(*weight_files(folder))


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the files that a model's tokenizer is loaded from, by name."""
    patterns = (_VOCABULARY_FILES, _TOKENIZER_SETTINGS)
    files = [path for path in folder.iterdir() if any(pattern.fullmatch(path.name) for pattern in patterns)]
    return sorted(path for path in files if path.is_file())


def tokenizer_checksum(folder: Path) -> str:
    """Return the SHA-256 of the tokenizer files, names included."""
    return checksum(*tokenizer_files(folder), below=folder)


def has_vocabulary(folder: Path) -> bool:
    """Tell whether a tokenizer's vocabulary is there; without one transformers makes up an empty tokenizer."""
    return any(_VOCABULARY_FILES.fullmatch(path.name) and path.is_file() for path in folder.iterdir())


def has_chat_template(folder: Path) -> bool:
    """Tell whether a tokenizer says how a conversation is written: a model with it was taught to answer."""
    if any((folder / name).is_file() for name in ("chat_template.jinja", "chat_template.json")):
        return True
    try:
        settings = parse_json(read_limited(folder / "tokenizer_config.json"))
    except (OSError, ValueError):  # whatever is wrong with it is told when the tokenizer is loaded
        return False
    return isinstance(settings, dict) and bool(settings.get("chat_template"))


def config_checksum(folder: Path) -> str:
    """Return the SHA-256 of config.json: with another number of heads, the same weights answer otherwise."""
    return checksum(folder / "config.json")


def identifying_settings(folder: Path, *, own_code: bool) -> dict[str, str]:
    """Return what a model's files add to `ModelInfo.settings`; with `own_code`, its Python files, too."""
    settings = {"config": config_checksum(folder)}
    if own_code:
        settings["own_code"] = checksum(*sorted(folder.rglob("*.py")), below=folder)
    return settings


def tuning_of(folder: Path) -> dict[str, str]:
    """Return what the card of a checkpoint says about how it was made; empty for a model not tuned here."""
    try:
        card = parse_toml(read_limited(folder / CARD).decode())
    except (OSError, ValueError):  # somebody else's file of that name says nothing about a tuning of ours
        return {}
    table = card.get("tuning")
    return {str(key): str(value) for key, value in table.items()} if isinstance(table, dict) else {}
