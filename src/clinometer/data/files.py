"""Files that people wrote: text, CSV and TOML, packaged or the user's own, read strictly.

Every complaint names the file, the line and what was expected.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import lzma
import os
import secrets
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import IO, Any

from clinometer import limits
from clinometer.errors import DataError, nearest
from clinometer.plain import escaped

Source = str | os.PathLike[str] | Traversable


def packaged(*parts: str) -> Traversable:
    """Return a file that comes with the package, for example `packaged("counterexamples", "card.toml")`."""
    return package_files("clinometer.data").joinpath(*parts)


def package_folder(name: str) -> Path | None:
    """Return the folder of an installed package without running the package's code; None where it is missing."""
    found = importlib.util.find_spec(name)
    folders = list(found.submodule_search_locations or ()) if found else []
    return Path(folders[0]) if folders else None


def read_text(source: Source) -> str:
    """Return the text of a UTF-8 file; raise DataError for one that is missing, empty, binary or not UTF-8.

    A file that ends in .gz or .xz is unpacked. A byte-order mark at the start (spreadsheets write it) is dropped.
    """
    file: Traversable = Path(source) if isinstance(source, str | os.PathLike) else source
    try:
        raw = _unpacked(file) if isinstance(file, Path) else file.read_bytes()
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise DataError(
            f"'{source}' cannot be unpacked ({error}); give a whole file, or its text without .gz or .xz"
        ) from None
    except FileNotFoundError:
        raise DataError(f"no file '{source}'; give the path of a text file") from None
    except IsADirectoryError:
        raise DataError(f"'{source}' is a folder; give the path of a text file") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"'{source}' cannot be read ({reason}); give a text file that you may read") from None
    if b"\0" in raw:
        raise DataError(f"'{source}' is a binary file; expected UTF-8 text")
    if raw.count(b"\n") > limits.LINES:
        raise DataError(f"'{source}' has more than {limits.LINES:,} lines; give the part of it that is needed")
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


def _unpacked(file: Path) -> bytes:
    """Return the bytes of a file, unpacked if it ends in .gz or .xz, within the limits of a text."""
    if file.suffix not in (".gz", ".xz"):
        return limits.read_limited(file, most=limits.TEXT)
    with limits.open_plain(file) as packed:
        if not os.fstat(packed.fileno()).st_size:
            return b""
        return io.BufferedReader(limits.Unpacked(packed, suffix=file.suffix, most=limits.TEXT)).read()


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvRow:
    """One row of a CSV file, and the line on which it ends."""

    source: Source
    line: int
    values: Mapping[str, str]

    def error(self, found: str, expected: str) -> DataError:
        """Return the error to raise when a value of this row is wrong."""
        return DataError(f"'{self.source}', line {self.line}: {found}; expected {expected}")

    def text(self, column: str) -> str:
        """Return the value of a column that must not be empty."""
        value = self.values[column]
        if not value:
            raise self.error(f"nothing in column '{column}'", "a value")
        return value

    def choice(self, column: str, choices: Collection[str]) -> str:
        """Return the value of a column that must be one of the choices, in lower case."""
        value = self.values[column].lower()
        if value not in choices:
            raise self.error(f"{column} '{self.values[column]}'", " or ".join(sorted(choices)))
        return value

    def number(self, column: str, *, low: float, high: float) -> float:
        """Return the value of a column that must be a number from `low` to `high`."""
        try:
            value = float(self.values[column])
        except ValueError:
            value = float("nan")
        if not low <= value <= high:  # also true of NaN
            raise self.error(f"{column} '{self.values[column]}'", f"a number from {low:g} to {high:g}")
        return value

    def check_new(self, name: str, lines: dict[str, int], expected: str) -> None:
        """Raise where an earlier row has the same name, whatever its case; `lines` remembers the line of each."""
        if name.lower() in lines:
            raise self.error(f"'{name}' again (first in line {lines[name.lower()]})", expected)
        lines[name.lower()] = self.line


def read_csv(
    source: Source,
    *,
    columns: Sequence[str],
    optional: Sequence[str] = (),
    others: bool = False,
    delimiter: str = ",",
) -> tuple[CsvRow, ...]:
    """Return the rows of a comma- or tab-separated file whose first line names its columns.

    All of `columns` must be present, in any order; a missing `optional` one reads as ""; any other is an error
    unless `others` allows it. Spaces around a value are dropped; blank lines are skipped.
    """
    reader = csv.reader(io.StringIO(read_text(source), newline=""), strict=True, delimiter=delimiter)
    separated = "tab" if delimiter == "\t" else "comma"
    records: list[tuple[int, list[str]]] = []
    try:
        for record in reader:
            values = [value.strip() for value in record]
            if any(values):
                records.append((reader.line_num, values))
    except csv.Error as error:
        raise DataError(
            f"'{source}', line {reader.line_num}: {error}; expected {separated}-separated values"
        ) from None
    if not records:
        raise DataError(f"'{source}' contains only separators; expected a first line '{','.join(columns)}'")
    (header_line, header), *body = records
    _check_header(source, header_line, header, columns, optional, separated, others=others)
    if not body:
        raise DataError(f"'{source}' has column names but no rows; expected at least one row")
    absent = dict.fromkeys(optional, "")
    rows = []
    for line, values in body:
        if len(values) != len(header):
            raise DataError(
                f"'{source}', line {line}: {len(values)} values; expected {len(header)} ({','.join(header)})"
            )
        rows.append(CsvRow(source=source, line=line, values=absent | dict(zip(header, values, strict=True))))
    return tuple(rows)


def _check_header(
    source: Source,
    line: int,
    header: Sequence[str],
    columns: Sequence[str],
    optional: Sequence[str],
    separated: str,
    *,
    others: bool,
) -> None:
    where = f"'{source}', line {line}"
    missing = [column for column in columns if column not in header]
    if missing:
        found = ",".join(header)
        found = found if len(found) <= 60 else found[:60] + "…"
        raise DataError(
            f"{where}: no column '{missing[0]}' in '{found}'; expected a first line '{','.join(columns)}'"
            + ("" if separated == "comma" else f", {separated}-separated")
        )
    valid = [*columns, *optional]
    for column in header:
        if column not in valid:
            if others:
                continue
            raise DataError(f"{where}: unknown column '{column}'; {nearest(column, valid)}")
        if header.count(column) > 1:
            raise DataError(f"{where}: column '{column}' appears twice; expected each once")


def read_toml(source: Source, *, keys: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return a TOML file whose top level has all of `keys`, perhaps `optional` ones, and no other."""
    try:
        table = limits.parse_toml(read_text(source))
    except ValueError as error:
        raise DataError(f"'{source}' is not TOML: {error}; expected lines such as 'key = \"value\"'") from None
    check_keys(f"'{source}'", table, keys=keys, optional=optional)
    return table


def check_keys(where: str, table: Mapping[str, Any], *, keys: Sequence[str], optional: Sequence[str] = ()) -> None:
    """Raise DataError unless the table has all of `keys`, and no others but the `optional` ones."""
    for key in table:
        if key not in keys and key not in optional:
            raise DataError(f"{where}: unknown key '{key}'; {nearest(key, [*keys, *optional])}")
    for key in keys:
        if key not in table:
            raise DataError(f"{where}: no key '{key}'; expected {', '.join(keys)}")


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return CSV text with every cell escaped and the line ends that spreadsheets write."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([escaped(cell) for cell in row] for row in rows)
    return file.getvalue()


@contextmanager
def write_whole(path: Path) -> Iterator[IO[str]]:
    """Open a text file that takes its place only when complete; after a failure, an older file is still there."""
    temporary = path.with_name(f".unfinished-{secrets.token_hex(8)}")
    try:
        with open(temporary, "x", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Where packaged data comes from, and on what terms it may be used."""

    title: str
    source: str
    licence: str
    retrieved: str
    notes: str


def load_card(folder: str) -> Card:
    """Return the card of a packaged data folder.

    >>> load_card("counterexamples").title
    'Occupations, knowledge sentences and gendered words'
    """
    file = packaged(folder, "card.toml")
    fields = ("title", "source", "licence", "retrieved", "notes")
    table = read_toml(file, keys=fields)
    for field in fields:
        if not isinstance(table[field], str) or not table[field].strip():
            raise DataError(f"'{file}': {field} is not text; expected a sentence")
    return Card(**{field: table[field].strip() for field in fields})
