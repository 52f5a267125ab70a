"""A sheet for raters, from a run or a file; and raters' sheets, read back and merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clinometer.annotation.items import Item, ItemKind, items_from_run, shuffled
from clinometer.annotation.merging import (
    Agreement,
    Merged,
    Rule,
    measure_agreement,
    merge_ratings,
    merged_csv,
    ratings_csv,
    unresolved_csv,
)
from clinometer.annotation.sheets import (
    RatedSheet,
    read_items,
    read_new_items,
    read_sheet,
    refuse_existing,
    sheet_csv,
    sheet_kind,
    write_new,
)
from clinometer.data import RATINGS, packaged, read_text
from clinometer.errors import DataError
from clinometer.store import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetRequest:
    """What to rate, and where the sheet goes."""

    source: Path  # a run folder, or a text or CSV file
    out: Path
    kind: ItemKind = "word"
    choices: str = ""  # the ratings, separated by commas; "": ours, for words
    guideline: Path | None = None
    probe: str = ""  # of a run
    stage: str = ""
    model: str = ""
    without: Path | None = None  # a list of what is rated already
    limit: int = 0  # how many at most; 0: all
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSheet:
    """A sheet that was written, and the guideline beside it."""

    items: int
    choices: tuple[str, ...]
    guideline: Path


def write_sheet(request: SheetRequest) -> WrittenSheet:
    """Write a sheet in random order, with a guideline beside it; DataError where there is nothing to rate."""
    kind = request.kind
    names = choices_of(request.choices, kind)
    text_beside = _guideline(request, names)
    beside = request.out.with_name(f"{request.out.stem}.guideline.md")
    refuse_existing(request.out, beside)
    items = _items(request)
    if request.without is not None:
        rated = {item.id for item in read_items(request.without, kind=kind)}
        items = [item for item in items if item.id not in rated]
    if not items:
        raise DataError(f"'{request.source}' has no {kind}s to rate; give another source, or leave out --without")
    if request.limit and kind == "word":  # the most probable ones
        items = items[: request.limit]
    items = shuffled(items, seed=request.seed)[: request.limit or None]
    write_new(request.out, sheet_csv(items, kind=kind))
    write_new(beside, text_beside, mark=False)
    return WrittenSheet(items=len(items), choices=names, guideline=beside)


def _items(request: SheetRequest) -> Sequence[Item]:
    chosen = {"probe": request.probe, "stage": request.stage, "model": request.model}
    if request.source.is_dir():
        return items_from_run(RunFolder.open(request.source), kind=request.kind, **chosen)
    if given := [name for name, value in chosen.items() if value]:
        raise DataError(f"--{given[0]} chooses from a run, and '{request.source}' is not a folder; leave it out")
    return read_new_items(request.source, kind=request.kind)


def choices_of(given: str, kind: ItemKind) -> tuple[str, ...]:
    """Return the ratings to choose from; DataError for fewer than two different ones."""
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    if not given and kind == "word":
        return RATINGS
    if len({name.lower() for name in names}) < max(2, len(names)):
        found = f"--choices {given!r}" if given else "no --choices"
        raise DataError(
            f"found {found}; give two or more different ratings, such as --choices relevant,irrelevant"
        )
    return names


def _guideline(request: SheetRequest, names: Sequence[str]) -> str:
    if request.guideline is not None:
        return read_text(request.guideline)
    if request.kind == "word" and not request.choices:
        return read_text(packaged("stigma", "guideline.md"))
    return (
        f"# How to rate a {request.kind}\n\nWrite one of these into the column `rating`: {', '.join(names)}.\n"
        "Judge on your own. Rate every item; if you are not sure, decide, and say so in the column `note`.\n"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingsRequest:
    """Sheets of two or more raters, and where what comes of them goes."""

    sheets: tuple[Path, ...]
    choices: str = ""
    items: Path | None = None  # the sheet as it was exported; None: the first rater's
    rule: Rule = "majority"
    resolved: Path | None = None  # the items to resolve, filled in
    unresolved: Path | None = None  # where to write the items to resolve …
    ratings: Path | None = None  # … what each rater said …
    out: Path | None = None  # … and the merged list


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """What raters said, how far they agree, and what follows for each item."""

    kind: ItemKind
    items: tuple[Item, ...]
    sheets: tuple[RatedSheet, ...]
    agreement: Agreement
    merged: Merged


def read_ratings(request: RatingsRequest) -> Ratings:
    """Read the sheets and merge them; everything is checked before anything is written."""
    sheets = request.sheets
    if len(sheets) < 2:
        raise DataError("found one sheet; give the sheets of two or more raters")
    raters = [sheet.stem for sheet in sheets]
    if repeated := [name for name in raters if raters.count(name) > 1]:
        raise DataError(
            f"two sheets are called '{repeated[0]}'; a sheet's file name is its rater's name: rename one"
        )
    refuse_existing(*(path for path in (request.unresolved, request.out, request.ratings) if path is not None))
    kind = sheet_kind(sheets[0])
    names = choices_of(request.choices, kind)
    items = read_items(request.items or sheets[0], kind=kind)
    rated = tuple(read_sheet(sheet, kind=kind, choices=names, items=items) for sheet in sheets)
    decided = read_sheet(request.resolved, kind=kind, choices=names, items=items) if request.resolved else None
    return Ratings(
        kind=kind,
        items=items,
        sheets=rated,
        agreement=measure_agreement(items, rated),
        merged=merge_ratings(items, rated, rule=request.rule, resolved=decided),
    )


def write_ratings(request: RatingsRequest, found: Ratings) -> Iterator[tuple[str, Path]]:
    """Write the files that were asked for; yield what each is, as soon as it is there."""
    kind, merged = found.kind, found.merged
    if request.unresolved is not None and merged.unresolved:
        write_new(request.unresolved, unresolved_csv(merged.unresolved, found.sheets, kind=kind))
        yield "to resolve", request.unresolved
    if request.ratings is not None:
        write_new(request.ratings, ratings_csv(found.items, found.sheets, kind=kind))
        yield "ratings", request.ratings
    if request.out is not None:
        if not merged.settled:
            raise DataError("the raters agree on no item; there is nothing to write")
        write_new(request.out, merged_csv(merged, found.sheets, kind=kind))
        yield "list", request.out
