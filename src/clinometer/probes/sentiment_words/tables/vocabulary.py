"""Which of the listed words a model can be asked about: those that are one token of its vocabulary."""

from __future__ import annotations

from collections.abc import Iterator

from clinometer.probes.sentiment_words.options import LABELS
from clinometer.probes.sentiment_words.view import View
from clinometer.types import Finding


def vocabulary_rows(view: View) -> Iterator[Finding]:
    """Yield the share of the listed words of each class that are one token."""
    words = view.answers.words
    for label in LABELS:
        listed, scorable = words.listed[label], words.scorable[label]
        yield Finding(
            labels={
                "model": view.model,
                "listed_as": label,
                "listed": listed,
                "one_token": scorable,
                "used": len(words.used[label]),
                "shift_test": sum(words.label_of[word] == label for word in words.shift),
            },
            estimate=scorable / listed,
            n=listed,
        )


def dropped_rows(view: View) -> Iterator[Finding]:
    """Yield the words that were passed over, with their score in VADER."""
    for label in LABELS:
        for each in view.answers.words.dropped[label]:
            yield Finding(
                labels={"model": view.model, "listed_as": label, "word": each.word}, estimate=each.score, n=1
            )
