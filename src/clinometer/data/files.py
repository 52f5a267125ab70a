"""Reading text files that people wrote: packaged ones and the user's own, both with the same strictness."""

from __future__ import annotations

import gzip
import lzma
import os
import zlib
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable
from pathlib import Path

from clinometer.errors import DataError

Source = str | os.PathLike[str] | Traversable


def packaged(*parts: str) -> Traversable:
    """Return a file that comes with the package, for example `packaged("counterexamples", "card.toml")`."""
    return package_files("clinometer.data").joinpath(*parts)


def read_text(source: Source) -> str:
    """Return the text of a UTF-8 file; raise DataError for one that is missing, empty, binary or not UTF-8.

    A file that ends in .gz or .xz is unpacked. A byte-order mark at the start (spreadsheets write it) is dropped.
    """
    file: Traversable = Path(source) if isinstance(source, str | os.PathLike) else source
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        raise DataError(f"no file '{source}'; give the path of a text file") from None
    except IsADirectoryError:
        raise DataError(f"'{source}' is a folder; give the path of a text file") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"'{source}' cannot be read ({reason}); give a text file that you may read") from None
    raw = _unpacked(source, raw)
    if b"\0" in raw:
        raise DataError(f"'{source}' is a binary file; expected UTF-8 text")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DataError(
            f"'{source}', line {line}: byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8 text"
        ) from None
    if not text.strip():
        raise DataError(f"'{source}' is empty; expected at least one entry")
    return text


def _unpacked(source: Source, raw: bytes) -> bytes:
    name = str(source)
    if not raw or not name.endswith((".gz", ".xz")):
        return raw
    try:
        return gzip.decompress(raw) if name.endswith(".gz") else lzma.decompress(raw)
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise DataError(
            f"'{source}' cannot be unpacked ({error}); give a whole file, or its text without .gz or .xz"
        ) from None
