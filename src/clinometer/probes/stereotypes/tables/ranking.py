"""The attributes of each group before and after re-ranking by typicality (the paper's Table 2)."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from clinometer.probes.stereotypes.view import View
from clinometer.types import Finding

SHOWN = 10


def ranking_rows(view: View) -> Iterator[Finding]:
    """Yield the first attributes of each group by probability and by typicality, and the share that both have."""
    # the lists come most typical first; equal probabilities in the order of words
    likely = view.lists.sort(["group", "probability", "word"], descending=[False, True, False])
    before, after = (_first(table) for table in (likely, view.lists))
    for number, group in enumerate(view.groups):
        first, second = before.get(number, []), after.get(number, [])
        yield Finding(
            labels={
                "model": view.model,
                "category": group.category,
                "group": group.name,
                "by_probability": ", ".join(first),
                "by_typicality": ", ".join(second),
            },
            estimate=len(set(first) & set(second)) / len(first) if first else float("nan"),
            n=len(first),
        )


def _first(lists: pl.DataFrame) -> dict[int, list[str]]:
    return dict(lists.group_by("group", maintain_order=True).agg(pl.col("word").head(SHOWN)).iter_rows())
