"""The files that raters work with: written only where none exists, and read back strictly."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clinometer.annotation.items import Item, ItemKind, distinct_items, make_item
from clinometer.data import CsvRow, read_csv, read_text
from clinometer.data.files import to_csv
from clinometer.errors import DataError, nearest
from clinometer.plain import unescaped


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedSheet:
    """What one rater said: ratings and notes by item id; what was left empty is missing."""

    rater: str
    ratings: Mapping[str, str]
    notes: Mapping[str, str]


def sheet_csv(items: Iterable[Item], *, kind: ItemKind) -> str:
    """Return an empty sheet: one row for each item, with room for a rating and a note."""
    columns = ("id", kind, "context", "rating", "note")
    return to_csv(columns, ((item.id, item.text, item.context, "", "") for item in items))


def read_new_items(source: Path, *, kind: ItemKind) -> tuple[Item, ...]:
    """Return the items of a file: a CSV with a column `word` or `sentence`, or text with one item per line."""
    if source.suffix.lower() == ".csv":
        return read_items(source, kind=kind)
    return distinct_items(make_item(kind, line) for line in read_text(source).splitlines())


def read_items(source: Path, *, kind: ItemKind) -> tuple[Item, ...]:
    """Return the items of a sheet in its order, whatever their ratings."""
    return tuple(item for item, _ in _rows(source, kind).values())


def sheet_kind(source: Path) -> ItemKind:
    """Return the kind of a sheet, by its first line; raise DataError when it has neither column or both."""
    header = _header(source)
    cells = {cell for delimiter in ",;\t" for cell in _cells(header, delimiter)}
    if ("word" in cells) == ("sentence" in cells):
        shown = header if len(header) <= 60 else header[:60] + "…"
        raise DataError(f"'{source}', line 1: found '{shown}'; expected a column 'word' or a column 'sentence'")
    return "word" if "word" in cells else "sentence"


def read_sheet(source: Path, *, kind: ItemKind, choices: Sequence[str], items: Iterable[Item]) -> RatedSheet:
    """Return the ratings of a sheet; raise DataError for a rating or an item that does not belong.

    The rater is named by the file. Besides exported sheets, a plain CSV with the columns word,rating (or
    sentence,rating) is read: the id follows from the text. Commas, semicolons and tabs may separate the columns.
    """
    known = {item.id: item for item in items}
    names = {choice.lower(): choice for choice in choices}
    ratings, notes = {}, {}
    for identity, (item, row) in _rows(source, kind, rated=True).items():
        if identity not in known:
            raise row.error(
                f"{kind} '{item.text}' ({identity}) is not one of those to rate",
                f"the {len(known)} {kind}s of the exported sheet (name it with --items)",
            )
        rating = unescaped(row.values["rating"]).lower()
        if rating and rating not in names:
            raise row.error(
                f"rating '{row.values['rating']}'", f"{', '.join(choices)}, or nothing; {nearest(rating, names)}"
            )
        if rating:
            ratings[identity] = names[rating]
        if row.values["note"]:
            notes[identity] = unescaped(row.values["note"])
    return RatedSheet(rater=source.stem, ratings=ratings, notes=notes)


def _rows(source: Path, kind: ItemKind, *, rated: bool = False) -> dict[str, tuple[Item, CsvRow]]:
    """Return the items of a sheet with their rows, by id."""
    rows = read_csv(
        source,
        columns=(kind, "rating") if rated else (kind,),
        optional=("id", "context", "note", *(() if rated else ("rating",))),
        others=True,  # the sheet of unresolved items shows the raters' ratings, too
        delimiter=_delimiter(source, kind),
    )
    found: dict[str, tuple[Item, CsvRow]] = {}
    for row in rows:
        row.text(kind)
        item = make_item(kind, unescaped(row.values[kind]), context=unescaped(row.values["context"]))
        if row.values["id"] not in ("", item.id):
            raise row.error(
                f"the id {row.values['id']} does not belong to the {kind} '{item.text}'",
                "the two as they were exported: sort and change whole rows, and fill in the ratings only",
            )
        if item.id in found:
            raise row.error(f"'{item.text}' again (first in line {found[item.id][1].line})", f"each {kind} once")
        found[item.id] = (item, row)
    return found


def _delimiter(source: Path, kind: ItemKind) -> str:
    """Return what separates the columns: spreadsheets in many countries write semicolons."""
    header = _header(source)
    # read_csv complains about any other
    return next((delimiter for delimiter in ";\t" if kind in _cells(header, delimiter)), ",")


def _header(source: Path) -> str:
    return read_text(source).lstrip().splitlines()[0]


def _cells(line: str, delimiter: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]


def refuse_existing(*paths: Path) -> None:
    """Raise DataError for a path that exists or is given twice, before anything is written."""
    for number, path in enumerate(paths):
        if path.exists() or path in paths[:number]:
            raise DataError(f"'{path}' already exists; give another path: a rater's work may be in it")


def write_new(path: Path, text: str, *, mark: bool = True) -> None:
    """Write a new UTF-8 file; the byte-order mark tells spreadsheets that it is one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8-sig" if mark else "utf-8", newline="") as file:
            file.write(text)
    except FileExistsError:
        refuse_existing(path)
        raise DataError(f"'{path.parent}' is not a folder; give a path in a folder") from None
    except OSError as error:
        raise DataError(
            f"'{path}' cannot be written ({error.strerror or error}); give a path where you may write"
        ) from None
