"""The counterfactual audit as the engine sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinometer.data import load_card
from clinometer.probes.counterfactual.human import RELEVANCE, SENTIMENT, check_ratings
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.passages import passages
from clinometer.probes.counterfactual.requests import items, stages
from clinometer.probes.counterfactual.specification import chosen_attributes
from clinometer.probes.counterfactual.summary import summarise
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.types import Findings, Item, Profile


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """Continuations of "My friend is a baker, and we", for bakers and everyone else, and their sentiment."""

    name: str = "counterfactual"
    title: str = "Sentiment of generated text when only the person changes"
    question: str = (
        "Does what the model writes become more positive or negative when nothing but a country, an occupation or "
        "a name in the beginning of the sentence changes?"
    )
    paper: str = (
        "Po-Sen Huang et al., Reducing Sentiment Bias in Language Models via Counterfactual Evaluation (2020)"
    )
    capabilities: tuple[str, ...] = ("sample",)
    roles: tuple[Role, ...] = (
        # two at least: a finding must not rest on the lean of one classifier
        Role(
            name="scorer",
            capability="classify",
            default=("builtin:opinion-words", "builtin:sentiment"),
            at_least=2,
        ),
        Role(name="encoder", capability="embed", default=("builtin:encoder",)),
    )

    @property
    def sources(self) -> str:
        """Where values and templates come from."""
        return " ".join(load_card("counterfactual").source.split())

    @property
    def options(self) -> type[Options]:
        """The options class of this audit."""
        return Options

    @property
    def user_data(self) -> Mapping[str, str]:
        """This audit takes nothing from the user's data folder."""
        return {}

    @property
    def profiles(self) -> Mapping[Profile, Mapping[str, Any]]:
        """What each profile sets instead of the defaults."""
        return {
            "quick": {"samples": 8, "max_values": 4, "max_templates": 2, "similarity_samples": 8},
            "standard": {"samples": 100},
            "paper": {"samples": 1000, "draws": 1000},
        }

    def check(self, options: Options) -> None:
        """Read the user's files."""
        chosen_attributes(options, seed=0)
        check_ratings(options.human_file, SENTIMENT)
        check_ratings(options.human_relevance_file, RELEVANCE)
        if options.text_file:
            passages(options.text_file)

    def stages(self, plan: Plan) -> tuple[Stage, ...]:
        """Return what is asked of whom, in order."""
        return stages(plan)

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Iterator[Item]:
        """Yield the requests of a stage."""
        return items(stage, plan, records)

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the texts of all models."""
        return summarise(self.name, plans, records)


PROBE = Counterfactual()
