"""How far raters agree, one rating out of several, and the files that come of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from clinometer.annotation.items import Item, ItemKind
from clinometer.annotation.sheets import RatedSheet
from clinometer.data.files import to_csv
from clinometer.errors import DataError
from clinometer.stats import RaterPair, pairwise_kappa

Rule = Literal["majority", "unanimous"]
Decision = Literal["all agree", "majority", "resolved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Every pair of raters, and the items that each rater left out."""

    pairs: tuple[RaterPair, ...]
    missing: Mapping[str, tuple[Item, ...]]  # rater -> items; only raters who left any


def measure_agreement(items: Sequence[Item], sheets: Sequence[RatedSheet]) -> Agreement:
    """Return Cohen's kappa of every pair of raters over the items, and what is missing."""
    missing = {
        sheet.rater: tuple(item for item in items if item.id not in sheet.ratings)
        for sheet in sheets
        if len(sheet.ratings) < len(items)
    }
    by_rater = {sheet.rater: [sheet.ratings.get(item.id) for item in items] for sheet in sheets}
    return Agreement(pairs=pairwise_kappa(by_rater), missing=missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedItem:
    """The final rating of an item, and how it was decided."""

    item: Item
    rating: str
    decision: Decision
    reason: str = ""  # given when a disagreement was resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Items with one rating, and items that still need somebody to decide."""

    settled: tuple[MergedItem, ...]
    unresolved: tuple[Item, ...]


def merge_ratings(
    items: Sequence[Item],
    sheets: Sequence[RatedSheet],
    *,
    rule: Rule = "majority",
    resolved: RatedSheet | None = None,
) -> Merged:
    """Give each item the rating of all its raters, or (`rule="majority"`) of more than half of them.

    An item that fewer than two raters judged is unresolved, even if that one was sure. `resolved` decides items
    that would be unresolved; it is an error if it names one on which the rule has decided.
    """
    settled: list[MergedItem] = []
    unresolved: list[Item] = []
    for item in items:
        votes = Counter(sheet.ratings[item.id] for sheet in sheets if item.id in sheet.ratings)
        rating = _winner(votes, rule)
        decision = None if resolved is None else resolved.ratings.get(item.id)
        if rating is not None:
            if decision is not None:
                raise DataError(
                    f"'{item.text}' is among the resolved items, but its raters have decided on '{rating}'; "
                    "remove it from that file"
                )
            how: Decision = "all agree" if len(votes) == 1 else "majority"
            settled.append(MergedItem(item=item, rating=rating, decision=how))
        elif resolved is not None and decision is not None:
            reason = resolved.notes.get(item.id, "")
            settled.append(MergedItem(item=item, rating=decision, decision="resolved", reason=reason))
        else:
            unresolved.append(item)
    return Merged(settled=tuple(settled), unresolved=tuple(unresolved))


def _winner(votes: Counter[str], rule: Rule) -> str | None:
    if votes.total() < 2:
        return None
    [(rating, count)] = votes.most_common(1)
    needed = votes.total() if rule == "unanimous" else votes.total() // 2 + 1
    return rating if count >= needed else None


def merged_csv(merged: Merged, sheets: Sequence[RatedSheet], *, kind: ItemKind) -> str:
    """Return the list that an audit reads: each item, its rating, what each rater said, how it was decided.

    `resolved` is empty where all agree, `majority` where more than half do, and `yes` (with the reason after a
    colon) where the raters disagreed and somebody decided.
    """
    with_context = kind == "sentence"
    columns = (kind, *(("context",) if with_context else ()), "rating", *map(_column, sheets), "resolved")
    rows = []
    for each in merged.settled:
        item = (each.item.text, *((each.item.context,) if with_context else ()))
        rows.append((*item, each.rating, *_ratings(each.item, sheets), _how(each)))
    return to_csv(columns, rows)


def ratings_csv(items: Iterable[Item], sheets: Sequence[RatedSheet], *, kind: ItemKind) -> str:
    """Return what every rater said of every item, settled or not: for audits that average raters."""
    columns = (kind, "context", *map(_column, sheets))
    return to_csv(columns, ((item.text, item.context, *_ratings(item, sheets)) for item in items))


def unresolved_csv(unresolved: Iterable[Item], sheets: Sequence[RatedSheet], *, kind: ItemKind) -> str:
    """Return a sheet of the items to resolve, which shows what each rater said and noted."""
    columns = ("id", kind, "context", *map(_column, sheets), "raters_notes", "rating", "note")
    rows = []
    for item in unresolved:
        notes = "; ".join(f"{sheet.rater}: {sheet.notes[item.id]}" for sheet in sheets if item.id in sheet.notes)
        rows.append((item.id, item.text, item.context, *_ratings(item, sheets), notes, "", ""))
    return to_csv(columns, rows)


def _column(sheet: RatedSheet) -> str:
    return "rater_" + sheet.rater.removeprefix("rater_")


def _ratings(item: Item, sheets: Sequence[RatedSheet]) -> tuple[str, ...]:
    return tuple(sheet.ratings.get(item.id, "") for sheet in sheets)


def _how(each: MergedItem) -> str:
    if each.decision == "resolved":
        return f"yes: {each.reason}" if each.reason else "yes"
    return "" if each.decision == "all agree" else "majority"
