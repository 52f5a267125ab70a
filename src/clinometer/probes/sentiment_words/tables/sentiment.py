"""Whether the model senses the sentiment of reviews: Figures 3 and 4, and the accuracy of its labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from clinometer.probes.sentiment_words.sense import NEGATIVE, POSITIVE, accuracy_finding
from clinometer.probes.sentiment_words.view import View
from clinometer.types import Finding

POINTS = 200  # of a curve, at most


def sense_rows(view: View) -> Iterator[Finding]:
    """Yield the mean of positive minus negative words in both classes of reviews, and between the classes."""
    for template, sense in view.senses.items():
        for name, row in sense.means.items():
            yield replace(row, labels={"model": view.model, "template": template, "reviews": name})


def accuracy_rows(view: View) -> Iterator[Finding]:
    """Yield the share of reviews that get their label, by template, label words, class and source."""
    answers = view.answers
    everything = np.ones(len(answers.positive), dtype=np.bool_)
    classes = {"all reviews": everything, POSITIVE: answers.positive, NEGATIVE: ~answers.positive}
    sources = {"all": everything}
    names = np.unique(answers.source)
    if len(names) > 1:
        sources |= {str(name): answers.source == name for name in names}
    for template in view.senses:
        for pair in answers.words.pairs:
            for source, of_source in sources.items():
                for name, of_class in classes.items():
                    labels = {"model": view.model, "template": template, "labels": pair.name}
                    found = accuracy_finding(answers, template, pair.name, of_source & of_class)
                    yield replace(found, labels={**labels, "source": source, "reviews": name})


def curve_rows(view: View) -> Iterator[Finding]:
    """Yield the reviews of each class in order of their difference: the curves of Figures 3 and 4."""
    for template, sense in view.senses.items():
        for name, chosen in ((POSITIVE, view.answers.positive), (NEGATIVE, ~view.answers.positive)):
            values = np.sort(sense.difference[chosen])
            places = np.unique(np.linspace(0, len(values) - 1, num=min(POINTS, len(values))).round().astype(int))
            for place in places:
                labels: dict[str, str | int | float] = {
                    "model": view.model,
                    "template": template,
                    "reviews": name,
                    "share_of_reviews": round((float(place) + 0.5) / len(values), 6),
                }
                yield Finding(labels=labels, estimate=float(values[place]), n=1)
