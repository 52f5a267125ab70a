"""How much a file may ask of this machine, and how files are read within that.

A file that somebody sent may be a device that never ends, a pipe that nobody writes to, a few kilobytes that
unpack to gigabytes, or brackets within brackets. Each is refused with one sentence, before it costs much.
"""

from __future__ import annotations

import errno
import gzip
import io
import json
import lzma
import os
import re
import stat
import tomllib
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, cast

DOCUMENT = 64_000_000  # bytes of a spec, a configuration, an index
TEXT = 512_000_000  # bytes of a word list, a file of reviews, …, after unpacking
LINES = 2_000_000  # of such a file: as objects they take a hundred times their bytes
UNPACKED = 16_000_000  # bytes that any packed file may unpack to; more only …
RATIO = 64  # … up to this many times its own size: text packs to a tenth, rarely to a fortieth
VALUES = 64_000_000  # of one column of a Parquet file, which can repeat a value in no room at all

_FLAGS = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_PIECE = 1 << 20
_LONG_KEY = re.compile(r"(?<![\w-])(?:[\w-]++\s*+\.\s*+){64}")


def open_plain(path: Path) -> IO[bytes]:
    """Open an ordinary file for reading; raise OSError for a pipe, a device or a folder, without waiting."""
    descriptor = os.open(path, os.O_RDONLY | _FLAGS)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not an ordinary file")
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_limited(path: Path, *, most: int = DOCUMENT) -> bytes:
    """Return the bytes of an ordinary file; raise OSError for any other, and for more than `most` bytes."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size  # before anything is read: a file with holes takes no disk
        data = b"" if size > most else file.read(most + 1)
    if size > most or len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    return data


class Unpacked(io.RawIOBase):
    """An unpacked .gz or .xz file that ends in OSError where it unpacks to far more than a text would."""

    def __init__(self, packed: IO[bytes], *, suffix: str, most: int | None = None) -> None:
        size = os.fstat(packed.fileno()).st_size
        self._most = max(UNPACKED, RATIO * size) if most is None else min(most, max(UNPACKED, RATIO * size))
        self._done = 0
        # whoever opened the packed file closes it
        opened = gzip.open(packed) if suffix == ".gz" else lzma.open(packed)  # noqa: SIM115
        self._file = cast(IO[bytes], opened)

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes, and count them."""
        piece = self._file.read(min(len(buffer), _PIECE))
        self._done += len(piece)
        if self._done > self._most:
            raise OSError(errno.EFBIG, f"it unpacks to more than {self._most:,} bytes")
        buffer[: len(piece)] = piece
        return len(piece)


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; raise ValueError for any that is not one, or too deep."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("brackets within brackets, too deep to read") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Return the table of a TOML text; raise ValueError for any that is not one, too deep, or with a huge number.

    >>> parse_toml("a = 1")
    {'a': 1}
    """
    if _LONG_KEY.search(text):  # the time to read such a key grows with its square
        raise ValueError("a key of more than 64 parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("brackets within brackets, too deep to read") from None


def require_reasonable_size(metadata: Any) -> None:
    """Raise OSError for a Parquet file that would unpack to too much, by pyarrow's metadata of it."""
    unpacked, values = 0, [0]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = [group.column(place) for place in range(group.num_columns)]
        unpacked += sum(column.total_uncompressed_size for column in columns)
        values = [
            sum(pair) for pair in zip_longest(values, (column.num_values for column in columns), fillvalue=0)
        ]
    if unpacked > TEXT:
        raise OSError(errno.EFBIG, f"it unpacks to {unpacked:,} bytes, more than {TEXT:,}")
    if max(values) > VALUES:
        raise OSError(errno.EFBIG, f"it has a column of {max(values):,} values, more than {VALUES:,}")
