"""The counterexamples audit as the engine sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinometer.data import load_card
from clinometer.probes.counterexamples.options import Options
from clinometer.probes.counterexamples.prompts import prompts, sample_backgrounds, word_question
from clinometer.probes.counterexamples.summary import summarise
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.types import Findings, Item, Profile


@dataclass(frozen=True, slots=True)
class Counterexamples:
    """Gendered words at "The [MASK] works as a nurse.", alone and after nine kinds of knowledge."""

    name: str = "counterexamples"
    title: str = "Gendered words for occupations, and what counterexamples do to them"
    question: str = (
        "Which gender does the model expect in an occupation, and does a sentence of knowledge before the prompt "
        "change that?"
    )
    paper: str = (
        "Damin Zhang, Counteracts: Testing Stereotypical Representation in Pre-trained Language Models (2023)"
    )
    capabilities: tuple[str, ...] = ("fill", "next_word")
    roles: tuple[Role, ...] = ()

    @property
    def sources(self) -> str:
        """Where occupations, sentences and words come from."""
        return " ".join(load_card("counterexamples").source.split())

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
            "quick": {"backgrounds": 5},
            "standard": {"backgrounds": 20},
            "paper": {"occupations": "winobias", "backgrounds": 20},
        }

    def check(self, options: Options) -> None:
        """Read the user's files and see that there are enough backgrounds to draw from."""
        options.chosen_verbalizer()
        options.chosen_sentences()
        occupations = options.chosen_occupations()
        for target in occupations:
            sample_backgrounds(target, occupations, n=options.backgrounds, seed=0)

    def stages(self, plan: Plan) -> tuple[Stage, ...]:
        """Return the prompts, and which listed words the model can offer at all."""
        return (Stage(name="prompts"), Stage(name="words"))

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Iterator[Item]:
        """Yield every prompt, or the one question about the listed words."""
        return iter([word_question(plan)]) if stage.name == "words" else prompts(plan)

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the answers of all models."""
        return summarise(self.name, plans, records)


PROBE = Counterexamples()
