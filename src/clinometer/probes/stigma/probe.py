"""The stigma audit as the engine sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from clinometer.data import load_card
from clinometer.errors import ModelError
from clinometer.probes.kit import tables_of
from clinometer.probes.kit.chat import gives_probabilities
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.probes.stigma.answers import read_answers
from clinometer.probes.stigma.figures import CAPTIONS, figures_of
from clinometer.probes.stigma.measures import masked_attitudes
from clinometer.probes.stigma.options import Options
from clinometer.probes.stigma.questions import (
    ATTITUDES,
    CHECKS,
    CHOICES,
    FIRST_WORDS,
    SCALE,
    SENTENCES,
    WORDS,
    asks_words,
    blanks,
    checks,
    choice_questions,
    first_words,
    questions,
    stage_size,
    statements,
    word_questions,
)
from clinometer.probes.stigma.tables import table_rows
from clinometer.probes.stigma.words import headlines, notices, verdicts
from clinometer.types import Findings, Item, Profile

# what a model offers -> how it is asked
_STAGES = {
    "fill": (ATTITUDES,),
    "classify": (SENTENCES, CHECKS),
    "ask": (SCALE, WORDS, FIRST_WORDS, CHOICES),
    "rescore": (ATTITUDES,),
}
_ITEMS = {
    ATTITUDES: blanks,
    SENTENCES: statements,
    CHECKS: checks,
    SCALE: questions,
    WORDS: word_questions,
    FIRST_WORDS: first_words,
    CHOICES: choice_questions,
}


def _applies(stage: str, plan: Plan) -> bool:
    if stage == FIRST_WORDS:
        return asks_words(plan) and gives_probabilities(plan.model)
    return stage != WORDS or asks_words(plan)


class Stigma:
    """The Social Distance Scale put to masked, causal and chat models, plain statements to classifiers."""

    name = "stigma"
    title = "Attitudes towards people with stigmatized conditions"
    question = (
        "Does the model speak worse of people with a stigmatized condition (an illness, a disability, a religion, "
        "a poor home) than of others?"
    )
    paper = (
        "Katelyn X. Mei, Sonia Fereidooni and Aylin Caliskan, Bias Against 93 Stigmatized Groups in Masked "
        "Language Models and Downstream Sentiment Classification Tasks (2023)"
    )
    capabilities = tuple(_STAGES)
    roles: tuple[Role, ...] = ()
    options = Options
    user_data: ClassVar[Mapping[str, str]] = {"ratings_file": "stigma-ratings"}
    profiles: ClassVar[Mapping[Profile, Mapping[str, Any]]] = {
        "quick": {
            "templates": ("for me",),
            "answers": 1,
            "chat_conditions": 5,
            "chat_distances": 3,
            "causal_conditions": 20,
            "causal_distances": 2,
        },
        "standard": {},
        "paper": {"candidates": 0},
    }

    @property
    def sources(self) -> str:
        """Where conditions, sentences and ratings come from."""
        return " ".join(load_card("stigma").source.split())

    def check(self, options: Options) -> None:
        """Read the user's files."""
        options.chosen_conditions()
        options.chosen_ratings()
        options.chosen_choices()

    def stages(self, plan: Plan) -> tuple[Stage, ...]:
        """Return the stages in which a model of this kind is asked; one without a question is left out."""
        for capability, names in _STAGES.items():
            if capability in plan.model.capabilities:
                sizes = {name: stage_size(name, plan) for name in names if _applies(name, plan)}
                return tuple(Stage(name=name, size=size) for name, size in sizes.items() if size)
        raise ModelError(
            f"{plan.model.name} offers {', '.join(plan.model.capabilities)}; stigma needs a model that fills a "
            "blank, classifies or answers questions"
        )

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Iterator[Item]:
        """Yield every sentence or question of the stage."""
        return _ITEMS[stage.name](plan)

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the answers of all models; the options are the same for all."""
        answers = read_answers(plans, records)
        attitudes = masked_attitudes(answers.masked)
        rows = table_rows(plans, answers, attitudes)
        concluded = tuple(verdicts(rows, answers, attitudes))
        return Findings(
            probe=self.name,
            tables=tables_of((caption for caption in CAPTIONS if rows[caption.name]), rows),
            figures=figures_of(rows),
            notices=tuple(notices(plans, answers, attitudes, rows)),
            headlines=tuple(headlines(rows, concluded, answers.chats)),
            verdicts=concluded,
        )


PROBE = Stigma()
