"""What comes of the raters' work, as files: the merged list, and the items that somebody has to resolve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clinometer.annotation.items import Item, ItemKind
from clinometer.annotation.merging import Merged, MergedItem
from clinometer.annotation.sheets import RatedSheet
from clinometer.data.cells import to_csv


def merged_csv(merged: Merged, sheets: Sequence[RatedSheet], *, kind: ItemKind) -> str:
    """Return the list that an audit reads: each item, its rating, what each rater said, how it was decided.

    `resolved` is empty where all agree, `majority` where more than half do, and `yes` (with the reason after a
    colon) where the raters disagreed and somebody decided.
    """
    context = ("context",) if kind == "sentence" else ()
    columns = (kind, *context, "rating", *(_column(sheet) for sheet in sheets), "resolved")
    return to_csv(
        columns,
        (
            (
                each.item.text,
                *((each.item.context,) if context else ()),
                each.rating,
                *(sheet.ratings.get(each.item.id, "") for sheet in sheets),
                _how(each),
            )
            for each in merged.settled
        ),
    )


def ratings_csv(items: Iterable[Item], sheets: Sequence[RatedSheet], *, kind: ItemKind) -> str:
    """Return what every rater said of every item, settled or not: for audits that average raters."""
    columns = (kind, "context", *(_column(sheet) for sheet in sheets))
    return to_csv(
        columns,
        ((item.text, item.context, *(sheet.ratings.get(item.id, "") for sheet in sheets)) for item in items),
    )


def unresolved_csv(unresolved: Iterable[Item], sheets: Sequence[RatedSheet], *, kind: ItemKind) -> str:
    """Return a sheet of the items to resolve, which shows what each rater said and noted."""
    columns = (
        "id", kind, "context", *(_column(sheet) for sheet in sheets), "raters_notes", "rating", "note",
    )  # fmt: skip
    return to_csv(
        columns,
        (
            (
                item.id,
                item.text,
                item.context,
                *(sheet.ratings.get(item.id, "") for sheet in sheets),
                "; ".join(f"{sheet.rater}: {sheet.notes[item.id]}" for sheet in sheets if item.id in sheet.notes),
                "",
                "",
            )
            for item in unresolved
        ),
    )


def _column(sheet: RatedSheet) -> str:
    return "rater_" + sheet.rater.removeprefix("rater_")


def _how(each: MergedItem) -> str:
    if each.decision == "resolved":
        return f"yes: {each.reason}" if each.reason else "yes"
    return "" if each.decision == "all agree" else "majority"
