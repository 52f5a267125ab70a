"""What the stigma audit asks: blanks of masked models, statements of classifiers, questions of chat models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from clinometer.data.stigma_conditions import Condition
from clinometer.data.stigma_prompts import ScaleQuestion, fill_prompt
from clinometer.probes.protocol import Plan
from clinometer.types import Ask, Classify, Fill, Item, Message

STIGMATIZED, OTHER, BASELINE = "stigmatized", "other", "baseline"

LONGEST_ANSWER = 24  # tokens: the longest option has four or five, and a refusal shows early


def blanks(plan: Plan) -> Iterator[Item]:
    """Yield every sentence with a blank, template by template; the baseline before the conditions."""
    conditions = plan.options.chosen_conditions()
    for prompt in plan.options.chosen_prompts().social:
        where = {"template": prompt.template, "distance": prompt.distance}
        for tags, text in _texts(prompt.baseline, [fill_prompt(prompt, each) for each in conditions], conditions):
            yield Item(request=Fill(text=text, top_k=plan.options.top_k), tags=where | tags)


def statements(plan: Plan) -> Iterator[Item]:
    """Yield every sentence for classifiers."""
    conditions = plan.options.chosen_conditions()
    for prompt in plan.options.chosen_prompts().bleached:
        where = {"template": prompt.template}
        for tags, text in _texts(prompt.baseline, [fill_prompt(prompt, each) for each in conditions], conditions):
            yield Item(request=Classify(text=text), tags=where | tags)


def questions(plan: Plan) -> Iterator[Item]:
    """Yield the questions of the Social Distance Scale as a person would be asked them, with the scale."""
    options = plan.options
    conditions = sample_conditions(options.chosen_conditions(), n=options.chat_conditions, seed=plan.seed)
    for prompt in options.chosen_prompts().questions:
        where = {"distance": prompt.distance}
        for tags, text in _texts(prompt.baseline, [fill_prompt(prompt, each) for each in conditions], conditions):
            message = Message(role="user", content=f"{text}\n{scale_text(prompt)}")
            request = Ask(messages=(message,), n=options.answers, max_new_tokens=LONGEST_ANSWER, seed=plan.seed)
            yield Item(request=request, tags=where | tags)


def scale_text(question: ScaleQuestion) -> str:
    """Return how the scale is shown, as under the paper's Table 1.

    >>> scale_text(ScaleQuestion(distance="neighbour", text="", options=("willing", "unwilling")))
    'Answer with one of: 0 = willing, 1 = unwilling.'
    """
    scale = ", ".join(f"{score} = {option}" for score, option in enumerate(question.options))
    return f"Answer with one of: {scale}."


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


def group_of(condition: Condition) -> str:
    """Return the side of the comparison that a condition is on."""
    return STIGMATIZED if condition.stigmatized else OTHER


def _texts(
    baseline: str, texts: Sequence[str], conditions: Sequence[Condition]
) -> Iterator[tuple[dict[str, str], str]]:
    """Yield tags and text of the sentence without a condition, then of the one about each."""
    yield {"group": BASELINE, "category": "", "condition": "", "wording": ""}, baseline
    for each, text in zip(conditions, texts, strict=True):
        yield (
            {
                "group": group_of(each),
                "category": each.category,
                "condition": each.condition,
                "wording": each.name,
            },
            text,
        )
