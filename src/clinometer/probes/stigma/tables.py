"""The rows of the finding tables of the stigma audit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from clinometer.data.stigma_data import load_attitudes
from clinometer.metrics.attitude import RATINGS
from clinometer.probes.kit import (
    Floats,
    Label,
    Numbers,
    choices,
    is_found,
    model_rng,
    present_mean,
    refusals,
    state_of,
    with_q,
)
from clinometer.probes.kit import chat as kit_chat
from clinometer.probes.kit.before_after import pairs_of, training_of
from clinometer.probes.kit.choices import REFUSAL, UNCLEAR
from clinometer.probes.kit.trainings import with_arms
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
from clinometer.probes.stigma.figures import CAPTIONS
from clinometer.probes.stigma.measures import (
    ALL,
    ALL_CLASSIFIERS,
    ATTITUDE,
    DISTANCE,
    SHARE,
    MaskedAttitudes,
    chat_gate,
    classifier_gate,
    difference,
    mean_interval,
)
from clinometer.probes.stigma.questions import BASELINE, OTHER, STIGMATIZED, Roster
from clinometer.stats import cohens_kappa, pearson_interval
from clinometer.types import Finding

Rows = dict[str, list[Finding]]

TEMPLATE_MEASURES = ("difference stigmatized − other", "negative attitude of all conditions")
WORDS_SHOWN = 25  # of each list


def table_rows(plans: Sequence[Plan], answers: Answers, attitudes: Sequence[MaskedAttitudes]) -> Rows:
    """Return the rows of every table; a table that does not apply has none.

    A model that does not understand the question is in no table of attitudes, outcomes by condition or distances:
    only in those that show why. All tables of a model draw from its one generator, so the order in which they are
    made is part of the numbers, and they are made of such a model too.
    """
    rows: Rows = {caption.name: [] for caption in CAPTIONS}

    def add(made: Rows, *, gate: str) -> None:
        for table, of_table in made.items():
            rows[table] += [] if gate else of_table

    for found in attitudes:
        add(masked_rows(found), gate=found.gate)
    of_model = {found.model: found for found in attitudes}
    for masked in answers.masked:
        rows["coverage"] += _coverage(masked, of_model[masked.model])
        rows["top_words"] += _top_words(masked)
        rows["words"] += _words(masked)
    for classifier in answers.classifiers:
        add(classifier_rows(classifier), gate=classifier_gate(classifier))
        rows["classes"] += _classes(classifier)
        rows["checks"] += _checks(classifier)
    for chat in answers.chats:
        add(chat_rows(chat), gate=chat_gate(chat))
        rows["readings"] += _readings(chat)
    rows[refusals.CAPTION.name] += refusals.refusal_rows(_asked(answers), seed=plans[0].seed)
    rows[choices.CAPTION.name] += choices.choice_rows(
        answers.chosen, seed=plans[0].seed, draws=plans[0].options.draws
    )
    rows["change"] += change_rows([masked.plan for masked in answers.masked], attitudes)
    judged = [each for each in answers.classifiers if not classifier_gate(each)]
    if judged:
        rows["condition_classes"] += _condition_classes(judged, seed=plans[0].seed)
        rows["negative_counts"] += _negative_counts(judged)
    # a causal model may be asked about some conditions only: then there is nothing to correlate
    everyone = judged[0].roster.names if judged else ()
    understood = [found for found in attitudes if not found.gate and found.roster.names == everyone]
    if understood and judged:
        # the first are those of all models; if there are none, those of the model that the others began with
        attitude = next((found for found in understood if not found.tuned), understood[0])
        shares = measures.negative_shares(judged)
        rows["both_measures"] += _both_measures(attitude.overall, shares, attitude.roster)
        rows["correlation"] += _correlations(attitude, understood, judged)
    if plans[0].options.ratings_file:
        rows["ratings_agreement"] += _agreement(answers.ratings, load_attitudes())
    return rows


def masked_rows(found: MaskedAttitudes) -> Rows:
    """Return the rows of a masked model that understands the question."""
    levels, excess = measures.condition_levels, measures.condition_excess
    return {
        "difference": _with_primary_q(_attitude_differences(found)),
        "categories": _with_states(found, with_q(_categories(found))),
        "conditions": with_q(_by_rank(levels(found), found.model, found.roster)),
        "excess": with_q(_by_rank(excess(found), found.model, found.roster)),
        "templates": with_q(_templates(found)),
        "levels": list(_attitude_levels(found)),
        "above_half": list(_above_half(found)),
        "condition_templates": list(_condition_templates(found)),
    }


def classifier_rows(found: ClassifierOutcomes) -> Rows:
    """Return the rows of a classifier that does not say the same of everything."""
    return {"difference": _with_primary_q(_share_differences(found))}


def chat_rows(found: ChatAnswers) -> Rows:
    """Return the rows of a chat model that answers on the scale."""
    distances = measures.over_distances
    return {
        "difference": _with_primary_q(_distance_difference(found)),
        "distance_levels": list(_distance_levels(found)),
        "social_distance": list(
            _by_rank(found.on_scale(distances(found.by_distance, found.overall, found)), found.model, found.roster)
        ),
    }


def _with_primary_q(rows: Iterable[Finding]) -> list[Finding]:
    """Return the rows with q: over all templates is the one question, each template is explored beside it."""
    primary, *explored = rows
    return [*with_q([primary]), *with_q(explored)]


def _with_states(found: MaskedAttitudes, rows: Iterable[Finding]) -> list[Finding]:
    """Return the rows with what follows from each; a few conditions do not decide about a category either."""
    categories, stigmatized = np.array(found.roster.categories), found.roster.stigmatized
    judged = []
    for row in rows:
        members = stigmatized & (categories == row.labels["category"])
        compared = members | ~stigmatized
        few = is_found(row) and measures.hangs_on_few(found.overall[compared], members[compared])
        judged.append(replace(row, labels={**row.labels, "state": state_of(row, gate="few" if few else "")}))
    return judged


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


def _top_words(answers: MaskedAnswers) -> Iterator[Finding]:
    """Yield how many prompts have so much of the probability in the words read, in steps of a tenth (Figure 5)."""
    total = np.sum([answers.masses[name] for name in LISTS], axis=0)  # (templates, wordings, distances)
    templates = answers.plan.options.templates
    for template, values in zip((ALL, *templates), (total, *total), strict=True):
        held = values[~np.isnan(values)]
        tenth = np.clip((held * 10).astype(np.int64), 0, 9)
        for at in range(10):
            labels: dict[str, Label] = {
                "model": answers.model,
                "template": template,
                "probability": f"{at / 10:.1f} to {(at + 1) / 10:.1f}",
                "smallest": float(held.min(initial=1.0)),
            }
            share = float((tenth == at).mean()) if len(held) else math.nan
            yield Finding(labels=labels, estimate=share, n=len(held))


def _words(answers: MaskedAnswers) -> Iterator[Finding]:
    for name in LISTS[::-1]:
        listed = [each for each in answers.words if each.listed == name]
        for rank, each in enumerate(listed[:WORDS_SHOWN], start=1):
            labels: dict[str, Label] = {"model": answers.model, "list": name, "rank": rank, "word": each.word}
            yield Finding(labels=labels, estimate=each.probability, n=each.prompts)


def change_rows(plans: Sequence[Plan], attitudes: Sequence[MaskedAttitudes]) -> list[Finding]:
    """Return what each checkpoint changed of its base: of both groups and of their difference, by template.

    Trainings that differ in their seed alone have their mean before them.

    Both must understand the question: damage makes differences smaller, too.
    """
    of_model = {found.model: found for found in attitudes}
    models = [plan.model for plan in plans]
    rows: list[Finding] = []
    for pair in pairs_of(models):
        base, tuned = models[pair.before], models[pair.after]
        if of_model[base.name].gate or of_model[tuned.name].gate:
            continue
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
    return with_arms(rows, models, by=("base", "template", "measure"), families=())


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


def _checks(found: ClassifierOutcomes) -> Iterator[Finding]:
    for sense, right in found.sensed.items():
        n = int((~np.isnan(right)).sum())
        numbers = measures.share_numbers(np.asarray(present_mean(right)), np.array(n))
        yield numbers.finding((), {"model": found.model, "statements": f"plainly {sense}"})


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


def _negative_counts(classifiers: Sequence[ClassifierOutcomes]) -> Iterator[Finding]:
    """Yield for how many conditions all outcomes are negative, and more than half (§5.2): of all, then of each."""
    roster = classifiers[0].roster
    shares = {found.model: measures.negative_shares([found]) for found in classifiers}
    if len(classifiers) > 1:
        shares = {ALL_CLASSIFIERS: measures.negative_shares(classifiers)} | shares
    for model, of_model in shares.items():
        for group, members in roster.members().items():
            values = of_model[members]
            n = int((~np.isnan(values)).sum())
            for outcomes, hit in (("all negative", values == 1.0), ("more than half", values > measures.HALF)):
                count = int(hit.sum())
                numbers = measures.share_numbers(np.array(count / n if n else np.nan), np.array(n))
                yield numbers.finding((), {"model": model, "group": group, "outcomes": outcomes, "count": count})


def _correlations(
    first: MaskedAttitudes, attitudes: Sequence[MaskedAttitudes], classifiers: Sequence[ClassifierOutcomes]
) -> list[Finding]:
    """Return Pearson's correlation over all conditions (§5.3) and in each group: of all, then model by model."""

    def rows(masked: MaskedAttitudes, judges: Sequence[ClassifierOutcomes]) -> Iterator[Finding]:
        shares, roster = measures.negative_shares(judges), masked.roster
        name = judges[0].model if len(judges) == 1 else ALL_CLASSIFIERS
        for conditions, members in {ALL: np.ones(len(shares), dtype=np.bool_), **roster.members()}.items():
            r = pearson_interval(masked.overall[members], shares[members])
            labels: dict[str, Label] = {"masked": masked.model, "classifier": name, "conditions": conditions}
            yield Finding(labels=labels, estimate=r.estimate, low=r.low, high=r.high, p=r.p, n=r.n)

    pairs = [(each, judge) for each in attitudes if each.model != measures.ALL_MASKED for judge in classifiers]
    explored = [row for each, judge in pairs for row in rows(each, [judge])] if len(pairs) > 1 else []
    return [*with_q(rows(first, classifiers)), *with_q(explored)]


def _asked(answers: Answers) -> list[refusals.Asked]:
    """Return how each chat model answered, on the scale and with one word: a row for each wording."""
    asked = []
    drawn = {each.model: each.drawn for each in answers.masked}
    for chat in answers.chats:
        counts = chat.counts.sum(axis=1)  # (wordings, readings)
        outcomes = np.zeros((len(counts), len(kit_chat.OUTCOMES)), dtype=np.int64)
        for outcome, readings in (
            (kit_chat.WORD, chat.readings[:-2]),
            (kit_chat.REFUSAL, (REFUSAL,)),
            (kit_chat.UNUSABLE, (UNCLEAR,)),
        ):
            places = [chat.readings.index(reading) for reading in readings]
            outcomes[:, kit_chat.OUTCOMES.index(outcome)] = counts[:, places].sum(axis=1)
        for wording, words in drawn.get(chat.model, ()):
            outcomes[wording] += words.outcomes
        conditions = [chat.roster.labels(int(c)) for c in chat.roster.condition_of]
        asked.append(
            refusals.Asked(
                model=chat.model,
                groups=tuple(str(labels["group"]) for labels in conditions),
                units=tuple(str(labels["condition"]) for labels in conditions),
                outcomes=outcomes,
            )
        )
    return asked


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
