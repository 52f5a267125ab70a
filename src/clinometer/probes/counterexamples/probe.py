"""The counterexamples audit as the engine sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clinometer.data import load_card
from clinometer.probes.counterexamples.answers import read_answers
from clinometer.probes.counterexamples.captions import CAPTIONS, figures
from clinometer.probes.counterexamples.measures import measure
from clinometer.probes.counterexamples.options import Options
from clinometer.probes.counterexamples.questions import (
    number_of_prompts,
    pools_of,
    prompts,
    sample_backgrounds,
    word_questions,
)
from clinometer.probes.counterexamples.tables import mitigation_rows, model_rows
from clinometer.probes.counterexamples.words import headlines, mitigation_headlines, notices, verdicts
from clinometer.probes.kit import tables_of
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.types import Findings, Item, Profile


@dataclass(frozen=True, slots=True)
class Counterexamples:
    """Gendered words at "The [MASK] works as a nurse.", alone and after nine kinds of knowledge."""

    name: str = "counterexamples"
    questions_version: int = 2
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
    options: type[Options] = Options
    user_data: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[Profile, Mapping[str, Any]] = field(
        default_factory=lambda: {
            "quick": {"backgrounds": 5},
            "standard": {"backgrounds": 20},
            "paper": {"occupations": "winobias", "backgrounds": 20},
        }
    )

    @property
    def sources(self) -> str:
        """Where occupations, sentences and words come from."""
        return " ".join(load_card("counterexamples").source.split())

    def check(self, options: Options) -> None:
        """Read the user's files and make sure that there are enough backgrounds to draw from."""
        options.chosen_verbalizer()
        options.chosen_sentences()
        occupations = options.chosen_occupations()
        pools = pools_of(occupations)
        for target in occupations:
            sample_backgrounds(target, pools, n=options.backgrounds, seed=0)

    def stages(self, plan: Plan) -> tuple[Stage, ...]:
        """Return the prompts for the most probable words, and those for all of the listed words."""
        return (
            Stage(name="prompts", size=number_of_prompts(plan.options)),
            Stage(name="words", size=number_of_prompts(plan.options, listed=True)),
        )

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Iterator[Item]:
        """Yield every prompt, or the questions about the listed words."""
        return word_questions(plan) if stage.name == "words" else prompts(plan)

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the answers of all models; the options are the same for all."""
        options: Options = plans[0].options
        verbalizer = options.chosen_verbalizer()
        measured = [measure(read_answers(plan, records, verbalizer), plan) for plan in plans]
        by_model = [model_rows(each) for each in measured]
        rows = {name: [row for each in by_model for row in each[name]] for name in by_model[0]}
        rows |= mitigation_rows(plans, measured)
        judged = [verdicts(*each) for each in zip(measured, by_model, strict=True)]
        said = list(mitigation_headlines(rows, {each.answers.model: each.judged for each in measured}))
        for measures, of_model, of_verdicts in zip(measured, by_model, judged, strict=True):
            said += headlines(measures, of_model, of_verdicts)
        return Findings(
            probe=self.name,
            tables=tables_of(CAPTIONS, rows),
            figures=figures(options.ks[-1], measured[0].judged),
            notices=tuple(notices(plans, verbalizer, measured, by_model)),
            headlines=tuple(said),
            verdicts=tuple(verdict for of_model in judged for verdict in of_model),
        )


PROBE = Counterexamples()
