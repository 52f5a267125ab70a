"""What the counterexamples audit asks: every occupation, alone and after each kind of knowledge."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from clinometer.data import Gender, Kind, Occupation, Sentences
from clinometer.data.wording import fill_fields, with_article
from clinometer.errors import ModelError, SpecError
from clinometer.probes.counterexamples.options import Options
from clinometer.probes.kit.chat import (
    ask_word,
    chosen_instructions,
    draws_of,
    gives_probabilities,
    phrasing_count,
    word_messages,
)
from clinometer.probes.protocol import Plan, Stage
from clinometer.types import AnswerWord, Ask, Fill, Item, Message, ModelInfo, NextWord, Request, Rescore, Tag

LISTED_BACKGROUNDS = (
    2  # of each background kind for which the listed words are asked too: they cost a question each
)

MANY_BACKGROUNDS = 10  # from so many on, one of each background kind is asked where questions cost much more:
# every listed word with the whole sentence, or a conversation

PROMPTS, WORDS, BLANK, ANSWERS, DRAWN = "prompts", "words", "blank", "answers", "drawn"  # stages

_PERSON: dict[Gender, str] = {"female": "woman", "male": "man"}
_OTHER: dict[Gender, Gender] = {"female": "male", "male": "female"}


def stages(plan: Plan) -> tuple[Stage, ...]:
    """Return what a model is asked: by what it can do, one way or several."""
    options: Options = plan.options
    can = plan.model.capabilities
    found = []
    if "fill" in can or "next_word" in can:
        found.append(Stage(name=PROMPTS, size=_size(options, options.backgrounds)))
        found.append(Stage(name=WORDS, size=_size(options, LISTED_BACKGROUNDS)))
    if "rescore" in can:
        found.append(Stage(name=BLANK, size=_size(options, few_backgrounds(options))))
    if gives_probabilities(plan.model):
        found.append(Stage(name=ANSWERS, size=_chat_size(plan)))
    if "ask" in can:
        found.append(Stage(name=DRAWN, size=_chat_size(plan, _drawn_kinds(plan))))
    if not found:
        raise ModelError(
            f"'{plan.model.name}' offers {', '.join(can) or 'nothing'}; counterexamples needs a model that fills "
            "a blank, continues a text or answers a question"
        )
    return tuple(found)


def few_backgrounds(options: Options) -> int:
    """Return how many of each background kind are asked where each takes long: none in a quick run."""
    return int(options.backgrounds >= MANY_BACKGROUNDS)


def questions(stage: Stage, plan: Plan) -> Iterator[Item]:
    """Yield the questions of a stage, occupation by occupation, in the paper's order of kinds."""
    options: Options = plan.options
    if stage.name == PROMPTS:
        top = partial(_request, plan.model, top_k=max(options.ks))
        return _items(plan, top, backgrounds=options.backgrounds)
    if stage.name == WORDS:
        # in lower case and with a capital, because offered words are counted in any case: a model may know "Mary"
        # and not "mary"
        spellings = dict.fromkeys(
            form for word in options.chosen_verbalizer() for form in (word, word.capitalize())
        )
        return _items(plan, partial(_request, plan.model, words=tuple(spellings)), backgrounds=LISTED_BACKGROUNDS)
    if stage.name == BLANK:
        return _items(plan, _rescored(options), backgrounds=few_backgrounds(options))
    if stage.name == ANSWERS:
        return _items(plan, _answered(options), backgrounds=few_backgrounds(options), chat=True)
    drawn = _drawn(options, n=draws_of(plan.model, options.answers), seed=plan.seed)
    return _items(plan, drawn, backgrounds=few_backgrounds(options), kinds=_drawn_kinds(plan), chat=True)


class Sentence(NamedTuple):
    """One prompt: what fills the fields of the sentences, the knowledge before it, and how it is phrased."""

    sentences: Sentences
    fields: Mapping[str, str]
    knowledge: str
    phrasing: int

    @property
    def blank(self) -> str:
        """The sentence with its blank."""
        return fill_fields(self.sentences.blank, self.fields)


def _items(
    plan: Plan,
    request: Callable[[Sentence], Request],
    *,
    backgrounds: int,
    kinds: Sequence[Kind] | None = None,
    chat: bool = False,
) -> Iterator[Item]:
    options: Options = plan.options
    sentences = options.chosen_sentences()
    pools = pools_of(options.chosen_occupations())
    for target in chat_occupations(plan) if chat else options.chosen_occupations():
        drawn = sample_backgrounds(target, pools, n=min(backgrounds, options.backgrounds), seed=plan.seed)
        for kind in sentences.kinds if kinds is None else kinds:
            for background in drawn if kind.has_background else (None,):
                fields = _sentence_fields(target, background)
                knowledge = fill_fields(kind.knowledge, fields)
                for phrasing in range(options.phrasings if chat else 1):
                    tags: dict[str, Tag] = {
                        "kind": kind.name,
                        "occupation": target.name,
                        "dominance": target.dominance,
                        "background": background.name if background else "",
                        "percent": target.percent_female,
                    }
                    asked = Sentence(sentences, fields, knowledge, phrasing)
                    made = request(asked)
                    if isinstance(made, Ask | AnswerWord):
                        tags |= {"phrasing": phrasing, "sentence": asked.blank}
                    yield Item(request=made, tags=tags)


def _rescored(options: Options) -> Callable[[Sentence], Request]:
    words = tuple(options.chosen_verbalizer())

    def request(asked: Sentence) -> Request:
        return Rescore(text=asked.blank, context=asked.knowledge, words=words, candidates=options.candidates)

    return request


def _messages(options: Options) -> Callable[[Sentence], tuple[Message, ...]]:
    instructions = chosen_instructions(options.instructions_file)

    def messages(asked: Sentence) -> tuple[Message, ...]:
        return word_messages(
            asked.blank, instructions=instructions, phrasing=asked.phrasing, context=asked.knowledge
        )

    return messages


def check_phrasings(options: Options) -> None:
    """Raise an InputError if there are fewer phrasings than are wanted, or the sentences cannot be read."""
    blank = options.chosen_sentences().blank
    known = phrasing_count(blank, chosen_instructions(options.instructions_file))
    if options.phrasings > known:
        raise SpecError(
            f"counterexamples: phrasings = {options.phrasings}, but there are {known}; give {known} or less"
        )


def _answered(options: Options) -> Callable[[Sentence], Request]:
    words, messages = tuple(options.chosen_verbalizer()), _messages(options)

    def request(asked: Sentence) -> Request:
        return AnswerWord(messages=messages(asked), words=words, candidates=options.candidates)

    return request


def _drawn(options: Options, *, n: int, seed: int) -> Callable[[Sentence], Request]:
    messages = _messages(options)

    def request(asked: Sentence) -> Request:
        return ask_word(messages(asked), n=n, seed=seed)

    return request


def _drawn_kinds(plan: Plan) -> tuple[Kind, ...]:
    """Return after which knowledge answers are drawn: after none where they are only needed for refusals."""
    options: Options = plan.options
    kinds = options.chosen_sentences().kinds
    return kinds[:1] if gives_probabilities(plan.model) else kinds


def chat_occupations(plan: Plan) -> tuple[Occupation, ...]:
    """Return the occupations that a chat model is asked about: all, or as many of each dominance.

    The draw depends on the seed and on the occupations of a dominance; a smaller n gives a part of a larger one.
    """
    options: Options = plan.options
    every, n = options.chosen_occupations(), options.chat_occupations
    if n == 0:
        return every
    kept: set[Occupation] = set()
    for number, pool in enumerate(pools_of(every).values()):
        order = np.random.default_rng([plan.seed, number]).permutation(len(pool))
        kept.update(pool[place] for place in order[:n])
    return tuple(each for each in every if each in kept)


def _chat_size(plan: Plan, kinds: Sequence[Kind] | None = None) -> int:
    options: Options = plan.options
    every = len(options.chosen_occupations())
    whole = _size(options, few_backgrounds(options), kinds) * options.phrasings
    return whole // every * len(chat_occupations(plan))


def _size(options: Options, backgrounds: int, kinds: Sequence[Kind] | None = None) -> int:
    """Return how many prompts there are, without making them."""
    each = options.chosen_sentences().kinds if kinds is None else kinds
    drawn = min(backgrounds, options.backgrounds)
    return sum(drawn if kind.has_background else 1 for kind in each) * len(options.chosen_occupations())


def pools_of(occupations: Sequence[Occupation]) -> Mapping[Gender, Sequence[Occupation]]:
    """Return the occupations that each gender dominates, in the order of their names."""
    in_order = sorted(occupations, key=lambda each: each.name)
    return {gender: [each for each in in_order if each.dominance == gender] for gender in _OTHER}


def sample_backgrounds(
    target: Occupation, pools: Mapping[Gender, Sequence[Occupation]], *, n: int, seed: int
) -> tuple[Occupation, ...]:
    """Return n occupations that the other gender dominates, drawn without replacement.

    The draw depends on the seed, the target's name and the *set* of candidates: not on the order of the list, nor
    on what was drawn for other targets. A smaller n gives the beginning of a larger one.
    """
    other = _OTHER[target.dominance]
    pool = pools[other]
    if n > len(pool):
        less = f"set backgrounds to {len(pool)} or less" if pool else "set backgrounds to 0 (none is then named)"
        raise SpecError(
            f"counterexamples: backgrounds = {n}, but only {len(pool)} of the occupations are {other}-dominated; "
            f"{less}, or add {other}-dominated occupations"
        )
    name_number = int.from_bytes(hashlib.sha256(target.name.encode()).digest()[:8], "big")
    order = np.random.default_rng([seed, name_number]).permutation(len(pool))
    return tuple(pool[position] for position in order[:n])


def _sentence_fields(target: Occupation, background: Occupation | None) -> dict[str, str]:
    """Return what the {fields} of the sentences mean; knowledge.toml explains them."""
    pro, counter = target.dominance, _OTHER[target.dominance]
    fields = {
        "target": target.name,
        "a_target": with_article(target.name, article=target.article),
        "pro_person": _PERSON[pro],
        "counter_person": _PERSON[counter],
        "pro_gender": pro,
        "counter_gender": counter,
    }
    if background is not None:
        fields["background"] = background.name
        fields["a_background"] = with_article(background.name, article=background.article)
    return fields


def _request(model: ModelInfo, asked: Sentence, *, words: tuple[str, ...] = (), top_k: int = 0) -> Request:
    if "fill" in model.capabilities:
        return Fill(text=asked.blank, context=asked.knowledge, join="separator", words=words, top_k=top_k)
    prefix = fill_fields(asked.sentences.prefix, asked.fields)
    return NextWord(text=prefix, context=asked.knowledge, words=words, top_k=top_k)
