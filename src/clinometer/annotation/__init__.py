"""Judgements by people: sheets that raters fill in, how far raters agree, and the merged list."""

from clinometer.annotation.items import Item, ItemKind, distinct_items, items_from_run, make_item, shuffled
from clinometer.annotation.merging import (
    Agreement,
    Merged,
    MergedItem,
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

__all__ = [
    "Agreement",
    "Item",
    "ItemKind",
    "Merged",
    "MergedItem",
    "RatedSheet",
    "Rule",
    "distinct_items",
    "items_from_run",
    "make_item",
    "measure_agreement",
    "merge_ratings",
    "merged_csv",
    "ratings_csv",
    "read_items",
    "read_new_items",
    "read_sheet",
    "refuse_existing",
    "sheet_csv",
    "sheet_kind",
    "shuffled",
    "unresolved_csv",
    "write_new",
]
