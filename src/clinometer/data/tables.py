"""CSV and TOML files, read strictly: every complaint names the file, the line and what was expected."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinometer.data.files import Source, read_text
from clinometer.errors import DataError, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvRow:
    """One record of a CSV file, and the line on which it ends."""

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


def read_csv(
    source: Source,
    *,
    columns: Sequence[str],
    optional: Sequence[str] = (),
    others: bool = False,
    delimiter: str = ",",
) -> tuple[CsvRow, ...]:
    """Return the records of a comma-separated file, or a tab-separated one, whose first line names its columns.

    All of `columns` must be there, in any order; an `optional` one that is not there reads as ""; any other is an
    error, unless `others` lets it pass. Spaces around a value are dropped; blank lines are skipped.
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
        raise DataError(f"'{source}' holds only separators; expected a first line '{','.join(columns)}'")
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
            raise DataError(f"{where}: column '{column}' stands twice; expected each once")


def read_toml(source: Source, *, keys: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return a TOML file whose top level has all of `keys`, perhaps `optional` ones, and no other."""
    try:
        table = tomllib.loads(read_text(source))
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"'{source}' is not TOML: {error}; expected lines such as 'key = \"value\"'") from None
    check_keys(f"'{source}'", table, keys=keys, optional=optional)
    return table


def check_keys(where: str, table: Mapping[str, Any], *, keys: Sequence[str], optional: Sequence[str] = ()) -> None:
    """Raise DataError unless the table has all of `keys` and nothing besides them and `optional`."""
    for key in table:
        if key not in keys and key not in optional:
            raise DataError(f"{where}: unknown key '{key}'; {nearest(key, [*keys, *optional])}")
    for key in keys:
        if key not in table:
            raise DataError(f"{where}: no key '{key}'; expected {', '.join(keys)}")
