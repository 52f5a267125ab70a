"""The options of the stereotypes audit, and the data that they choose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from clinometer.data.people import as_group, derived_forms, is_people_file, read_people
from clinometer.data.stereotypes_data import (
    EMOTIONS,
    EmotionLexicon,
    Group,
    HumanStereotype,
    Templates,
    load_emotions,
    load_groups,
    load_templates,
    read_emotions,
    read_groups,
    read_human_stereotypes,
    read_templates,
)
from clinometer.errors import nearest
from clinometer.probes.kit.audits import Count, Draws, wrong_option
from clinometer.types import ModelInfo

UpTo1000 = Annotated[int, Field(ge=1, le=1000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which groups the stereotypes audit asks about, and how it reads the answers."""

    groups_file: str = ""  # CSV name,category[,…] (data/people.py) or group,category[,kind]: replaces the groups
    templates_file: str = ""  # TOML people = […], country = […], or one of them: replaces the paper's questions
    human_file: str = ""  # the data set of human stereotypes; without it there is no recall
    emotions_file: str = ""  # the full NRC emotion lexicon; without it, the words in nrclex are used
    categories: tuple[str, ...] = ()  # ask about these only; empty: all
    templates: Annotated[int, Field(ge=0, le=1000)] = 0  # ask only the first questions of each group; 0: all
    top_k: UpTo1000 = 200  # how many words are asked for at the blank
    posterior: Literal["vocabulary", "top-k"] = "vocabulary"  # over what the model's probability is normalised
    # whose prior: each question with its group hidden, or one question for all; or the mean over all groups of the
    # audit, or "people" in the place of the group, which also serve models that cannot hide a word
    prior: Literal["template", "published", "groups", "people"] = "template"
    prior_masks: Literal["one", "tokens"] = "one"  # how many masks replace the group in the prior
    self_similarity: bool = True  # whether a group's similarity with itself is compared, too
    # ten emotions of distinct words; or as the authors' files: nine, without fear, and each spelling counts
    emotions: Literal["paper", "published"] = "paper"
    filter: Literal["words", "none"] = "words"  # whether pieces of words, numbers and marks are left out
    profile_k: UpTo1000 = 200  # how many attributes of each question make a group's profile
    chart_groups: tuple[str, ...] = ()  # whose emotions are charted for all models; empty: those that differ most
    answers: UpTo1000 = 20  # of a chat model to each question
    # a chat model is slow to ask: how many groups of each category, drawn by the seed (0: all), and how many words
    # where it says how probable they are; with a human_file, all groups and top_k words
    chat_groups: Count = 0
    chat_top_k: UpTo1000 = 50
    instructions_file: str = ""  # TOML as data/asking/one_word.toml: how chat models are asked for one word
    draws: Draws = 999  # of the bootstrap

    def prior_of(self, model: ModelInfo) -> str:
        """Return whose prior a model has: one that reads left to right cannot hide the group."""
        hides = "fill" in model.capabilities
        return self.prior if hides or self.prior in ("groups", "people") else "groups"

    @property
    def emotion_names(self) -> tuple[str, ...]:
        """The dimensions of an emotion profile."""
        return EMOTIONS if self.emotions == "paper" else EMOTIONS[1:]  # the authors' code leaves fear out

    def chosen_groups(self) -> tuple[Group, ...]:
        """Return the groups to ask about: of the chosen categories, and of a kind that has questions."""
        wanted, left_out = self._wanted_groups(), self.unasked_groups()
        if wanted and len(left_out) == len(wanted):
            hint = f"it has no questions about {'countries' if wanted[0].kind == 'country' else 'people'}"
            raise wrong_option("stereotypes", "templates_file", self.templates_file, hint)
        return tuple(group for group in wanted if group not in set(left_out))

    def unasked_groups(self) -> tuple[Group, ...]:
        """Return the groups that are left out, because the user's file has no questions about their kind."""
        templates = self.chosen_templates()
        return tuple(group for group in self._wanted_groups() if not templates.of(group.kind))

    def _wanted_groups(self) -> tuple[Group, ...]:
        """Return the user's or the built-in groups, of the chosen categories."""
        groups = self._every_group()
        known = {group.category for group in groups}
        for category in self.categories:
            if category not in known:
                raise wrong_option("stereotypes", "categories", category, nearest(category, known))
        return tuple(group for group in groups if not self.categories or group.category in self.categories)

    def _every_group(self) -> tuple[Group, ...]:
        if not self.groups_file:
            return load_groups()
        if is_people_file(self.groups_file):
            return tuple(map(as_group, read_people(self.groups_file)))
        return read_groups(self.groups_file)

    def derived_forms(self) -> tuple[str, ...]:
        """Return what was derived of the user's groups, for a look."""
        if not self.groups_file or not is_people_file(self.groups_file):
            return ()
        return derived_forms(read_people(self.groups_file))

    def charted_groups(self) -> tuple[str, ...]:
        """Return the groups whose emotions are charted for all models; none: the findings choose."""
        known = {group.name for group in self.chosen_groups()}
        for name in self.chart_groups:
            if name not in known:
                raise wrong_option("stereotypes", "chart_groups", name, nearest(name, known))
        return tuple(dict.fromkeys(self.chart_groups))

    def chosen_templates(self) -> Templates:
        """Return the questions: the user's or the paper's, all or the first ones."""
        every = read_templates(self.templates_file) if self.templates_file else load_templates()
        some = self.templates or None
        return Templates(people=every.people[:some], country=every.country[:some])

    def chosen_stereotypes(self) -> tuple[HumanStereotype, ...]:
        """Return the human stereotypes to look for; none without a file."""
        return read_human_stereotypes(self.human_file) if self.human_file else ()

    def chosen_lexicon(self) -> EmotionLexicon:
        """Return the emotion lexicon: the user's, or the words in nrclex."""
        lexicon = read_emotions(self.emotions_file) if self.emotions_file else load_emotions()
        if self.emotions == "published" and "seriousness" in lexicon.words:
            # the spreadsheet that the authors read has "serious" where the text file has "seriousness"
            words = {**lexicon.words, "serious": lexicon.words["seriousness"]}
            return replace(lexicon, words=words)
        return lexicon
