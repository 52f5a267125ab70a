"""Several raters' judgements made into one, and the items on which that fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from clinometer.annotation.items import Item
from clinometer.annotation.sheets import RatedSheet
from clinometer.errors import DataError

Rule = Literal["majority", "unanimous"]
Decision = Literal["all agree", "majority", "resolved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedItem:
    """The one rating of an item, and how it came about."""

    item: Item
    rating: str
    decision: Decision
    reason: str = ""  # what was said when a disagreement was resolved


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

    An item that fewer than two raters judged is unresolved, however sure the one was. `resolved` decides items
    that would be unresolved; it is an error if it names one on which the rule has decided.
    """
    settled: list[MergedItem] = []
    unresolved: list[Item] = []
    decided: Mapping[str, str] = resolved.ratings if resolved else {}
    for item in items:
        votes = Counter(sheet.ratings[item.id] for sheet in sheets if item.id in sheet.ratings)
        rating = _winner(votes, rule)
        if rating is not None:
            if item.id in decided:
                raise DataError(
                    f"'{item.text}' is among the resolved items, but its raters have decided on '{rating}'; "
                    "take it out of that file"
                )
            settled.append(
                MergedItem(item=item, rating=rating, decision="all agree" if len(votes) == 1 else "majority")
            )
        elif item.id in decided and resolved is not None:
            reason = resolved.notes.get(item.id, "")
            settled.append(MergedItem(item=item, rating=decided[item.id], decision="resolved", reason=reason))
        else:
            unresolved.append(item)
    return Merged(settled=tuple(settled), unresolved=tuple(unresolved))


def _winner(votes: Counter[str], rule: Rule) -> str | None:
    if votes.total() < 2:
        return None
    [(rating, count)] = votes.most_common(1)
    needed = votes.total() if rule == "unanimous" else votes.total() // 2 + 1
    return rating if count >= needed else None
