"""The options of the stigma audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from clinometer.data.choices import ChoiceQuestion, read_choices
from clinometer.data.people import as_condition, derived_forms, read_people
from clinometer.data.stigma_data import (
    Condition,
    Prompts,
    Rating,
    load_attitudes,
    load_conditions,
    load_prompts,
    read_attitudes,
    read_conditions,
    read_prompts,
    read_published_conditions,
)
from clinometer.errors import nearest
from clinometer.probes.kit.audits import Count, Draws, wrong_option

UpToAThousand = Annotated[int, Field(ge=1, le=1000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the stigma audit asks about, in which words, and how it reads the answers."""

    conditions_file: str = ""  # CSV name,verb,singular,stigmatized[,…]: replaces the built-in conditions
    groups_file: str = ""  # CSV name,category[,…] (data/people.py): asks about these groups instead
    wording: Literal["ours", "published"] = "ours"  # "published" reads the authors' two files:
    published_stigma_file: str = ""
    published_other_file: str = ""
    prompts_file: str = ""  # TOML as data/stigma/prompts.toml: other wordings, cultures, languages
    choosing: Literal["paper", "published"] = "paper"  # "unlikely and likely", or the other way round
    ratings_file: str = ""  # CSV word,rating: replaces the built-in ratings
    top_k: UpToAThousand = 50  # how many of the most probable words are read
    templates: tuple[str, ...] = ()  # some of the four for masked models; none named: all
    distances: tuple[str, ...] = ()  # some of the seven social distances; none named: all
    candidates: Annotated[int, Field(ge=0, le=1000)] = 20  # causal models: rated words scored at a prompt; 0: all
    causal_conditions: Count = 0  # causal models: how many conditions of each kind, drawn by the seed; 0: all
    causal_distances: Count = 0  # causal models: how many social distances, drawn by the seed; 0: all
    answers: UpToAThousand = 10  # of a chat model to each question
    one_word: bool = True  # whether chat models also fill the blanks, with one word
    questions_file: str = (
        ""  # CSV question,biased[,…] (data/choices.py), such as SocialStigmaQA: asked of chat models
    )
    instructions_file: str = ""  # TOML as data/asking/one_word.toml: how they are asked for it
    chat_conditions: Count = 0  # chat models: how many conditions of each kind, drawn by the seed; 0: all
    chat_distances: Count = 0  # chat models: how many social distances, drawn by the seed; 0: all
    draws: Draws = 1999  # of the bootstrap; the tests always shuffle 9,999 times

    def __post_init__(self) -> None:
        published = (self.published_stigma_file, self.published_other_file)
        if self.wording == "published" and not all(published):
            hint = "expected published_stigma_file and published_other_file beside it"
            raise wrong_option("stigma", "wording", self.wording, hint)
        if self.wording == "ours" and any(published):
            hint = 'the published files are read with wording = "published"'
            raise wrong_option("stigma", "wording", self.wording, hint)
        if self.wording == "published" and self.conditions_file:
            hint = 'leave it out, or leave out wording = "published"'
            raise wrong_option("stigma", "conditions_file", self.conditions_file, hint)
        if self.groups_file and (self.conditions_file or self.wording == "published"):
            hint = "leave it out, or leave out conditions_file and wording: it replaces the conditions"
            raise wrong_option("stigma", "groups_file", self.groups_file, hint)
        if self.prompts_file and self.choosing == "published":
            raise wrong_option(
                "stigma", "choosing", self.choosing, "leave it out: prompts_file has its own templates"
            )
        every = self.every_prompt().social
        templates = self._subset("templates", [prompt.template for prompt in every])
        distances = self._subset("distances", [prompt.distance for prompt in every])
        object.__setattr__(self, "templates", templates)
        object.__setattr__(self, "distances", distances)

    def chosen_conditions(self) -> tuple[Condition, ...]:
        """Return the conditions to ask about: the user's, the authors', or those built in."""
        if self.conditions_file:
            return read_conditions(self.conditions_file)
        if self.groups_file:
            asked = tuple(map(as_condition, read_people(self.groups_file)))
            if all(each.stigmatized for each in asked):  # nobody to compare them with: those built in
                names = {each.name.lower() for each in asked}
                others = [each for each in load_conditions() if not each.stigmatized]
                asked += tuple(each for each in others if each.condition.lower() not in names)
            return asked
        if self.wording == "published":
            return read_published_conditions(self.published_stigma_file, self.published_other_file)
        return load_conditions()

    def chosen_choices(self) -> tuple[ChoiceQuestion, ...]:
        """Return the user's questions with a biased, an unbiased and a "can't tell" answer."""
        return read_choices(self.questions_file) if self.questions_file else ()

    def derived_forms(self) -> tuple[str, ...]:
        """Return what was derived of the user's groups, for a look."""
        return derived_forms(read_people(self.groups_file)) if self.groups_file else ()

    def every_prompt(self) -> Prompts:
        """Return the sentences of all templates and social distances, in the chosen wording."""
        if self.prompts_file:
            return read_prompts(self.prompts_file)
        return load_prompts(wording=self.choosing, events="published" if self.wording == "published" else "paper")

    def chosen_prompts(self) -> Prompts:
        """Return the sentences of the chosen templates and social distances."""
        prompts = self.every_prompt()
        return replace(
            prompts,
            social=tuple(
                each
                for each in prompts.social
                if each.template in self.templates and each.distance in self.distances
            ),
            questions=tuple(each for each in prompts.questions if each.distance in self.distances),
        )

    def chosen_ratings(self) -> Mapping[str, Rating]:
        """Return which attitude each word expresses: the user's ratings, or those built in."""
        return read_attitudes(self.ratings_file) if self.ratings_file else load_attitudes()

    def _subset(self, option: str, names: Sequence[str]) -> tuple[str, ...]:
        """Return the chosen names in the order of the prompts; all of them when none is named."""
        chosen: tuple[str, ...] = getattr(self, option)
        valid = tuple(dict.fromkeys(names))
        for name in chosen:
            if name not in valid:
                hint = nearest(name, valid)
                if self.prompts_file:  # the quick profile names one of the paper's templates
                    hint += f"; {option} = [] asks all that '{self.prompts_file}' has"
                raise wrong_option("stigma", option, name, hint)
        return tuple(name for name in valid if name in chosen) if chosen else valid
