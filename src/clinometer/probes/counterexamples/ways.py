"""What a model answered in each way it was asked: words it offers, a blank that it rescores, a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from clinometer.data import Verbalizer
from clinometer.metrics.gendered import FEMALE, MALE
from clinometer.probes.counterexamples.answers import (
    CODES,
    DOMINANCES,
    Answers,
    WholeList,
    read_answers,
)
from clinometer.probes.counterexamples.questions import ANSWERS, BLANK, DRAWN, PROMPTS, stages
from clinometer.probes.kit import Floats
from clinometer.probes.kit.drawn import DrawnWords, count_words, failed_to_answer
from clinometer.probes.kit.refusals import asked_of
from clinometer.probes.protocol import Plan, Records

RESCORED = "blank, every listed word scored with the whole sentence"
FIRST_WORD = "asked for one word, from the probabilities of the first word"
SAID = "asked for one word, answers drawn"


def views(plan: Plan, records: Records, verbalizer: Verbalizer) -> Iterator[tuple[Plan, Answers]]:
    """Yield the answers of one model by each way it was asked; a second way gets a name of its own."""
    asked = {stage.name for stage in stages(plan)}
    if PROMPTS in asked:
        yield plan, read_answers(plan, records, verbalizer)
    if BLANK in asked:
        named = replace(plan, model=replace(plan.model, name=f"{plan.model.name} (blank)"))
        table = records.table(model=plan.model.name, stage=BLANK)
        yield named, _answers(named, table, _listed(table, verbalizer, normalised=True), way=RESCORED)
    if ANSWERS in asked or DRAWN in asked:
        yield plan, _conversation(plan, records, verbalizer, asked)


def _conversation(plan: Plan, records: Records, verbalizer: Verbalizer, asked: set[str]) -> Answers:
    """Read what a chat model said: words from probabilities where it gives them, refusals from drawn answers."""
    drawn: list[DrawnWords] = []
    table = records.table(model=plan.model.name, stage=DRAWN if DRAWN in asked else ANSWERS)
    masses: tuple[Floats, Floats]
    if DRAWN in asked:
        drawn = [
            count_words(texts, asked=sentence, words=tuple(verbalizer))
            for texts, sentence in zip(table["got_texts"].to_list(), table["tag_sentence"].to_list(), strict=True)
        ]
        masses = _said(drawn, verbalizer)
    refusals = asked_of(
        plan.model.name,
        drawn,
        groups=[f"{DOMINANCES[CODES[each]]} occupations" for each in table["tag_dominance"]] if drawn else (),
        units=table["tag_occupation"].to_list() if drawn else (),
    )
    if ANSWERS in asked:
        table = records.table(model=plan.model.name, stage=ANSWERS)
        masses = _listed(table, verbalizer, normalised=False)
    answers = _answers(plan, table, masses, way=FIRST_WORD if ANSWERS in asked else SAID)
    return replace(answers, refusals=refusals if drawn else None, failed=failed_to_answer(drawn) if drawn else "")


def _listed(table: pl.DataFrame, verbalizer: Verbalizer, *, normalised: bool) -> tuple[Floats, Floats]:
    """Return the probability of the female and of the male words.

    Where it is normalised over the list, what the list covers before that is multiplied in: the gate rests on it.
    """
    words: list[str] = table["got_words"][0].to_list()
    logprobs = table["got_logprobs"].explode(empty_as_null=False).to_numpy().reshape(len(table), len(words))
    genders = np.array([CODES[verbalizer[word.lower()]] for word in words])
    scored = ~np.isnan(logprobs).all(axis=1)
    chances = np.exp(np.where(np.isnan(logprobs), -np.inf, logprobs))
    if normalised:
        chances = chances * table["got_covered"].to_numpy().astype(np.float64)[:, None]
    female, male = (np.where(scored, chances[:, genders == code].sum(axis=1), np.nan) for code in (FEMALE, MALE))
    return female, male


def _said(drawn: Sequence[DrawnWords], verbalizer: Verbalizer) -> tuple[Floats, Floats]:
    """Return the share of all answers that are a female, and a male, word; NaN where none gives a word."""
    found = []
    for code in (FEMALE, MALE):
        listed = {word for word, gender in verbalizer.items() if CODES[gender] == code}
        found.append(
            np.array([each.share(listed) * each.answered / max(each.draws, 1) for each in drawn], dtype=np.float64)
        )
    return found[0], found[1]


def _answers(plan: Plan, table: pl.DataFrame, masses: tuple[Floats, Floats], *, way: str) -> Answers:
    """Return answers that know the listed words alone."""
    kind = table["tag_kind"].to_numpy().astype(np.str_)
    names = table["tag_occupation"].to_list()
    occupations = tuple(dict.fromkeys(names))
    number = {name: at for at, name in enumerate(occupations)}
    occupation = np.array([number[name] for name in names], dtype=np.int64)
    at_base = np.flatnonzero(kind == plan.options.chosen_sentences().kinds[0].name)
    base = np.array([next(at for at in at_base if occupation[at] == each) for each in range(len(occupations))])
    return Answers(
        model=plan.model.name,
        kinds=tuple(each for each in plan.options.chosen_sentences().kinds if each.name in kind),
        kind=kind,
        occupation=occupation,
        occupations=occupations,
        dominance=np.array([CODES[gender] for gender in table["tag_dominance"].gather(base)], dtype=np.int64),
        percent=table["tag_percent"].to_numpy().astype(np.float64)[base],
        base=base,
        words=np.zeros((len(table), 0), dtype=np.int64),
        logprobs=np.zeros((len(table), 0)),
        vocabulary=np.zeros(0, dtype=np.str_),
        word_genders=np.zeros(0, dtype=np.int64),
        listed=(),
        whole=WholeList(kind=kind, occupation=occupation, female=masses[0], male=masses[1]),
        way=way,
    )
