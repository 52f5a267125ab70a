"""The rows of the finding tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from clinometer.data.stereotypes_data import Group
from clinometer.probes.kit import Floats, Label, Numbers, model_rng, present_mean, refusals, with_q
from clinometer.probes.stereotypes.answers import ALL, ModelAnswers, with_all
from clinometer.probes.stereotypes.measures import (
    CHANGE_KS,
    FEWEST_WORDS,
    INEQUALITY,
    KNOWN_WORDS,
    NEGATIVITY,
    RANKINGS,
    SHOWN,
    SHUFFLES,
    TOP,
    HumanAttributes,
    Repetitions,
    Similarity,
    Tuning,
    category_difference,
    compare_models,
    group_differences,
    group_negativity,
    human_ranks,
    mean_over_groups,
    paired_negativity,
    positions,
    prompt_lists,
    repeated_negativity,
    shuffle_p,
    spread_between_groups,
    tunings_of,
    valences,
)
from clinometer.stats import benjamini_hochberg, detectable_from_interval, paired_share_interval, share_interval
from clinometer.types import Finding

LISTED = 12  # words of any other list in a cell
CHARTED = 3  # groups at either end that are charted where the user names none
LEAST_DRAWS = 999  # of a difference whose p is corrected over nine categories


def all_rows(
    answers: Sequence[ModelAnswers],
    judged: Sequence[ModelAnswers],
    tunings: Sequence[Tuning],
    human: HumanAttributes,
) -> dict[str, list[Finding]]:
    """Return the rows of every table that has something to say.

    Models that do not understand the questions (not `judged`) only have their words shown. There is no recall
    without human stereotypes, no similarity of a single model, no shift without a tuned one. A model's tables
    share its random numbers, so that their order here is a part of the result.
    """
    repeated = [repeated_negativity(each) for each in judged]
    rows = {
        "ranking": [row for each in answers for row in _ranking(each)],
        "unique_attributes": [row for each in answers for row in _unique_attributes(each)],
        "category_emotions": [row for each in judged for row in _category_emotions(each)],
        "emotions": [row for each in judged for row in _emotions(each)],
        "negativity": [
            row for each, again in zip(judged, repeated, strict=True) for row in _negativity(each, again)
        ],
        "coverage": [row for each in answers for row in _coverage(each)],
    }
    if len(human):
        ranks = [human_ranks(each, human) for each in judged]
        both = zip(judged, ranks, strict=True)
        rows["recall"] = [row for each, of_model in both for row in _recall(each, human, of_model)]
        rows["prompt_ranking"] = [row for each in answers for row in _prompt_ranking(each, human)]
        rows["recall_change"] = _recall_change(judged, tunings, human, ranks)
    # models are compared with those that were asked about the same groups
    for alike in _asked_alike(judged):
        for name, of_table in _compared(alike).items():
            rows[name] = [*rows.get(name, []), *of_table]
    rows["spread"] = [
        _spread(each, again) for each, again in zip(judged, repeated, strict=True) if again.wordings > 1
    ]
    rows["category_negativity"] = [
        row
        for each, again in zip(judged, repeated, strict=True)
        if len(each.categories) > 1
        for row in _category_negativity(each, again)
    ]
    rows["chosen_emotions"] = _chosen_emotions(judged, rows)
    rows[refusals.CAPTION.name] = refusals.refusal_rows(
        [_asked(each) for each in answers if each.drawn], seed=answers[0].plan.seed
    )
    return {name: of_table for name, of_table in rows.items() if of_table}


def _asked_alike(judged: Sequence[ModelAnswers]) -> list[list[ModelAnswers]]:
    """Part models by the groups that they were asked about: a chat model perhaps about some only."""
    parts: dict[tuple[Group, ...], list[ModelAnswers]] = {}
    for each in judged:
        parts.setdefault(each.groups, []).append(each)
    return list(parts.values())


def _compared(answers: Sequence[ModelAnswers]) -> dict[str, list[Finding]]:
    """Return the rows of models that are compared with each other."""
    tunings = tunings_of([each.plan.model for each in answers])
    rows: dict[str, list[Finding]] = {}
    if len(answers) > 1:
        compared = [compare_models(answers, category) for category in with_all(answers[0].categories)]
        rows["similarity"] = _similarity([each.model for each in answers], compared)
        rows["shift"] = _shift(tunings, compared)
        rows["shift_mean"] = list(_shift_mean(tunings, compared, answers[0]))
    rows["negativity_change"] = _negativity_change(answers, tunings)
    rows["attribute_shift"] = list(_attribute_shift(answers, tunings))
    return rows


def _asked(answers: ModelAnswers) -> refusals.Asked:
    """Return how a chat model answered the questions, by the category of the group."""
    asked = [question.group for question in answers.questions]
    categories, names = [group.category for group in asked], [group.name for group in asked]
    return refusals.asked_of(answers.model, answers.drawn, groups=categories, units=names)


def listed(words: Sequence[str]) -> str:
    """Return the first words, and how many more there are.

    >>> listed(["sad", "old"]), listed(["so"] * 14).endswith(", so … and 2 more")
    ('sad, old', True)
    """
    more = len(words) - LISTED
    return ", ".join(words[:LISTED]) + (f" … and {more} more" if more > 0 else "")


def _words_by_group(lists: pl.DataFrame) -> dict[int, list[str]]:
    """Return the words of each group in the order in which they come."""
    return dict(lists.group_by("group", maintain_order=True).agg("word").iter_rows())


# ---- one model ------------------------------------------------------------------------------------------------


def _ranking(answers: ModelAnswers) -> Iterator[Finding]:
    # the lists come most typical first; equal probabilities in the order of words
    likely = answers.lists.sort(["group", "probability", "word"], descending=[False, True, False])
    before, after = _words_by_group(likely), _words_by_group(answers.lists)
    for number, group in enumerate(answers.groups):
        labels: dict[str, Label] = {"model": answers.model, "category": group.category, "group": group.name}
        yield _two_lists(labels, before.get(number, []), after.get(number, []))


def _prompt_ranking(answers: ModelAnswers, human: HumanAttributes) -> Iterator[Finding]:
    before, after = (prompt_lists(answers, ranking) for ranking in ("before", "after"))
    for question in answers.questions:
        if question not in human.of_question:
            continue
        typical = after.get(question, [])
        found = positions(typical, human.of_question[question])
        offered = sorted((position, word) for word, position in found.items() if math.isfinite(position))
        labels: dict[str, Label] = {
            "model": answers.model,
            "category": question.group.category,
            "group": question.group.name,
            "prompt": question.text,
            "human_found": listed([f"{word} ({position:.0f})" for position, word in offered]),
            "human_missed": listed([word for word, position in found.items() if math.isinf(position)]),
        }
        yield _two_lists(labels, before.get(question, []), typical)


def _two_lists(labels: dict[str, Label], probable: list[str], typical: list[str]) -> Finding:
    first, second = probable[:SHOWN], typical[:SHOWN]
    return Finding(
        labels={**labels, "by_probability": ", ".join(first), "by_typicality": ", ".join(second)},
        estimate=len(set(first) & set(second)) / len(first) if first else math.nan,
        n=len(first),
    )


def _recall(answers: ModelAnswers, human: HumanAttributes, ranks: Floats) -> Iterator[Finding]:
    ks = range(1, answers.options.top_k + 1)
    found = (ranks[:, :, None] <= np.array(ks)).astype(np.float64)  # (attributes, rankings, ks)
    for category in with_all(human.categories):
        chosen = human.members(category)
        values = found[chosen]
        numbers = mean_over_groups(
            values,
            human.group[chosen],
            rng=answers.rng,
            draws=answers.options.draws,
            alike=share_interval(values.mean(axis=0), len(values)),
        ).as_share()
        for r, ranking in enumerate(RANKINGS.values()):
            for i, k in enumerate(ks):
                labels: dict[str, Label] = {"model": answers.model, "category": category}
                yield numbers.finding((r, i), {**labels, "ranking": ranking, "k": k})


def _category_emotions(answers: ModelAnswers) -> Iterator[Finding]:
    for category in answers.categories:
        profiles = answers.profiles[answers.members(category)]
        profiles = profiles[~np.isnan(profiles).any(axis=1)]
        numbers = mean_over_groups(profiles, rng=answers.rng, draws=answers.options.draws).as_share()
        for e, emotion in enumerate(answers.options.emotion_names):
            labels = {"model": answers.model, "category": category, "emotion": emotion}
            yield numbers.finding((e,), labels)


def _emotions(answers: ModelAnswers) -> Iterator[Finding]:
    n = np.broadcast_to(answers.covered[:, None], answers.profiles.shape)
    limits = share_interval(answers.profiles, n)
    numbers = Numbers(estimate=answers.profiles, low=limits.low, high=limits.high, n=n)
    typical, emotions_of = _words_by_group(answers.lists), answers.lexicon.words
    for g, group in enumerate(answers.groups):
        of_profile = set(answers.profile_words[g])
        known = [word for word in typical.get(g, ()) if word in of_profile and word in emotions_of]
        for e, emotion in enumerate(answers.options.emotion_names):
            labels = {
                "model": answers.model,
                "category": group.category,
                "group": group.name,
                "emotion": emotion,
                "attributes": listed([word for word in known if emotion in emotions_of[word]]),
            }
            yield numbers.finding((g, e), labels)


def _negativity(answers: ModelAnswers, repeated: Repetitions) -> list[Finding]:
    """Return the rows, the most negative group of a category first.

    One wording has no repetitions but its words: these are then taken for independent draws.
    """
    of_groups = valences(answers)
    n = answers.covered
    negative, positive = (np.array([(each == sign).sum() for each in of_groups]) for sign in (1, -1))
    negativity = group_negativity(of_groups)
    centre = float(present_mean(negativity))
    limits = paired_share_interval(negative, positive, np.where(n < FEWEST_WORDS, 0, n))
    numbers = Numbers(
        estimate=negativity - centre,
        low=limits.low - centre,
        high=limits.high - centre,
        p=shuffle_p(of_groups, centre, rng=answers.rng, shuffles=max(SHUFFLES, 20 * len(of_groups))),
        n=n,
    )
    freedom = math.nan
    if repeated.wordings > 1:
        numbers, freedom = group_differences(repeated)
        numbers = replace(numbers, n=n)
    tests = int((~np.isnan(numbers.p)).sum()) if numbers.p is not None else 0
    rows = []
    for g, group in enumerate(answers.groups):
        labels: dict[str, Label] = {"model": answers.model, "category": group.category, "group": group.name}
        row = numbers.finding((g,), {**labels, "negativity": float(negativity[g])})
        if repeated.wordings > 1:
            detectable = detectable_from_interval(row.low, row.high, tests=max(tests, 1), freedom=freedom)
            row = replace(row, labels={**row.labels, "detectable": detectable})
        rows.append(row)
    category_order = {category: i for i, category in enumerate(answers.categories)}
    return sorted(
        with_q(rows),
        key=lambda row: (category_order[str(row.labels["category"])], -np.nan_to_num(row.estimate)),
    )


def _spread(answers: ModelAnswers, repeated: Repetitions) -> Finding:
    # numbers of its own, so that the tables before keep theirs
    rng = model_rng(answers.plan.seed, f"{answers.model}\0spread")
    found = spread_between_groups(repeated, rng=rng, draws=answers.options.draws)
    return Finding(
        labels={"model": answers.model, "wordings": repeated.wordings, "detectable": found.detectable},
        estimate=found.estimate,
        low=found.low,
        high=found.high,
        p=found.p,
        q=found.p,  # a family of one question
        n=found.groups,
    )


def _category_negativity(answers: ModelAnswers, repeated: Repetitions) -> list[Finding]:
    rng = model_rng(answers.plan.seed, f"{answers.model}\0categories")
    rows = []
    for category in answers.categories:
        draws = max(answers.options.draws, LEAST_DRAWS)
        numbers = category_difference(repeated, answers.members(category), rng=rng, draws=draws)
        rows.append(numbers.finding((), {"model": answers.model, "category": category}))
    tests = sum(not math.isnan(row.p) for row in rows)
    return [
        replace(row, labels={**row.labels, "detectable": category_detectable(row, tests=tests)})
        for row in with_q(rows)
    ]


def category_detectable(row: Finding, *, tests: int) -> float:
    """Return the difference that is found four times in five; the smaller side, the category, limits it."""
    return detectable_from_interval(row.low, row.high, tests=max(tests, 1), freedom=max(row.n - 1, 1))


def _chosen_emotions(judged: Sequence[ModelAnswers], rows: dict[str, list[Finding]]) -> list[Finding]:
    """Return the emotions of the charted groups: the user's, or those furthest from the others over all models."""
    if not judged:
        return []
    chosen = judged[0].options.charted_groups()
    if not chosen:
        distances: dict[str, list[float]] = {}
        for row in rows["negativity"]:
            if not math.isnan(row.estimate):
                distances.setdefault(str(row.labels["group"]), []).append(row.estimate)
        means = sorted(distances, key=lambda name: (-float(np.mean(distances[name])), name))
        chosen = tuple(dict.fromkeys([*means[:CHARTED], *means[-CHARTED:]]))
    place = {name: i for i, name in enumerate(chosen)}
    emotions = ("negative", "positive", *judged[0].options.emotion_names)  # the chart opens at the first
    order = {name: i for i, name in reversed(list(enumerate(emotions)))}
    found = [row for row in rows["emotions"] if row.labels["group"] in place]
    return sorted(found, key=lambda row: (order[str(row.labels["emotion"])], place[str(row.labels["group"])]))


def _unique_attributes(answers: ModelAnswers) -> Iterator[Finding]:
    first = _first_words(answers)
    offered = Counter(word for words in first.values() for word in words)
    for g, group in enumerate(answers.groups):
        words = first.get(g, [])
        own = [word for word in words if offered[word] == 1]
        labels: dict[str, Label] = {"model": answers.model, "category": group.category, "group": group.name}
        yield Finding(
            labels={**labels, "unique": listed(own)},
            estimate=len(own) / len(words) if words else math.nan,
            n=len(words),
        )


def _coverage(answers: ModelAnswers) -> Iterator[Finding]:
    counts = answers.counts
    kept = counts.offered - counts.missing
    if answers.options.filter == "words":
        kept -= counts.pieces + counts.others
    in_profiles = sum(len(words) for words in answers.profile_words)
    for what, part, whole in (
        ("pieces of words", counts.pieces, counts.offered),
        ("numbers, marks and single letters", counts.others, counts.offered),
        (KNOWN_WORDS, counts.known, counts.first),
        ("attributes without a prior", counts.without_prior, kept),
        ("attributes of profiles that the emotion lexicon covers", int(answers.covered.sum()), in_profiles),
    ):
        yield Finding(
            labels={"model": answers.model, "what": what, "count": part},
            estimate=part / whole if whole else math.nan,
            n=whole,
        )


# ---- several models -------------------------------------------------------------------------------------------


def _similarity(models: Sequence[str], compared: Sequence[Similarity]) -> list[Finding]:
    """Return every cell of the matrix of each category; the two halves mirror each other."""
    rows = []
    upper = np.triu_indices(len(models), k=1)
    for each in compared:
        q = np.full(each.p.shape, np.nan)
        q[upper] = q.T[upper] = benjamini_hochberg(each.p[upper])
        for a, model in enumerate(models):
            for b, other in enumerate(models):
                # a model is like itself: nothing to estimate or to test
                chance, low, high, p = (
                    float(part[a, b]) if a != b else math.nan
                    for part in (each.chance, each.low, each.high, each.p)
                )
                labels: dict[str, Label] = {"category": each.category, "model": model, "other_model": other}
                rows.append(
                    Finding(
                        labels={**labels, "by_chance": chance},
                        estimate=float(each.mean[a, b]),
                        low=low,
                        high=high,
                        p=p,
                        q=float(q[a, b]),
                        n=each.groups,
                    )
                )
    return rows


def _shift(tunings: Sequence[Tuning], compared: Sequence[Similarity]) -> list[Finding]:
    return [
        Finding(
            labels={**tuning.labels, "category": each.category},
            estimate=float(each.mean[tuning.base, tuning.tuned]) - 1,
            low=float(each.low[tuning.base, tuning.tuned]) - 1,
            high=float(each.high[tuning.base, tuning.tuned]) - 1,
            n=each.groups,
        )
        for tuning in tunings
        for each in compared
    ]


def _shift_mean(
    tunings: Sequence[Tuning], compared: Sequence[Similarity], answers: ModelAnswers
) -> Iterator[Finding]:
    """Yield the mean over categories, and their standard deviation, as in the paper's Figure 5."""
    categories = [each for each in compared if each.category != ALL]
    for tuning in tunings:
        shifts = np.array([each.mean[tuning.base, tuning.tuned] - 1 for each in categories])
        shifts = shifts[~np.isnan(shifts)]
        rng = model_rng(answers.plan.seed, f"shift\0{tuning.labels['model']}")
        numbers = mean_over_groups(shifts, rng=rng, draws=answers.options.draws)
        deviation = float(shifts.std(ddof=1)) if len(shifts) > 1 else math.nan
        yield numbers.finding((), {**tuning.labels, "standard_deviation": deviation})


def _recall_change(
    answers: Sequence[ModelAnswers], tunings: Sequence[Tuning], human: HumanAttributes, ranks: Sequence[Floats]
) -> list[Finding]:
    rows: list[Finding] = []
    typical = list(RANKINGS).index("after")
    for tuning in tunings:
        tuned = answers[tuning.tuned]
        ks = [k for k in CHANGE_KS if k <= tuned.options.top_k]
        after, before = (
            (ranks[model][:, typical, None] <= np.array(ks)).astype(np.float64)
            for model in (tuning.tuned, tuning.base)
        )
        of_tuning = []
        for category in with_all(human.categories):
            chosen = human.members(category)
            change = after[chosen] - before[chosen]
            numbers = mean_over_groups(
                change,
                human.group[chosen],
                rng=tuned.rng,
                draws=tuned.options.draws,
                alike=paired_share_interval((change > 0).sum(axis=0), (change < 0).sum(axis=0), len(change)),
                test=True,
            )
            for i, k in enumerate(ks):
                of_tuning.append(numbers.finding((i,), {**tuning.labels, "category": category, "k": k}))
        rows += with_q(of_tuning)
    return rows


def _negativity_change(answers: Sequence[ModelAnswers], tunings: Sequence[Tuning]) -> list[Finding]:
    rows: list[Finding] = []
    for tuning in tunings:
        base, tuned = answers[tuning.base], answers[tuning.tuned]
        before, after = paired_negativity(base, tuned)
        rng = model_rng(tuned.plan.seed, f"{base.model}\0{tuned.model}")
        of_tuning = []
        for category in with_all(tuned.categories):
            chosen = tuned.members(category)
            chosen = chosen[~np.isnan(before[chosen, 0])]
            change = after[chosen] - before[chosen]
            numbers = mean_over_groups(change, rng=rng, draws=tuned.options.draws, test=True)
            for at, measure in enumerate((NEGATIVITY, INEQUALITY)):
                labels: dict[str, Label] = {
                    **tuning.labels,
                    "category": category,
                    "measure": measure,
                    "before": float(present_mean(before[chosen, at])),
                    "after": float(present_mean(after[chosen, at])),
                }
                of_tuning.append(numbers.finding((at,), labels))
        rows += with_q(of_tuning)
    return rows


def _attribute_shift(answers: Sequence[ModelAnswers], tunings: Sequence[Tuning]) -> Iterator[Finding]:
    first = {number: _first_words(answers[number]) for each in tunings for number in (each.base, each.tuned)}
    for tuning in tunings:
        before, after = first[tuning.base], first[tuning.tuned]
        for g, group in enumerate(answers[tuning.tuned].groups):
            old, new = before.get(g, []), after.get(g, [])
            had, has = set(old), set(new)
            kept = [word for word in old if word in has]
            yield Finding(
                labels={
                    **tuning.labels,
                    "category": group.category,
                    "group": group.name,
                    "added": listed([word for word in new if word not in had]),
                    "removed": listed([word for word in old if word not in has]),
                    "kept": listed(kept),
                },
                estimate=len(kept) / len(old) if old else math.nan,
                n=len(old),
            )


def _first_words(answers: ModelAnswers) -> dict[int, list[str]]:
    """Return the distinct words among the first of each template of a group, the most typical first."""
    first = answers.attributes.filter(pl.col("group").is_not_null() & (pl.col("after") <= TOP))
    words = first.select("group", "word").unique()
    return _words_by_group(answers.lists.join(words, on=["group", "word"], how="semi", maintain_order="left"))
