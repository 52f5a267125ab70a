"""What the stigma audit asks: blanks of masked and causal models, statements of classifiers, questions of chat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from clinometer.data.stigma_data import (
    BleachedPrompt,
    Condition,
    ScaleQuestion,
    SocialPrompt,
    check_statement,
    fill_prompt,
)
from clinometer.probes.kit import Ints, Label
from clinometer.probes.kit.chat import ask_word, chosen_instructions, draws_of, phrasing_count, word_messages
from clinometer.probes.kit.choices import ask_choice
from clinometer.probes.protocol import Plan
from clinometer.types import MASK, AnswerWord, Ask, Classify, Fill, Item, Message, Rescore

Bools = NDArray[np.bool_]
Prompt = TypeVar("Prompt", SocialPrompt, BleachedPrompt, ScaleQuestion)

ATTITUDES, SENTENCES, CHECKS, SCALE = "attitudes", "sentences", "checks", "scale"  # the stages …
CHOICES = "choices"
WORDS, FIRST_WORDS = "words", "first_words"  # … of chat models: one word for a blank, drawn or as probabilities
STIGMATIZED, OTHER, BASELINE, CHECK = "stigmatized", "other", "baseline", "check"
LEFT = "left part"  # what a causal model says there, before it has read the rest of the sentence

LONGEST_ANSWER = 24  # tokens: the longest option has four or five, and a refusal shows early


@dataclass(frozen=True, kw_only=True)
class Roster:
    """What is asked about. Wordings (sub-conditions) are numbered as asked, conditions by first appearance."""

    wordings: tuple[Condition, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The conditions."""
        return tuple(dict.fromkeys(each.condition for each in self.wordings))

    @cached_property
    def condition_of(self) -> Ints:
        """The number of each wording's condition."""
        place = {name: at for at, name in enumerate(self.names)}
        return np.array([place[each.condition] for each in self.wordings], dtype=np.int64)

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """The category of each condition."""
        first = {each.condition: each.category for each in reversed(self.wordings)}
        return tuple(first[name] for name in self.names)

    @cached_property
    def stigmatized(self) -> Bools:
        """Whether each condition is stigmatized."""
        side = {each.condition: each.stigmatized for each in self.wordings}
        return np.array([side[name] for name in self.names], dtype=np.bool_)

    def members(self) -> dict[str, Bools]:
        """Return which conditions are stigmatized and which are not."""
        return {STIGMATIZED: self.stigmatized, OTHER: ~self.stigmatized}

    def labels(self, condition: int) -> dict[str, Label]:
        """Return the labels of one condition."""
        return {
            "condition": self.names[condition],
            "category": self.categories[condition],
            "group": STIGMATIZED if self.stigmatized[condition] else OTHER,
        }


def is_rescored(plan: Plan) -> bool:
    """Tell whether a model fills blanks by rescoring whole sentences: it reads left to right."""
    return not {"fill", "classify", "ask"} & set(plan.model.capabilities)


def asks_words(plan: Plan) -> bool:
    """Tell whether a model is asked in words for the word at a blank: a chat model, unless options say no."""
    capabilities = plan.model.capabilities
    return "ask" in capabilities and not {"fill", "classify"} & set(capabilities) and plan.options.one_word


def word_questions(plan: Plan) -> Iterator[Item]:
    """Yield the sentences with a blank as a chat model is asked to fill them, several answers each."""
    n = draws_of(plan.model, plan.options.answers)
    for tags, text, messages in _conversations(plan):
        yield Item(request=ask_word(messages, n=n, seed=plan.seed), tags=tags | {"text": text})


def first_words(plan: Plan) -> Iterator[Item]:
    """Yield the same questions for a model that says how probable each rated word is as its answer."""
    words = _rated(plan)
    for tags, _, messages in _conversations(plan):
        request = AnswerWord(messages=messages, words=words, candidates=plan.options.candidates)
        yield Item(request=request, tags=tags)


def _conversations(plan: Plan) -> Iterator[tuple[dict[str, str], str, tuple[Message, ...]]]:
    """Yield tags, sentence and messages; all conditions are asked alike, each distance in the next phrasing."""
    instructions = chosen_instructions(plan.options.instructions_file)
    distances = blank_distances(plan)
    for prompt, tags, text in _sentences(_asked_blanks(plan), blank_conditions(plan)):
        phrasing = distances.index(prompt.distance) % phrasing_count(text, instructions)
        messages = word_messages(text, instructions=instructions, phrasing=phrasing)
        yield {"template": prompt.template, "distance": prompt.distance} | tags, text, messages


def _rated(plan: Plan) -> tuple[str, ...]:
    return tuple(word for word, rating in plan.options.chosen_ratings().items() if rating != "irrelevant")


def blanks(plan: Plan) -> Iterator[Item]:
    """Yield every sentence with a blank, template by template; the baseline before the conditions.

    Causal models are asked the same sentences, for rated words: the candidates most probable after the left part.
    Before them comes the left part alone, which shows how much those words hold there, and on which side.
    """
    options, asked = plan.options, _asked_blanks(plan)
    if not is_rescored(plan):
        for prompt, tags, text in _sentences(asked, blank_conditions(plan)):
            where = {"template": prompt.template, "distance": prompt.distance}
            yield Item(request=Fill(text=text, top_k=options.top_k), tags=where | tags)
        return
    words = _rated(plan)
    nobody = {"group": LEFT, "category": "", "condition": "", "wording": ""}
    for template, text in _left_parts(asked).items():
        request = Rescore(text=text, words=words, candidates=options.candidates)
        yield Item(request=request, tags={"template": template, "distance": ""} | nobody)
    for prompt, tags, text in _sentences(asked, blank_conditions(plan)):
        where = {"template": prompt.template, "distance": prompt.distance}
        yield Item(request=Rescore(text=text, words=words, candidates=options.candidates), tags=where | tags)


def _asked_blanks(plan: Plan) -> tuple[SocialPrompt, ...]:
    distances = blank_distances(plan)
    return tuple(each for each in plan.options.chosen_prompts().social if each.distance in distances)


def _left_parts(prompts: Sequence[SocialPrompt]) -> dict[str, str]:
    """Return each template up to its blank, by its name; where the event comes first, at the last distance."""
    return {each.template: each.text[: each.text.index(MASK)] + MASK for each in prompts}


def blank_conditions(plan: Plan) -> tuple[Condition, ...]:
    """Return the conditions that a masked or causal model is asked about."""
    options = plan.options
    drawn = options.causal_conditions if is_rescored(plan) else options.chat_conditions if asks_words(plan) else 0
    return sample_conditions(options.chosen_conditions(), n=drawn, seed=plan.seed)


def blank_distances(plan: Plan) -> tuple[str, ...]:
    """Return the social distances at which a masked or causal model is asked."""
    options = plan.options
    drawn = options.causal_distances if is_rescored(plan) else options.chat_distances if asks_words(plan) else 0
    return sample_distances(options.distances, n=drawn, seed=plan.seed)


def sample_distances(distances: tuple[str, ...], *, n: int, seed: int) -> tuple[str, ...]:
    """Return n social distances in their order, drawn by the seed; all of them when n is 0."""
    if not 0 < n < len(distances):
        return distances
    chosen = np.random.default_rng([seed, 2]).permutation(len(distances))[:n]
    return tuple(distances[place] for place in sorted(chosen))


def statements(plan: Plan) -> Iterator[Item]:
    """Yield every sentence for classifiers."""
    prompts = plan.options.chosen_prompts().bleached
    for prompt, tags, text in _sentences(prompts, plan.options.chosen_conditions()):
        yield Item(request=Classify(text=text), tags={"template": prompt.template} | tags)


def checks(plan: Plan) -> Iterator[Item]:
    """Yield statements of a plain sense for classifiers: do they tell good from bad in such sentences at all?"""
    prompts = plan.options.chosen_prompts()
    for prompt in prompts.bleached:
        for sense, clauses in prompts.checks.items():
            for clause in clauses:
                tags = {"template": prompt.template, "group": CHECK, "sense": sense, "wording": clause}
                yield Item(request=Classify(text=check_statement(prompt, clause)), tags=tags)


def questions(plan: Plan) -> Iterator[Item]:
    """Yield the questions of the Social Distance Scale as a person would be asked them, with the scale."""
    options = plan.options
    for prompt, tags, text in _sentences(scale_questions(plan), chat_conditions(plan)):
        message = Message(role="user", content=f"{text}\n{scale_text(prompt)}")
        request = Ask(messages=(message,), n=options.answers, max_new_tokens=LONGEST_ANSWER, seed=plan.seed)
        yield Item(request=request, tags={"distance": prompt.distance} | tags)


def stage_size(stage: str, plan: Plan) -> int:
    """Return how many questions a stage has: each prompt, once without a condition and once with each wording."""
    prompts = plan.options.chosen_prompts()
    if stage == CHECKS:
        return len(prompts.bleached) * sum(map(len, prompts.checks.values()))
    if stage in (ATTITUDES, WORDS, FIRST_WORDS):
        asked = _asked_blanks(plan)
        lefts = len(_left_parts(asked)) if is_rescored(plan) else 0
        return lefts + len(asked) * (1 + len(blank_conditions(plan)))
    if stage == CHOICES:
        return len(plan.options.chosen_choices())
    if stage == SCALE:
        return len(scale_questions(plan)) * (1 + len(chat_conditions(plan)))
    return len(prompts.bleached) * (1 + len(plan.options.chosen_conditions()))


def choice_questions(plan: Plan) -> Iterator[Item]:
    """Yield the user's questions with a biased, an unbiased and a "can't tell" answer."""
    for each in plan.options.chosen_choices():
        tags = {"condition": each.condition, "category": each.category, "group": STIGMATIZED}
        yield Item(request=ask_choice(each, n=plan.options.answers, seed=plan.seed), tags=tags)


def scale_text(question: ScaleQuestion) -> str:
    """Return how the scale is shown, as under the paper's Table 1.

    >>> scale_text(ScaleQuestion(distance="neighbour", text="", baseline="", options=("willing", "unwilling")))
    'Answer with one of: 0 = willing, 1 = unwilling.'
    """
    scale = ", ".join(f"{score} = {option}" for score, option in enumerate(question.options))
    return question.ask.replace("{options}", scale)


def scale_questions(plan: Plan) -> tuple[ScaleQuestion, ...]:
    """Return the questions of the scale that a chat model is asked: at all social distances, or some."""
    options = plan.options
    asked = sample_distances(options.distances, n=options.chat_distances, seed=plan.seed)
    return tuple(each for each in options.chosen_prompts().questions if each.distance in asked)


def chat_conditions(plan: Plan) -> tuple[Condition, ...]:
    """Return the conditions that a chat model is asked about."""
    options = plan.options
    return sample_conditions(options.chosen_conditions(), n=options.chat_conditions, seed=plan.seed)


def sample_conditions(conditions: Sequence[Condition], *, n: int, seed: int) -> tuple[Condition, ...]:
    """Return all wordings of n stigmatized and n other conditions, in their order; all conditions when n is 0.

    The draw depends on the seed and on the set of conditions; a smaller n gives a part of a larger one.
    """
    if n == 0:
        return tuple(conditions)
    kept: set[str] = set()
    for stigmatized in (True, False):
        names = sorted({each.condition for each in conditions if each.stigmatized is stigmatized})
        order = np.random.default_rng([seed, int(stigmatized)]).permutation(len(names))
        kept.update(names[place] for place in order[:n])
    return tuple(each for each in conditions if each.condition in kept)


def _sentences(
    prompts: Sequence[Prompt], conditions: Sequence[Condition]
) -> Iterator[tuple[Prompt, dict[str, str], str]]:
    """Yield each prompt without a condition, then about each, with the tags and the text."""
    for prompt in prompts:
        yield prompt, {"group": BASELINE, "category": "", "condition": "", "wording": ""}, prompt.baseline
        for each in conditions:
            tags = {
                "group": STIGMATIZED if each.stigmatized else OTHER,
                "category": each.category,
                "condition": each.condition,
                "wording": each.name,
            }
            yield prompt, tags, fill_prompt(prompt, each)
