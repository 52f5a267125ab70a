"""Which words a model is asked about, and every prompt.

Only words that are one token of a model can be scored at the mask, so the first stage asks which ones are; the
words of the association test follow from its answer. The shift test only appends words, so it takes any.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clinometer.data.sentiment_lexicons import Label, LabelledWord, load_neutral_words
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.sentiment_words.options import LABELS, LabelPair, Options
from clinometer.types import Fill, Item

# the classes in the order in which the shift test appends their words
_APPENDED: Mapping[str, tuple[Label, ...]] = {
    "neutral": ("neutral",),
    "all": ("neutral", "positive", "negative"),
    "none": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWords:
    """The words that one model is asked about. A used word belongs to one class only."""

    used: Mapping[Label, tuple[str, ...]]
    listed: Mapping[Label, int]
    scorable: Mapping[Label, int]  # listed words that are one token
    dropped: Mapping[Label, tuple[LabelledWord, ...]]  # those that would have been used if they were one token
    pairs: tuple[LabelPair, ...]  # those whose two words are one token each
    shift: tuple[str, ...]  # the words that the shift test appends, neutral ones first, of any number of tokens
    listed_as: Mapping[str, Label]  # the class of each listed word

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


def candidates(options: Options, *, seed: int) -> Mapping[Label, tuple[LabelledWord, ...]]:
    """Return the listed words in the order in which they are taken.

    Words with a score keep the order of their list, strongest first. The others come in an order drawn by the
    seed, so that a limit does not favour the beginning of the alphabet; those that the paper prints come before
    those of a neutral file. The draw ranks each word on its own, so that models with different vocabularies are
    asked about the same words as far as possible.
    """
    printed = set() if options.words_file else {each.word for each in load_neutral_words()}

    def scored(label: Label) -> bool:
        return not options.words_file and label != "neutral"

    def drawn(each: LabelledWord) -> tuple[bool, bytes]:
        return each.word not in printed, _rank(each.word, salt=f"words {seed}")

    return {
        label: words if scored(label) else tuple(sorted(words, key=drawn))
        for label, words in options.listed_words().items()
    }


def choose_words(plan: Plan, records: Records) -> ModelWords:
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
        # a list with enough words is read only up to the last one that is used
        last = len(words)
        if len(had) >= options.words_per_class:
            last = [each.word for each in words].index(used[label][-1])
        dropped[label] = tuple(each for each in words[:last] if each.word not in known)
    pairs = tuple(pair for pair in options.pairs if {pair.positive, pair.negative} <= known)
    return ModelWords(
        used=used,
        listed={label: len(words) for label, words in listed.items()},
        scorable=scorable,
        dropped=dropped,
        pairs=pairs,
        shift=_shift_words(options, listed, seed=plan.seed) if pairs else (),
        listed_as={each.word: label for label, words in listed.items() for each in words},
    )


def _shift_words(
    options: Options, listed: Mapping[Label, tuple[LabelledWord, ...]], *, seed: int
) -> tuple[str, ...]:
    chosen: list[str] = []
    for label in _APPENDED[options.shift_words]:
        words = [each.word for each in listed[label][: options.words_per_class]]
        order = sorted(words, key=lambda word: _rank(word, salt=f"shift {seed}"))
        taken = set(order[: options.shift_words_limit or None])
        chosen += [word for word in words if word in taken]
    return tuple(chosen)


def _rank(word: str, *, salt: str) -> bytes:
    return hashlib.sha256(f"{salt}\0{word}".encode()).digest()


def vocabulary_question(plan: Plan) -> Item:
    """Return the question which of the listed words are one token of the model."""
    options: Options = plan.options
    listed = [each.word for words in candidates(options, seed=plan.seed).values() for each in words]
    labels = [word for pair in options.pairs for word in (pair.positive, pair.negative)]
    words = tuple(dict.fromkeys([*listed, *labels]))
    return Item(request=Fill(text=options.templates[0], words=words), tags={"template": options.templates[0]})


def association_prompts(plan: Plan, records: Records) -> Iterator[Item]:
    """Yield every review with every template: how probable is each word after it?

    The review is the context: if both are longer than the model's window, only the review is cut.
    """
    options: Options = plan.options
    words = choose_words(plan, records).asked
    reviews = options.chosen_reviews(plan.seed) if words else ()  # a model without any listed word is not asked
    for template in options.templates:
        for number, review in enumerate(reviews):
            yield Item(
                request=Fill(text=template, context=review.text, words=words),
                tags={"template": template, "review": number, "label": review.label, "source": review.source},
            )


def shift_prompts(plan: Plan, records: Records, *, templates: Sequence[str]) -> Iterator[Item]:
    """Yield every review with every word appended k times: which label word does the model prefer now?

    The paper's size is millions of requests, so only the reviews and one text for each word and k are held. Words
    change fastest and reviews come by length, so that neighbouring requests take about as long to answer.
    """
    options: Options = plan.options
    words = choose_words(plan, records)
    label_words = words.label_words  # one object for all requests: the store then writes it once
    reviews = options.chosen_reviews(plan.seed)
    for template in templates:
        texts = [(word, k, appended(word, k, template)) for word in words.shift for k in options.ks]
        for number, review in enumerate(reviews):
            for word, k, text in texts:
                yield Item(
                    request=Fill(text=text, context=review.text, words=label_words, normalise="words"),
                    tags={"template": template, "word": word, "k": k, "review": number},
                )


def appended(word: str, k: int, template: str) -> str:
    """Return the prompt with a word before it, k times.

    >>> appended("shone", 3, "It was [MASK]")
    'shone shone shone It was [MASK]'
    """
    return " ".join([word] * k + [template])
