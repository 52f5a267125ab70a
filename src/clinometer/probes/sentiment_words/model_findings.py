"""What the answers of one model come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from clinometer.probes.sentiment_words.tables.counts import count_rows, verification_rows
from clinometer.probes.sentiment_words.tables.methods import scatter_rows, top_words_rows
from clinometer.probes.sentiment_words.tables.sentiment import accuracy_rows, curve_rows, sense_rows
from clinometer.probes.sentiment_words.tables.variants import variant_rows
from clinometer.probes.sentiment_words.tables.vocabulary import dropped_rows, vocabulary_rows
from clinometer.probes.sentiment_words.tables.words import (
    association_rows,
    relative_rows,
    shift_by_k_rows,
    shift_rows,
)
from clinometer.probes.sentiment_words.view import View
from clinometer.types import Finding


def model_rows(view: View) -> Mapping[str, list[Finding]]:
    """Return the rows of one model for each table that is made model by model."""
    rows: dict[str, Iterable[Finding]] = {
        "sense": sense_rows(view),
        "accuracy": accuracy_rows(view),
        "curves": curve_rows(view),
        "association": association_rows(view),
        "shift": shift_rows(view),
        "relative_shift": relative_rows(view),
        "shift_by_k": shift_by_k_rows(view),
        "biased_words": count_rows(view) if view.measured else (),
        "verification": verification_rows(view),
        "both_tests": scatter_rows(view),
        "top_words": top_words_rows(view),
        "variants": variant_rows(view),
        "vocabulary": vocabulary_rows(view),
        "dropped_words": dropped_rows(view),
    }
    return {name: list(each) for name, each in rows.items()}


def mark_interpretable(rows: Iterable[Finding], views: Mapping[str, View]) -> list[Finding]:
    """Return the rows with a label that says whether their numbers can be interpreted.

    That takes a sense of sentiment in every model that a row names (or in all), with the template and the label
    words that it names; a comparison with the main ones takes both.
    """
    marked = []
    for row in rows:
        names = [str(row.labels[name]) for name in ("model", "tuned") if row.labels.get(name) in views]
        asked = [(str(row.labels.get("template", "")) or None, str(row.labels.get("labels", "")) or None)]
        if "changed_words" in row.labels:
            asked.append((None, None))
        sensed = all(views[name].interpretable(*each) for name in names or views for each in asked)
        marked.append(replace(row, labels={**row.labels, "interpretable": "yes" if sensed else "no"}))
    return marked
