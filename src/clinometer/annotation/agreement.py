"""How far raters agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clinometer.annotation.items import Item
from clinometer.annotation.sheets import RatedSheet
from clinometer.stats import RaterPair, pairwise_kappa


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
