"""Judgements by people: sheets that raters fill in, how far raters agree, and the list that comes of it."""

from clinometer.annotation.agreement import Agreement, measure_agreement
from clinometer.annotation.collect import items_from_run, read_new_items
from clinometer.annotation.files import refuse_existing, write_new
from clinometer.annotation.items import Item, ItemKind, distinct_items, make_item, shuffled
from clinometer.annotation.merging import Merged, MergedItem, Rule, merge_ratings
from clinometer.annotation.outcomes import merged_csv, ratings_csv, unresolved_csv
from clinometer.annotation.sheets import RatedSheet, read_items, read_sheet, sheet_csv, sheet_kind

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
