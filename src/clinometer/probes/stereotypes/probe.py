"""The stereotypes audit as the engine sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinometer.data import load_card
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.probes.stereotypes.options import Options
from clinometer.probes.stereotypes.priors import prior_items
from clinometer.probes.stereotypes.questions import posterior_items, questions
from clinometer.probes.stereotypes.summary import summarise
from clinometer.types import Findings, Item, Profile


@dataclass(frozen=True, slots=True)
class Stereotypes:
    """Attributes at "Why are old people so [MASK]?" for 373 social groups, and the emotions in them."""

    name: str = "stereotypes"
    title: str = "Attributes and emotions that a model ties to social groups"
    question: str = (
        "Which attributes does the model find typical of a group, how many of people's own stereotypes are among "
        "them, and which emotions do they carry?"
    )
    paper: str = (
        "Rochelle Choenni, Ekaterina Shutova and Robert van Rooij, Stepmothers are mean and academics are "
        "pretentious: What do pretrained language models learn about you? (2021)"
    )
    capabilities: tuple[str, ...] = ("fill",)
    roles: tuple[Role, ...] = ()

    @property
    def sources(self) -> str:
        """Where groups and templates come from."""
        return " ".join(load_card("stereotypes").source.split())

    @property
    def options(self) -> type[Options]:
        """The options class of this audit."""
        return Options

    @property
    def user_data(self) -> Mapping[str, str]:
        """The human stereotypes and the full emotion lexicon, which may not be packaged."""
        return {"human_file": "stereotypes", "emotions_file": "nrc"}

    @property
    def profiles(self) -> Mapping[Profile, Mapping[str, Any]]:
        """What each profile sets instead of the defaults."""
        return {"quick": {"templates": 1, "draws": 499}, "standard": {}, "paper": {}}

    def check(self, options: Options) -> None:
        """Read the user's files."""
        questions(options)
        options.chosen_lexicon()

    def stages(self, plan: Plan) -> tuple[Stage, ...]:
        """Return the questions, and the same with the group hidden, which depends on their answers."""
        return (Stage(name="posterior"), Stage(name="prior"))

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Iterator[Item]:
        """Yield the items of a stage."""
        return posterior_items(plan.options) if stage.name == "posterior" else prior_items(plan, records)

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the answers of all models."""
        return summarise(self.name, plans, records)


PROBE = Stereotypes()
