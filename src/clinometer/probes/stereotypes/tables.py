"""The finding tables: their captions, and the rows of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from clinometer.probes.kit import Caption, Floats, Label, Numbers, model_rng, present_mean, with_q
from clinometer.probes.stereotypes.answers import ModelAnswers, with_all
from clinometer.probes.stereotypes.measures import (
    FEWEST_GROUPS,
    FEWEST_WORDS,
    INEQUALITY,
    NEGATIVITY,
    RANKINGS,
    SHUFFLES,
    HumanAttributes,
    Similarity,
    Tuning,
    compare_models,
    group_negativity,
    human_ranks,
    mean_over_groups,
    paired_negativity,
    positions,
    prompt_lists,
    shuffle_p,
    valences,
)
from clinometer.stats import benjamini_hochberg, paired_share_interval, share_interval
from clinometer.types import Finding

SHOWN = 10  # words of a ranking
LISTED = 12  # words of any other list in a cell
TOP = 15  # attributes of each template that are compared before and after tuning, as in the paper's Figure 7
CHANGE_KS = (1, 5, 10, 25, 50, 100, 200)

CAPTIONS = (
    Caption(
        name="ranking",
        title="Attributes before and after re-ranking",
        text=(
            f"The first {SHOWN} attributes of each group by probability and by typicality. Both are means over "
            "the templates; a template that does not offer a word counts as 0. The estimate is the share of "
            "words that appear in both lists. A description: no interval and no test. n: words listed."
        ),
    ),
    Caption(
        name="prompt_ranking",
        title="Each prompt of the human data set, before and after re-ranking",
        text=(
            f"The first {SHOWN} words at each prompt by probability and by typicality (the paper's Table 2). "
            "human found: the human stereotypes that the model offers there, with their position by typicality; "
            "human missed: those that it does not offer. The estimate is the share of words that appear in both "
            "lists. A description: no interval and no test. n: words listed."
        ),
    ),
    Caption(
        name="recall",
        title="Recall@k of human stereotypes",
        text=(
            "Share of the human stereotypes that appear among the first k words of the prompt they were collected "
            "with; spelling must match, case does not matter. by typicality: re-ranked (the paper's Figure 1); by "
            "probability: as the model ranks them. 'all' gives every stereotype the same weight. Intervals: 95 %, "
            f"bootstrap over groups, then over their stereotypes; none for fewer than {FEWEST_GROUPS} groups; "
            "Wilson where none or all are found. Nothing is tested (p and q are empty). n: human stereotypes."
        ),
    ),
    Caption(
        name="category_emotions",
        title="Mean share with the emotion",
        text=(
            "Emotions by category: the mean of the emotion profiles of its groups. Intervals: 95 %, bootstrap "
            f"over groups; none for fewer than {FEWEST_GROUPS}. Nothing is tested. n: groups with a profile."
        ),
    ),
    Caption(
        name="emotions",
        title="Share with the emotion",
        text=(
            "Emotion profile (Eq. 4): among the distinct attributes that the templates bring up and the lexicon "
            "covers, the share that has the emotion. attributes: those that have it, the most typical first. "
            "Intervals: 95 %, Wilson, as if attributes were drawn independently. Nothing is tested; for positive "
            "and negative see the table of negativity. n: covered attributes."
        ),
    ),
    Caption(
        name="negativity",
        title="Negativity: difference from the mean of all groups",
        text=(
            "negativity: share of negative minus share of positive attributes, among those that the lexicon "
            "covers. The estimate is that minus the mean over all groups of the audit: above 0, the model's "
            "attributes for the group are more negative than for others. Intervals: 95 %, Bonett and Price, as if "
            "attributes were drawn independently and the mean of all groups were known. p: attributes of all "
            "groups shuffled over the groups, two-sided. q: Benjamini–Hochberg over all groups of a model. No "
            f"interval and no test for fewer than {FEWEST_WORDS} covered attributes. n: covered attributes."
        ),
    ),
    Caption(
        name="similarity",
        title="Similarity of models (ρ)",
        text=(
            "Representational similarity: cosines between the groups' emotion profiles within a model, Spearman "
            "correlation of each group's cosines between two models, mean over groups. by_chance: the mean when "
            "the groups of one model are shuffled; it is above 0, most of all for few groups, when a group's "
            "similarity to itself is kept, as the paper's authors do. Intervals: 95 %, jackknife over groups. p: "
            "that shuffle, one-sided. q: Benjamini–Hochberg over the pairs of models, category by category. "
            "n: groups that have a profile in every model."
        ),
    ),
    Caption(
        name="shift",
        title="Shift by tuning (Δρ)",
        text=(
            "Similarity of a tuned model with the model it began with, minus 1 (the paper's Table 4): 0 is no "
            "change. amount: the part of the corpus it was tuned on, or, for a mitigated model, λ, the weight "
            "of the fairness loss; λ = 0 is the control, trained the same way without that loss. Where no "
            "relation is left, the shift is by_chance of the similarity table minus 1. Intervals: 95 %, "
            "jackknife over groups. Nothing is tested. n: groups that have a profile in every model."
        ),
    ),
    Caption(
        name="recall_change",
        title="Change of recall@k by tuning",
        text=(
            "Recall@k of the tuned model minus that of its base, lists re-ranked by typicality (the paper's "
            "Figure 4). Intervals: 95 %, bootstrap over groups, then over their stereotypes; Bonett and Price "
            "where nothing changes. p: sign flips of whole groups, two-sided. q: Benjamini–Hochberg over all rows "
            "of a tuned model (categories and k). n: human stereotypes."
        ),
    ),
    Caption(
        name="negativity_change",
        title="Change of negativity by tuning",
        text=(
            "A tuned model minus the model it began with, over the same groups. negativity: share of negative "
            "minus share of positive attributes. distance from the mean: how far a group's negativity is from "
            "the mean of all groups, in either direction; the smaller it is on average, the more alike the "
            "groups are described. It includes differences by chance, before and after. before, after: the "
            "means themselves. A change that the control shows as well is not due to the mitigation. Intervals: "
            "95 %, bootstrap over groups, as if the mean of all groups were known; none for fewer than "
            f"{FEWEST_GROUPS} groups. p: sign flips of groups, two-sided. q: Benjamini–Hochberg over all rows of "
            "a tuned model (categories and measures). n: groups with a covered attribute before and after."
        ),
    ),
    Caption(
        name="attribute_shift",
        title="Attributes added, removed and kept by tuning",
        text=(
            f"The distinct words among the first {TOP} of each template, by typicality, before and after tuning "
            "(the paper's Figure 7), the most typical first. The estimate is the share of the base's words that "
            "was kept. A description: no interval and no test. n: words of the base."
        ),
    ),
    Caption(
        name="coverage",
        title="What became of the words that were offered",
        text=(
            "Of the words offered over all questions: the share that are pieces of words, and the share that are "
            "numbers, marks or single letters. Of the remaining attributes: the share without a prior (no "
            "typicality). Of the attributes of profiles: the share that the emotion lexicon covers. Counts: no "
            "interval and no test. n: words out of which the share is taken."
        ),
    ),
)


def all_rows(
    answers: Sequence[ModelAnswers], tunings: Sequence[Tuning], human: HumanAttributes
) -> dict[str, list[Finding]]:
    """Return the rows of every table that has something to say.

    There is no recall without human stereotypes, no similarity of a single model, no shift without a tuned one. A
    model's tables share its random numbers, so that their order here is a part of the result.
    """
    rows = {
        "ranking": [row for each in answers for row in _ranking(each)],
        "category_emotions": [row for each in answers for row in _category_emotions(each)],
        "emotions": [row for each in answers for row in _emotions(each)],
        "negativity": [row for each in answers for row in _negativity(each)],
        "coverage": [row for each in answers for row in _coverage(each)],
    }
    if len(human):
        ranks = [human_ranks(each, human) for each in answers]
        both = zip(answers, ranks, strict=True)
        rows["recall"] = [row for each, of_model in both for row in _recall(each, human, of_model)]
        rows["prompt_ranking"] = [row for each in answers for row in _prompt_ranking(each, human)]
        rows["recall_change"] = _recall_change(answers, tunings, human, ranks)
    if len(answers) > 1:
        compared = [compare_models(answers, category) for category in with_all(answers[0].categories)]
        rows["similarity"] = _similarity([each.model for each in answers], compared)
        rows["shift"] = _shift(tunings, compared)
    rows["negativity_change"] = _negativity_change(answers, tunings)
    rows["attribute_shift"] = list(_attribute_shift(answers, tunings))
    return {name: of_table for name, of_table in rows.items() if of_table}


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


def _negativity(answers: ModelAnswers) -> list[Finding]:
    """Return the rows, the most negative group of a category first."""
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
    rows = []
    for g, group in enumerate(answers.groups):
        labels: dict[str, Label] = {"model": answers.model, "category": group.category, "group": group.name}
        rows.append(numbers.finding((g,), {**labels, "negativity": float(negativity[g])}))
    category_order = {category: i for i, category in enumerate(answers.categories)}
    return sorted(
        with_q(rows),
        key=lambda row: (category_order[str(row.labels["category"])], -np.nan_to_num(row.estimate)),
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


def _recall_change(
    answers: Sequence[ModelAnswers], tunings: Sequence[Tuning], human: HumanAttributes, ranks: Sequence[Floats]
) -> list[Finding]:
    rows: list[Finding] = []
    ks = [k for k in CHANGE_KS if k <= answers[0].options.top_k]
    typical = list(RANKINGS).index("after")
    for tuning in tunings:
        tuned = answers[tuning.tuned]
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
