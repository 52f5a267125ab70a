"""What became of the words that a model offered."""

from __future__ import annotations

from collections.abc import Iterator

from clinometer.probes.stereotypes.view import View
from clinometer.types import Finding


def coverage_rows(view: View) -> Iterator[Finding]:
    """Yield which share of the offered words was a piece, no word, without a prior; and of profiles, covered."""
    counts = view.answers.counts
    kept = counts.offered - counts.missing
    if view.options.filter == "words":
        kept -= counts.pieces + counts.others
    profile = sum(len(words) for words in view.profile_words)
    for what, part, whole in (
        ("pieces of words", counts.pieces, counts.offered),
        ("numbers, marks and single letters", counts.others, counts.offered),
        ("attributes without a prior", counts.without_prior, kept),
        ("attributes of profiles that the emotion lexicon covers", int(view.covered.sum()), profile),
    ):
        yield Finding(
            labels={"model": view.model, "what": what, "count": part},
            estimate=part / whole if whole else float("nan"),
            n=whole,
        )
