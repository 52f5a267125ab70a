"""The stereotypes audit as the engine sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clinometer.data import load_card
from clinometer.probes.kit import tables_of
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.probes.stereotypes.answers import read_answers
from clinometer.probes.stereotypes.figures import CAPTIONS, figures_of
from clinometer.probes.stereotypes.measures import read_human_attributes, tunings_of
from clinometer.probes.stereotypes.options import Options
from clinometer.probes.stereotypes.questions import (
    DRAWN,
    POSTERIOR,
    PRIOR,
    asked_of,
    drawn_items,
    is_chat,
    is_drawn,
    posterior_items,
    prior_items,
    questions,
)
from clinometer.probes.stereotypes.tables import all_rows
from clinometer.probes.stereotypes.words import headlines, notices, verdicts
from clinometer.types import Findings, Item, Profile


@dataclass(frozen=True, slots=True, eq=False)  # hashable, although two of its fields are mappings
class Stereotypes:
    """Attributes at "Why are old people so [MASK]?" for 373 social groups, and the emotions in them."""

    name: str = "stereotypes"
    questions_version: int = 2
    title: str = "Attributes and emotions that a model ties to social groups"
    question: str = (
        "Which attributes does the model find typical of a group, how many of people's own stereotypes are among "
        "them, and which emotions do they carry?"
    )
    paper: str = (
        "Rochelle Choenni, Ekaterina Shutova and Robert van Rooij, Stepmothers are mean and academics are "
        "pretentious: What do pretrained language models learn about you? (2021)"
    )
    capabilities: tuple[str, ...] = ("fill", "next_word", "ask")
    roles: tuple[Role, ...] = ()
    options: type[Options] = Options
    # the human stereotypes and the full emotion lexicon may not be packaged
    user_data: Mapping[str, str] = field(
        default_factory=lambda: {"human_file": "stereotypes", "emotions_file": "nrc"}
    )
    profiles: Mapping[Profile, Mapping[str, Any]] = field(
        default_factory=lambda: {
            "quick": {"templates": 1, "draws": 499, "chat_groups": 3, "chat_top_k": 10, "answers": 3},
            "standard": {},
            "paper": {"chat_top_k": 200},
        }
    )

    @property
    def sources(self) -> str:
        """Where groups and templates come from."""
        return " ".join(load_card("stereotypes").source.split())

    def check(self, options: Options) -> None:
        """Read the user's files."""
        questions(options)
        options.charted_groups()
        options.chosen_lexicon()

    def stages(self, plan: Plan) -> tuple[Stage, ...]:
        """Return the questions, and the same with the group hidden, which depend on the answers to the first.

        Chat models are asked in words; answers are drawn, also where their probabilities are known, for refusals.
        """
        size = len(asked_of(plan))
        asked = (Stage(name=POSTERIOR, size=size), Stage(name=PRIOR))
        drawn = (Stage(name=DRAWN, size=size),)
        if not is_chat(plan.model):
            return asked
        return drawn if is_drawn(plan.model) else (*asked, *drawn)

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Iterator[Item]:
        """Yield the items of a stage."""
        if stage.name == DRAWN:
            return drawn_items(plan)
        return posterior_items(plan) if stage.name == POSTERIOR else prior_items(plan, records)

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the answers of all models; the options are the same for all.

        A model that does not understand the questions is in the tables of words only. A table that has nothing to
        say is left out, and so is its figure.
        """
        options: Options = plans[0].options
        lexicon = options.chosen_lexicon()
        answers = [read_answers(plan, records, asked_of(plan), lexicon) for plan in plans]
        human = read_human_attributes(options)
        judged = [each for each in answers if not each.gate]
        tunings = tunings_of([each.plan.model for each in judged])
        rows = all_rows(answers, judged, tunings, human)
        concluded = verdicts(answers, rows)
        return Findings(
            probe=self.name,
            tables=tables_of([caption for caption in CAPTIONS if caption.name in rows], rows),
            figures=figures_of(rows, tunings, models=len(judged), top_k=options.top_k),
            notices=tuple(notices(answers, human)),
            headlines=tuple(headlines(concluded, rows, top_k=options.top_k)),
            verdicts=tuple(concluded),
        )


PROBE = Stereotypes()
