"""The options of the stigma audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from clinometer.data.attitude_words import Rating, load_attitudes, read_attitudes
from clinometer.data.stigma_conditions import (
    Condition,
    load_conditions,
    read_conditions,
    read_published_conditions,
)
from clinometer.data.stigma_prompts import Prompts, load_prompts
from clinometer.errors import SpecError, nearest
from clinometer.probes.option_checks import is_whole, wrong_option

_FILES = ("conditions_file", "published_stigma_file", "published_other_file", "ratings_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the stigma audit asks about, in which words, and how it reads the answers."""

    conditions_file: str = ""  # CSV name,verb,singular,stigmatized[,…]: takes the place of the built-in conditions
    wording: Literal["ours", "published"] = "ours"  # "published" reads the authors' two files:
    published_stigma_file: str = ""
    published_other_file: str = ""
    choosing: Literal["paper", "published"] = "paper"  # "unlikely and likely", or the other way round
    ratings_file: str = ""  # CSV word,rating: takes the place of the built-in ratings
    top_k: int = 50  # how many of the most probable words are read
    templates: tuple[str, ...] = ()  # some of the four for masked models; none named: all
    distances: tuple[str, ...] = ()  # some of the seven social distances; none named: all
    answers: int = 10  # of a chat model to each question
    chat_conditions: int = 0  # chat models: so many conditions of each kind, drawn by the seed; 0: all
    draws: int = 1999  # of the bootstrap; the tests shuffle 9,999 times whatever stands here

    def __post_init__(self) -> None:
        for name, valid in (("wording", ("ours", "published")), ("choosing", ("paper", "published"))):
            if getattr(self, name) not in valid:
                raise _wrong(name, getattr(self, name), nearest(str(getattr(self, name)), valid))
        for name in _FILES:
            if not isinstance(getattr(self, name), str):
                raise _wrong(name, getattr(self, name), "expected the path of a file")
        if not is_whole(self.top_k, low=1, high=1000):
            raise _wrong("top_k", self.top_k, "expected a whole number from 1 to 1000")
        if not is_whole(self.answers, low=1, high=1000):
            raise _wrong("answers", self.answers, "expected a whole number from 1 to 1000")
        if not is_whole(self.chat_conditions, low=0):
            raise _wrong("chat_conditions", self.chat_conditions, "expected a whole number; 0 asks about all")
        if not is_whole(self.draws, low=100, high=100_000):
            raise _wrong("draws", self.draws, "expected a whole number from 100 to 100000")
        self._check_wording()
        every = load_prompts().social
        for name, valid_names in (
            ("templates", dict.fromkeys(prompt.template for prompt in every)),
            ("distances", dict.fromkeys(prompt.distance for prompt in every)),
        ):
            object.__setattr__(self, name, _subset(name, getattr(self, name), tuple(valid_names)))

    def _check_wording(self) -> None:
        published = (self.published_stigma_file, self.published_other_file)
        if self.wording == "published" and not all(published):
            raise _wrong(
                "wording", self.wording, "expected published_stigma_file and published_other_file beside it"
            )
        if self.wording == "ours" and any(published):
            raise _wrong("wording", self.wording, 'the published files are read with wording = "published"')
        if self.wording == "published" and self.conditions_file:
            raise _wrong(
                "conditions_file", self.conditions_file, 'leave it out, or leave out wording = "published"'
            )

    def chosen_conditions(self) -> tuple[Condition, ...]:
        """Return the conditions to ask about: the user's, the authors', or those built in."""
        if self.conditions_file:
            return read_conditions(self.conditions_file)
        if self.wording == "published":
            return read_published_conditions(self.published_stigma_file, self.published_other_file)
        return load_conditions()

    def chosen_prompts(self) -> Prompts:
        """Return the sentences of the chosen templates and social distances."""
        prompts = load_prompts(wording=self.choosing)
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


def _subset(option: str, chosen: object, valid: tuple[str, ...]) -> tuple[str, ...]:
    """Return the chosen names in the order of the valid ones; all, when none is named."""
    if not isinstance(chosen, list | tuple):
        raise _wrong(option, chosen, f"expected a list of names; valid: {', '.join(valid)}")
    for name in chosen:
        if name not in valid:
            raise _wrong(option, name, nearest(str(name), valid))
    return tuple(name for name in valid if name in chosen) if chosen else valid


def _wrong(option: str, value: object, hint: str) -> SpecError:
    return wrong_option("stigma", option, value, hint)
