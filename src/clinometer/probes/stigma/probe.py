"""The stigma audit as the engine sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinometer.data import load_card
from clinometer.errors import ModelError
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.probes.stigma.options import Options
from clinometer.probes.stigma.prompts import blanks, questions, statements
from clinometer.probes.stigma.summary import summarise
from clinometer.types import Findings, Item, Profile

# what a model offers -> the stage in which it is asked
STAGES = {"fill": "attitudes", "classify": "sentences", "ask": "scale"}
_ITEMS = {"attitudes": blanks, "sentences": statements, "scale": questions}


@dataclass(frozen=True, slots=True)
class Stigma:
    """The Social Distance Scale put to masked models and chat models, plain statements to classifiers."""

    name: str = "stigma"
    title: str = "Attitudes towards people with stigmatized conditions"
    question: str = (
        "Does the model speak worse of people with a stigmatized condition (an illness, a disability, a religion, "
        "a poor home) than of others?"
    )
    paper: str = (
        "Katelyn X. Mei, Sonia Fereidooni and Aylin Caliskan, Bias Against 93 Stigmatized Groups in Masked "
        "Language Models and Downstream Sentiment Classification Tasks (2023)"
    )
    capabilities: tuple[str, ...] = tuple(STAGES)
    roles: tuple[Role, ...] = ()

    @property
    def sources(self) -> str:
        """Where conditions, sentences and ratings come from."""
        return " ".join(load_card("stigma").source.split())

    @property
    def options(self) -> type[Options]:
        """The options class of this audit."""
        return Options

    @property
    def user_data(self) -> Mapping[str, str]:
        """Other ratings of words may lie in the user's data folder."""
        return {"ratings_file": "stigma-ratings"}

    @property
    def profiles(self) -> Mapping[Profile, Mapping[str, Any]]:
        """What each profile sets instead of the defaults."""
        return {
            "quick": {"templates": ("for me",), "answers": 1, "chat_conditions": 5},
            "standard": {},
            "paper": {},
        }

    def check(self, options: Options) -> None:
        """Read the user's files."""
        options.chosen_conditions()
        options.chosen_ratings()

    def stages(self, plan: Plan) -> tuple[Stage, ...]:
        """Return the one stage in which a model of this kind is asked."""
        for capability, stage in STAGES.items():
            if capability in plan.model.capabilities:
                return (Stage(name=stage),)
        raise ModelError(
            f"{plan.model.name} offers {', '.join(plan.model.capabilities)}; stigma needs a model that fills a "
            "blank, classifies or answers questions"
        )

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Iterator[Item]:
        """Yield every sentence or question of the stage."""
        return _ITEMS[stage.name](plan)

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the answers of all models."""
        return summarise(self.name, plans, records)


PROBE = Stigma()
