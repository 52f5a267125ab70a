"""Which words a model is asked about, and every prompt, for each kind of model.

Only words that are one token of a masked or causal model can be scored, so the first stage asks which ones are;
the words of the association test follow from its answer. The shift test only appends words, so it takes any. A
chat model may answer any word; a classifier is asked for none, but for its label.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from clinometer.data.reviews import Review
from clinometer.data.sentiment_lexicons import Label, LabelledWord, load_neutral_words
from clinometer.probes.kit.asking import ANSWER, DRAWN, FILL, LABEL, NEXT_WORD, Way, way_of
from clinometer.probes.kit.chat import ask_word, chosen_instructions, draws_of, phrasing_count, word_messages
from clinometer.probes.protocol import Plan, Records, Stage
from clinometer.probes.sentiment_words.options import LABELS, LabelPair, Options
from clinometer.types import MASK, AnswerWord, Ask, Block, Classify, Fill, Item, Message, ModelInfo, NextWord, Tag

WAYS = (FILL, NEXT_WORD, ANSWER, DRAWN, LABEL)
VOCABULARY, ASSOCIATION, SHIFT, ANSWERS = "vocabulary", "association", "shift", "answers"  # the stages
OWN_LABEL = "its own label"  # the template of a classifier, which needs none
# What stands for the two label words where none are asked for; the space keeps them apart from listed words.
CLASSIFIED = LabelPair(positive="positive label", negative="negative label")
LISTED = LabelPair(positive="positive words", negative="negative words")

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
    way: Way = FILL  # in which the model is asked

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


def asked_in(model: ModelInfo) -> Way:
    """Return in which way a model is asked."""
    return way_of(model, WAYS)


def fitted(plan: Plan) -> Plan:
    """Return the plan with the options for a model of its kind: if it does not fill blanks, for a slow one."""
    options: Options = plan.options
    return plan if asked_in(plan.model) is FILL else replace(plan, options=options.for_slow_models())


def templates_of(plan: Plan) -> tuple[str, ...]:
    """Return the templates that a model is asked with.

    A causal model reads a template up to its blank, and a chat model is told to fill it: of templates that differ
    only after the blank, the first is taken.
    """
    options: Options = plan.options
    way = asked_in(plan.model)
    if way is FILL:
        return options.templates
    if way is LABEL:
        return (OWN_LABEL,)
    return tuple({left_of(template): template for template in reversed(options.templates)}.values())[::-1]


def left_of(template: str) -> str:
    """Return what comes before the blank.

    >>> left_of("It was [MASK].")
    'It was'
    """
    return template.partition(MASK)[0].rstrip()


def stages_of(plan: Plan) -> tuple[Stage, ...]:
    """Return what to ask: which words the model has, then reviews as they are, then with words appended.

    Of a chat model whose words have probabilities, a few answers are drawn as well: to see for which reviews it
    refuses.
    """
    options: Options = plan.options
    way, reviews = asked_in(plan.model), len(plan.options.chosen_reviews(plan.seed))
    stages = [Stage(name=VOCABULARY, size=1)] if way in (FILL, NEXT_WORD) else []
    stages.append(Stage(name=ASSOCIATION, size=len(templates_of(plan)) * reviews))
    if way is ANSWER and "ask" in plan.model.capabilities:
        stages.append(Stage(name=ANSWERS, size=reviews))
    # how many words are appended is known once the vocabulary has been asked
    return tuple(stages) if options.shift_words == "none" else (*stages, Stage(name=SHIFT))


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
    """Return the words for the later stages, from the records of the stage "vocabulary" where there is one."""
    options: Options = plan.options
    way = asked_in(plan.model)
    listed = candidates(options, seed=plan.seed)
    every = {each.word for words in listed.values() for each in words}
    most = options.words_per_class
    if way in (FILL, NEXT_WORD):
        table = records.table(model=plan.model.name, stage=VOCABULARY, columns=("got_words", "got_logprobs"))
        answered = zip(table["got_words"][0].to_list(), table["got_logprobs"][0].to_list(), strict=True)
        known = {word for word, logprob in answered if logprob is not None and not math.isnan(logprob)}
        pairs = tuple(pair for pair in options.pairs if {pair.positive, pair.negative} <= known)
    elif way is LABEL:
        known, pairs = set(), (CLASSIFIED,)
    else:
        known, most = every, min(most, options.chat_words_per_class)
        pairs = options.pairs if way is ANSWER else (LISTED,)
    used: dict[Label, tuple[str, ...]] = {}
    dropped: dict[Label, tuple[LabelledWord, ...]] = {}
    scorable: dict[Label, int] = {}
    for label, words in listed.items():
        had = [each.word for each in words if each.word in known]
        used[label] = tuple(had[:most])
        scorable[label] = len(had)
        # a list with enough words is read only up to the last one that is used
        last = len(words) if way is not LABEL else 0
        if len(had) >= most:
            last = [each.word for each in words].index(used[label][-1])
        dropped[label] = tuple(each for each in words[:last] if each.word not in known)
    return ModelWords(
        used=used,
        listed={label: len(words) for label, words in listed.items()},
        scorable=scorable,
        dropped=dropped,
        pairs=pairs,
        shift=_shift_words(options, listed, seed=plan.seed) if pairs else (),
        listed_as={each.word: label for label, words in listed.items() for each in words},
        way=way,
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
    template = templates_of(plan)[0]
    request: Fill | NextWord = Fill(text=template, words=words)
    if asked_in(plan.model) is NEXT_WORD:
        request = NextWord(text=left_of(template), words=words)
    return Item(request=request, tags={"template": template})


def association_prompts(plan: Plan, records: Records) -> Iterator[Item]:
    """Yield every review with every template: how probable is each word after it?

    The review is the context: if both are longer than the model's window, only the review is cut.
    """
    words = choose_words(plan, records)
    # a model without any listed word is not asked
    reviews = plan.options.chosen_reviews(plan.seed) if words.asked else ()
    for template in templates_of(plan):
        for number, review in enumerate(reviews):
            yield Item(
                request=_request(plan, words.way, number, review, template, words.asked),
                tags={"template": template, "review": number, "label": review.label, "source": review.source},
            )


def answer_prompts(plan: Plan) -> Iterator[Item]:
    """Yield every review with the first template, for answers that are drawn: does the model refuse?"""
    template = templates_of(plan)[0]
    for number, review in enumerate(plan.options.chosen_reviews(plan.seed)):
        request = _request(plan, DRAWN, number, review, template, ())
        yield Item(request=request, tags={"template": template, "review": number, "label": review.label})


def shift_prompts(plan: Plan, records: Records, *, templates: Sequence[str]) -> Iterator[Item | Block]:
    """Yield every review with every word appended k times: which label word does the model prefer now?

    The paper's size is millions of requests, so only the reviews and one text for each word and k are held. Words
    change fastest and reviews come by length, so that neighbouring requests take about as long to answer.
    """
    options: Options = plan.options
    words = choose_words(plan, records)
    label_words = words.label_words  # one object for all requests: the store then writes it once
    for template in templates:
        shown = "" if words.way is LABEL else template
        texts = [(word, k, appended(word, k, shown)) for word in words.shift for k in options.ks]
        if not texts:
            continue
        repeated, ks, written = (tuple(column) for column in zip(*texts, strict=True))
        for number, review in enumerate(plan.options.chosen_reviews(plan.seed)):
            tags: dict[str, Tag] = {"template": template, "review": number}
            if words.way is FILL:
                yield Block(
                    kind=Fill,
                    columns={"text": written},
                    shared={"context": review.text, "words": label_words, "normalise": "words"},
                    tags={"word": repeated, "k": ks},
                    shared_tags=tags,
                )
                continue
            for word, k, text in texts:
                request = _request(plan, words.way, number, review, text, label_words, shift=True)
                yield Item(request=request, tags={**tags, "word": word, "k": k})


def appended(word: str, k: int, template: str) -> str:
    """Return the prompt with a word before it, k times; only the words where there is no prompt.

    >>> appended("shone", 3, "It was [MASK]"), appended("shone", 2, "")
    ('shone shone shone It was [MASK]', 'shone shone')
    """
    return " ".join([word] * k + ([template] if template else []))


def _request(
    plan: Plan,
    way: Way,
    number: int,
    review: Review,
    text: str,
    words: tuple[str, ...],
    *,
    shift: bool = False,
) -> Fill | NextWord | AnswerWord | Ask | Classify:
    """Return the question for the word at the blank of a text after a review, or for the label of both."""
    normalise: Literal["vocabulary", "words"] = "words" if shift else "vocabulary"
    if way is FILL:
        return Fill(text=text, context=review.text, words=words, normalise=normalise)
    if way is NEXT_WORD:
        return NextWord(text=left_of(text), context=review.text, words=words, normalise=normalise)
    context = _fitting(review.text, plan)
    if way is LABEL:
        return Classify(text=f"{context} {text}" if shift else context)
    messages = _messages(plan.options, number, text, context)
    if way is ANSWER:
        return AnswerWord(messages=messages, words=words, normalise=normalise)
    return ask_word(messages, n=draws_of(plan.model, plan.options.answers), seed=plan.seed)


def _messages(options: Options, number: int, text: str, context: str) -> tuple[Message, ...]:
    """Return the conversation; phrasings take turns over the reviews, so that none of them decides.

    A review is asked about in one phrasing, before and after words are appended.
    """
    instructions = chosen_instructions(options.instructions_file)
    phrasing = number % phrasing_count(text, instructions)
    return word_messages(text, instructions=instructions, phrasing=phrasing, context=context)


def _fitting(review: str, plan: Plan) -> str:
    """Return the last words of a review, so many that the window holds them with what is appended.

    Classifiers cut the end of a text, and there the appended words are. A word has up to two tokens on average;
    an appended one, which may be rare, is given four.
    """
    if not plan.model.window:
        return review
    most = max(plan.model.window // 2 - 2 * max(plan.options.ks), 1)
    words = review.split()
    return review if len(words) <= most else " ".join(words[-most:])
