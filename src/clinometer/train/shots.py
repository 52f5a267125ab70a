"""Which reviews are trained on, which choose the checkpoint, and which test it."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clinometer.data.reviews import Review, choose_reviews
from clinometer.errors import DataError
from clinometer.train.prompts import VERDICTS

_RESERVED = 2000  # per class: as many as the sentiment-words audit asks about at the paper's size
_RESERVED_SEED = 0  # the seed of audits, unless one is given


@dataclass(frozen=True, slots=True, kw_only=True)
class Shots:
    """Reviews of both classes in equal numbers; no text is in two of the three."""

    training: tuple[Review, ...]
    development: tuple[Review, ...]
    test: tuple[Review, ...]


def choose_shots(reviews: Sequence[Review], *, shots: int, test: int, seed: int) -> Shots:
    """Choose `shots` reviews per class to train on, as many to choose the checkpoint, and at most `test` to test.

    Up to 2,000 of each class, and never more than half of them, are reserved: those that an audit with seed 0
    chooses first. So the audit does not ask about what the model was trained on, and every seed is tested alike.
    """
    texts = collections.Counter(label for label, _ in {(review.label, review.text) for review in reviews})
    available = min(texts[verdict] for verdict in VERDICTS)
    if available < 2 * shots + 1:
        found = ", ".join(f"{texts[verdict]:,} {verdict}" for verdict in VERDICTS)
        raise DataError(
            f"found {found} reviews with distinct texts; {shots} shots need {2 * shots + 1} of each: {shots} to"
            f" train on, {shots} to choose the checkpoint and 1 to test; give more reviews or fewer --shots"
        )
    reserve = min(_RESERVED, max(1, min(available // 2, available - 2 * shots)))
    reserved = choose_reviews(reviews, per_class=reserve, seed=_RESERVED_SEED)
    held = {review.text for review in reserved}
    free = [review for review in reviews if review.text not in held]
    chosen = choose_reviews(free, per_class=2 * shots, seed=seed)
    order = np.random.default_rng(seed).permutation(
        2 * shots
    )  # choose_reviews has the sources one after the other
    halves: tuple[list[Review], list[Review]] = ([], [])
    for verdict in VERDICTS:
        of_class = [review for review in chosen if review.label == verdict]
        for place, index in enumerate(order):
            halves[place // shots].append(of_class[index])
    return Shots(
        training=tuple(halves[0]),
        development=tuple(halves[1]),
        test=choose_reviews(reserved, per_class=min(test, reserve), seed=_RESERVED_SEED),
    )
