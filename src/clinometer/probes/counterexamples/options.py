"""The options of the counterexamples audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
from clinometer.errors import SpecError, nearest
from clinometer.probes.option_checks import is_whole, wrong_option


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the counterexamples audit asks about, and how it counts."""

    occupations: Literal["all", "winobias"] = "all"  # the 58 of Table 1, or the 20 + 20 of WinoBias
    occupations_file: str = ""  # CSV occupation,percent_female[,article]: takes the place of the built-in list
    knowledge_file: str = ""  # TOML as knowledge.toml: takes the place of the paper's sentences
    verbalizer_file: str = ""  # CSV word,gender[,group,reason]: takes the place of the built-in list
    backgrounds: int = 20  # how many other occupations stand in each of the three background kinds
    ks: tuple[int, ...] = (3, 5, 10)  # how many of the most probable words are counted
    draws: int = 1999  # of the bootstrap; the tests flip signs 9,999 times whatever stands here

    def __post_init__(self) -> None:
        if self.occupations not in ("all", "winobias"):
            raise wrong_option(
                "counterexamples",
                "occupations",
                self.occupations,
                nearest(str(self.occupations), ("all", "winobias")),
            )
        for name in ("occupations_file", "knowledge_file", "verbalizer_file"):
            if not isinstance(getattr(self, name), str):
                raise _wrong(name, getattr(self, name), "expected the path of a file")
        if not is_whole(self.backgrounds, low=0):
            raise wrong_option(
                "counterexamples", "backgrounds", self.backgrounds, "expected a whole number, 0 or more"
            )
        if not is_whole(self.draws, low=100, high=100_000):
            raise wrong_option(
                "counterexamples", "draws", self.draws, "expected a whole number from 100 to 100000"
            )
        ks = self.ks
        if (
            not isinstance(ks, list | tuple)
            or not ks
            or not all(is_whole(k, low=1, high=1000) for k in ks)
            or len(set(ks)) < len(ks)
        ):
            raise wrong_option(
                "counterexamples",
                "ks",
                ks,
                "expected a list of different whole numbers from 1 to 1000, such as [3, 5, 10]",
            )
        object.__setattr__(self, "ks", tuple(sorted(ks)))  # a spec file gives a list

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


def _wrong(option: str, value: object, hint: str) -> SpecError:
    return wrong_option("counterexamples", option, value, hint)
