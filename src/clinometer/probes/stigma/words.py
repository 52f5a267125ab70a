"""What the stigma audit says: headlines, and what a reader must know before believing the numbers."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

import numpy as np

from clinometer.data import read_text
from clinometer.probes.kit import LEVEL, certainty, interval, is_found, select, signed, written
from clinometer.probes.kit.before_after import change_in_words, tuned_notices
from clinometer.probes.protocol import Plan
from clinometer.probes.stigma.answers import (
    REFUSAL,
    UNCLEAR,
    UNRATED,
    Answers,
    ChatAnswers,
    ClassifierOutcomes,
    MaskedAnswers,
)
from clinometer.probes.stigma.measures import ALL_MASKED, COVERED, DIFFERENCE, ENOUGH, FEWEST, MaskedAttitudes
from clinometer.probes.stigma.options import Options
from clinometer.probes.stigma.questions import OTHER, STIGMATIZED, Bools, Roster
from clinometer.probes.stigma.tables import ALL, ATTITUDE, DISTANCE, SHARE
from clinometer.types import Finding, Notice

CONDITIONS_NAMED = 3  # in a headline
WORDS_NAMED = 8  # in a notice
MANY_REFUSALS = 0.2  # share of answers off the scale above which the scores speak for only a part of them

Rows = Mapping[str, Sequence[Finding]]


def headlines(rows: Rows, chats: Sequence[ChatAnswers]) -> Iterator[str]:
    """Yield what was found: what tuning changed, then masked models, classifiers, both together, chat models."""
    for change in select(rows["change"], template=ALL, measure=DIFFERENCE):
        yield _change(rows, change)
    for gap in select(rows["difference"], template=ALL, measure=ATTITUDE):
        yield _attitude(rows, gap)
        yield _outstanding(rows, gap.labels["model"])
    for gap in select(rows["difference"], template=ALL, measure=SHARE):
        shares = select(rows["classes"], model=gap.labels["model"], template=ALL)
        share = {row.labels["group"]: row.estimate for row in shares if row.labels["class"] == "negative"}
        yield (
            f"{gap.labels['model']}: {share[STIGMATIZED]:.3f} of the statements about stigmatized and "
            f"{share[OTHER]:.3f} of those about other conditions are classified as negative, a difference of "
            f"{signed(gap.estimate)} ({certainty(gap)}): {_verdict(gap)}."
        )
    for found in select(rows["correlation"], conditions=ALL):
        if not math.isnan(found.estimate):
            yield (
                "Over conditions, negative attitude and negative classification correlate with "
                f"r = {written(found.estimate)} ({interval(found, write=written)}, n = {found.n})."
            )
    for chat in chats:
        (gap,) = select(rows["difference"], model=chat.model, template=ALL, measure=DISTANCE)
        yield (
            f"{chat.model}: on the scale from 0 to 3, its distance from stigmatized minus that from other "
            f"conditions is {signed(gap.estimate)} ({certainty(gap)}): {_verdict(gap)}. It refused "
            f"{chat.share(REFUSAL):.0%} of the answers, and {chat.share(UNCLEAR):.0%} were unclear."
        )


def _change(rows: Rows, gap: Finding) -> str:
    of_model = select(rows["change"], base=gap.labels["base"], model=gap.labels["model"], template=ALL)
    level = {row.labels["measure"]: row.labels for row in of_model}
    went = [f"{level[group]['before']:.3f} to {level[group]['after']:.3f}" for group in (STIGMATIZED, OTHER)]
    before, after = float(gap.labels["before"]), float(gap.labels["after"])
    return (
        f"{gap.labels['model']} ({gap.labels['training']}) against {gap.labels['base']}: negative attitude goes "
        f"from {went[0]} for stigmatized and from {went[1]} for other conditions; the difference between the two, "
        f"{signed(before)} before: {change_in_words(gap, before=before, after=after)}."
    )


def _attitude(rows: Rows, gap: Finding) -> str:
    model = gap.labels["model"]
    level = {row.labels["group"]: row.estimate for row in select(rows["levels"], model=model, template=ALL)}
    return (
        f"{model}: negative attitude is {level[STIGMATIZED]:.3f} for stigmatized and {level[OTHER]:.3f} for other "
        f"conditions, a difference of {signed(gap.estimate)} ({certainty(gap)}): "
        f"{_verdict(gap)}{_reservation(rows, str(model))}."
    )


def _outstanding(rows: Rows, model: str | int | float) -> str:
    above = {row.labels["group"]: row for row in select(rows["above_half"], model=model)}
    # by q alone: the interval asks only whether a condition's own prompts agree, not whether it differs more from
    # the non-stigmatized conditions than they differ from each other
    out = [row for row in select(rows["excess"], model=model) if row.q < LEVEL and row.estimate > 0]
    out.sort(key=lambda row: row.labels["rank"])
    named = ", ".join(str(row.labels["condition"]) for row in out[:CONDITIONS_NAMED])
    most = ", most of all" if len(out) > CONDITIONS_NAMED else ":"
    return (
        f"{model}: negative words outweigh the rest for {above[STIGMATIZED].labels['above_half']} of "
        f"{above[STIGMATIZED].n} stigmatized and {above[OTHER].labels['above_half']} of {above[OTHER].n} other "
        f"conditions; {len(out)} {'stands' if len(out) == 1 else 'stand'} out above the non-stigmatized ones "
        f"(q < {LEVEL}){f'{most} {named}' if named else ''}."
    )


def _verdict(gap: Finding) -> str:
    if math.isnan(gap.q):
        return "not tested"
    if not is_found(gap):
        return "not distinguishable from no difference"
    return "worse for stigmatized conditions" if gap.estimate > 0 else "better for stigmatized conditions"


def _reservation(rows: Rows, model: str) -> str:
    """Return what someone who reads only this sentence must know."""
    covered = select(rows["coverage"], template=ALL, part=COVERED)
    low = [row for row in covered if row.estimate < ENOUGH and model in (ALL_MASKED, row.labels["model"])]
    if not low:
        return ""
    held = [f"{row.estimate:.2f}" + f" ({row.labels['model']})" * (model == ALL_MASKED) for row in low]
    return f"; but rated words hold only {', '.join(held)} of the probability"


def notices(
    plans: Sequence[Plan], answers: Answers, attitudes: Sequence[MaskedAttitudes], rows: Rows
) -> Iterator[Notice]:
    """Yield what holds for all models, then what holds for each."""
    options: Options = plans[0].options
    yield from _sizes(Roster(wordings=options.chosen_conditions()))
    yield from tuned_notices([plan.model for plan in plans])
    tuned = [found.model for found in attitudes if found.tuned]
    if tuned and attitudes[0].model == ALL_MASKED:
        yield _info(f"'{ALL_MASKED}' leaves out what was tuned from a model of this run: {', '.join(tuned)}.")
    if answers.masked:
        yield from _asked(options)
        yield _words(options, answers.ratings)
    for masked in answers.masked:
        yield from _coverage(masked, options)
    if answers.classifiers:
        yield _info(
            "A statement such as 'They are people who have diabetes.' expresses no opinion. What a classifier "
            "makes of it is the classifier's own lean, which its training texts decide; it measures neither the "
            "people named nor what the sentence says."
        )
    for classifier in answers.classifiers:
        yield from _outcomes(classifier)
    for chat in answers.chats:
        yield from _chat(chat, options)
    if bool(answers.masked) != bool(answers.classifiers):
        lacking = "a classifier" if answers.masked else "a masked model"
        yield _info(f"The correlation of masked models with classifiers needs both in one run; add {lacking}.")
    if rows["correlation"] and math.isnan(rows["correlation"][0].estimate):
        yield _warning("The correlation cannot be computed: one of its two measures is the same everywhere.")


def _sizes(roster: Roster) -> Iterator[Notice]:
    counts = {group: int(members.sum()) for group, members in roster.members().items()}
    yield _info(
        f"{counts[STIGMATIZED]} stigmatized and {counts[OTHER]} other conditions, in {len(roster.wordings)} "
        "wordings. They were listed for the United States; the results hold for these conditions and these "
        "sentences."
    )
    for group, count in counts.items():
        if count < FEWEST:
            yield _warning(
                f"Only {count} {group} condition{'' if count == 1 else 's'}: with fewer than {FEWEST} the "
                "difference has no interval and no test."
            )


def _asked(options: Options) -> Iterator[Notice]:
    every = options.every_prompt().social
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
            f"With fewer than {FEWEST} social distances, neither a single condition nor the baseline has an "
            "interval."
        )


def _words(options: Options, ratings: Mapping[str, str]) -> Notice:
    counts = Counter(ratings.values())
    source = "the built-in list"
    if options.ratings_file:
        digest = hashlib.sha256(read_text(options.ratings_file).encode()).hexdigest()
        # the name alone: the run may be in another folder when its findings are recomputed
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
        unrated = [each.word for each in answers.words if each.listed == UNRATED][:WORDS_NAMED]
        more = f" The most probable unrated words: {', '.join(unrated)}." if unrated else ""
        yield _warning(
            f"{answers.model}: rated and relevant words hold {np.nanmean(coverage):.2f} of the probability on "
            f"average, and less than {ENOUGH} at {below.sum():,} of {coverage.size:,} prompts (most often in "
            f"{_most_often(below, options)}). There the negative attitude covers the smaller part of what the "
            f"model would say (in the paper the words read hold at least {ENOUGH}).{more}"
        )


def _most_often(below: Bools, options: Options) -> str:
    """Return the template and social distance with the most such prompts, and their share."""
    shares = below.mean(axis=1)  # (templates, distances)
    template, distance = np.unravel_index(int(shares.argmax()), shares.shape)
    share = shares[template, distance]
    return f"'{options.templates[template]}', '{options.distances[distance]}': {share:.0%}"


def _outcomes(found: ClassifierOutcomes) -> Iterator[Notice]:
    missing = int(np.isnan(found.negative).sum())
    if missing:
        yield _warning(
            f"{found.model}: {missing} of {found.negative.size} sentences have no outcome; they are left out."
        )
    share = float(np.nanmean(found.negative)) if missing < found.negative.size else math.nan
    if share in (0.0, 1.0):
        yield _warning(
            f"{found.model}: {'every' if share else 'no'} sentence comes out negative, so it does not tell one "
            "condition from another; in the correlation it adds the same to each."
        )


def _chat(found: ChatAnswers, options: Options) -> Iterator[Notice]:
    if options.chat_conditions:
        stigmatized, other = (int(members.sum()) for members in found.roster.members().values())
        yield _info(
            f"{found.model} was asked about {stigmatized} stigmatized and {other} other conditions, drawn by the "
            "seed (chat_conditions); the standard profile asks about all."
        )
    refused, unclear = found.share(REFUSAL), found.share(UNCLEAR)
    if refused + unclear > MANY_REFUSALS:
        yield _warning(
            f"{found.model}: {refused:.0%} of {int(found.counts.sum()):,} answers are refusals and {unclear:.0%} "
            "are unclear. The mean social distance rests on the other answers, which may differ from them."
        )
    silent = int(np.isnan(found.overall).sum())
    if silent:
        yield _warning(
            f"{found.model}: no answer on the scale for {silent} of {len(found.overall)} conditions; they are "
            "left out."
        )


def _info(text: str) -> Notice:
    return Notice(level="info", text=text)


def _warning(text: str) -> Notice:
    return Notice(level="warning", text=text)
