"""The options of the counterexamples audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from clinometer.data import (
    Occupation,
    Sentences,
    Verbalizer,
    load_occupations,
    load_sentences,
    load_verbalizer,
    read_occupations,
    read_sentences,
    read_verbalizer,
)
from clinometer.probes.kit.audits import Count, Draws, Listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the counterexamples audit asks about, and how it counts."""

    occupations: Literal["all", "winobias"] = "all"  # the 58 of Table 1, or the 20 + 20 of WinoBias
    occupations_file: str = ""  # CSV occupation,percent_female[,article]: replaces the built-in list
    knowledge_file: str = ""  # TOML in the format of knowledge.toml: replaces the paper's sentences
    verbalizer_file: str = ""  # CSV word,gender[,group,reason]: replaces the built-in list
    backgrounds: Count = 20  # how many other occupations each of the three background kinds names
    # how many of the most probable words are counted
    ks: Annotated[tuple[Annotated[int, Field(ge=1, le=1000)], ...], *Listed] = (3, 5, 10)
    # of the listed words, how many are scored with the whole sentence (causal models) or as the first word of an
    # answer (chat models): those that are most probable by their beginning; 0: all
    candidates: Count = 0
    chat_occupations: Count = 0  # chat models: how many of each dominance, drawn by the seed; 0: all
    phrasings: Annotated[int, Field(ge=1, le=100)] = 1  # in how many of them a chat model is asked
    # drawn for each prompt, where a chat model does not say how probable its words are
    answers: Annotated[int, Field(ge=1, le=10_000)] = 20
    instructions_file: str = ""  # TOML as data/asking/one_word.toml: replaces the packaged phrasings
    draws: Draws = 1999  # of the bootstrap; the tests always flip signs 9,999 times

    def __post_init__(self) -> None:
        object.__setattr__(self, "ks", tuple(sorted(self.ks)))

    def chosen_occupations(self) -> tuple[Occupation, ...]:
        """Return the occupations to ask about: the user's, or those built in."""
        if self.occupations_file:
            return read_occupations(self.occupations_file)
        return tuple(each for each in load_occupations() if self.occupations == "all" or each.winobias)

    def chosen_sentences(self) -> Sentences:
        """Return the prompt and the kinds of knowledge: the user's, or the paper's."""
        return read_sentences(self.knowledge_file) if self.knowledge_file else load_sentences()

    def chosen_verbalizer(self) -> Verbalizer:
        """Return the gendered words to count: the user's, or those built in."""
        return read_verbalizer(self.verbalizer_file) if self.verbalizer_file else load_verbalizer()
