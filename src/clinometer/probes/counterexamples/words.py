"""What the counterexamples audit says: what it found, and what to know before believing it."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from clinometer.data import Verbalizer, read_text
from clinometer.probes.counterexamples.answers import ALL, DOMINANCES, Answers
from clinometer.probes.counterexamples.measures import ANOTHER, BASE, FEWEST, SAME, Measures
from clinometer.probes.counterexamples.options import Options
from clinometer.probes.counterexamples.tables import CHANGE, MARGIN
from clinometer.probes.kit import RULE, certainty, is_found, select, signed
from clinometer.probes.kit.before_after import change_in_words, tuned_notices
from clinometer.probes.protocol import Plan
from clinometer.types import Finding, Notice

LITTLE = 0.05  # mean gendered probability below which the audit says little about the model

_WHERE = {
    BASE: "at the base prompt",
    SAME: "with a counterexample of the same occupation",
    ANOTHER: "with a counterexample of another occupation",
}


def headlines(model: str, rows: Mapping[str, Sequence[Finding]], gendered: Mapping[int, float]) -> Iterator[str]:
    """Yield what was found of one model, at the largest k; `gendered` is the gendered probability by k."""
    top = max(gendered, default=0)
    for lean in select(rows["lean"], k=top, kind="base", measure=MARGIN, dominance=ALL):
        yield (
            f"{model}: at the base prompt, pro- minus anti-stereotypical probability (top {top}) is "
            f"{_number(lean)}: {_verdict(lean)}{_reservation(gendered[top])}."
        )
    changes = select(rows["change"], k=top, measure=MARGIN, dominance=ALL)
    tested = [row for row in changes if not math.isnan(row.q)]
    if tested:
        found = [row for row in tested if is_found(row)]
        sentence = f"{model}: {len(found)} of {len(tested)} kinds of knowledge change that margin ({RULE})"
        if found:
            largest = max(found, key=lambda row: abs(row.estimate))
            sentence += f"; most of all '{largest.labels['kind']}', by {_number(largest)}"
        yield sentence + "."
    elif changes:
        yield f"{model}: whether knowledge changes that margin was not tested; the notices say why."
    for unrelated in select(changes, kind="unrelated"):
        yield f"{model}: unrelated knowledge changes it by {_number(unrelated)}."


def mitigation_headlines(rows: Sequence[Finding], *, k: int) -> Iterator[str]:
    """Yield what counterexamples and training did to the margin, where a run has a model before and after."""
    shown = select(rows, k=k, dominance=ALL)
    levels, changes = select(shown, measure=MARGIN), select(shown, measure=CHANGE)
    tuned = {row.labels["base"] for row in levels if row.labels["base"] != row.labels["model"]}
    for level in select(levels, prompt=BASE):
        base, model = level.labels["base"], level.labels["model"]
        if base not in tuned:
            continue
        (given,) = select(levels, base=base, model=base, prompt=BASE)
        parts = []
        for change in select(changes, base=base, model=model):
            prompt = str(change.labels["prompt"])
            (after,) = select(levels, base=base, model=model, prompt=prompt)
            told = change_in_words(change, before=given.estimate, after=after.estimate)
            parts.append(f"{_WHERE[prompt]} {told}")
        if parts:
            yield (
                f"{model} ({level.labels['training']}) against the base prompt of {base}, whose margin (top {k}) "
                f"is {signed(given.estimate)}: {'; '.join(parts)}."
            )


def _verdict(lean: Finding) -> str:
    if math.isnan(lean.q):
        return "nothing can be said of its sign"
    if not is_found(lean):
        return "not distinguishable from 0"
    return "follows the stereotype" if lean.estimate > 0 else "runs against the stereotype"


def _reservation(gendered: float) -> str:
    """Return what a reader must know who reads this sentence only."""
    if gendered >= LITTLE:
        return ""
    return (
        f"; but gendered words hold only {gendered:.2g} of the probability, so this describes a small part of "
        "what the model expects"
    )


def _number(row: Finding) -> str:
    if math.isnan(row.estimate):
        return "unknown (no answers)"
    return f"{signed(row.estimate)} ({certainty(row)})"


def notices(
    plans: Sequence[Plan], verbalizer: Verbalizer, measured: Sequence[Measures], changes: Sequence[Finding]
) -> Iterator[Notice]:
    """Yield what holds for all models, then for each; `changes` are the rows of one model's table of changes."""
    options: Options = plans[0].options
    yield _verbalizer_notice(options, verbalizer)
    yield from _occupation_notices(measured[0].answers)  # the occupations are the same for all models
    tests = sum(not math.isnan(row.p) for row in changes)
    yield Notice(
        level="info",
        text=(
            f"The table of changes makes {tests} tests for each model; one in twenty would have p < 0.05 by "
            "chance. Read q, which is corrected over all of them."
        ),
    )
    if options.backgrounds == 0:
        yield Notice(
            level="info",
            text="backgrounds = 0: the three kinds of knowledge about another occupation were not asked.",
        )
    yield from tuned_notices([plan.model for plan in plans])
    for plan, measures in zip(plans, measured, strict=True):
        yield from _model_notices(measures)
        if "fill" not in plan.model.capabilities:
            yield Notice(
                level="info",
                text=(
                    f'{plan.model.name} continues text: its words come after "The target is" and are often '
                    "articles or adjectives. Compare it with models that fill a blank by sign and not by size."
                ),
            )


def _verbalizer_notice(options: Options, verbalizer: Verbalizer) -> Notice:
    counts = Counter(verbalizer.values())
    source = "the built-in list"
    if options.verbalizer_file:
        digest = hashlib.sha256(read_text(options.verbalizer_file).encode()).hexdigest()
        # the name alone: a run may be in another folder when its findings are recomputed
        source = f"'{PurePath(options.verbalizer_file).name}' (SHA-256 of its text: {digest})"
    return Notice(
        level="info",
        text=(
            f"{counts['female']} female and {counts['male']} male words from {source} are counted, in lower "
            "case; words in neither list are shown but belong to no gender. Only the k most probable words "
            "are asked for."
        ),
    )


def _occupation_notices(answers: Answers) -> Iterator[Notice]:
    asked = len(answers.occupations)
    few = asked < 10
    yield Notice(
        level="warning" if few else "info",
        text=(
            f"Results rest on {asked} occupations, each asked about in one wording; they speak for these "
            "occupations and this wording"
            + (", and intervals from fewer than 10 occupations are rough." if few else ".")
        ),
    )
    for code, name in DOMINANCES.items():
        count = int((answers.dominance == code).sum())
        if count == 0:
            yield Notice(
                level="warning",
                text=(
                    f"No occupation is {name}, so the margin cannot be told from a preference for one gender "
                    "everywhere: nothing is said about 'all' occupations, and there is no gap."
                ),
            )
        elif count < FEWEST:
            yield Notice(
                level="warning",
                text=(
                    f"Only {count} of the occupations {'is' if count == 1 else 'are'} {name}; with fewer than "
                    f"{FEWEST} no interval can be trusted, so neither they nor 'all' have one, and 'all' has no p."
                ),
            )


def _model_notices(measures: Measures) -> Iterator[Notice]:
    answers = measures.answers
    gendered = measures.gendered
    little = [k for k, mass in gendered.items() if mass < LITTLE]
    if little:
        k = little[-1]
        yield Notice(
            level="warning",
            text=(
                f"{answers.model}: the top {k} words hold little gendered probability ({gendered[k]:.3g} "
                f"on average; for k = {', '.join(map(str, little))} it is below {LITTLE}), so the tables "
                "describe a small part of what this model expects. The table of words shows what it offers "
                "instead; a larger k, such as ks = [10, 100], looks further down its list."
            ),
        )
    lost = [word for each in answers.listed for word in each.lost]
    if lost:
        serious = any(2 * len(each.lost) > len(each.words) for each in answers.listed)
        yield Notice(
            level="warning" if serious else "info",
            text=(
                f"{len(lost)} of {sum(len(each.words) for each in answers.listed)} listed words are not one token "
                f"of {answers.model} and cannot be offered: {', '.join(lost)}."
            ),
        )
    at_base = (measures.mass.female + measures.mass.male)[answers.base]
    without = {k: int((at_base[:, i] == 0).sum()) for i, k in enumerate(measures.ks)}
    counted = [f"{count} of {len(answers.base)} for k = {k}" for k, count in without.items() if count]
    if counted:
        yield Notice(
            level="info",
            text=(
                f"{answers.model}: base prompts without any gendered word among the top k: {', '.join(counted)}. "
                "They count as a margin of 0 and have no dominant gender that could be kept."
            ),
        )
    if measures.missing.any():
        yield Notice(
            level="warning",
            text=(
                f"{answers.model}: {measures.missing.sum()} of {len(measures.missing)} answers have a probability "
                "that is not a number; they are left out."
            ),
        )
