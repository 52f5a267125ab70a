"""The attributes of each group before and after re-ranking by typicality (the paper's Table 2)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from clinometer.metrics.stereotypes import gold_ranks
from clinometer.probes.kit.numbers import Label
from clinometer.probes.stereotypes.recall import Gold
from clinometer.probes.stereotypes.tables.listing import listed
from clinometer.probes.stereotypes.view import View
from clinometer.types import Finding

SHOWN = 10


def ranking_rows(view: View) -> Iterator[Finding]:
    """Yield the first attributes of each group by probability and by typicality, and the share that both have."""
    # the lists come most typical first; equal probabilities in the order of words
    likely = view.lists.sort(["group", "probability", "word"], descending=[False, True, False])
    before, after = (_first(table) for table in (likely, view.lists))
    for number, group in enumerate(view.groups):
        labels: dict[str, Label] = {"model": view.model, "category": group.category, "group": group.name}
        yield _compared(labels, before.get(number, []), after.get(number, []))


def prompt_ranking_rows(view: View, gold: Gold) -> Iterator[Finding]:
    """Yield the same for each prompt of the human data set, and where its human stereotypes stand."""
    of_prompts = view.answers.attributes.group_by("index", maintain_order=True)
    before, after = (
        dict(of_prompts.agg(pl.col("word").sort_by(ranking)).iter_rows()) for ranking in ("before", "after")
    )
    for number, question in enumerate(view.questions):
        if question not in gold.attributes:
            continue
        probable, typical = before.get(number, []), after.get(number, [])
        (places,) = gold_ranks({"": typical}, {"": gold.attributes[question]}).values()
        found = sorted((place, word) for word, place in places.items() if math.isfinite(place))
        labels: dict[str, Label] = {
            "model": view.model,
            "category": question.group.category,
            "group": question.group.name,
            "prompt": question.text,
            "human_found": listed([f"{word} ({place:.0f})" for place, word in found]),
            "human_missed": listed([word for word, place in places.items() if math.isinf(place)]),
        }
        yield _compared(labels, probable[:SHOWN], typical[:SHOWN])


def _compared(labels: dict[str, Label], probable: list[str], typical: list[str]) -> Finding:
    return Finding(
        labels={**labels, "by_probability": ", ".join(probable), "by_typicality": ", ".join(typical)},
        estimate=len(set(probable) & set(typical)) / len(probable) if probable else math.nan,
        n=len(probable),
    )


def _first(lists: pl.DataFrame) -> dict[int, list[str]]:
    return dict(lists.group_by("group", maintain_order=True).agg(pl.col("word").head(SHOWN)).iter_rows())
