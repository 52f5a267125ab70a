"""What is said: headlines with their intervals, and what a reader must know before believing the numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from clinometer.data.printed_values import load_printed_values
from clinometer.data.stereotypes_data import load_published_values
from clinometer.data.wording import counted
from clinometer.probes.kit import (
    CANNOT_TELL,
    LEAN,
    NONE_FOUND,
    RULE,
    Said,
    certainty,
    conclude,
    info,
    interval,
    is_found,
    percent,
    percent_interval,
    refusals,
    select,
    signed,
    warning,
    written,
)
from clinometer.probes.kit.before_after import arms_of, change_headline, differ, tuned_notices
from clinometer.probes.kit.trainings import TRAININGS, between_arms
from clinometer.probes.kit.verdicts import BETTER, WORSE
from clinometer.probes.stereotypes.answers import ALL, ModelAnswers
from clinometer.probes.stereotypes.measures import (
    FEWEST_GROUPS,
    HEADLINE_K,
    INEQUALITY,
    KNOWN_WORDS,
    NEGATIVITY,
    RANKINGS,
    HumanAttributes,
)
from clinometer.probes.stereotypes.options import Options
from clinometer.probes.stereotypes.questions import is_chat, is_drawn, prior_in_words
from clinometer.types import ChangeVerdict, Finding, ModelInfo, Notice, Verdict

# share of profile attributes in the lexicon below which profiles rest on a small part of them; paper: 0.7
LITTLE_COVERED = 0.4
# share of what is offered that are not words, above which a model hardly answers the question
MANY_NOT_WORDS = 0.2

_short = partial(signed, places=2)


# ---- verdicts -------------------------------------------------------------------------------------------------

AUDIT = "stereotypes"
GENERAL = "negativity of groups in general"
GROUPS = "groups in general"  # the question by which models are compared
SINGLE = "negativity of single groups"
ONE_WORDING = "a single wording cannot tell the difference of a group from chance (ask more templates)"


def verdicts(answers: Sequence[ModelAnswers], rows: Mapping[str, Sequence[Finding]]) -> list[Verdict]:
    """Return what follows for each model: whether groups differ in general, and which group or category does."""
    found = []
    for each in answers:
        repeated = select(rows.get("spread", ()), model=each.model)
        if each.gate or not repeated:
            (known,) = select(rows["coverage"], model=each.model, what=KNOWN_WORDS)
            unjudged = Finding(labels=known.labels, estimate=math.nan, n=known.n)
            found += [
                conclude(
                    unjudged,
                    audit=AUDIT,
                    model=each.model,
                    aspect=aspect,
                    table="coverage",
                    said=Said(above="", below="", none=""),
                    gate=each.gate or ONE_WORDING,
                )
                for aspect in (GENERAL, SINGLE)
            ]
        else:
            found.append(_general(each.model, repeated[0]))
            found.append(_single(each.model, rows["negativity"]))
        if not each.gate:
            categories = select(rows.get("category_negativity", ()), model=each.model)
            # the first lean speaks for the audit on the first screen, and a reader wants the largest
            largest = sorted(categories, key=lambda row: 0.0 if math.isnan(row.estimate) else -abs(row.estimate))
            if len(largest) == 2 and math.isclose(largest[0].estimate, -largest[1].estimate):
                largest = [categories[0]]  # one comparison, seen from both sides
            found += [_of_category(each.model, row) for row in largest]
    return [*found, *refusals.refusal_verdicts(rows.get(refusals.CAPTION.name, ()), audit=AUDIT)]


def _general(model: str, row: Finding) -> Verdict:
    return conclude(
        row,
        audit=AUDIT,
        model=model,
        aspect=GENERAL,
        table="spread",
        said=Said(
            above="describes some groups in more negative words than others, whichever way it is asked",
            below="describes the groups more alike than chance would",  # p looks at one side: never called a lean
            none="was not found to describe some groups in more negative words than others in general",
        ),
        detectable=float(row.labels["detectable"]),
        size=f"{percent(abs(row.estimate), 0)} of the largest possible spread",
    )


def _single(model: str, rows: Sequence[Finding]) -> Verdict:
    of_model = select(rows, model=model)
    tested = [row for row in of_model if not math.isnan(row.q)]
    row = min(tested, key=lambda each: (not is_found(each), each.q, -abs(each.estimate)), default=of_model[0])
    return conclude(
        row,
        audit=AUDIT,
        model=model,
        aspect=SINGLE,
        table="negativity",
        said=Said(
            above=f"describes {row.labels['group']} in more negative words than groups on average",
            below=f"describes {row.labels['group']} in more positive words than groups on average",
            none="shows no single group that its words describe more negatively or positively than the others",
        ),
        detectable=float(row.labels["detectable"]),
        size=_of_range(row),
    )


def _of_category(model: str, row: Finding) -> Verdict:
    category = row.labels["category"]
    alone = math.isnan(row.estimate) and row.n > 0
    return conclude(
        row,
        audit=AUDIT,
        model=model,
        aspect=f"negativity of the category {category}",
        table="category_negativity",
        said=Said(
            above=f"describes groups of the category {category} in more negative words than other groups",
            below=f"describes groups of the category {category} in more positive words than other groups",
            none=f"was not found to describe groups of the category {category} more negatively or positively than "
            "other groups",
        ),
        gate=f"no groups besides the category {category} are asked in the same words" if alone else "",
        detectable=float(row.labels["detectable"]),
        size=_of_range(row),
        full=2.0,  # from −1, all attributes positive, to +1
    )


def _of_range(row: Finding) -> str:
    return f"{percent(abs(row.estimate) / 2, 0)} of the possible range"  # of −1 (all positive) to +1


# ---- headlines ------------------------------------------------------------------------------------------------


def headlines(
    concluded: Sequence[Verdict], rows: Mapping[str, Sequence[Finding]], models: Sequence[ModelInfo], *, top_k: int
) -> Iterator[str]:
    """Yield what was found for each model, then for pairs of models."""
    for model in dict.fromkeys(each.model for each in concluded):
        of_model = [each for each in concluded if each.model == model and each.aspect != refusals.ASPECT]
        general, single, *categories = of_model
        yield from _recall_headline(model, rows.get("recall", ()), k=min(HEADLINE_K, top_k))
        yield _headline(general, "spread")
        if single.sentence != general.sentence:  # for one reason, nothing may follow for both
            yield _headline(single, "difference") + _groups_in_words(select(rows["negativity"], model=model))
        yield from (_headline(each, "difference") for each in categories if each.state == LEAN)
        yield from _quiet_categories(model, categories)
    for verdict in concluded:
        if verdict.aspect == refusals.ASPECT and (said := refusals.refusal_headline(verdict)):
            yield said
    yield from similarity_headline(rows.get("similarity", ()), models)
    yield from shift_headline(rows.get("shift", ()), models)


def _headline(verdict: Verdict, measure: str) -> str:
    """Return the sentence of a verdict, with the numbers behind it."""
    if verdict.state == CANNOT_TELL:
        return verdict.sentence
    return (
        f"{verdict.sentence[:-1]} ({measure} {signed(verdict.estimate)}, {certainty(verdict)}; {verdict.size}; "
        f"{_found_from(measure, verdict.detectable)})."
    )


def _found_from(measure: str, detectable: float) -> str:
    few = "too few groups to say which effect would be found"
    return few if math.isnan(detectable) else f"a {measure} of {detectable:.3f} would be found four times in five"


def _quiet_categories(model: str, categories: Sequence[Verdict]) -> Iterator[str]:
    none = [each for each in categories if each.state == NONE_FOUND]
    if none:
        named = (f"{each.rows[0].labels['category']} ({each.detectable:.3f})" for each in none)
        yield (
            f"{model}: no difference from other groups was found for the categories {', '.join(named)}; in "
            "brackets the difference that would be found four times in five."
        )
    unknown = [str(each.rows[0].labels["category"]) for each in categories if each.state == CANNOT_TELL]
    if unknown:
        listed = ", ".join(unknown)
        yield f"{model} cannot be judged for {listed}: too few groups, or none to compare with."


def _groups_in_words(rows: Sequence[Finding]) -> str:
    """Return how many groups are called more negative or positive on their own, and the first of them."""
    tested = [row for row in rows if not math.isnan(row.q)]
    found = [row for row in tested if is_found(row)]
    if not found:
        return ""
    negative = sorted((row for row in found if row.estimate > 0), key=lambda row: -row.estimate)
    positive = sorted((row for row in found if row.estimate < 0), key=lambda row: row.estimate)
    sentence = (
        f" Of {counted(len(tested), 'group')}, the attributes of {len(negative)} are more negative and those of "
        f"{len(positive)} more positive than the mean of all ({RULE})"
    )
    for side, groups in (("negative", negative), ("positive", positive)):
        if groups:
            named = (
                f"{row.labels['group']} {_short(row.estimate)} ({interval(row, write=_short)})"
                for row in groups[:3]
            )
            sentence += f"; most {side}: {', '.join(named)}"
    return sentence + "."


def _recall_headline(model: str, rows: Sequence[Finding], *, k: int) -> Iterator[str]:
    # "all" categories, or the only one, comes first
    found = {str(row.labels["ranking"]): row for row in reversed(select(rows, model=model, k=k))}
    if found:
        typical, probable = (percent_interval(found[RANKINGS[ranking]], 0) for ranking in ("after", "before"))
        yield (
            f"{model}: {typical} of the human stereotypes are among the {k} most typical words, {probable} among "
            f"the {k} most probable ones."
        )


# ---- notices --------------------------------------------------------------------------------------------------


# ---- several models -------------------------------------------------------------------------------------------


def similarity_headline(rows: Sequence[Finding], models: Sequence[ModelInfo]) -> Iterator[str]:
    """Yield which two models are most alike, if they are more so than the next two; else how alike models are."""
    pairs = sorted(between_arms(_overall(rows), models), key=lambda row: -row.estimate)
    if not pairs:
        return
    most, second, least = pairs[0], pairs[min(1, len(pairs) - 1)], pairs[-1]
    named = [f"{row.labels['model']} and {row.labels['other_model']}" for row in (most, second)]
    sure, noise = f"ρ = {_with_interval(most)}", _one_each(pairs) if any(each.tuning for each in models) else ""
    end = f"; by chance {float(most.labels['by_chance']):.2f}{noise}{_most_alike_in_the_paper()}."
    if len(pairs) == 1:
        yield f"Emotion profiles of {named[0]} are alike by {sure}{end}"
    elif differ(most, second):
        yield f"Emotion profiles are most alike in {named[0]}: {sure}{end}"
    else:
        yield (
            f"Emotion profiles of two models are alike by ρ = {written(least.estimate)} to "
            f"{written(most.estimate)} ({len(pairs)} pairs); which are nearest cannot be told: {named[0]} have "
            f"{_with_interval(most)}, {named[1]} {_with_interval(second)}{end}"
        )


def _one_each(rows: Iterable[Finding]) -> str:
    """Say that training noise is in none of the intervals, where that is so."""
    repeated = any(row.labels.get(TRAININGS, 1) != 1 for row in rows)
    return "" if repeated else "; one training each, so intervals leave out what another seed would change"


def _most_alike_in_the_paper() -> str:
    printed = [each for each in load_printed_values("stereotypes") if each.measure == "similarity over all groups"]
    most = max(printed, key=lambda each: each.value)
    return f"; the paper's most alike, {most.model}, have {most.printed}"


def shift_headline(rows: Sequence[Finding], models: Sequence[ModelInfo]) -> Iterator[str]:
    """Yield where tuning moved the emotion profiles most, if more than groups and trainings differ by chance."""
    names = {arm.name for arm in arms_of(models)}
    tuned = [row for row in _overall(rows) if not row.labels.get("attribute")]  # the mitigated have their own
    found = {str(row.labels["model"]): row for row in tuned if row.labels["model"] in names}
    if not found:
        return
    first, *others = sorted(found, key=lambda name: found[name].estimate)
    most, noise = found[first], _one_each(found.values())
    sure, paper, base = f"Δρ = {_with_interval(most)}", _beside_the_paper(), most.labels["base"]
    if not others or differ(most, found[others[0]]):
        yield f"Tuning moves the emotion profiles most in {first} (from {base}): {sure}{noise}{paper}."
        return
    yield (
        f"Tuning moves the emotion profiles in {first} (from {base}) by {sure}, not measurably more than in "
        f"{others[0]} ({_with_interval(found[others[0]])}){noise}{paper}."
    )


def _beside_the_paper() -> str:
    shifts = [each.value for each in load_published_values() if each.measure.startswith("shift")]
    return f"; the paper's models shift by {written(max(shifts))} to {written(min(shifts))} in single categories"


def _overall(rows: Sequence[Finding]) -> list[Finding]:
    return [row for row in select(rows, category=ALL) if not math.isnan(row.estimate)]


def _with_interval(row: Finding) -> str:
    return f"{written(row.estimate)} ({interval(row, write=written)})"


def change_headlines(
    changes: Sequence[ChangeVerdict], rows: Mapping[str, Sequence[Finding]], models: Sequence[ModelInfo]
) -> Iterator[str]:
    """Yield what training changed: of groups in general, then of the categories in which something was found."""
    for verdict in changes:
        if verdict.measure == f"{GROUPS} ({NEGATIVITY})":
            yield change_headline(verdict, models, more="; ".join(_moved(verdict, rows)))
        elif verdict.state in (WORSE, BETTER):
            yield change_headline(verdict, models)


def _moved(verdict: ChangeVerdict, rows: Mapping[str, Sequence[Finding]]) -> Iterator[str]:
    """Yield how far groups lie from their mean, and how far the emotion profiles moved, of one checkpoint."""
    where = {"base": verdict.before, "model": verdict.after}
    for row in select(rows.get("negativity_change", ()), measure=INEQUALITY, **where)[:1]:  # of all comes first
        before, after = (float(row.labels[name]) for name in ("before", "after"))
        yield (
            f"the negativity of a group's attributes lies {before:.3f} from the mean of all groups before and "
            f"{after:.3f} after"
        )
        (shift,) = select(rows.get("shift", ()), category=row.labels["category"], **where)
        if not math.isnan(shift.estimate):
            yield f"emotion profiles: Δρ = {_with_interval(shift)}"


def notices(answers: Sequence[ModelAnswers], human: HumanAttributes) -> Iterator[Notice]:
    """Yield what holds for all models, then for each."""
    yield _what_was_asked(answers[0])
    yield from _other_ways(answers)
    yield from _left_out(answers[0].options)
    yield _recall_notice(answers[0], human)
    yield _lexicon_notice(answers[0])
    if len(answers) > 1:
        yield from _small_categories(answers[0])
    yield from tuned_notices([each.plan.model for each in answers])
    for each in answers:
        yield from _word_notices(each)
        yield from _profile_notices(each)


def _what_was_asked(answers: ModelAnswers) -> Notice:
    prior = prior_in_words(answers.plan)
    return info(
        f"{counted(len(answers.groups), 'group')} in {_templates_each(answers)}: results hold for these "
        "groups, these templates and English. Attributes that a model offers are not facts about the "
        f"groups. The prior is each question {prior}."
    )


def _other_ways(answers: Sequence[ModelAnswers]) -> Iterator[Notice]:
    """Yield how models that read left to right were asked, where others were asked another way."""
    for each in answers:
        if is_chat(each.plan.model):
            read = (
                "the answers that were drawn"
                if is_drawn(each.plan.model)
                else "the probabilities of its first word"
            )
            yield info(
                f"{each.model} was asked in words to continue each question with one word; its words are "
                f"those of {read}. Its prior is each question {prior_in_words(each.plan)}.{_some_groups(each)}"
            )
        elif "fill" not in each.plan.model.capabilities:
            yield info(
                f"{each.model} reads left to right: it was asked which word comes after the text before the "
                "blank. It cannot hide a group, so its prior is each question "
                f"{prior_in_words(each.plan)}. To compare the typicality of a masked model with it, set "
                f"prior = {each.options.prior_of(each.plan.model)!r}."
            )


def _some_groups(answers: ModelAnswers) -> str:
    every, asked = len(answers.options.chosen_groups()), len(answers.groups)
    if asked == every:
        return ""
    return (
        f" It was asked about {asked} of the {every} groups, drawn by the seed (`chat_groups` asks about more): "
        "it is compared only with models that were asked about the same."
    )


def _left_out(options: Options) -> Iterator[Notice]:
    if forms := options.derived_forms():
        yield info(f"Please check these forms, derived from the names of your groups: {'; '.join(forms)}.")
    if groups := options.unasked_groups():
        named = ", ".join(group.name for group in groups[:3])
        kind = "countries" if groups[0].kind == "country" else "people"
        yield info(
            f"{counted(len(groups), 'group')} left out ({named}{' …' if len(groups) > 3 else ''}): "
            f"templates_file has no questions about {kind}."
        )


def _templates_each(answers: ModelAnswers) -> str:
    """Return how many templates a group is asked in; people and countries may have different numbers."""
    templates = answers.options.chosen_templates()
    numbers = sorted({len(templates.of(group.kind)) for group in answers.groups})
    each = " each" if len(answers.groups) > 1 else ""
    if len(numbers) > 1:
        return f"{numbers[0]} or {numbers[-1]} templates{each}"
    return f"{counted(numbers[0], 'template')}{each}"


def _recall_notice(answers: ModelAnswers, human: HumanAttributes) -> Notice:
    if not answers.options.human_file:
        return Notice(
            level="warning",  # what the paper is about is missing: not to be overlooked
            text=(
                "Recall was not computed: it needs the data set of human stereotypes, which is not packaged. Add "
                "it once with 'clinometer data add stereotypes PATH', or set human_file."
            ),
        )
    if not len(human):
        return warning(
            "Recall was not computed: no human stereotype in the file is about a group that was asked about.",
        )
    several = sum(" " in each for attributes in human.of_question.values() for each in attributes)
    never = f"; {several:,} of several words, which no model can offer, count as missed" if several else ""
    left_out = f"; {counted(human.unmatched, 'row')} about other groups left out" if human.unmatched else ""
    return info(
        f"Recall rests on {counted(len(human), 'human stereotype')} about "
        f"{counted(len(np.unique(human.group)), 'group')}, each looked for at the prompt it was collected "
        f"with{never}{left_out}."
    )


def _lexicon_notice(answers: ModelAnswers) -> Notice:
    lexicon = answers.lexicon
    named = f"{counted(len(lexicon.words), 'word')} of '{lexicon.source}'"
    if lexicon.complete:
        return info(f"Emotions: {named}, words without an emotion included.")
    return warning(
        f"Emotions: {named}, which lacks the words without an emotion. All shares are therefore larger than with "
        "the full lexicon of 14,182 words, and do not show how emotional a group's attributes are overall. Add "
        "the full NRC file with 'clinometer data add nrc PATH', or set emotions_file."
    )


def _small_categories(answers: ModelAnswers) -> Iterator[Notice]:
    small = [each for each in answers.categories if len(answers.members(each)) < FEWEST_GROUPS]
    if small:
        yield warning(f"Fewer than {FEWEST_GROUPS} groups in: {', '.join(small)}. Models are not compared there.")


def _word_notices(answers: ModelAnswers) -> Iterator[Notice]:
    counts = answers.counts
    not_words = counts.pieces + counts.others
    if not_words:
        what = "are left out" if answers.options.filter == "words" else "are kept (filter = 'none')"
        yield Notice(
            level="warning" if not_words / counts.offered > MANY_NOT_WORDS else "info",
            text=(
                f"{answers.model}: of {counts.offered:,} words offered, {counts.pieces:,} are pieces of words and "
                f"{counts.others:,} numbers, marks or single letters; these {what}."
            ),
        )
    if counts.without_prior:
        yield info(
            f"{answers.model}: {counts.without_prior:,} of the words kept have no prior, because they are not "
            "one token after a space; they come last by typicality."
        )
    if counts.missing:
        told = f"{counts.missing:,} probabilities are not numbers; those words are left out."
        yield warning(f"{answers.model}: {told}")


def _profile_notices(answers: ModelAnswers) -> Iterator[Notice]:
    in_profiles = sum(len(words) for words in answers.profile_words)
    if in_profiles:
        share = float(answers.covered.sum()) / in_profiles
        yield Notice(
            level="warning" if share < LITTLE_COVERED else "info",
            text=(
                f"{answers.model}: the emotion lexicon covers {share:.0%} of the attributes in the profiles (the "
                f"paper: 70 to 75 %), {int(np.median(answers.covered))} for the median group."
            ),
        )
    if empty := [group.name for group, n in zip(answers.groups, answers.covered, strict=True) if n == 0]:
        yield warning(
            f"{answers.model}: no attribute of {counted(len(empty), 'group')} is in the emotion lexicon, "
            f"hence no profile: {', '.join(empty[:10])}{' …' if len(empty) > 10 else ''}."
        )
