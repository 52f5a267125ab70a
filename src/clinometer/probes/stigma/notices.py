"""What a reader must know before believing the numbers of the stigma audit."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

import numpy as np

from clinometer.data import read_text
from clinometer.data.stigma_prompts import load_prompts
from clinometer.probes.kit.before_after import tuned_notices
from clinometer.probes.protocol import Plan
from clinometer.probes.stigma.attitudes import ALL_MASKED, UNRATED, MaskedAnswers, MaskedView
from clinometer.probes.stigma.chat import ChatView
from clinometer.probes.stigma.classes import ClassifierView
from clinometer.probes.stigma.groups import FEWEST, Bools
from clinometer.probes.stigma.options import Options
from clinometer.probes.stigma.roster import Roster, roster_of
from clinometer.probes.stigma.scale import REFUSAL, UNCLEAR
from clinometer.probes.stigma.tables.coverage import ENOUGH
from clinometer.types import Finding, ModelInfo, Notice

MANY_REFUSALS = 0.2  # share of answers off the scale from which the scores speak for a part of them only


def notices(
    plans: Sequence[Plan],
    ratings: Mapping[str, str],
    answers: Sequence[MaskedAnswers],
    masked: Sequence[MaskedView],
    classifiers: Sequence[ClassifierView],
    chats: Sequence[ChatView],
    rows: Mapping[str, Sequence[Finding]],
) -> Iterator[Notice]:
    """Yield what holds for all models, then what holds for each."""
    options: Options = plans[0].options
    roster = roster_of(options.chosen_conditions())
    yield from _sizes(roster)
    yield from _tuned([plan.model for plan in plans], masked)
    if answers:
        yield from _asked(options)
        yield _words(options, ratings)
    for each in answers:
        yield from _coverage(each, options)
    if classifiers:
        yield Notice(
            level="info",
            text=(
                "A statement such as 'They are people who have diabetes.' holds no opinion. What a classifier "
                "makes of it is the classifier's own lean, and its training texts decide that; it is not a "
                "measurement of the people named, nor of what the sentence says."
            ),
        )
    for view in classifiers:
        yield from _always(view)
    for chat in chats:
        yield from _answers(chat, options)
    if (masked or classifiers) and not (masked and classifiers):
        lacking = "a classifier" if masked else "a masked model"
        yield _info(f"The correlation of masked models with classifiers needs both in one run; add {lacking}.")
    if "correlation" in rows and rows["correlation"] and np.isnan(rows["correlation"][0].estimate):
        yield _warning("The correlation cannot be computed: one of its two measures is the same everywhere.")


def _tuned(models: Sequence[ModelInfo], masked: Sequence[MaskedView]) -> Iterator[Notice]:
    yield from tuned_notices(models)
    tuned = [view.model for view in masked if view.tuned]
    if tuned and masked[0].model == ALL_MASKED:
        yield _info(f"'{ALL_MASKED}' leaves out what was tuned from a model of this run: {', '.join(tuned)}.")


def _sizes(roster: Roster) -> Iterator[Notice]:
    stigmatized, other = (int(members.sum()) for members in roster.members().values())
    yield _info(
        f"{stigmatized} stigmatized and {other} other conditions, in {len(roster.wordings)} wordings. They were "
        "listed for the United States; results speak for these conditions and these sentences."
    )
    for count, name in ((stigmatized, "stigmatized"), (other, "other")):
        if count < FEWEST:
            yield _warning(
                f"Only {count} {name} condition{'' if count == 1 else 's'}: with fewer than {FEWEST} there is no "
                "interval of the difference and no test."
            )


def _asked(options: Options) -> Iterator[Notice]:
    every = load_prompts().social
    for name, chosen, full in (
        ("templates", options.templates, {prompt.template for prompt in every}),
        ("social distances", options.distances, {prompt.distance for prompt in every}),
    ):
        if len(chosen) < len(full):
            yield _info(
                f"Only {len(chosen)} of {len(full)} {name} asked ({', '.join(chosen)}): the paper averages all of "
                "them, and each moves the result. The standard profile asks them all."
            )
    if len(options.distances) < FEWEST:
        yield _warning(
            f"With fewer than {FEWEST} social distances no condition has an interval of its own, and the baseline "
            "has none."
        )


def _words(options: Options, ratings: Mapping[str, str]) -> Notice:
    counts = Counter(ratings.values())
    source = "the built-in list"
    if options.ratings_file:
        digest = hashlib.sha256(read_text(options.ratings_file).encode()).hexdigest()
        # the name alone: a run may lie in another folder when its findings are recomputed
        source = f"'{PurePath(options.ratings_file).name}' (SHA-256 of its text: {digest})"
    listed = ", ".join(f"{counts[name]} {name}" for name in ("positive", "negative", "neutral", "irrelevant"))
    return _info(
        f"Words are rated by {source}: {listed}. The {options.top_k} most probable words of a blank are read; "
        "irrelevant and unrated ones are left out of the ratio."
    )


def _coverage(answers: MaskedAnswers, options: Options) -> Iterator[Notice]:
    coverage = answers.coverage  # (templates, wordings, distances)
    missing = int(np.isnan(coverage).sum())
    if missing:
        yield _warning(
            f"{answers.model}: {missing} of {coverage.size} answers have a probability that is not a number; they "
            "are left out."
        )
    nothing = int(np.isnan(answers.negative).sum()) - missing
    if nothing:
        yield _warning(
            f"{answers.model}: at {nothing} of {coverage.size} prompts no word read is rated and relevant; they "
            "have no negative attitude and are left out."
        )
    below = coverage < ENOUGH  # a missing answer is not below
    if below.any():
        unrated = [each.word for each in answers.words if each.listed == UNRATED][:8]
        more = f" The most probable unrated words: {', '.join(unrated)}." if unrated else ""
        yield _warning(
            f"{answers.model}: rated and relevant words hold {np.nanmean(coverage):.2f} of the probability on "
            f"average, and less than {ENOUGH} at {below.sum():,} of {coverage.size:,} prompts (most often in "
            f"{_most_often(below, options)}). There the negative attitude speaks for the smaller part of what the "
            f"model would say (in the paper the words read hold at least {ENOUGH}).{more}"
        )


def _most_often(below: Bools, options: Options) -> str:
    """Return the template and social distance with the most such prompts, and their share."""
    shares = below.mean(axis=1)  # (templates, distances)
    template, distance = np.unravel_index(int(shares.argmax()), shares.shape)
    share = shares[template, distance]
    return f"'{options.templates[template]}', '{options.distances[distance]}': {share:.0%}"


def _always(view: ClassifierView) -> Iterator[Notice]:
    missing = int(np.isnan(view.negative).sum())
    if missing:
        yield _warning(
            f"{view.model}: {missing} of {view.negative.size} sentences have no outcome; they are left out."
        )
    share = float(np.nanmean(view.negative)) if missing < view.negative.size else np.nan
    for extreme, word in ((0.0, "no sentence"), (1.0, "every sentence")):
        if share == extreme:
            yield _warning(
                f"{view.model}: {word} comes out negative, so it tells no condition from another; in the "
                "correlation it adds the same to each."
            )


def _answers(view: ChatView, options: Options) -> Iterator[Notice]:
    asked = sum(int(members.sum()) for members in view.roster.members().values())
    if options.chat_conditions:
        stigmatized, other = (int(members.sum()) for members in view.roster.members().values())
        yield _info(
            f"{view.model} was asked about {stigmatized} stigmatized and {other} other conditions, drawn by the "
            "seed (chat_conditions); the standard profile asks about all."
        )
    total = view.counts.sum()
    off = {name: view.counts[..., view.readings.index(name)].sum() / total for name in (REFUSAL, UNCLEAR)}
    if sum(off.values()) > MANY_REFUSALS:
        yield _warning(
            f"{view.model}: {off[REFUSAL]:.0%} of {int(total):,} answers are refusals and {off[UNCLEAR]:.0%} are "
            "unclear. The mean social distance rests on the rest, which need not be like them."
        )
    silent = int(np.isnan(view.overall).sum())
    if silent:
        yield _warning(
            f"{view.model}: no answer on the scale for {silent} of {asked} conditions; they are left out."
        )


def _info(text: str) -> Notice:
    return Notice(level="info", text=text)


def _warning(text: str) -> Notice:
    return Notice(level="warning", text=text)
