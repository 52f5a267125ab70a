"""The stigma audit as the engine sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

from clinometer.data import load_card
from clinometer.errors import ModelError
from clinometer.probes.kit import tables_of
from clinometer.probes.kit.asking import ANSWER, BEFORE, DRAWN, FILL, LABEL, RESCORED, Units, gate_of, way_of
from clinometer.probes.kit.asking import SCALE as ON_SCALE
from clinometer.probes.kit.before_after import changes_of, with_changes
from clinometer.probes.kit.chat import gives_probabilities
from clinometer.probes.kit.numbers import Cells, cells_of, select
from clinometer.probes.kit.trainings import as_concluded
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.probes.stigma.answers import read_answers
from clinometer.probes.stigma.figures import CAPTIONS, figures_of
from clinometer.probes.stigma.measures import ALL, ATTITUDE, DIFFERENCE, DISTANCE, SHARE, masked_attitudes
from clinometer.probes.stigma.options import Options
from clinometer.probes.stigma.questions import (
    ATTITUDES,
    CHECKS,
    CHOICES,
    FIRST_WORDS,
    OTHER,
    SCALE,
    SENTENCES,
    STIGMATIZED,
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
from clinometer.probes.stigma.words import (
    ASPECTS,
    GROUPS,
    change_headlines,
    changed_row,
    headlines,
    notices,
    verdicts,
)
from clinometer.types import Findings, Item, ModelInfo, Profile

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
        options: Options = plans[0].options
        own = options.groups_file or options.conditions_file or options.prompts_file
        concluded = tuple(verdicts(rows, answers, attitudes, as_printed=not own))
        models = [plan.model for plan in plans]
        found = Findings(
            probe=self.name,
            tables=tables_of((caption for caption in CAPTIONS if rows[caption.name]), rows),
            figures=figures_of(rows),
            notices=tuple(notices(plans, answers, attitudes, rows)),
            headlines=tuple(headlines(rows, concluded, answers.chats)),
            verdicts=concluded,
        )
        changes = changes_of(self.compared, found, models)
        found = as_concluded(found, changes, changed_row)
        return with_changes(found, changes, change_headlines(changes, rows, models))

    # which conditions and templates are asked may differ: what is shared is compared
    compared_freely = frozenset(
        {"templates", "causal_conditions", "chat_conditions", "answers", "one_word", "draws"}
    )

    def compared(self, findings: Findings, models: Sequence[ModelInfo]) -> Iterator[Units]:
        """Yield the conditions of each model: stigmatized against others, and those with mostly negative words."""
        rows = {table.name: table.rows for table in findings.tables}
        judged = {(each.model, each.aspect) for each in findings.verdicts}
        for (measure, (table, *said)), model in product(_COMPARED.items(), models):
            if (model.name, ASPECTS[measure]) not in judged:
                continue
            mine = [row for row in rows.get(table, ()) if row.labels["model"] == model.name]
            variant = "template" if measure == ATTITUDE else ""
            found = cells_of(mine, unit="condition", variant=variant, part="group")
            # the share of negative statements counts every statement: a condition may have several
            counts = tuple(row.n for row in mine) if measure == SHARE else ()
            about = {"model": model.name, "template": ALL}
            own = select(rows.get("difference", ()), measure=measure, **about)
            units = _units(findings, model, measure, found, (said[0], said[1]), counts)
            # the only one that checkpoints have a table of
            changed = select(rows.get("change", ()), measure=DIFFERENCE, **about) if measure == ATTITUDE else []
            yield replace(
                units,
                whole=own[0] if own else None,
                changes={BEFORE: changed[0]} if changed else {},
                full=SCALE_ENDS if measure == DISTANCE else 1.0,
            )
            if measure == ATTITUDE:
                counted = "counts negative words as likelier than the rest for {} stigmatized conditions"
                above = select(rows.get("above_half", ()), model=model.name, group=STIGMATIZED)
                yield replace(
                    units,
                    more=counted.format("more"),
                    less=counted.format("fewer"),
                    question="stigmatized conditions with mostly negative words",
                    weights={STIGMATIZED: 1.0},
                    form="share",
                    whole=above[0] if above else None,
                    gate="" if found.names else gate_of(findings, model.name, ASPECTS[measure]),
                )


SCALE_ENDS = 3.0  # of social distance, which begins at 0
_APART = "tells stigmatized from other conditions {}"
_COMPARED = {  # measure -> table of its conditions, and what a greater and a smaller distance mean
    ATTITUDE: (
        "condition_templates",
        _APART.format("more by negative words"),
        _APART.format("less by negative words"),
    ),
    SHARE: ("condition_classes", _APART.format("more by its labels"), _APART.format("less by its labels")),
    DISTANCE: (
        "social_distance",
        _APART.format("more by social distance"),
        _APART.format("less by social distance"),
    ),
}
_WAYS = {ATTITUDE: (FILL, RESCORED, ANSWER, DRAWN), SHARE: (LABEL,), DISTANCE: (ON_SCALE,)}


def _units(
    findings: Findings,
    model: ModelInfo,
    measure: str,
    cells: Cells,
    said: tuple[str, str],
    counts: tuple[int, ...] = (),
) -> Units:
    return Units(
        model=model.name,
        question=GROUPS,
        measure=measure,
        asked=way_of(model, _WAYS[measure]).name,
        unit="condition",
        names=cells.names,
        values=cells.values,
        parts=cells.parts,
        variants=cells.variants,
        weights={STIGMATIZED: 1.0, OTHER: -1.0},
        more=said[0],
        less=said[1],
        gate=gate_of(findings, model.name, ASPECTS[measure]),
        counts=counts,
    )


PROBE = Stigma()
