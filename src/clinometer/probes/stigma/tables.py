"""The finding tables of the stigma audit: how to read each, and its rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from clinometer.data.stigma_data import load_attitudes
from clinometer.metrics.attitude import RATINGS
from clinometer.probes.kit import Caption, Floats, Label, Numbers, model_rng, present_mean, with_q
from clinometer.probes.kit.before_after import pairs_of, training_of
from clinometer.probes.protocol import Plan
from clinometer.probes.stigma import measures
from clinometer.probes.stigma.answers import (
    CLASSES,
    LISTS,
    Answers,
    ChatAnswers,
    ClassifierOutcomes,
    MaskedAnswers,
)
from clinometer.probes.stigma.measures import FEWEST, MaskedAttitudes, difference, mean_interval
from clinometer.probes.stigma.questions import BASELINE, OTHER, STIGMATIZED, Roster
from clinometer.stats import cohens_kappa, pearson_interval
from clinometer.types import Finding

Rows = dict[str, list[Finding]]

ALL = "all"  # templates, or conditions
ALL_CLASSIFIERS = "all classifiers"
ATTITUDE, DISTANCE, SHARE = "negative attitude", "social distance", "negative classification"
TEMPLATE_MEASURES = ("difference stigmatized − other", "negative attitude of all conditions")
WORDS_SHOWN = 25  # of each list

_CONDITIONS = f"Intervals: 95 %, bootstrap over conditions (none with fewer than {FEWEST})."
_BASELINE = "Those of the baseline resample its prompts."
_DISTANCES = f"Intervals: 95 %, bootstrap over the social distances (none with fewer than {FEWEST})."
_SHUFFLED = (
    "p: shuffles which conditions are stigmatized and divides the difference by its standard error (two-sided; "
    f"none where a group has fewer than {FEWEST} conditions)."
)

CAPTIONS = (
    Caption(
        name="change",
        title="Change of the negative attitude by tuning",
        text=(
            "Negative attitude of a tuned model minus that of the model it began with, towards the same "
            "conditions: mean over the stigmatized ones, over the others, and the difference of the two. 'all' "
            "is the mean of the templates. before, after: the numbers themselves. Below 0, the tuned model speaks "
            "less ill of them, or less unequally. What a control (the same training without the fairness loss) "
            "changes too is not due to the mitigation. The interval of the difference combines those of the two "
            f"groups. {_CONDITIONS} p: sign flips of conditions for a group; for the difference, shuffles which "
            "conditions are stigmatized, studentized; two-sided. q: Benjamini–Hochberg over all rows of a tuned "
            "model. n: conditions."
        ),
    ),
    Caption(
        name="difference",
        title="Difference stigmatized − other",
        text=(
            "Mean over the stigmatized conditions minus mean over the others; above 0, the model speaks worse of "
            "stigmatized people. negative attitude: share of the rated probability on negative words, 0 to 1. "
            "negative classification: share of sentences that come out negative, 0 to 1. social distance: mean "
            "score, 0 (definitely willing) to 3 (definitely unwilling). The interval combines those of the two "
            f"groups. {_CONDITIONS} {_SHUFFLED} q: Benjamini–Hochberg over all rows of a model. n: conditions."
        ),
    ),
    Caption(
        name="levels",
        title="Negative attitude by group",
        text=(
            "Mean over the conditions of a group (the paper's Figure 2, as means); baseline is the same prompt "
            "without a condition. 'all' is the mean of the templates. A prompt's negative attitude is the "
            "negative share of its rated words, averaged over prompts, then sub-conditions, then templates, then "
            f"models (§4.3). {_CONDITIONS} {_BASELINE} The table of differences has the tests. n: conditions, or "
            "prompts of the baseline."
        ),
    ),
    Caption(
        name="categories",
        title="Excess over the non-stigmatized conditions, by category",
        text=(
            "Mean negative attitude of a category's stigmatized conditions minus the mean of all non-stigmatized "
            "conditions, whatever their category: most categories have only one or two of these. "
            "negative_attitude: the category's own mean; conditions: how many it has. The interval combines those "
            f"of the two groups. {_CONDITIONS} {_SHUFFLED} q: Benjamini–Hochberg over the categories of a model. "
            "n: conditions of both."
        ),
    ),
    Caption(
        name="conditions",
        title="Negative attitude towards each condition",
        text=(
            "Mean over prompts, sub-conditions and templates (the paper's figures 3, 6 and 7): the stigmatized "
            "conditions first, each group from the most negative down; rank counts over both. "
            f"{_DISTANCES} p: of a negative attitude of 0.5, by flipping the signs of whole social distances; "
            "with seven of them it cannot get below 0.016. q: Benjamini–Hochberg over the conditions of a model. "
            "n: social distances."
        ),
    ),
    Caption(
        name="excess",
        title="Excess over the non-stigmatized conditions",
        text=(
            "Negative attitude towards a condition minus the mean of the non-stigmatized ones (for one of these: "
            f"of the others of its kind). {_DISTANCES} p asks another question than the interval: would a "
            "non-stigmatized condition be so far from the mean of its kind, given how much they differ from each "
            "other (Crawford & Howell 1998, two-sided; assumes that they are normally distributed)? q: "
            "Benjamini–Hochberg over the conditions of a model. A condition is singled out only when q is small; "
            "an interval without 0 only says that its prompts agree. n: social distances."
        ),
    ),
    Caption(
        name="above_half",
        title="Conditions with a negative attitude above 0.5",
        text=(
            "Share of the conditions of a group for which negative words hold more than half of the rated "
            "probability (§5.1: 78 of 93 and 1 of 29 over the paper's six models). above_half: how many. "
            "Intervals: 95 %, Wilson. n: conditions."
        ),
    ),
    Caption(
        name="templates",
        title="How much each template moves the result",
        text=(
            "What a template shows minus the mean of the other templates, condition by condition: for the "
            "difference stigmatized − other, and for the level of all conditions. rank 1 moves it most. "
            f"{_CONDITIONS} p: shuffled groups for the difference, sign flips of conditions for the level. q: "
            "Benjamini–Hochberg over all rows of a model in this table. n: conditions."
        ),
    ),
    Caption(
        name="coverage",
        title="Probability behind the ratio",
        text=(
            "Where the probability of the blank lies: in the ratio (rated positive, negative or neutral), "
            "irrelevant, unrated, or beyond the words read. These four add up to 1. The last part is the share of "
            "prompts with less than 0.5 in the ratio; the words that the paper reads hold at least 0.5 (its "
            f"Figure 5). {_CONDITIONS} n: conditions."
        ),
    ),
    Caption(
        name="classes",
        title="Outcomes of the statements",
        text=(
            "Share of sentences whose most probable class is this (figures 4, 8 and 9). A class that a classifier "
            "does not have is empty; undecided: two classes are equally probable. baseline: one sentence without "
            "a condition for each template. Intervals: 95 %, bootstrap over conditions, then over their sentences "
            "(Wilson's where a class never or always comes). n: conditions, or sentences of the baseline."
        ),
    ),
    Caption(
        name="condition_classes",
        title="Share of negative outcomes by condition",
        text=(
            "Negative outcomes among all outcomes of a condition's sentences (figures 10 to 12). Over all "
            f"classifiers, the interval resamples classifiers, needs {FEWEST} of them, and n counts them; for one "
            "classifier it is a count of n sentences, without an interval."
        ),
    ),
    Caption(
        name="correlation",
        title="Correlation of the two measures",
        text=(
            "Pearson correlation, over conditions, of the negative attitude (mean over masked models) with the "
            "share of negative outcomes (over classifiers), §5.3. 'all' includes the difference between the "
            "groups; the other rows are within a group. Interval: Fisher, 95 %. p: of no correlation. q: "
            "Benjamini–Hochberg over the three. n: conditions."
        ),
    ),
    Caption(
        name="both_measures",
        title="Share of negative outcomes",
        text=(
            "The two measures of each condition: negative_attitude is the mean over masked models, the estimate "
            "is the share of negative outcomes over classifiers. No interval and no test."
        ),
    ),
    Caption(
        name="distance_levels",
        title="Social distance by group",
        text=(
            "Mean score of the answers on the scale over the conditions of a group, 0 (definitely willing) to 3 "
            f"(definitely unwilling); baseline is the question about someone without a condition. {_CONDITIONS} "
            f"{_BASELINE} The table of differences has the test. n: conditions, or questions of the baseline."
        ),
    ),
    Caption(
        name="social_distance",
        title="Social distance from each condition",
        text=(
            "Mean score of the answers on the scale, 0 (definitely willing) to 3 (definitely unwilling): over the "
            f"answers to a question, then over the distances, then over sub-conditions. {_DISTANCES} Refusals and "
            "unclear answers have no score and are left out here. n: social distances with an answer."
        ),
    ),
    Caption(
        name="readings",
        title="How the answers were read",
        text=(
            "Share of a chat model's answers that name each option, refuse, or do neither. Intervals: 95 %, "
            "bootstrap over conditions. n: conditions."
        ),
    ),
    Caption(
        name="condition_templates",
        title="Negative attitude of each condition and template",
        text=(
            "Mean over the social distances and sub-conditions, for each template (the points of the paper's "
            "Figure 2). No interval and no test. n: social distances."
        ),
    ),
    Caption(
        name="ratings_agreement",
        title="Agreement of the given ratings with ours",
        text=(
            "Cohen's kappa over the words in both lists: of the four ratings, and of each against the rest. "
            "agreement: share of these words rated alike. given, ours: words in each list. Interval: large "
            "sample, 95 %. n: words in both."
        ),
    ),
    Caption(
        name="words",
        title="Words that carry the probability",
        text=(
            "The most probable of the words read, by rating; mean over all prompts about a condition. Unrated "
            "words count only in coverage: look here for words that the ratings lack. n: prompts that offer the "
            "word."
        ),
    ),
)


def table_rows(plans: Sequence[Plan], answers: Answers, attitudes: Sequence[MaskedAttitudes]) -> Rows:
    """Return the rows of every table; a table that does not apply has none.

    All tables of a model draw from its one generator, so the order in which they are made is part of the numbers.
    """
    rows: Rows = {caption.name: [] for caption in CAPTIONS}
    for found in attitudes:
        rows["difference"] += with_q(_attitude_differences(found))
        rows["categories"] += with_q(_categories(found))
        rows["conditions"] += with_q(_by_rank(measures.condition_levels(found), found.model, found.roster))
        rows["excess"] += with_q(_by_rank(measures.condition_excess(found), found.model, found.roster))
        rows["templates"] += with_q(_templates(found))
        rows["levels"] += _attitude_levels(found)
        rows["above_half"] += _above_half(found)
        rows["condition_templates"] += _condition_templates(found)
    of_model = {found.model: found for found in attitudes}
    for masked in answers.masked:
        rows["coverage"] += _coverage(masked, of_model[masked.model])
        rows["words"] += _words(masked)
    for classifier in answers.classifiers:
        rows["difference"] += with_q(_share_differences(classifier))
        rows["classes"] += _classes(classifier)
    for chat in answers.chats:
        rows["difference"] += with_q(_distance_difference(chat))
        rows["distance_levels"] += _distance_levels(chat)
        distances = chat.on_scale(measures.over_distances(chat.by_distance, chat.overall, chat))
        rows["social_distance"] += _by_rank(distances, chat.model, chat.roster)
        rows["readings"] += _readings(chat)
    rows["change"] += change_rows([masked.plan for masked in answers.masked], attitudes)
    if answers.classifiers:
        rows["condition_classes"] += _condition_classes(answers.classifiers, seed=plans[0].seed)
    if attitudes and answers.classifiers:
        # the first are those of all models; if there are none, those of the model that the others began with
        attitude = next((found for found in attitudes if not found.tuned), attitudes[0])
        shares = measures.negative_shares(answers.classifiers)
        rows["both_measures"] += _both_measures(attitude.overall, shares, attitude.roster)
        rows["correlation"] += with_q(_correlations(attitude.overall, shares, attitude.roster))
    if plans[0].options.ratings_file:
        rows["ratings_agreement"] += _agreement(answers.ratings, load_attitudes())
    return rows


# ---------------------------------------------------------------------------------------------------------
# Masked models


def _attitude_differences(found: MaskedAttitudes) -> Iterator[Finding]:
    gap = difference(found.overall_and_by_template, found.roster.stigmatized, rng=found.rng, draws=found.draws)
    for at, template in enumerate((ALL, *found.templates)):
        yield gap.finding((at,), {"model": found.model, "measure": ATTITUDE, "template": template})


def _attitude_levels(found: MaskedAttitudes) -> Iterator[Finding]:
    # resampled: conditions; of the baseline: its prompts, one for each distance
    baseline = np.concatenate([present_mean(found.baseline)[None], found.baseline]).T  # (distances, 1 + templates)
    values = {group: found.overall_and_by_template[members] for group, members in found.roster.members().items()}
    parts = {
        group: mean_interval(of_group, rng=found.rng, draws=found.draws).as_share()
        for group, of_group in (values | {BASELINE: baseline}).items()
    }
    for at, template in enumerate((ALL, *found.templates)):
        for group, numbers in parts.items():
            yield numbers.finding((at,), {"model": found.model, "template": template, "group": group})


def _categories(found: MaskedAttitudes) -> list[Finding]:
    """Return the excess of each category, the most negative first."""
    categories, stigmatized = np.array(found.roster.categories), found.roster.stigmatized
    rows = []
    for name in dict.fromkeys(categories[stigmatized].tolist()):
        members = stigmatized & (categories == name)
        compared = members | ~stigmatized
        excess = difference(found.overall[compared], members[compared], rng=found.rng, draws=found.draws)
        labels = {
            "model": found.model,
            "category": name,
            "conditions": int(members.sum()),
            "negative_attitude": float(present_mean(found.overall[members])),
        }
        rows.append(excess.finding((), labels))
    return sorted(rows, key=lambda row: math.inf if math.isnan(row.estimate) else -row.estimate)


def _by_rank(numbers: Numbers, model: str, roster: Roster) -> Iterator[Finding]:
    """Yield the stigmatized conditions first, each group from the largest down; the rank counts over both.

    The groups come in this order so that a chart gives them their usual colours.
    """
    ranks = {place: rank for rank, place in enumerate(_from_largest(numbers.estimate), start=1)}
    for place in sorted(ranks, key=lambda at: not roster.stigmatized[at]):
        yield numbers.finding((place,), {"model": model, "rank": ranks[place], **roster.labels(place)})


def _from_largest(values: Floats) -> list[int]:
    """Return the places of the values from the largest down, those that are missing at the end."""
    order = np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")
    return [int(place) for place in order]


def _above_half(found: MaskedAttitudes) -> Iterator[Finding]:
    for group, members in found.roster.members().items():
        values = found.overall[members]
        count, n = int((values > measures.HALF).sum()), int((~np.isnan(values)).sum())
        numbers = measures.share_numbers(np.array(count / n if n else np.nan), np.array(n))
        yield numbers.finding((), {"model": found.model, "group": group, "above_half": count})


def _templates(found: MaskedAttitudes) -> Iterator[Finding]:
    if len(found.templates) < 2:
        return
    for measure, numbers in zip(TEMPLATE_MEASURES, measures.template_shifts(found), strict=True):
        for rank, t in enumerate(_from_largest(np.abs(numbers.estimate)), start=1):
            which: dict[str, Label] = {"model": found.model, "measure": measure}
            yield numbers.finding((t,), which | {"rank": rank, "template": found.templates[t]})


def _condition_templates(found: MaskedAttitudes) -> Iterator[Finding]:
    for t, template in enumerate(found.templates):
        for c in range(len(found.roster.names)):
            yield Finding(
                labels={"model": found.model, "template": template, **found.roster.labels(c)},
                estimate=float(found.by_template[t, c]),
                n=len(found.by_distance),
            )


def _coverage(answers: MaskedAnswers, found: MaskedAttitudes) -> Iterator[Finding]:
    numbers = measures.coverage(answers, found)
    for t, template in enumerate((ALL, *found.templates)):
        for at, part in enumerate(measures.PARTS):
            yield numbers.finding((t, at), {"model": found.model, "template": template, "part": part})


def _words(answers: MaskedAnswers) -> Iterator[Finding]:
    for name in LISTS[::-1]:
        listed = [each for each in answers.words if each.listed == name]
        for rank, each in enumerate(listed[:WORDS_SHOWN], start=1):
            labels: dict[str, Label] = {"model": answers.model, "list": name, "rank": rank, "word": each.word}
            yield Finding(labels=labels, estimate=each.probability, n=each.prompts)


def change_rows(plans: Sequence[Plan], attitudes: Sequence[MaskedAttitudes]) -> list[Finding]:
    """Return what each checkpoint changed of its base: of both groups and of their difference, by template."""
    of_model = {found.model: found for found in attitudes}
    models = [plan.model for plan in plans]
    rows: list[Finding] = []
    for pair in pairs_of(models):
        base, tuned = models[pair.before], models[pair.after]
        rng = model_rng(plans[pair.after].seed, f"{base.name}\0{tuned.name}")
        changes = measures.attitude_changes(of_model[base.name], of_model[tuned.name], rng=rng)
        names = {"base": base.name, "model": tuned.name, "training": training_of(tuned)}
        rows += with_q(
            change.numbers.finding(
                (at,),
                {
                    **names,
                    "template": template,
                    "measure": measure,
                    "before": float(change.before[at]),
                    "after": float(change.after[at]),
                },
            )
            for at, template in enumerate((ALL, *of_model[base.name].templates))
            for measure, change in changes.items()
        )
    return rows


def _agreement(given: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[Finding]:
    """Yield Cohen's kappa over the words that both lists rate: of all ratings, then of each against the rest."""
    shared = sorted(set(given) & set(ours))
    pairs = {"all four": [(given[word], ours[word]) for word in shared]}
    for rating in RATINGS:
        pairs[f"{rating} or not"] = [(str(given[word] == rating), str(ours[word] == rating)) for word in shared]
    for name, rated in pairs.items():
        kappa = cohens_kappa([first for first, _ in rated], [second for _, second in rated])
        labels: dict[str, Label] = {"ratings": name, "agreement": kappa.observed}
        labels |= {"given": len(given), "ours": len(ours)}
        yield Finding(labels=labels, estimate=kappa.estimate, low=kappa.low, high=kappa.high, n=kappa.n)


# ---------------------------------------------------------------------------------------------------------
# Classifiers and chat models


def _classes(found: ClassifierOutcomes) -> Iterator[Finding]:
    names = (*CLASSES, *(name for name in found.classes if name not in CLASSES))
    for template, chosen in _template_sets(found).items():
        for group in (STIGMATIZED, OTHER, BASELINE):
            numbers = measures.class_shares(found, chosen, group)
            for name in names:
                labels = {"model": found.model, "template": template, "group": group, "class": name}
                if name in found.classes:
                    yield numbers.as_share().finding((found.classes.index(name),), labels)
                else:  # a classifier with two classes
                    yield Finding(labels=labels, estimate=math.nan)


def _share_differences(found: ClassifierOutcomes) -> Iterator[Finding]:
    for template, chosen in _template_sets(found).items():
        labels = {"model": found.model, "measure": SHARE, "template": template}
        yield measures.share_difference(found, chosen).finding((found.classes.index("negative"),), labels)


def _template_sets(found: ClassifierOutcomes) -> dict[str, list[int]]:
    """Return the numbers of all templates together, then of each."""
    each = {name: [at] for at, name in enumerate(found.templates)}
    return {ALL: [at for (at,) in each.values()]} | (each if len(each) > 1 else {})


def _condition_classes(classifiers: Sequence[ClassifierOutcomes], *, seed: int) -> Iterator[Finding]:
    """Yield the share of negative outcomes of each condition (figures 10 to 12), over all and for each."""
    roster = classifiers[0].roster
    overall = measures.negative_shares(classifiers)
    order = [int(c) for c in np.lexsort((-overall, ~roster.stigmatized))]  # stigmatized first, as in every chart
    of_each = {found.model: measures.negative_shares([found]) for found in classifiers}
    if len(classifiers) > 1:
        rng, draws = model_rng(seed, ALL_CLASSIFIERS), classifiers[0].draws
        numbers = mean_interval(np.stack(list(of_each.values())), rng=rng, draws=draws).as_share()
        for c in order:
            labels = {"model": ALL_CLASSIFIERS, **roster.labels(c)}
            yield replace(numbers, estimate=overall).finding((c,), labels)
    for found in classifiers:
        counts = np.bincount(roster.condition_of) * len(found.templates)
        for c in order:
            labels = {"model": found.model, **roster.labels(c)}
            yield Finding(labels=labels, estimate=float(of_each[found.model][c]), n=int(counts[c]))


def _both_measures(attitude: Floats, shares: Floats, roster: Roster) -> Iterator[Finding]:
    for c in range(len(roster.names)):
        labels = {**roster.labels(c), "negative_attitude": float(attitude[c])}
        yield Finding(labels=labels, estimate=float(shares[c]), n=1)


def _correlations(attitude: Floats, shares: Floats, roster: Roster) -> Iterator[Finding]:
    """Yield Pearson's correlation over all conditions (§5.3), then within each group."""
    parts = {ALL: np.ones(len(attitude), dtype=np.bool_), **roster.members()}
    for name, members in parts.items():
        r = pearson_interval(attitude[members], shares[members])
        yield Finding(labels={"conditions": name}, estimate=r.estimate, low=r.low, high=r.high, p=r.p, n=r.n)


def _distance_difference(found: ChatAnswers) -> list[Finding]:
    gap = difference(found.overall, found.roster.stigmatized, rng=found.rng, draws=found.draws)
    return [gap.finding((), {"model": found.model, "measure": DISTANCE, "template": ALL})]


def _distance_levels(found: ChatAnswers) -> Iterator[Finding]:
    values = {group: found.overall[members] for group, members in found.roster.members().items()}
    for group, of_group in (values | {BASELINE: found.baseline}).items():
        numbers = mean_interval(of_group, rng=found.rng, draws=found.draws)
        yield found.on_scale(numbers).finding((), {"model": found.model, "group": group})


def _readings(found: ChatAnswers) -> Iterator[Finding]:
    for group in found.roster.members():
        numbers = measures.reading_shares(found, group)
        for at, reading in enumerate(found.readings):
            yield numbers.finding((at,), {"model": found.model, "group": group, "reading": reading})
