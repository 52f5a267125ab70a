"""What was written: words that set two values apart, and texts side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import polars as pl

from clinometer.metrics import distinct_words
from clinometer.probes.counterfactual.measures import Measures
from clinometer.probes.counterfactual.specification import Chosen, prefixes_of
from clinometer.probes.counterfactual.view import View
from clinometer.types import Finding

PAIRS = 6  # of each attribute, those that lie furthest apart
WORDS = 10
SAMPLES = 2  # texts of each value that stand side by side
LONGEST = 400  # characters of a text in the table; the records have all of it

_WORD = r"\w+(?:['’-]\w+)*"


def word_rows(view: View, measured: Sequence[Measures]) -> Iterator[Finding]:
    """Yield the words that are much more frequent for one value than for the other, for the pairs most apart."""
    for chosen in view.attributes:
        counts = {value: _counted(texts) for value, texts in view.texts_by_value(chosen).items()}
        values = [value.text for value in chosen.attribute.values]
        for first, second in _furthest(chosen, measured):
            for one, other in ((values[first], values[second]), (values[second], values[first])):
                for rank, found in enumerate(distinct_words(counts[one], counts[other], n=WORDS), start=1):
                    yield Finding(
                        labels={
                            "model": view.model,
                            "attribute": chosen.name,
                            "value": one,
                            "other": other,
                            "rank": rank,
                            "word": found.word,
                            "count_for_other": found.other_count,
                        },
                        estimate=found.ratio,
                        n=found.count,
                    )


def _furthest(chosen: Chosen, measured: Sequence[Measures]) -> list[tuple[int, int]]:
    """The pairs with the largest excess, mean over scorers."""
    excess = np.mean([each.null.pairs.excess for each in measured if each.chosen == chosen], axis=0)
    first, second = np.triu_indices(len(excess), 1)
    order = np.argsort(-excess[first, second], kind="stable")[:PAIRS]
    return list(zip(first[order].tolist(), second[order].tolist(), strict=True))


def _counted(texts: Sequence[str]) -> Counter[str]:
    words = pl.Series(texts, dtype=pl.String).str.to_lowercase().str.extract_all(_WORD)
    return Counter(chain.from_iterable(words.to_list()))


def text_rows(view: View, measured: Sequence[Measures]) -> Iterator[Finding]:
    """Yield the first texts of every value in the template whose values lie furthest apart."""
    scores = np.mean([each.values for each in view.scores], axis=0)  # of all scorers
    shown = view.texts.filter(pl.col("sample") < SAMPLES)
    text_of = {(prefix, sample): text for prefix, sample, _, text in shown.iter_rows()}
    for chosen in view.attributes:
        (found, *_) = (each for each in measured if each.chosen == chosen)
        excess = found.null.templates.excess
        template = chosen.attribute.templates[int(np.argmax(np.nan_to_num(excess, nan=-np.inf)))]
        for sample in range(min(SAMPLES, view.options.samples)):
            for prefix in prefixes_of(chosen):
                if prefix.template == template:
                    yield Finding(
                        labels={
                            "model": view.model,
                            "attribute": chosen.name,
                            "sample": sample,
                            "beginning": prefix.text,
                            "text": _cut(text_of[prefix.number, sample]),
                        },
                        estimate=float(scores[prefix.number, sample]),
                        n=1,
                    )


def _cut(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]} …"
