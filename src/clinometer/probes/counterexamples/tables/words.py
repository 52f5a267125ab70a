"""Which words the model offers, and how much of its probability the lists of gendered words cover."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clinometer.metrics.gendered import FEMALE, MALE, NEITHER
from clinometer.probes.counterexamples.view import View
from clinometer.probes.kit.numbers import Label
from clinometer.types import Finding

SHOWN = 30  # words of each list


def coverage_rows(view: View) -> Iterator[Finding]:
    """Yield the probability among the top k words that belongs to each list, and to neither."""
    lists = {"female": view.measures.female, "male": view.measures.male, "neither": view.measures.neither}
    masses = np.stack(list(lists.values()), axis=-1)
    numbers = view.interval(masses, np.arange(len(masses))).as_share()
    for i, k in enumerate(view.ks):
        for j, name in enumerate(lists):
            yield numbers.finding((i, j), {"model": view.model, "k": k, "list": name})


def word_rows(view: View) -> Iterator[Finding]:
    """Yield the words with the most probability in neither list, and in each list, at the largest k."""
    k = view.ks[-1]
    numbers, logprobs = view.answers.words[:, :k], view.answers.logprobs[:, :k]
    offered = (numbers >= 0) & ~np.isnan(logprobs)
    prompts = np.broadcast_to(np.arange(len(numbers))[:, None], numbers.shape)[offered]
    size = len(view.answers.vocabulary)
    mass = np.bincount(numbers[offered], weights=np.exp(logprobs[offered]), minlength=size) / len(numbers)
    # a word counts once for a prompt, even if it was offered in two spellings
    pairs = np.unique(np.stack([prompts, numbers[offered]]), axis=1)
    counts = np.bincount(pairs[1], minlength=size)
    order = np.lexsort((view.answers.vocabulary, -mass))
    for name, code in (("neither", NEITHER), ("female", FEMALE), ("male", MALE)):
        chosen = order[(view.answers.word_genders[order] == code) & (counts[order] > 0)]
        for rank, word in enumerate(chosen[:SHOWN], start=1):
            labels: dict[str, Label] = {
                "model": view.model,
                "list": name,
                "rank": rank,
                "word": str(view.answers.vocabulary[word]),
            }
            yield Finding(labels=labels, estimate=float(mass[word]), n=int(counts[word]))
