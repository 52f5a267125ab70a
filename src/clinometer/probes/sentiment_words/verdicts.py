"""What follows for a reader: the primary questions, a verdict on each, and the headline made from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from clinometer.probes.kit import (
    CANNOT_TELL,
    Label,
    Said,
    certainty,
    conclude,
    info,
    is_found,
    percent,
    select,
    signed,
    with_q,
    written,
)
from clinometer.probes.kit.asking import LABEL
from clinometer.probes.sentiment_words.answers import Bools
from clinometer.probes.sentiment_words.comparisons import at_m, published_share
from clinometer.probes.sentiment_words.measures import (
    ASSOCIATION,
    OPPOSITE,
    PAPER,
    ModelMeasures,
    WordScores,
    signs_by_rule,
)
from clinometer.probes.sentiment_words.questions import OWN_LABEL
from clinometer.stats import detectable_from_interval, share_interval
from clinometer.types import Finding, Notice, Verdict

_QUESTIONS = 2  # primary ones of a model, corrected together
AFTER, APPENDED = "neutral words after reviews", "neutral words appended to reviews"


def lean_rows(measures: ModelMeasures) -> list[Finding]:
    """Return one row for each primary question: the neutral word that leans most surely, and how many lean.

    A word leans by the rule of every verdict, with its q over the words. The row is that of the surest of these,
    and its p is that word's q: a word whose interval holds 0 can neither make nor hide a finding. Where no word
    leans, p is Simes', the smallest q of all: does any of them? q corrects p for the two questions.
    """
    answers, found = measures.answers, measures.main_shift
    association = measures.associations.get(measures.main_template)
    judged = (None, None) if association is None else (association.effect, association.comparable)
    rows = []
    if answers.way is not LABEL:  # a classifier expects no words
        rows.append(_lean_row(measures, AFTER, "", answers.words.tested, *judged))
    if measures.options.shift_words != "none":
        scores = None if found is None else found.relative_graded
        rows.append(_lean_row(measures, APPENDED, measures.main_pair or "", answers.words.shift, scores, None))
    return with_q(rows)


def _lean_row(
    measures: ModelMeasures,
    aspect: str,
    pair: str,
    words: Sequence[str],
    scores: WordScores | None,
    comparable: Bools | None,
) -> Finding:
    labels: dict[str, Label] = {"model": measures.model, "asked": measures.answers.way.name}
    labels |= {"aspect": aspect}
    labels |= {"template": measures.main_template, "labels": pair}
    listed_as = measures.answers.words.listed_as
    places = [
        at
        for at, word in enumerate(words)
        if scores is not None
        and listed_as[word] == "neutral"
        # without an interval nothing can be said of a word: its probability never varies, or it is the only one
        and not math.isnan(scores.finding((at,), {}).low)
        and (comparable is None or comparable[at])
    ]
    if scores is None or not places:
        labels |= {"word": "", "positive": 0, "negative": 0, "of": 0, "detectable": math.nan}
        return Finding(labels=labels, estimate=math.nan)
    each = [scores.finding((at,), {}) for at in places]
    lean = [at for at, row in enumerate(each) if is_found(row)]
    surest = min(lean or range(len(each)), key=lambda at: (each[at].p, -abs(each[at].estimate)))
    width = float(np.median([row.high - row.low for row in each]))
    labels |= {"word": words[places[surest]], "positive": sum(each[at].estimate > 0 for at in lean)}
    labels |= {"negative": sum(each[at].estimate < 0 for at in lean), "of": len(each)}
    labels["detectable"] = detectable_from_interval(0.0, width, tests=len(each) * _QUESTIONS)
    p = each[surest].q if lean else min(row.q for row in each)
    return replace(each[surest], labels=labels, p=p, q=math.nan)


def verdicts(rows: Sequence[Finding], models: Mapping[str, ModelMeasures]) -> Iterator[Verdict]:
    """Yield what follows from each primary row."""
    for row in rows:
        labels = row.labels
        measures, template = models[str(labels["model"])], str(labels["template"])
        # a classifier is asked with no template
        where = "" if template == OWN_LABEL else f"with '{template}' "
        reasons = [f"{where}{why}"] if (why := measures.failed(template)) else []
        if not measures.measured:
            reasons = ["nothing was measured"]
        elif labels["aspect"] == APPENDED and not measures.shifts:
            reasons = ["it does not have the label words as one token each"]
        elif not labels["of"]:
            reasons = reasons or ["no neutral word can be compared between positive and negative reviews"]
        said, size = _said(row, measures)
        yield conclude(
            row,
            audit="sentiment_words",
            model=measures.model,
            aspect=str(labels["aspect"]),
            table="leans",
            said=said,
            gate=(reasons or [""])[0],
            detectable=float(labels["detectable"]),
            size=size,
        )


def _said(row: Finding, measures: ModelMeasures) -> tuple[Said, str]:
    """Return the sentences about a row, and its size in words."""
    labels = row.labels
    of, word = labels["of"], labels["word"]
    count = int(labels["positive"]) + int(labels["negative"])
    if labels["aspect"] == AFTER:
        said = f"expects {count} of {of} neutral words more after one kind of review than the other, "
        said += f"most surely '{word}'"
        none = "shows no neutral word that it expects more after positive or after negative reviews"
        return Said(above=f"{said} (positive)", below=f"{said} (negative)", none=none), _share_called(measures)
    said = f"judges reviews differently after {count} of {of} neutral words than after the average one, "
    said += f"most surely '{word}'"
    none = "was not found to judge reviews differently after one neutral word than after another"
    odds = measures.answers.before.get((measures.main_template, measures.main_pair or ""))
    size = ""
    if odds is not None and measures.measured and not math.isnan(row.estimate):
        gap = float(odds[measures.answers.positive].mean() - odds[~measures.answers.positive].mean())
        if abs(gap) > 0:  # a model may label all reviews alike
            size = f"{percent(abs(row.estimate / gap), 0)} of the step from negative to positive reviews"
    return Said(above=f"{said} (better)", below=f"{said} (worse)", none=none), size


def _share_called(measures: ModelMeasures) -> str:
    at = at_m(measures.options.main_m)
    association = measures.associations.get(measures.main_template)
    if association is None:
        return ""
    neutral = measures.answers.classes == "neutral"
    # without q, which the paper's shares do not know
    called = signs_by_rule(association.polarity[measures.options.main_m], association.effect.q, PAPER)
    ours = f"the paper's own rule calls {percent(float((called[neutral] != 0).mean()))} of the words"
    printed = published_share(ASSOCIATION, at).get("RoBERTa-base")
    return ours if printed is None else f"{ours}, and {percent(printed)} in its RoBERTa-base"


def headline(verdict: Verdict) -> str:
    """Return the sentence of a verdict with its numbers; of one that cannot tell there are none to read."""
    if verdict.state == CANNOT_TELL:
        return verdict.sentence
    unit = {AFTER: " standard deviations", APPENDED: " log-odds"}[verdict.aspect]
    size = f"; {verdict.size}" if verdict.size else ""
    return (
        f"{verdict.sentence} Its surest word: {signed(verdict.estimate)}{unit} ({certainty(verdict)}; a lean of "
        f"{written(verdict.detectable, 3)} in a typical word would be found four times in five){size}."
    )


def table_2_notice(measures: ModelMeasures, rows: Sequence[Finding]) -> Iterator[Notice]:
    """Yield by which rule the shares of the paper's Table 2 can come out, and how sure that is."""
    if not rows or not measures.interpretable():
        return
    lowest = min(float(row.labels["paper_lowest"]) for row in rows)
    highest = max(float(row.labels["paper_highest"]) for row in rows)
    shares, fits = {}, {}
    for rule, name in ((PAPER, "the plain sign"), (OPPOSITE, "opposite signs")):
        chosen = select(rows, rule=rule)
        shares[name] = sum(row.estimate for row in chosen) / len(chosen)
        limits = share_interval(shares[name], chosen[0].n)
        fits[name] = bool(limits.low <= highest and limits.high >= lowest)
    outside = {name: max(lowest - share, share - highest, 0.0) for name, share in shares.items()}
    nearer = min(outside, key=lambda name: outside[name])
    if fits["the plain sign"] == fits["opposite signs"]:
        judged = "both could give that" if fits[nearer] else "neither gives that"
        judged += "" if len(set(outside.values())) == 1 else f", and {nearer} lies nearer"
    else:
        judged = f"only {next(name for name in fits if fits[name])} can give that"
    called = ", ".join(f"{name} calls {percent(share, 0)}" for name, share in shares.items())
    text = (
        f"{measures.model}: in the paper's Table 2 the shares add up to {percent(lowest, 0)} to "
        f"{percent(highest, 0)} of the words. Here, on average over K, {called} of {rows[0].n}: {judged}."
    )
    yield info(text)
