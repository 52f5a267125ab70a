"""The answers of one model as arrays, a row for each prompt, in each way it was asked.

The ways are: its most probable words (a column for each), a blank that it rescores, a conversation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clinometer.data import Gender, Kind, Verbalizer
from clinometer.metrics.gendered import FEMALE, MALE, NEITHER
from clinometer.probes.counterexamples.questions import ANSWERS, BLANK, DRAWN, PROMPTS, stages
from clinometer.probes.kit import Floats, Ints
from clinometer.probes.kit.chat import DrawnWords, count_words, failed_to_answer
from clinometer.probes.kit.refusals import Asked, asked_of
from clinometer.probes.protocol import Plan, Records

ALL = "all"
# in which way a model was asked
WORDS_OFFERED = "words offered"  # at the blank, or after the text
RESCORED = "blank, every listed word scored with the whole sentence"
FIRST_WORD = "asked for one word, from the probabilities of the first word"
SAID = "asked for one word, answers drawn"
DOMINANCES = {FEMALE: "female-dominated", MALE: "male-dominated"}

_COLUMNS = ("tag_kind", "tag_occupation", "tag_dominance", "tag_percent", "got_words", "got_logprobs")
CODES: dict[Gender, int] = {"female": FEMALE, "male": MALE}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedWords:
    """The listed words of one gender, and those among them that a model can never offer."""

    gender: Gender
    words: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeList:
    """The probability of all listed words, a row for each prompt; empty in a run that did not ask for them."""

    kind: NDArray[np.str_]  # (prompts,)
    occupation: Ints  # (prompts,): its number
    female: Floats  # (prompts,); NaN where the answer is missing
    male: Floats

    def rows_of(self, *kinds: Kind) -> Ints:
        """Return the prompts of these kinds."""
        return np.flatnonzero(np.isin(self.kind, [kind.name for kind in kinds]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What one model answered: prompts are numbered by row, words by their place in `vocabulary`."""

    model: str
    kinds: tuple[Kind, ...]  # the base first, then the kinds of knowledge that were asked
    kind: NDArray[np.str_]  # (prompts,)
    occupation: Ints  # (prompts,): its number, in the order asked
    occupations: tuple[str, ...]
    dominance: Ints  # (occupations,): 1 female, −1 male
    percent: Floats  # (occupations,): of women
    base: Ints  # (occupations,): the row of the prompt without knowledge
    words: Ints  # (prompts, words); −1 where a prompt has fewer words
    logprobs: Floats  # (prompts, words); −inf there
    vocabulary: NDArray[np.str_]  # every word that was offered, in lower case
    word_genders: Ints  # of the vocabulary: 1 female, −1 male, 0 neither
    listed: tuple[ListedWords, ...]
    whole: WholeList
    way: str = WORDS_OFFERED
    failed: str = ""  # why the answers of a chat model mean nothing
    refusals: Asked | None = None  # how often a chat model refuses, by dominance

    @property
    def offers(self) -> bool:
        """Whether it was asked for its most probable words; else only for those of the list."""
        return self.way == WORDS_OFFERED

    @property
    def genders(self) -> Ints:
        """The gender of each word of each prompt."""
        codes: Ints = np.append(self.word_genders, NEITHER)[self.words]  # padding is −1: the appended last entry
        return codes

    @property
    def base_of(self) -> Ints:
        """The row of the same occupation's base prompt, for each prompt."""
        rows: Ints = self.base[self.occupation]
        return rows

    @property
    def knowledge(self) -> tuple[Kind, ...]:
        """The kinds of knowledge, without the base."""
        return self.kinds[1:]

    @property
    def dominances(self) -> tuple[str, ...]:
        """The dominances that the occupations have, after "all" where they have both."""
        present = tuple(name for code, name in DOMINANCES.items() if code in self.dominance)
        return (ALL, *present) if len(present) > 1 else present

    def rows_of(self, *kinds: Kind) -> Ints:
        """Return the prompts of these kinds."""
        return np.flatnonzero(np.isin(self.kind, [kind.name for kind in kinds]))


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


def read_answers(plan: Plan, records: Records, verbalizer: Verbalizer) -> Answers:
    """Read both stages of one model; words are matched in lower case, without spaces."""
    table = records.table(model=plan.model.name, stage="prompts", columns=_COLUMNS)
    lengths = table["got_words"].list.len().to_numpy().astype(np.int64)
    rows = np.repeat(np.arange(len(table)), lengths)
    places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    offered = table["got_words"].explode(empty_as_null=False).str.strip_chars().str.to_lowercase()
    vocabulary, numbers = np.unique(offered.to_numpy().astype(np.str_), return_inverse=True)
    shape = (len(table), int(lengths.max(initial=0)))
    words = np.full(shape, -1, dtype=np.int64)
    words[rows, places] = numbers
    logprobs = np.full(shape, -np.inf)
    logprobs[rows, places] = table["got_logprobs"].explode(empty_as_null=False).to_numpy()

    kind = table["tag_kind"].to_numpy().astype(np.str_)
    base = np.flatnonzero(kind == "base")  # one for each occupation, before its other prompts
    occupations = tuple(table["tag_occupation"][base])
    number = {name: i for i, name in enumerate(occupations)}
    asked = records.table(model=plan.model.name, stage="words")
    return Answers(
        model=plan.model.name,
        kinds=tuple(each for each in plan.options.chosen_sentences().kinds if each.name in kind),
        kind=kind,
        occupation=np.array([number[name] for name in table["tag_occupation"]], dtype=np.int64),
        occupations=occupations,
        dominance=np.array([CODES[gender] for gender in table["tag_dominance"][base]], dtype=np.int64),
        percent=table["tag_percent"].to_numpy().astype(np.float64)[base],
        base=base,
        words=words,
        logprobs=logprobs,
        vocabulary=vocabulary,
        word_genders=np.array(
            [CODES[verbalizer[word]] if word in verbalizer else NEITHER for word in vocabulary.tolist()],
            dtype=np.int64,
        ),
        listed=_listed_words(asked, verbalizer),
        whole=_whole_list(asked, number, verbalizer),
    )


def _whole_list(table: pl.DataFrame, number: Mapping[str, int], verbalizer: Verbalizer) -> WholeList:
    """Return the probability of each gender's listed words; a word that is not one token has none.

    Nor has one that is not among the tokens that an endpoint tells at a prompt: it adds nothing there.
    """
    if "tag_kind" not in table.columns:  # before the list was asked at every prompt, it was asked at one
        nothing = np.zeros(0)
        return WholeList(
            kind=np.zeros(0, dtype=np.str_), occupation=nothing.astype(int), female=nothing, male=nothing
        )
    words: list[str] = table["got_words"][0].to_list()
    logprobs = table["got_logprobs"].explode(empty_as_null=False).to_numpy().reshape(len(table), len(words))
    place = {word: i for i, word in enumerate(words)}
    # to a model that ignores case both spellings are one token, which must not count twice
    again = [
        word != word.lower() and np.array_equal(logprobs[:, i], logprobs[:, place.get(word.lower(), i)])
        for i, word in enumerate(words)
    ]
    counted = ~np.isnan(logprobs).all(axis=0) & ~np.array(again)
    genders = np.array([CODES[verbalizer[word.lower()]] for word in words])
    scored = ~np.isnan(logprobs).all(axis=1)
    chances = np.exp(np.where(np.isnan(logprobs), -np.inf, logprobs))
    masses = [
        np.where(scored, chances[:, counted & (genders == code)].sum(axis=1), np.nan) for code in (FEMALE, MALE)
    ]
    return WholeList(
        kind=table["tag_kind"].to_numpy().astype(np.str_),
        occupation=np.array([number[name] for name in table["tag_occupation"]], dtype=np.int64),
        female=masses[0],
        male=masses[1],
    )


def _listed_words(table: pl.DataFrame, verbalizer: Verbalizer) -> tuple[ListedWords, ...]:
    """Return what the answer of the stage "words" says of each gender.

    NaN is the answer for a word that is not one token. Words are counted in lower case, so a word is lost only
    when all of its spellings are.
    """
    words, logprobs = table["got_words"][0].to_list(), table["got_logprobs"][0].to_list()
    offered = {
        word.lower()
        for word, logprob in zip(words, logprobs, strict=True)
        if logprob is not None and not math.isnan(logprob)
    }
    listed = {gender: tuple(word for word in verbalizer if verbalizer[word] == gender) for gender in CODES}
    return tuple(
        ListedWords(gender=gender, words=words, lost=tuple(word for word in words if word not in offered))
        for gender, words in listed.items()
    )


# ---------------------------------------------------------------------------------------------------------
# Listed words alone


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
