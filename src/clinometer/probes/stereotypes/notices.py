"""What a reader must know before believing the numbers of the stereotypes audit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from clinometer.data.counting import counted
from clinometer.probes.kit.before_after import tuned_notices
from clinometer.probes.stereotypes.questions import PUBLISHED_PRIOR
from clinometer.probes.stereotypes.recall import Gold
from clinometer.probes.stereotypes.similarity import FEWEST
from clinometer.probes.stereotypes.view import View
from clinometer.types import HIDDEN, Notice

LITTLE = 0.4  # share of profile attributes in the lexicon below which profiles rest on a part of them; paper: 0.7
MANY = 0.2  # share of offered words that are no words, above which a model hardly answers the question


def notices(views: Sequence[View], gold: Gold) -> Iterator[Notice]:
    """Yield what holds for all models, then for each."""
    yield _what_was_asked(views[0])
    yield _recall_notice(views[0], gold)
    yield _lexicon_notice(views[0])
    yield from _small_categories(views)
    yield from tuned_notices([view.plan.model for view in views])
    for view in views:
        yield from _model_notices(view)


def _what_was_asked(view: View) -> Notice:
    options = view.options
    masks = "one mask" if options.prior_masks == "one" else "as many masks as it has tokens"
    prior = f"with its group hidden by {masks}"
    if options.prior == "published":
        question = PUBLISHED_PRIOR.replace("{group}", HIDDEN)
        prior = f"replaced by '{question}', as in the authors' code, with {masks} for the group"
    return Notice(
        level="info",
        text=(
            f"{counted(len(view.groups), 'group')} in {_templates_each(view)}: results speak for these groups, "
            "these templates and English. Attributes that a model offers are no facts "
            f"about the groups. The prior is each question {prior}."
        ),
    )


def _templates_each(view: View) -> str:
    """Return how many templates a group is asked in; people and countries may have different numbers."""
    kinds = dict.fromkeys(group.kind for group in view.groups)
    templates = view.options.chosen_templates()
    numbers = sorted({len(templates.of(kind)) for kind in kinds})
    each = " each" if len(view.groups) > 1 else ""
    if len(numbers) > 1:
        return f"{numbers[0]} or {numbers[-1]} templates{each}"
    return f"{counted(numbers[0], 'template')}{each}"


def _recall_notice(view: View, gold: Gold) -> Notice:
    if not view.options.human_file:
        return Notice(
            level="warning",  # what the paper is about is missing: not to be overlooked
            text=(
                "Recall was not computed: it needs the data set of human stereotypes, which is not packaged. Add "
                "it once with 'clinometer data add stereotypes PATH', or set human_file."
            ),
        )
    if not len(gold):
        return Notice(
            level="warning",
            text="Recall was not computed: no human stereotype of the file is about a group that was asked about.",
        )
    several = sum(" " in each for attributes in gold.attributes.values() for each in attributes)
    never = f"; {several:,} of several words, which no model can offer, count as missed" if several else ""
    left_out = f"; {counted(gold.unmatched, 'row')} about other groups left out" if gold.unmatched else ""
    return Notice(
        level="info",
        text=(
            f"Recall rests on {counted(len(gold), 'human stereotype')} about "
            f"{counted(len(np.unique(gold.group)), 'group')}, each "
            f"looked for at the prompt that it was found with{never}{left_out}."
        ),
    )


def _lexicon_notice(view: View) -> Notice:
    lexicon = view.lexicon
    named = f"{counted(len(lexicon.words), 'word')} of '{lexicon.source}'"
    if lexicon.complete:
        return Notice(level="info", text=f"Emotions: {named}, words without an emotion included.")
    return Notice(
        level="warning",
        text=(
            f"Emotions: {named}, which has no words without an emotion: they are missing from the denominator, "
            "so all shares are larger than with the full lexicon of 14,182 words, and how emotional a group's "
            "attributes are on the whole cannot be seen. Add the full NRC file with 'clinometer data add nrc "
            "PATH', or set emotions_file."
        ),
    )


def _small_categories(views: Sequence[View]) -> Iterator[Notice]:
    if len(views) < 2:
        return
    small = [each for each in views[0].categories if len(views[0].members(each)) < FEWEST]
    if small:
        yield Notice(
            level="warning",
            text=(f"Fewer than {FEWEST} groups in: {', '.join(small)}. Models are not compared there."),
        )


def _model_notices(view: View) -> Iterator[Notice]:
    counts = view.answers.counts
    left_out = counts.pieces + counts.others
    if counts.offered and left_out:
        share = left_out / counts.offered
        what = "are left out" if view.options.filter == "words" else "are kept (filter = 'none')"
        yield Notice(
            level="warning" if share > MANY else "info",
            text=(
                f"{view.model}: of {counts.offered:,} words offered, {counts.pieces:,} are pieces of words and "
                f"{counts.others:,} numbers, marks or single letters; these {what}."
            ),
        )
    if counts.without_prior:
        yield Notice(
            level="info",
            text=(
                f"{view.model}: {counts.without_prior:,} of the words kept have no prior, because they are not "
                "one token after a space; they come last by typicality."
            ),
        )
    if counts.missing:
        yield Notice(
            level="warning",
            text=f"{view.model}: {counts.missing:,} probabilities are not numbers; those words are left out.",
        )
    profile = sum(len(words) for words in view.profile_words)
    if profile:
        share = float(view.covered.sum()) / profile
        yield Notice(
            level="warning" if share < LITTLE else "info",
            text=(
                f"{view.model}: the emotion lexicon covers {share:.0%} of the attributes in the profiles (the "
                f"paper: 70 to 75 %), {int(np.median(view.covered))} for the median group."
            ),
        )
    if empty := [group.name for group, n in zip(view.groups, view.covered, strict=True) if n == 0]:
        yield Notice(
            level="warning",
            text=(
                f"{view.model}: no attribute of {counted(len(empty), 'group')} is in the emotion lexicon, "
                f"hence no profile: {', '.join(empty[:10])}{' …' if len(empty) > 10 else ''}."
            ),
        )
