"""The rows of the finding tables of the counterexamples audit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from clinometer.data import Kind
from clinometer.metrics.gendered import FEMALE, MALE, NEITHER
from clinometer.probes.counterexamples.answers import ALL, DOMINANCES, Answers
from clinometer.probes.counterexamples.measures import (
    BASE,
    LEAST_CLEAR,
    LEAST_MASS,
    LEAST_OF_EACH,
    LEAST_REACTION,
    WHOLE,
    Measures,
    is_unrelated,
    means_by_dominance,
)
from clinometer.probes.kit import Floats, Label, model_rng, present_mean, select, with_q
from clinometer.probes.kit.before_after import pairs_of, training_of
from clinometer.probes.kit.trainings import with_arms
from clinometer.probes.protocol import Plan
from clinometer.stats import pearson_interval
from clinometer.types import Finding, ModelInfo

MARGIN, GAP, CHANGE = "margin", "gap", "change"
LEFT_OUT = "left_out"
LEAN = "lean"  # the margin as a share of the gendered probability
STEREOTYPE, PREFERENCE, ROBUSTNESS = "stereotype", "preference for one gender", "unrelated knowledge"

_SHOWN = 30  # words of each list


def model_rows(measures: Measures) -> dict[str, list[Finding]]:
    """Return the rows of one model for every table but those of mitigation, by the table's name."""
    offered = measures.answers.offers
    leans: dict[str, list[Finding]] = {name: [] for name in _OF_OFFERED}
    if offered:
        changes = change_rows(measures)
        leans |= {
            "lean": lean_rows(measures),
            "change": changes,
            "relative_probability": relative_rows(measures),
            "robustness": list(robustness_rows(measures, changes)),
            "labour_statistics": correlation_rows(measures),
            "occupations": list(occupation_rows(measures)),
        }
    leans |= {"contrasts": contrast_rows(measures), **whole_list_rows(measures)}
    leans["occupations_whole_list"] = list(whole_occupation_rows(measures))
    return {
        **{name: marked(rows, measures) for name, rows in leans.items()},
        "gendered_mass": list(mass_rows(measures)) if offered else [],
        "conclusions": conclusion_rows(measures, leans),
        "understanding": list(understanding_rows(measures)),
        "asking": list(asking_rows(measures)),
        "coverage": list(coverage_rows(measures)) if offered else [],
        "words": list(word_rows(measures.answers, k=measures.ks[-1])),
        "vocabulary": list(vocabulary_rows(measures.answers)),
    }


# what rests on the words that a model offers: none of it is known where only listed words were scored
_OF_OFFERED = ("lean", "change", "relative_probability", "robustness", "labour_statistics", "occupations")


def asking_rows(measures: Measures) -> Iterator[Finding]:
    """Yield how the model was asked, and how much of the probability at the base prompt the listed words have."""
    answers = measures.answers
    labels: dict[str, Label] = {"model": answers.model, "asked": answers.way, "prompts": len(answers.kind)}
    yield Finding(labels=labels, estimate=sum(measures.base_masses), n=len(answers.occupations))


def marked(rows: Sequence[Finding], measures: Measures) -> list[Finding]:
    """Return the rows with a label that says whether they are left out of charts.

    They are where the model did not understand the question: a lean of 0 would look like an even hand.
    """
    left_out = "yes" if measures.left_out else "no"
    return [replace(row, labels={**row.labels, LEFT_OUT: left_out}) for row in rows]


def conclusion_rows(measures: Measures, leans: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    """Return the rows that decide, with a q of their own; without numbers where nothing can be concluded."""
    whole = measures.judged == WHOLE
    margin, at = (LEAN, {}) if whole else (MARGIN, {"k": measures.ks[-1]})
    prefix = "normalised_" if whole else ""
    unrelated = [kind for kind in measures.answers.knowledge if is_unrelated(kind)]
    base = measures.answers.kinds[0]
    asked = [(STEREOTYPE, "lean", base, margin), (PREFERENCE, "lean", base, GAP)]
    asked += [(ROBUSTNESS, "change", kind, measure) for kind in unrelated for measure in (GAP, margin)]
    rows = []
    for question, table, kind, measure in asked:
        found = select(leans[prefix + table], kind=kind.name, measure=measure, dominance=ALL, **at)
        found = [] if measures.left_out else found
        labels = {"model": measures.answers.model, "question": question, "kind": kind.name}
        labels |= {"measure": measure, "counted": measures.judged}
        rows.append(replace(found[0] if found else Finding(labels={}, estimate=math.nan), labels=labels))
    return with_q(rows)


def understanding_rows(measures: Measures) -> Iterator[Finding]:
    """Yield what the gate looks at."""
    female, male = measures.base_masses
    reactions = measures.reactions
    for evidence, value, needed in (
        ("probability of female words", female, LEAST_MASS),
        ("probability of male words", male, LEAST_MASS),
        ("reaction to a named gender", float(present_mean(reactions)), LEAST_REACTION),
        ("weakest reaction to a named gender", float(min(reactions, default=math.nan)), LEAST_OF_EACH),
        ("weakest reaction in standard errors", float(min(measures.clearness, default=math.nan)), LEAST_CLEAR),
    ):
        labels: dict[str, Label] = {"model": measures.answers.model, "evidence": evidence, "needed": needed}
        yield Finding(labels=labels, estimate=value, n=len(measures.answers.occupations))


def whole_list_rows(measures: Measures) -> dict[str, list[Finding]]:
    """Return lean and gap over the whole list, normalised, and what knowledge does to them."""
    if not len(measures.whole):
        return {"normalised_lean": [], "normalised_change": []}
    answers = measures.answers
    base, *knowledge = (measures.leans_of(kind)[:, -1] for kind in answers.kinds)  # (occupations, 2) each
    at_base = measures.means(base, stream="whole list", test=True)
    after = np.stack(knowledge, axis=1)  # (occupations, kinds, 2)
    levels = measures.means(after, stream="whole list after", test=False)
    changes = measures.means(after - base[:, None], stream="whole list change", test=True)
    model: dict[str, Label] = {"model": answers.model}
    shown = [(at, LEAN if measure == MARGIN else GAP, dominance) for at, measure, dominance in _shown(answers)]
    leans = [
        at_base[dominance].finding(
            (at,), {**model, "kind": answers.kinds[0].name, "measure": measure, "dominance": dominance}
        )
        for at, measure, dominance in shown
    ]
    moved = []
    for i, kind in enumerate(answers.knowledge):
        for at, measure, dominance in shown:
            rest: dict[str, Label] = {"measure": measure, "dominance": dominance}
            leans.append(levels[dominance].finding((i, at), {**model, "kind": kind.name, **rest}))
            labels = {**model, "kind": kind.name, "expected": kind.expected, **rest}
            moved.append(changes[dominance].finding((i, at), labels))
    return {"normalised_lean": with_q(leans), "normalised_change": with_q(moved)}


def contrast_rows(measures: Measures) -> list[Finding]:
    """Return the paired differences between kinds of knowledge, by what is counted and dominance."""
    kinds = {kind.name: kind for kind in measures.answers.knowledge}
    pairs = [
        (name, name.replace("syntactic", "semantic"))
        for name in kinds
        if "syntactic" in name and name.replace("syntactic", "semantic") in kinds
    ]
    pairs += [
        (name, other.name)
        for other in kinds.values()
        if is_unrelated(other)
        for name in kinds
        if name != other.name
    ]
    if not pairs:
        return []
    leans = {name: measures.leans_of(kind)[..., 0] for name, kind in kinds.items()}  # (occupations, counted)
    differences = np.stack([leans[name] - leans[minus] for name, minus in pairs], axis=1)
    numbers = measures.means(differences, stream="contrasts", test=True)
    return with_q(
        found.finding(
            (i, at),
            {
                "model": measures.answers.model,
                "counted": counted,
                "kind": name,
                "minus": minus,
                "dominance": dominance,
            },
        )
        for at, counted in enumerate(measures.counted)
        for i, (name, minus) in enumerate(pairs)
        for dominance, found in numbers.items()
    )


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


def whole_occupation_rows(measures: Measures) -> Iterator[Finding]:
    """Yield lean and gap of every occupation's base prompt over the whole list, normalised."""
    if not len(measures.whole):
        return
    answers = measures.answers
    for number, (lean, gap) in enumerate(measures.leans_of(answers.kinds[0])[:, -1]):
        labels: dict[str, Label] = {
            "model": answers.model,
            "occupation": answers.occupations[number],
            "dominance": DOMINANCES[int(answers.dominance[number])],
            "gap": float(gap),
        }
        yield Finding(labels=labels, estimate=float(lean), n=1)


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


def mitigation_rows(plans: Sequence[Plan], measured: Sequence[Measures]) -> dict[str, list[Finding]]:
    """Return the leans of each model and of the checkpoints that began with it, and what each way changes.

    Every change is against the base prompt of the model as given, over the same occupations. One table counts the
    top k, the other the whole list. Models that did not understand the question are tested in neither. Trainings
    that differ in their seed alone have their mean before them.
    """
    models = [plan.model for plan in plans]
    tables: dict[str, list[Finding]] = {"mitigation": [], "mitigation_whole_list": []}
    for head, family in families(models).items():
        given = measured[head].counterexample_leans()[BASE]
        levels: dict[str, list[Finding]] = {name: [] for name in tables}
        changes: dict[str, list[Finding]] = {name: [] for name in tables}
        for each in family:
            deaf = measured[head].left_out or measured[each].left_out
            name = models[each].name
            labels = {"base": models[head].name, "model": name, "training": training_of(models[each])}
            leans = measured[each].counterexample_leans()
            against = {
                prompt: values - given
                for prompt, values in leans.items()
                if (each, prompt) != (head, BASE)  # which is what all are compared with
            }
            alone, pair = f"mitigation\0{name}", f"mitigation\0{models[head].name}\0{name}"
            for table in tables:
                part = partial(_mitigation_rows, measured[each], whole=table != "mitigation")
                # the same numbers in every family
                rng = model_rng(plans[each].seed, alone)
                measure = MARGIN if table == "mitigation" else LEAN
                levels[table] += marked(
                    [*part(leans, {**labels, "measure": measure}, rng=rng, test=False)], measured[each]
                )
                rng = model_rng(plans[each].seed, pair)
                moved = part(against, {**labels, "measure": CHANGE}, rng=rng, test=not deaf)
                changes[table] += marked([*moved], measured[each])
        for table, rows in changes.items():
            by = ("base", "prompt", "dominance", *(["k"] if table == "mitigation" else []))
            together = partial(with_arms, models=models, by=by, counted=_is_judged)
            tables[table] += [*together(levels[table]), *together(with_q(rows), families=())]
    return tables


def _is_judged(row: Finding) -> bool:
    return row.labels[LEFT_OUT] == "no"


def families(models: Sequence[ModelInfo]) -> Mapping[int, list[int]]:
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
    whole: bool,
    rng: np.random.Generator,
    test: bool,
) -> Iterator[Finding]:
    """Yield the means of values, (occupations, counted) for each prompt, by k, prompt and dominance."""
    ks: list[dict[str, Label]] = [{}] if whole else [{"k": k} for k in measures.ks]
    if not values or (whole and not len(measures.whole)) or not (whole or measures.answers.offers):
        return
    stacked = np.stack(list(values.values()), axis=1)  # (occupations, prompts, counted)
    offered = len(measures.ks) if measures.answers.offers else 0
    stacked = stacked[:, :, offered:] if whole else stacked[:, :, :offered]
    dominance = measures.answers.dominance
    numbers = means_by_dominance(
        stacked, np.arange(len(stacked)), dominance, rng=rng, draws=measures.draws, test=test
    )
    for i, k in enumerate(ks):
        for at, prompt in enumerate(values):
            for name, found in numbers.items():
                yield found.finding((at, i), {**labels, "prompt": prompt, **k, "dominance": name})


def _labels(measures: Measures, k: int, kind: Kind, **others: Label) -> dict[str, Label]:
    return {"model": measures.answers.model, "k": k, "kind": kind.name, **others}
