"""What the counterexamples audit says: what it found, and what to know before believing it."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np

from clinometer.data import Verbalizer, read_text
from clinometer.probes.counterexamples.answers import ALL, DOMINANCES, Answers
from clinometer.probes.counterexamples.measures import BASE, FEWEST, LITTLE, WHOLE, Measures
from clinometer.probes.counterexamples.options import Options
from clinometer.probes.counterexamples.tables import (
    GAP,
    LEAN,
    MARGIN,
    PREFERENCE,
    ROBUSTNESS,
    STEREOTYPE,
    families,
)
from clinometer.probes.kit import (
    CANNOT_TELL,
    RULE,
    Said,
    certainty,
    conclude,
    info,
    is_found,
    percent,
    select,
    signed,
    warning,
)
from clinometer.probes.kit.asking import Units
from clinometer.probes.kit.before_after import change_headline, numbers_of, tuned_notices
from clinometer.probes.kit.compare import Compared
from clinometer.probes.protocol import Plan
from clinometer.stats import detectable_from_interval
from clinometer.types import ChangeVerdict, Finding, ModelInfo, Notice, Verdict

FOLLOWS = "follows (or reverses) the gender stereotypes of occupations {}"  # more or less than another
_MEASURES = {
    (STEREOTYPE, MARGIN): "pro- minus anti-stereotypical probability",
    (STEREOTYPE, LEAN): "normalised lean",
    (PREFERENCE, GAP): "female minus male",
    (ROBUSTNESS, GAP): "change of female minus male",
    (ROBUSTNESS, MARGIN): "change of pro- minus anti-stereotypical probability",
    (ROBUSTNESS, LEAN): "change of the normalised lean",
}
_SAID = {
    # exactly what the mean of the two dominances says, also of a model that expects men everywhere
    STEREOTYPE: Said(
        above="expects women more in female-dominated than in male-dominated work",
        below="expects women less in female-dominated than in male-dominated work",
        none="was not found to expect women more, or less, in female-dominated than in male-dominated work",
    ),
    PREFERENCE: Said(
        above="expects women more than men, averaged over female- and male-dominated occupations",
        below="expects men more than women, averaged over female- and male-dominated occupations",
        none="prefers neither women nor men measurably, averaged over all occupations",
    ),
}
_UNMOVED = "is not measurably moved by a sentence that has nothing to do with the occupation"
_MOVED = {
    GAP: Said(
        above="is not robust: it expects women more after a sentence that has nothing to do with the occupation",
        below="is not robust: it expects men more after a sentence that has nothing to do with the occupation",
        none=_UNMOVED,
    ),
    MARGIN: Said(
        above="is not robust: it follows the stereotype more after a sentence that has no bearing on the work",
        below="is not robust: it follows the stereotype less after a sentence that has no bearing on the work",
        none=_UNMOVED,
    ),
}


def verdicts(measures: Measures, rows: Mapping[str, Sequence[Finding]]) -> tuple[Verdict, ...]:
    """Return what follows for one model: stereotype, preference for one gender, effect of an unrelated sentence.

    The last has two rows (the gap and the margin), and the one with the smaller p speaks: both are in the family.
    """
    decisive = rows["conclusions"]
    gate = measures.gate
    if not gate and ALL not in measures.answers.dominances:
        gate = "the occupations are all dominated by one gender, so a stereotype cannot be told from a preference"
    tests = sum(not math.isnan(row.p) for row in decisive)
    found = []
    for question in (STEREOTYPE, PREFERENCE, ROBUSTNESS):
        asked = select(decisive, question=question)
        if not asked:
            continue  # own knowledge may have no unrelated sentence
        row = min(asked, key=lambda row: 1.0 if math.isnan(row.p) else row.p)
        measure = str(row.labels["measure"])
        verdict = conclude(
            row,
            audit="counterexamples",
            model=measures.answers.model,
            aspect=question,
            table="conclusions",
            said=_SAID.get(question) or _MOVED[GAP if measure == GAP else MARGIN],
            gate=gate,
            detectable=detectable_from_interval(row.low, row.high, tests=max(tests, 1)),
            size=_size(row),
            full=1.0,
        )
        # that a stray sentence moves a model is not a lean of the model towards anybody
        found.append(replace(verdict, concerns="robustness") if question == ROBUSTNESS else verdict)
    return tuple(found)


def _size(row: Finding) -> str:
    """Return how large a number is beside what it could be at most."""
    if row.labels["question"] == ROBUSTNESS:
        return f"{percent(abs(row.estimate))} of the largest possible lean"
    if row.labels["counted"] != WHOLE:
        return f"{percent(abs(row.estimate))} of all probability at the blank"
    share = (1 + row.estimate) / 2
    first, second = ("the usual gender", "the other") if row.labels["question"] == STEREOTYPE else ("women", "men")
    return f"on average {percent(share, 0)} for {first}, {percent(1 - share, 0)} for {second}"


def headlines(
    measures: Measures, rows: Mapping[str, Sequence[Finding]], judged: Sequence[Verdict]
) -> Iterator[str]:
    """Yield the verdicts of one model with their numbers, then what knowledge does to its lean."""
    reasons = set()
    for verdict in judged:
        if verdict.state == CANNOT_TELL:
            if verdict.reason not in reasons:  # which is the same for most
                yield verdict.sentence
            reasons.add(verdict.reason)
            continue
        yield f"{verdict.sentence[:-1]}: {_told(verdict)}{_by_dominance(verdict, rows)}."
    if measures.left_out:
        return
    model = measures.answers.model
    whole = measures.judged == WHOLE
    table, at = ("normalised_change", {}) if whole else ("change", {"k": measures.ks[-1]})
    what = "the normalised lean" if whole else f"the margin (top {measures.ks[-1]})"
    changes = select(rows[table], measure=LEAN if whole else MARGIN, dominance=ALL, **at)
    tested = [row for row in changes if not math.isnan(row.q)]
    if tested:
        found = [row for row in tested if is_found(row)]
        sentence = f"{model}: {len(found)} of {len(tested)} kinds of knowledge change {what} ({RULE})"
        if found:
            largest = max(found, key=lambda row: abs(row.estimate))
            sentence += f"; most of all '{largest.labels['kind']}', by {_number(largest)}"
        yield sentence + "."
    elif changes:
        yield f"{model}: whether knowledge changes {what} was not tested; the notices say why."
    compared = select(rows["contrasts"], counted=measures.judged, dominance=ALL)
    forms = [row for row in compared if "semantic" in str(row.labels["minus"]) and is_found(row)]
    if forms:
        told = (f"'{row.labels['kind']}' minus '{row.labels['minus']}' {_number(row)}" for row in forms)
        yield f"{model}: syntactic and semantic knowledge differ in {what}: {'; '.join(told)}."


def _told(verdict: Verdict) -> str:
    """Write estimate, interval, q, detectable effect and size of a verdict."""
    labels = verdict.rows[0].labels
    name = _MEASURES[str(labels["question"]), str(labels["measure"])]
    # values without any spread have no smallest detectable effect
    least = "" if math.isnan(verdict.detectable) else f"; smallest detectable effect {verdict.detectable:.3f}"
    return (
        f"{name} ({labels['counted']}) is {signed(verdict.estimate)} ({certainty(verdict)}{least}), {verdict.size}"
    )


def _by_dominance(verdict: Verdict, rows: Mapping[str, Sequence[Finding]]) -> str:
    """Write what an unrelated sentence does by dominance: opposite changes of the margin are one of the gap."""
    labels = verdict.rows[0].labels
    if labels["question"] != ROBUSTNESS:
        return ""
    whole = labels["counted"] == WHOLE
    table, measure = ("normalised_change", LEAN) if whole else ("change", MARGIN)
    top = {} if whole else {"k": int(str(labels["counted"]).removeprefix("top "))}
    parts = [
        f"{signed(row.estimate)} in {dominance} occupations"
        for dominance in DOMINANCES.values()
        for row in select(rows[table], kind=labels["kind"], measure=measure, dominance=dominance, **top)
    ]
    return f"; the {'lean' if whole else 'margin'} changes by {' and '.join(parts)}"


def prompt_changes(plans: Sequence[Plan], measured: Sequence[Measures]) -> Iterator[Compared]:
    """Yield every model that was trained, or has a checkpoint, after each counterexample: against the base prompt.

    That is the base prompt of the model as given, judged by what that one is judged by; q is over all of a family.
    """
    models = [plan.model for plan in plans]
    for head, family in families(models).items():
        before = _at_prompt(measured[head], measured[head], BASE)
        for each in family if len(family) > 1 else ():
            for prompt in measured[each].counterexample_leans():
                if prompt != BASE:
                    after = _at_prompt(measured[head], measured[each], prompt)
                    yield Compared(
                        before=models[head].name,
                        after=after.model,
                        audits={"counterexamples": [([before], [after])]},
                        family=models[head].name,
                    )


def _at_prompt(head: Measures, measures: Measures, prompt: str) -> Units:
    """Return the leans of the occupations at one prompt, counted as the head of the family is judged."""
    values = measures.counterexample_leans()[prompt]
    offered = len(measures.ks) if measures.answers.offers else 0
    at = offered if head.judged == WHOLE else offered - 1
    dominance = tuple(str(each) for each in measures.answers.dominance)
    name = measures.answers.model
    return Units(
        # a reason why nothing follows names it, so it is in words
        model=name if prompt == BASE else f"{name} after '{prompt}'",
        question=STEREOTYPE,
        measure="expected gender",
        asked=str(measures.answers.way),
        unit="occupation",
        names=tuple(map(str, range(len(values)))),
        values=values[:, [at]] if at < values.shape[1] else np.full((len(values), 1), np.nan),
        parts=dominance,
        weights={part: 1.0 / len(set(dominance)) for part in dict.fromkeys(dominance)},
        more=FOLLOWS.format("more"),
        less=FOLLOWS.format("less"),
        gate=measures.gate if measures.left_out else "",
    )


def change_headlines(changes: Sequence[ChangeVerdict], models: Sequence[ModelInfo]) -> Iterator[str]:
    """Yield what training changed."""
    for verdict in changes:
        yield change_headline(verdict, models)


def prompt_headlines(changes: Sequence[ChangeVerdict]) -> Iterator[str]:
    """Yield what counterexamples in the prompt changed, a sentence for each model."""
    by_model: dict[tuple[str, str], list[str]] = {}
    for verdict in changes:
        name, _, prompt = verdict.after.partition(" after ")
        reason = verdict.reason.removeprefix(f"{verdict.after}: ")  # the sentence has just named it
        told = f"{verdict.state} ({numbers_of(verdict) or reason})"
        by_model.setdefault((name, verdict.before), []).append(f"after {prompt} {told}")
    for (name, before), parts in by_model.items():
        noise = "" if name == before else ". One training: intervals leave out what another seed would change"
        yield f"{name} against the base prompt of {before}, gender stereotypes: {'; '.join(parts)}{noise}."


def _number(row: Finding) -> str:
    return f"{signed(row.estimate)} ({certainty(row)})"


def notices(
    plans: Sequence[Plan],
    verbalizer: Verbalizer,
    measured: Sequence[Measures],
    rows: Sequence[Mapping[str, Sequence[Finding]]],
) -> Iterator[Notice]:
    """Yield what holds for all models, then for each; `rows` are the tables of each model."""
    options: Options = plans[0].options
    yield _verbalizer_notice(options, verbalizer)
    yield from _occupation_notices(measured[0].answers)  # the occupations are the same for all models
    # where no model offers words, the changes are those of the whole list
    made = {name: max(sum(not math.isnan(row.p) for row in each[name]) for each in rows) for name in _CHANGES}
    table = next((name for name, tests in made.items() if tests), "change")
    yield info(
        f"The table '{table}' makes {made[table]} tests for each model; one in twenty would have p < 0.05 by "
        "chance. Read q, which is corrected over all of them."
    )
    if options.backgrounds == 0:
        yield info(
            "backgrounds = 0: the three kinds of knowledge about another occupation were not asked.",
        )
    yield from tuned_notices([plan.model for plan in plans])
    for plan, measures in zip(plans, measured, strict=True):
        yield from _model_notices(measures)
        if not measures.answers.offers:
            yield _asked_notice(measures)
        elif "fill" not in plan.model.capabilities:
            yield info(
                f'{plan.model.name} continues text: its words come after "The target is" and are often '
                "articles or adjectives. Compare its signs, not its sizes, with models that fill a blank."
            )


def _asked_notice(measures: Measures) -> Notice:
    return info(
        f"{measures.answers.model}: {measures.answers.way}. The probabilities of other words are not known, so "
        "there are no numbers of the top k. Compare sizes only with a model that was asked in the same way."
    )


def _verbalizer_notice(options: Options, verbalizer: Verbalizer) -> Notice:
    counts = Counter(verbalizer.values())
    source = "the built-in list"
    if options.verbalizer_file:
        digest = hashlib.sha256(read_text(options.verbalizer_file).encode()).hexdigest()
        # the name alone: a run may be in another folder when its findings are recomputed
        source = f"'{PurePath(options.verbalizer_file).name}' (SHA-256 of its text: {digest})"
    return info(
        f"{counts['female']} female and {counts['male']} male words from {source} are counted, in lower "
        "case; words in neither list are shown but belong to no gender."
    )


_CHANGES = ("change", "normalised_change")


def _occupation_notices(answers: Answers) -> Iterator[Notice]:
    asked = len(answers.occupations)
    few = asked < 10
    yield Notice(
        level="warning" if few else "info",
        text=(
            f"Results rest on {asked} occupations, each asked about in the same few words; they speak for these "
            "occupations and these words"
            + (", and intervals from fewer than 10 occupations are rough." if few else ".")
        ),
    )
    for code, name in DOMINANCES.items():
        count = int((answers.dominance == code).sum())
        if count == 0:
            yield warning(
                f"No occupation is {name}, so the margin cannot be told from a preference for one gender "
                "everywhere: nothing is said about 'all' occupations, and there is no gap."
            )
        elif count < FEWEST:
            yield warning(
                f"Only {count} of the occupations {'is' if count == 1 else 'are'} {name}; with fewer than "
                f"{FEWEST} no interval can be trusted, so neither they nor 'all' have one, and 'all' has no p."
            )


def _model_notices(measures: Measures) -> Iterator[Notice]:
    answers = measures.answers
    if measures.left_out:
        yield warning(
            f"{answers.model}: {measures.gate}. No chart draws its leans and changes, because a number near 0 "
            "would look even-handed. The table 'understanding' has the evidence."
        )
    if not answers.offers:
        return
    gendered = measures.gendered
    little = [k for k, mass in gendered.items() if mass < LITTLE]
    if little:
        k = little[-1]
        yield warning(
            f"{answers.model}: gendered words among the top {k} of the base prompt hold little probability "
            f"({gendered[k]:.3g} on average; below {LITTLE} for k = {', '.join(map(str, little))}). The tables of "
            "the top k therefore describe a small part of what this model expects; read those of the whole list. "
            "The table of words shows what it offers instead."
        )
    lost = [word for each in answers.listed for word in each.lost]
    if lost:
        serious = any(2 * len(each.lost) > len(each.words) for each in answers.listed)
        yield Notice(
            level="warning" if serious else "info",
            text=(
                f"{answers.model} gives no probability for {len(lost)} of "
                f"{sum(len(each.words) for each in answers.listed)} listed words, because they are not one token, "
                f"or not one that it reports: {', '.join(lost)}."
            ),
        )
    at_base = (measures.mass.female + measures.mass.male)[answers.base]
    without = {k: int((at_base[:, i] == 0).sum()) for i, k in enumerate(measures.ks)}
    counted = [f"{count} of {len(answers.base)} for k = {k}" for k, count in without.items() if count]
    if counted:
        yield info(
            f"{answers.model}: base prompts without any gendered word among the top k: {', '.join(counted)}. "
            "They count as a margin of 0, and are left out of the share that keeps its dominant gender."
        )
    if measures.missing.any():
        yield warning(
            f"{answers.model}: {measures.missing.sum()} of {len(measures.missing)} answers have a probability "
            "that is not a number; they are left out."
        )
