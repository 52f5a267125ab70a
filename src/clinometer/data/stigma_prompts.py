"""The sentences of the stigma audit: blanks for masked models, statements for classifiers, questions for chat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from clinometer.data.files import Source, packaged
from clinometer.data.stigma_conditions import Condition
from clinometer.data.tables import check_keys, read_toml
from clinometer.errors import DataError
from clinometer.types import MASK

Wording = Literal["paper", "published"]

_SINGULAR, _PLURAL, _EVENT, _OPTIONS = "{condition}", "{conditions}", "{event}", "{options}"
_ASK = "Answer with one of: {options}."


@dataclass(frozen=True, slots=True, kw_only=True)
class SocialPrompt:
    """A first-person sentence about meeting "someone who {condition}", with a blank for the attitude."""

    template: str
    distance: str  # which of the seven events of the Social Distance Scale
    text: str
    baseline: str  # the sentence about someone of whom nothing is said


@dataclass(frozen=True, slots=True, kw_only=True)
class BleachedPrompt:
    """A statement that says next to nothing beside "people who {conditions}", for classifiers."""

    template: str
    text: str
    baseline: str  # the statement about people of whom nothing is said


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleQuestion:
    """A question of the Social Distance Scale; the place of an answer in `options` is its score."""

    distance: str
    text: str
    baseline: str  # the question about someone of whom nothing is said
    options: tuple[str, ...]
    ask: str = _ASK  # how the scale is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Everything that the audit asks, before a condition is put in."""

    social: tuple[SocialPrompt, ...]  # 4 templates × 7 events, template by template
    bleached: tuple[BleachedPrompt, ...]  # 2
    questions: tuple[ScaleQuestion, ...]  # 7


def load_prompts(*, wording: Wording = "paper", events: Wording = "paper") -> Prompts:
    """Return the paper's prompts, or parts of them as the authors' files word them.

    `wording="published"` says "likely and unlikely"; `events="published"` ends the seventh prompt with "for a
    friend of mine" instead of "for my friend".

    >>> prompts = load_prompts()
    >>> len(prompts.social), len(prompts.bleached), len(prompts.questions)
    (28, 2, 7)
    >>> prompts.social[11].baseline
    'I would say it is [MASK] for me to have my children marry someone.'
    """
    return read_prompts(packaged("stigma", "prompts.toml"), wording=wording, events=events)


def read_prompts(source: Source, *, wording: Wording = "paper", events: Wording = "paper") -> Prompts:
    """Return the prompts of a file in the format of `data/stigma/prompts.toml`: other wordings, other languages.

    A text is its own baseline without " who {condition}". Where that is not how the language says it, a template
    of statements has a `baseline`, and a distance an `event_baseline` and a `question_baseline`.
    """
    table = read_toml(source, keys=("templates", "distances", "bleached", "scale"))
    for part, keys, optional in (
        ("templates", ("name", "text"), ("published",)),
        ("distances", ("name", "event", "question"), ("published", "event_baseline", "question_baseline")),
        ("bleached", ("name", "text"), ("baseline",)),
    ):
        if not isinstance(table[part], list) or not table[part]:
            raise DataError(f"'{source}': {part} has no entries; expected at least one [[{part}]]")
        for entry in table[part]:
            check_keys(f"'{source}': {part}", entry, keys=keys, optional=optional)
            if empty := [key for key, text in entry.items() if not isinstance(text, str) or not text.strip()]:
                raise DataError(f"'{source}': {part}: {empty[0]} is not a text; expected some words in quotes")
        names = [entry["name"] for entry in table[part]]
        if again := [name for name in names if names.count(name) > 1]:
            raise DataError(f"'{source}': {part}: '{again[0]}' again; expected each name once")
    check_keys(f"'{source}': scale", table["scale"], keys=("options",), optional=("ask",))
    options, ask = table["scale"]["options"], table["scale"].get("ask", _ASK)
    if not isinstance(options, list) or len(set(map(str, options))) < max(2, len(options)):
        raise DataError(f"'{source}': scale: options {options!r}; expected at least two different answers")
    if _OPTIONS not in str(ask):
        raise DataError(f"'{source}': scale: ask {ask!r}; expected a sentence with {_OPTIONS}")
    for entry in table["templates"]:
        for text in (entry["text"], entry.get("published", entry["text"])):
            if text.count(MASK) != 1 or text.count(_EVENT) != 1:
                raise DataError(f"'{source}': templates: {text!r}; expected one {MASK} and one {_EVENT}")
    return Prompts(
        social=tuple(
            SocialPrompt(
                template=template["name"],
                distance=distance["name"],
                text=_choose(template, "text", wording).replace(_EVENT, _choose(distance, "event", events)),
                baseline=_choose(template, "text", wording).replace(
                    _EVENT, _baseline(source, distance, "event", _SINGULAR, events)
                ),
            )
            for template in table["templates"]
            for distance in table["distances"]
        ),
        bleached=tuple(
            BleachedPrompt(
                template=each["name"], text=each["text"], baseline=_baseline(source, each, "text", _PLURAL)
            )
            for each in table["bleached"]
        ),
        questions=tuple(
            ScaleQuestion(
                distance=each["name"],
                text=each["question"],
                baseline=_baseline(source, each, "question", _SINGULAR),
                options=tuple(map(str, options)),
                ask=str(ask),
            )
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


def _choose(entry: dict[str, Any], key: str, wording: Wording) -> str:
    text: str = entry.get("published", entry[key]) if wording == "published" else entry[key]
    return text


def _baseline(source: Source, entry: dict[str, Any], key: str, clause: str, wording: Wording = "paper") -> str:
    """Return the text without its condition: as given, or what is left without the relative clause."""
    text = _choose(entry, key, wording)
    if clause not in text:
        raise DataError(f"'{source}': {key} {text!r}; expected {clause} in it")
    where = "baseline" if key == "text" else f"{key}_baseline"
    given: str = entry.get(where, text.replace(f" who {clause}", ""))
    if clause in given:
        raise DataError(
            f"'{source}': {key} {text!r} has no ' who {clause}' to leave out; expected the key {where}, the text "
            "without a condition"
        )
    return given
