"""Which of the listed words one model is asked about: those that are one token of its vocabulary."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clinometer.data.labelled_words import Label, LabelledWord
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.sentiment_words.options import LABELS, LabelPair, Options


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of one model. A used word stands in one class only."""

    used: Mapping[Label, tuple[str, ...]]
    listed: Mapping[Label, int]
    scorable: Mapping[Label, int]  # listed words that are one token
    dropped: Mapping[Label, tuple[LabelledWord, ...]]  # those that would have been used, were they one token
    pairs: tuple[LabelPair, ...]  # of which both words are one token
    shift: tuple[str, ...]  # the words that the shift test appends, neutral ones first

    @property
    def tested(self) -> tuple[str, ...]:
        """Every word of the association test, class by class."""
        return tuple(word for label in LABELS for word in self.used[label])

    @property
    def label_words(self) -> tuple[str, ...]:
        """Every label word once."""
        return tuple(dict.fromkeys(word for pair in self.pairs for word in (pair.positive, pair.negative)))

    @property
    def asked(self) -> tuple[str, ...]:
        """Every word of an association question: the tested ones, then label words that are not among them."""
        return tuple(dict.fromkeys((*self.tested, *self.label_words)))

    @property
    def label_of(self) -> Mapping[str, Label]:
        """The class of each tested word."""
        return {word: label for label in LABELS for word in self.used[label]}


def candidates(options: Options, *, seed: int) -> Mapping[Label, tuple[LabelledWord, ...]]:
    """Return the listed words in the order in which they are taken.

    Words with a score keep the order of their list, strongest first; others come in an order drawn by the seed, so
    that a limit does not prefer the beginning of the alphabet. The draw ranks words one by one: models that lack
    different words are still asked about the same ones as far as possible.
    """
    listed = options.listed_words()
    return {
        label: words if not options.words_file and label != "neutral" else _shuffled(words, salt=f"words {seed}")
        for label, words in listed.items()
    }


def vocabulary_words(options: Options, *, seed: int) -> tuple[str, ...]:
    """Return every word of which must be known whether it is one token of the model."""
    words = [each.word for each_label in candidates(options, seed=seed).values() for each in each_label]
    return tuple(dict.fromkeys([*words, *(word for p in options.pairs for word in (p.positive, p.negative))]))


def choose_words(plan: Plan, records: Records) -> Words:
    """Return the words for the later stages, from the records of the stage "vocabulary"."""
    options: Options = plan.options
    table = records.table(model=plan.model.name, stage="vocabulary", columns=("got_words", "got_logprobs"))
    answered = zip(table["got_words"][0].to_list(), table["got_logprobs"][0].to_list(), strict=True)
    known = {word for word, logprob in answered if logprob is not None and not math.isnan(logprob)}
    used: dict[Label, tuple[str, ...]] = {}
    dropped: dict[Label, tuple[LabelledWord, ...]] = {}
    scorable: dict[Label, int] = {}
    listed = candidates(options, seed=plan.seed)
    for label, words in listed.items():
        had = [each.word for each in words if each.word in known]
        used[label] = tuple(had[: options.words_per_class])
        scorable[label] = len(had)
        # a list with enough words is read no further than the last one that is used
        last = len(words)
        if len(had) >= options.words_per_class:
            last = [each.word for each in words].index(used[label][-1])
        dropped[label] = tuple(each for each in words[:last] if each.word not in known)
    pairs = tuple(pair for pair in options.pairs if {pair.positive, pair.negative} <= known)
    return Words(
        used=used,
        listed={label: len(words) for label, words in listed.items()},
        scorable=scorable,
        dropped=dropped,
        pairs=pairs,
        shift=_shift_words(options, used, seed=plan.seed) if pairs else (),
    )


def _shift_words(options: Options, used: Mapping[Label, tuple[str, ...]], *, seed: int) -> tuple[str, ...]:
    classes: Mapping[str, tuple[Label, ...]] = {
        "neutral": ("neutral",),
        "all": ("neutral", "positive", "negative"),
        "none": (),
    }
    chosen: list[str] = []
    for label in classes[options.shift_words]:
        drawn = used[label]
        if options.shift_words_limit:
            order = sorted(drawn, key=lambda word: _rank(word, salt=f"shift {seed}"))
            taken = set(order[: options.shift_words_limit])
            drawn = tuple(word for word in drawn if word in taken)
        chosen += drawn
    return tuple(chosen)


def _shuffled(words: Iterable[LabelledWord], *, salt: str) -> tuple[LabelledWord, ...]:
    return tuple(sorted(words, key=lambda each: _rank(each.word, salt=salt)))


def _rank(word: str, *, salt: str) -> bytes:
    return hashlib.sha256(f"{salt}\0{word}".encode()).digest()
