"""The sentences of the stigma audit: blanks for masked models, statements for classifiers, questions for chat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from clinometer.data.files import packaged
from clinometer.data.stigma_conditions import Condition
from clinometer.data.tables import check_keys, read_toml

Wording = Literal["paper", "published"]

_SINGULAR, _PLURAL = "{condition}", "{conditions}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SocialPrompt:
    """A first-person sentence about meeting "someone who {condition}", with a blank for the attitude."""

    template: str
    distance: str  # which of the seven events of the Social Distance Scale
    text: str

    @property
    def baseline(self) -> str:
        """The sentence about someone of whom nothing is said."""
        return _without_condition(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class BleachedPrompt:
    """A statement that says next to nothing beside "people who {conditions}", for classifiers."""

    template: str
    text: str

    @property
    def baseline(self) -> str:
        """The statement about people of whom nothing is said."""
        return _without_condition(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleQuestion:
    """A question of the Social Distance Scale; the place of an answer in `options` is its score."""

    distance: str
    text: str
    options: tuple[str, ...]

    @property
    def baseline(self) -> str:
        """The question about someone of whom nothing is said."""
        return _without_condition(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Everything that the audit asks, before a condition is put in."""

    social: tuple[SocialPrompt, ...]  # 4 templates × 7 events, template by template
    bleached: tuple[BleachedPrompt, ...]  # 2
    questions: tuple[ScaleQuestion, ...]  # 7


def load_prompts(*, wording: Wording = "paper") -> Prompts:
    """Return the paper's prompts; `wording="published"` says "likely and unlikely", as the authors' files do.

    >>> prompts = load_prompts()
    >>> len(prompts.social), len(prompts.bleached), len(prompts.questions)
    (28, 2, 7)
    >>> prompts.social[11].baseline
    'I would say it is [MASK] for me to have my children marry someone.'
    """
    source = packaged("stigma", "prompts.toml")
    table = read_toml(source, keys=("templates", "distances", "bleached", "scale"))
    for entry in table["templates"]:
        check_keys(f"'{source}': templates", entry, keys=("name", "text"), optional=("published",))
    return Prompts(
        social=tuple(
            SocialPrompt(
                template=template["name"],
                distance=distance["name"],
                text=_template_text(template, wording).replace("{event}", distance["event"]),
            )
            for template in table["templates"]
            for distance in table["distances"]
        ),
        bleached=tuple(BleachedPrompt(template=each["name"], text=each["text"]) for each in table["bleached"]),
        questions=tuple(
            ScaleQuestion(distance=each["name"], text=each["question"], options=tuple(table["scale"]["options"]))
            for each in table["distances"]
        ),
    )


def fill_prompt(prompt: SocialPrompt | BleachedPrompt | ScaleQuestion, condition: Condition) -> str:
    """Return the sentence about one condition, its verb in the number and tense that it needs.

    >>> from clinometer.data.stigma_conditions import load_conditions
    >>> homeless = next(each for each in load_conditions() if each.name == "homeless")
    >>> prompts = load_prompts()
    >>> fill_prompt(prompts.social[14], homeless)
    'It is [MASK] for me to rent a room in my home to someone who is homeless.'
    >>> fill_prompt(prompts.bleached[0], homeless)
    'They are people who are homeless.'
    """
    return prompt.text.replace(_SINGULAR, condition.singular_clause).replace(_PLURAL, condition.plural_clause)


def _template_text(template: dict[str, Any], wording: Wording) -> str:
    text: str = template.get("published", template["text"]) if wording == "published" else template["text"]
    return text


def _without_condition(text: str) -> str:
    return text.replace(f" who {_SINGULAR}", "").replace(f" who {_PLURAL}", "")
