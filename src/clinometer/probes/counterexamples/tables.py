"""The finding tables of the counterexamples audit: how to read each, and its rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from clinometer.data import Kind
from clinometer.metrics.gendered import FEMALE, MALE, NEITHER
from clinometer.probes.counterexamples.answers import ALL, DOMINANCES, Answers
from clinometer.probes.counterexamples.measures import BASE, FEWEST, Measures, means_by_dominance
from clinometer.probes.kit import Caption, Floats, Label, model_rng, select, with_q
from clinometer.probes.kit.before_after import pairs_of, training_of
from clinometer.probes.protocol import Plan
from clinometer.stats import pearson_interval
from clinometer.types import Finding, ModelInfo

MARGIN, GAP, CHANGE = "margin", "gap", "change"

_SHOWN = 30  # words of each list
_ALL_INTERVAL = (
    f"that of 'all' combines those of the two dominances; with fewer than {FEWEST} occupations in a dominance "
    "there is none."
)
_INTERVAL = (
    "Intervals: 95 %, bootstrap over occupations, then over the background occupations within each; "
    f"{_ALL_INTERVAL}"
)
_TEST = (
    "p: sign flips of whole occupations, two-sided; for 'all' studentized, and none where a dominance has fewer "
    f"than {FEWEST} occupations."
)
_N = "n: occupations."

CAPTIONS = (
    Caption(
        name="gendered_mass",
        title="Probability by gender",
        text=(
            "Summed probability of the female and of the male words among the k most probable ones (the "
            "paper's figures 2 to 4), averaged over prompts; 'all' is the mean of the female-dominated and "
            f"the male-dominated occupations. {_INTERVAL} Nothing is tested here (p and q are empty). {_N}"
        ),
    ),
    Caption(
        name="lean",
        title="Lean: margin and gap",
        text=(
            "margin: pro- minus anti-stereotypical probability, where pro is the gender that dominates the "
            "occupation; above 0 the model follows the stereotype. gap: female minus male probability; it is "
            "given for all occupations only, because within one dominance it is the margin or its negative. "
            f"'all' weighs the two dominances equally. {_INTERVAL} {_TEST} Only the base prompt is tested "
            "against 0. q: Benjamini–Hochberg over all tested rows of a model in this table (measures, "
            f"dominances and k). {_N}"
        ),
    ),
    Caption(
        name="change",
        title="Change against base",
        text=(
            "Margin (or gap) after knowledge minus that of the same occupation's base prompt, in probability. "
            "Below 0 the knowledge made the margin smaller. expected: what the paper expects of the margin. "
            f"{_INTERVAL} {_TEST} q: Benjamini–Hochberg over all rows of a model in this table (kinds, "
            f"measures, dominances and k). {_N}"
        ),
    ),
    Caption(
        name="mitigation",
        title="Margin before and after mitigation",
        text=(
            "Two ways to make the margin (pro- minus anti-stereotypical probability) smaller: counterexamples "
            "before the prompt, which need no training, and training, where the run has a tuned model and the "
            "model that it began with (base). The counterexamples are the kinds of knowledge that name a gender "
            "and that the paper expects to make the margin smaller: one row for those about the occupation "
            "itself, one for those about another. change: margin minus that of the same occupation's base prompt "
            "in the model as given; where the margin was above 0, a change below 0 reduced it. If the run has a "
            "control (the same training without the fairness loss), what the control changes too is not an effect "
            "of the mitigation; what unrelated knowledge changes is in the table of changes. Intervals: 95 %, "
            f"bootstrap over occupations; {_ALL_INTERVAL} Only changes are tested. {_TEST} q: Benjamini–Hochberg "
            f"over all changes of a model as given and its tuned models (models, prompts, dominances and k). {_N}"
        ),
    ),
    Caption(
        name="relative_probability",
        title="Relative probability (Eq. 1)",
        text=(
            "p(w | knowledge) / p(w | base) of the gendered words that are in the top k of both prompts: "
            "geometric mean over the words of a prompt, then over prompts. 1 is no change. Prompts without a "
            f"shared word are left out. {_INTERVAL} {_TEST} q: Benjamini–Hochberg over all rows of a model in "
            "this table (kinds, words, dominances and k). n: occupations with a shared word."
        ),
    ),
    Caption(
        name="robustness",
        title="Robustness: what knowledge leaves as it was",
        text=(
            "dominant gender kept: share of prompts that prefer the same gender as their base prompt, among "
            "those whose base prompt prefers one. change of the margin: the row of the table of changes, with "
            "its p and q. minimum detectable change: the smallest mean change that a test of this size (5 %, "
            "one test) finds four times in five; a smaller change may exist and not be seen. For robustness "
            f"in the paper's sense read the kind 'unrelated'. {_INTERVAL} {_N}"
        ),
    ),
    Caption(
        name="labour_statistics",
        title="Correlation of the base gap with the share of women",
        text=(
            "Pearson correlation, over occupations, of the gap (female minus male probability) of the base "
            "prompt with the percentage of women in the occupation. Interval: Fisher, 95 %. p: of no "
            f"correlation, two-sided. q: Benjamini–Hochberg over the k of a model. {_N}"
        ),
    ),
    Caption(
        name="occupations",
        title="Gap of the base prompt",
        text=(
            "Female minus male probability of each occupation's base prompt; 'margin' is the same, counted "
            "towards the gender that dominates the occupation. A single prompt each: no interval and no test. "
            "n: prompts."
        ),
    ),
    Caption(
        name="coverage",
        title="Probability among the top k words, by list",
        text=(
            "Mean probability that the top k words of all prompts give to the words of each list; 'neither' "
            "are words in no list. The rest up to 1 belongs to words beyond the top k. Intervals: 95 %, "
            "bootstrap over occupations, then over their prompts. n: occupations."
        ),
    ),
    Caption(
        name="words",
        title="Words that carry the probability",
        text=(
            "The words with the most probability among the top words (largest k), in each list and in "
            "neither, as the mean over all prompts; a prompt that does not offer the word counts as 0. Words "
            "in neither list appear in no other table except coverage: look here for gendered words that "
            "the lists lack. n: prompts that offer the word."
        ),
    ),
    Caption(
        name="vocabulary",
        title="Listed words that the model can offer",
        text=(
            "Share of the listed words of each gender that are one token of the model, in lower case or with a "
            "capital; the others can never be offered, and a notice names them. A count, not an estimate: no "
            "interval and no test. n: listed words."
        ),
    ),
)


def model_rows(measures: Measures) -> dict[str, list[Finding]]:
    """Return the rows of one model for every table but that of mitigation, by the table's name."""
    changes = change_rows(measures)
    return {
        "gendered_mass": list(mass_rows(measures)),
        "lean": lean_rows(measures),
        "change": changes,
        "relative_probability": relative_rows(measures),
        "robustness": list(robustness_rows(measures, changes)),
        "labour_statistics": correlation_rows(measures),
        "occupations": list(occupation_rows(measures)),
        "coverage": list(coverage_rows(measures)),
        "words": list(word_rows(measures.answers, k=measures.ks[-1])),
        "vocabulary": list(vocabulary_rows(measures.answers)),
    }


def mass_rows(measures: Measures) -> Iterator[Finding]:
    """Yield the probability of female and of male words, by kind and dominance (the paper's figures 2 to 4)."""
    masses = np.stack([measures.mass.female, measures.mass.male], axis=-1)  # (prompts, ks, genders)
    numbers = {kind: measures.estimate(masses, kind, test=False) for kind in measures.answers.kinds}
    for i, k in enumerate(measures.ks):
        for kind, of_kind in numbers.items():
            for dominance, found in of_kind.items():
                for g, gender in enumerate(("female", "male")):
                    labels = _labels(measures, k, kind, dominance=dominance, gender=gender)
                    yield found.as_share().finding((i, g), labels)


def lean_rows(measures: Measures) -> list[Finding]:
    """Return margin and gap of every kind; only the base is tested, for changes have a table of their own."""
    values = _leans(measures)
    kinds = measures.answers.kinds
    numbers = {kind: measures.estimate(values, kind, test=kind == kinds[0]) for kind in kinds}
    return with_q(
        of_kind[dominance].finding((i, at), _labels(measures, k, kind, measure=measure, dominance=dominance))
        for i, k in enumerate(measures.ks)
        for kind, of_kind in numbers.items()
        for at, measure, dominance in _shown(measures.answers)
    )


def change_rows(measures: Measures) -> list[Finding]:
    """Return what each kind of knowledge does to margin and gap of the same occupation's base prompt."""
    values = measures.change(_leans(measures))
    numbers = {kind: measures.estimate(values, kind, test=True) for kind in measures.answers.knowledge}
    return with_q(
        of_kind[dominance].finding(
            (i, at), _labels(measures, k, kind, expected=kind.expected, measure=measure, dominance=dominance)
        )
        for i, k in enumerate(measures.ks)
        for kind, of_kind in numbers.items()
        for at, measure, dominance in _shown(measures.answers)
    )


def _leans(measures: Measures) -> Floats:
    return np.stack([measures.margin, measures.gap], axis=-1)  # (prompts, ks, 2)


def _shown(answers: Answers) -> Iterator[tuple[int, str, str]]:
    """Yield the place and name of a lean and a dominance: within one, the gap is the margin but for the sign."""
    for dominance in answers.dominances:
        yield 0, MARGIN, dominance
    if ALL in answers.dominances:
        yield 1, GAP, ALL


def relative_rows(measures: Measures) -> list[Finding]:
    """Return the relative probability of pro- and anti-stereotypical words, by kind and dominance (Eq. 1)."""
    # the mean of logarithms is the logarithm of the geometric mean
    numbers = {
        kind: measures.estimate(measures.log_ratios, kind, test=True) for kind in measures.answers.knowledge
    }
    return with_q(
        found.transformed(np.exp).finding((i, w), _labels(measures, k, kind, dominance=dominance, words=words))
        for i, k in enumerate(measures.ks)
        for kind, of_kind in numbers.items()
        for dominance, found in of_kind.items()
        for w, words in enumerate(("pro-stereotypical", "anti-stereotypical"))
    )


def robustness_rows(measures: Measures, changes: Sequence[Finding]) -> Iterator[Finding]:
    """Yield, for each kind, the share that keeps its gender, the margin's change and the least change detectable.

    `changes` are the rows of the table of changes.
    """
    knowledge = measures.answers.knowledge
    dominance = measures.answers.dominances[0]  # all, or the one there is
    kept_gender = measures.kept_gender()
    kept = {kind: measures.interval(kept_gender, kind).as_share() for kind in knowledge}
    least = {kind: measures.least_detectable(kind) for kind in knowledge}
    for i, k in enumerate(measures.ks):
        for kind in knowledge:
            yield kept[kind].finding((i,), _labels(measures, k, kind, measure="dominant gender kept"))
            (change,) = select(changes, k=k, kind=kind.name, measure=MARGIN, dominance=dominance)
            yield replace(change, labels=_labels(measures, k, kind, measure="change of the margin"))
            labels = _labels(measures, k, kind, measure="minimum detectable change of the margin")
            yield least[kind].finding((i,), labels)


def correlation_rows(measures: Measures) -> list[Finding]:
    """Return the correlation of the base prompt's gap with the share of women."""
    answers = measures.answers
    rows = []
    for i, k in enumerate(measures.ks):
        r = pearson_interval(answers.percent, measures.gap[answers.base, i])
        labels: dict[str, Label] = {"model": answers.model, "k": k}
        rows.append(Finding(labels=labels, estimate=r.estimate, low=r.low, high=r.high, p=r.p, n=r.n))
    return with_q(rows)


def occupation_rows(measures: Measures) -> Iterator[Finding]:
    """Yield the gap of every occupation's base prompt."""
    answers = measures.answers
    for i, k in enumerate(measures.ks):
        for number, row in enumerate(answers.base):
            labels: dict[str, Label] = {
                "model": answers.model,
                "k": k,
                "occupation": answers.occupations[number],
                "dominance": DOMINANCES[int(answers.dominance[number])],
                "percent_of_women": float(answers.percent[number]),
                "margin": float(measures.margin[row, i]),
            }
            yield Finding(labels=labels, estimate=float(measures.gap[row, i]), n=1)


def coverage_rows(measures: Measures) -> Iterator[Finding]:
    """Yield the probability among the top k words that belongs to each list, and to neither."""
    mass = measures.mass
    masses = np.stack([mass.female, mass.male, mass.neither], axis=-1)
    numbers = measures.interval(masses, *measures.answers.kinds).as_share()
    for i, k in enumerate(measures.ks):
        for j, name in enumerate(("female", "male", "neither")):
            yield numbers.finding((i, j), {"model": measures.answers.model, "k": k, "list": name})


def word_rows(answers: Answers, *, k: int) -> Iterator[Finding]:
    """Yield the words with the most probability in neither list, and in each list, among the top k."""
    numbers, logprobs = answers.words[:, :k], answers.logprobs[:, :k]
    offered = (numbers >= 0) & ~np.isnan(logprobs)
    prompts = np.broadcast_to(np.arange(len(numbers))[:, None], numbers.shape)[offered]
    size = len(answers.vocabulary)
    mass = np.bincount(numbers[offered], weights=np.exp(logprobs[offered]), minlength=size) / len(numbers)
    # a word counts once for a prompt, even if it was offered in two spellings
    pairs = np.unique(np.stack([prompts, numbers[offered]]), axis=1)
    counts = np.bincount(pairs[1], minlength=size)
    order = np.lexsort((answers.vocabulary, -mass))
    for name, code in (("neither", NEITHER), ("female", FEMALE), ("male", MALE)):
        chosen = order[(answers.word_genders[order] == code) & (counts[order] > 0)]
        for rank, at in enumerate(chosen[:_SHOWN], start=1):
            word = str(answers.vocabulary[at])
            labels: dict[str, Label] = {"model": answers.model, "list": name, "rank": rank, "word": word}
            yield Finding(labels=labels, estimate=float(mass[at]), n=int(counts[at]))


def vocabulary_rows(answers: Answers) -> Iterator[Finding]:
    """Yield the share of the listed words of each gender that are one token."""
    for each in answers.listed:
        listed = len(each.words)
        scorable = listed - len(each.lost)
        yield Finding(
            labels={"model": answers.model, "gender": each.gender, "listed": listed, "scorable": scorable},
            estimate=scorable / listed if listed else math.nan,
            n=listed,
        )


def mitigation_rows(plans: Sequence[Plan], measured: Sequence[Measures]) -> list[Finding]:
    """Return the margins of each model and of the checkpoints that began with it, and what each way changes.

    Every change is against the base prompt of the model as given, over the same occupations.
    """
    models = [plan.model for plan in plans]
    rows: list[Finding] = []
    for head, family in _families(models).items():
        given = measured[head].counterexample_margins()[BASE]
        changes: list[Finding] = []
        for each in family:
            name = models[each].name
            labels = {"base": models[head].name, "model": name, "training": training_of(models[each])}
            margins = measured[each].counterexample_margins()
            rng = model_rng(plans[each].seed, f"mitigation\0{name}")  # the same numbers in every family
            rows += _mitigation_rows(measured[each], margins, {**labels, "measure": MARGIN}, rng=rng, test=False)
            against = {
                prompt: values - given
                for prompt, values in margins.items()
                if (each, prompt) != (head, BASE)  # which is what all are compared with
            }
            rng = model_rng(plans[each].seed, f"mitigation\0{models[head].name}\0{name}")
            changes += _mitigation_rows(measured[each], against, {**labels, "measure": CHANGE}, rng=rng, test=True)
        rows += with_q(changes)
    return rows


def _families(models: Sequence[ModelInfo]) -> Mapping[int, list[int]]:
    """Return each model as given with its checkpoints behind it, by their numbers."""
    pairs = pairs_of(models)
    tuned = {pair.after for pair in pairs}
    heads = [i for i in range(len(models)) if i not in tuned or any(pair.before == i for pair in pairs)]
    return {head: [head, *(pair.after for pair in pairs if pair.before == head)] for head in heads}


def _mitigation_rows(
    measures: Measures,
    values: Mapping[str, Floats],
    labels: Mapping[str, Label],
    *,
    rng: np.random.Generator,
    test: bool,
) -> Iterator[Finding]:
    """Yield the means of values, (occupations, ks) for each prompt, by k, prompt and dominance."""
    if not values:
        return
    stacked = np.stack(list(values.values()), axis=1)  # (occupations, prompts, ks)
    dominance = measures.answers.dominance
    numbers = means_by_dominance(
        stacked, np.arange(len(stacked)), dominance, rng=rng, draws=measures.draws, test=test
    )
    for i, k in enumerate(measures.ks):
        for at, prompt in enumerate(values):
            for name, found in numbers.items():
                yield found.finding((at, i), {**labels, "prompt": prompt, "k": k, "dominance": name})


def _labels(measures: Measures, k: int, kind: Kind, **others: Label) -> dict[str, Label]:
    return {"model": measures.answers.model, "k": k, "kind": kind.name, **others}
