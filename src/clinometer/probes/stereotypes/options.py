"""The options of the stereotypes audit."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from clinometer.data.emotions import EmotionLexicon, load_emotions, read_emotions
from clinometer.data.human_stereotypes import HumanStereotype, read_human_stereotypes
from clinometer.data.social_groups import (
    Group,
    Templates,
    load_groups,
    load_templates,
    read_groups,
    read_templates,
)
from clinometer.errors import SpecError, nearest
from clinometer.metrics import EMOTIONS
from clinometer.probes.option_checks import is_whole, wrong_option

_CHOICES = {
    "posterior": ("vocabulary", "top-k"),
    "prior": ("template", "published"),
    "prior_masks": ("one", "tokens"),
    "emotions": ("paper", "published"),
    "filter": ("words", "none"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which groups the stereotypes audit asks about, and how it reads the answers."""

    groups_file: str = ""  # CSV group,category[,kind]: takes the place of the built-in groups
    templates_file: str = ""  # TOML people = […], country = […]: takes the place of the paper's questions
    human_file: str = ""  # the data set of human stereotypes; without it there is no recall
    emotions_file: str = ""  # the full NRC emotion lexicon; without it the words that nrclex carries
    categories: tuple[str, ...] = ()  # ask about these only; empty: all
    templates: int = 0  # ask only the first so many questions about each group; 0: all
    top_k: int = 200  # so many words are asked for at the blank
    posterior: Literal["vocabulary", "top-k"] = "vocabulary"  # over what the model's probability is normalised
    prior: Literal["template", "published"] = "template"  # whose prior: each question's own, or one for all
    prior_masks: Literal["one", "tokens"] = "one"  # how many masks stand for the group in the prior
    self_similarity: bool = True  # whether a group's similarity with itself is compared, too
    emotions: Literal["paper", "published"] = "paper"  # 10 emotions; or 9, without fear
    filter: Literal["words", "none"] = "words"  # whether pieces of words, numbers and marks are left out
    profile_k: int = 200  # so many attributes of each question make a group's profile
    draws: int = 999  # of the bootstrap

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise _wrong(name, value, nearest(str(value), choices))
        for name in (each.name for each in fields(self) if each.name.endswith("_file")):
            if not isinstance(getattr(self, name), str):
                raise _wrong(name, getattr(self, name), "expected the path of a file")
        for name, low, high in (
            ("templates", 0, 1000),
            ("top_k", 1, 1000),
            ("profile_k", 1, 1000),
            ("draws", 100, 100_000),
        ):
            if not is_whole(getattr(self, name), low=low, high=high):
                raise _wrong(name, getattr(self, name), f"expected a whole number from {low} to {high}")
        if not isinstance(self.self_similarity, bool):
            raise _wrong("self_similarity", self.self_similarity, "expected true or false")
        categories = self.categories
        if not isinstance(categories, list | tuple) or not all(isinstance(each, str) for each in categories):
            raise _wrong("categories", categories, 'expected a list such as ["gender", "religion"]')
        object.__setattr__(self, "categories", tuple(categories))  # a spec file gives a list

    @property
    def emotion_names(self) -> tuple[str, ...]:
        """The dimensions of an emotion profile."""
        return EMOTIONS if self.emotions == "paper" else EMOTIONS[1:]  # the authors' code leaves fear out

    def chosen_groups(self) -> tuple[Group, ...]:
        """Return the groups to ask about: the user's or those built in, of the chosen categories."""
        groups = read_groups(self.groups_file) if self.groups_file else load_groups()
        known = {group.category for group in groups}
        for category in self.categories:
            if category not in known:
                raise _wrong("categories", category, nearest(category, known))
        return tuple(group for group in groups if not self.categories or group.category in self.categories)

    def chosen_templates(self) -> Templates:
        """Return the questions: the user's or the paper's, all or the first ones."""
        every = read_templates(self.templates_file) if self.templates_file else load_templates()
        some = self.templates or None
        return Templates(people=every.people[:some], country=every.country[:some])

    def chosen_stereotypes(self) -> tuple[HumanStereotype, ...]:
        """Return the human stereotypes to look for; none where no file is given."""
        return read_human_stereotypes(self.human_file) if self.human_file else ()

    def chosen_lexicon(self) -> EmotionLexicon:
        """Return the emotion lexicon: the user's, or what nrclex carries."""
        return read_emotions(self.emotions_file) if self.emotions_file else load_emotions()


def _wrong(option: str, value: object, hint: str) -> SpecError:
    return wrong_option("stereotypes", option, value, hint)
