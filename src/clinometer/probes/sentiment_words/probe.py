"""The sentiment-words audit as the engine sees it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from clinometer.data import load_card
from clinometer.errors import DataError
from clinometer.probes.kit import tables_of
from clinometer.probes.kit.asking import Units, gate_of
from clinometer.probes.kit.before_after import change_headline, changes_of, with_changes
from clinometer.probes.kit.chat import chosen_instructions
from clinometer.probes.kit.numbers import cells_of
from clinometer.probes.kit.refusals import CAPTION as REFUSALS
from clinometer.probes.kit.refusals import refusal_figure, refusal_headline, refusal_rows, refusal_verdicts
from clinometer.probes.kit.trainings import with_arms
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.probes.sentiment_words.answers import shift_templates
from clinometer.probes.sentiment_words.measures import ModelMeasures, measure_model
from clinometer.probes.sentiment_words.options import LABELS, Options
from clinometer.probes.sentiment_words.questions import (
    ANSWERS,
    ASSOCIATION,
    VOCABULARY,
    WAYS,
    answer_prompts,
    association_prompts,
    fitted,
    shift_prompts,
    stages_of,
    vocabulary_question,
)
from clinometer.probes.sentiment_words.tables import (
    AGAINST,
    FIGURES,
    TUNING,
    joint_rows,
    mark_interpretable,
    model_rows,
)
from clinometer.probes.sentiment_words.verdicts import (
    AFTER,
    APPENDED,
    headline,
    lean_rows,
    table_2_notice,
    verdicts,
)
from clinometer.probes.sentiment_words.words import CAPTIONS, general_notices, model_notices
from clinometer.types import Block, Finding, Findings, Item, ModelInfo, Profile

# the paper's, and that of LM-BFF, whose stop tells a small model what kind of word is missing
_TEMPLATES = ("It was [MASK]", "It was [MASK].")
_PROFILES: Mapping[Profile, Mapping[str, Any]] = {
    # long reviews cost most of the time; the paper's own mix has a median of thirty words
    "quick": {
        "reviews_per_class": 70,
        "longest_review": 40,
        "shift_words_limit": 10,
        "templates": _TEMPLATES,
        "slow_reviews_per_class": 20,
        "slow_ks": (5,),
        "chat_words_per_class": 4,
        "answers": 2,
    },
    "standard": {
        "reviews_per_class": 150,
        "longest_review": 80,
        "shift_words_limit": 120,
        "templates": _TEMPLATES,
        "slow_reviews_per_class": 100,
    },
    "paper": {"reviews_per_class": 2000},
}


@dataclass(frozen=True, slots=True)
class SentimentWords:
    """Words at "review It was [MASK]" (association), and labels of "review word word … It was [MASK]" (shift)."""

    name: str = "sentiment_words"
    questions_version: int = 2
    title: str = "Sentiment that the model sees in neutral words"
    question: str = (
        "Which words that people call neutral does the model expect after positive or after negative reviews, and "
        "which of them change the label of a review when they are appended to it?"
    )
    paper: str = (
        "Apoorv Garg, Deval Srivastava, Zhiyang Xu and Lifu Huang, Identifying and Measuring Token-Level "
        "Sentiment Bias in Pre-trained Language Models with Prompts (2022)"
    )
    capabilities: tuple[str, ...] = tuple(way.capability for way in WAYS)
    roles: tuple[Role, ...] = ()
    options: type[Options] = Options
    # the neutral words are those of MPQA if the user has added them
    user_data: Mapping[str, str] = field(default_factory=lambda: {"neutral_file": "mpqa"})
    profiles: Mapping[Profile, Mapping[str, Any]] = field(default_factory=lambda: _PROFILES)

    @property
    def sources(self) -> str:
        """Where words and reviews come from."""
        return " ".join(load_card("sentiment_words").source.split())

    def check(self, options: Options) -> None:
        """Read words, reviews and instructions, and see that there are enough of each kind of word."""
        for label, words in options.listed_words().items():
            if len(words) < 2:
                raise DataError(
                    f"sentiment_words: {len(words)} {label} words; expected at least 2 of each of "
                    f"{', '.join(LABELS)}: add some to the list"
                )
        options.chosen_reviews(0)
        chosen_instructions(options.instructions_file)

    def stages(self, plan: Plan) -> tuple[Stage, ...]:
        """Return what to ask of a model of this kind."""
        return stages_of(fitted(plan))

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Iterator[Item | Block]:
        """Yield the questions of a stage; all but the first depend on which words the model has."""
        plan = fitted(plan)
        if stage.name == VOCABULARY:
            return iter([vocabulary_question(plan)])
        if stage.name == ASSOCIATION:
            return association_prompts(plan, records)
        if stage.name == ANSWERS:
            return answer_prompts(plan)
        return shift_prompts(plan, records, templates=shift_templates(plan, records))

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the answers of all models; the options are the same for all."""
        options, seed = plans[0].options, plans[0].seed
        models = {plan.model.name: measure_model(fitted(plan), records) for plan in plans}
        of_model = {name: model_rows(measures) for name, measures in models.items()}
        rows = dict(joint_rows(list(models.values()), seed=seed))
        for found in of_model.values():
            for table, each in found.items():
                rows.setdefault(table, []).extend(each)
        rows["leans"] = [row for measures in models.values() for row in lean_rows(measures)]
        chats = [measures.answers.asked for measures in models.values() if measures.answers.asked is not None]
        rows[REFUSALS.name] = refusal_rows(chats, seed=seed)
        refused = refusal_verdicts(rows[REFUSALS.name], audit=self.name)
        leans = tuple(verdicts(rows["leans"], models))
        infos = [plan.model for plan in plans]
        told = dict(self._marked(rows, models))
        by = ("model", "test", "m_or_k", "rule", "sign")
        told["tuning"] = with_arms(told["tuning"], infos, by=by, model="tuned", families=())
        concluded = Findings(
            probe=self.name,
            tables=tables_of((*CAPTIONS, *((REFUSALS,) if chats else ())), told),
            figures=(
                *((TUNING,) if rows["tuning"] else ()),
                *FIGURES,
                *((refusal_figure(ANSWERS),) if chats else ()),
            ),
            notices=(
                *general_notices(options, seed),
                *(notice for measures in models.values() for notice in model_notices(measures)),
                *(line for name, m in models.items() for line in table_2_notice(m, of_model[name]["table_2"])),
            ),
            # why it cannot be told is said once
            headlines=tuple(dict.fromkeys((*map(headline, leans), *filter(None, map(refusal_headline, refused))))),
            verdicts=(*leans, *refused),
        )
        changes = changes_of(self.compared, concluded, infos)
        return with_changes(concluded, changes, (change_headline(each, infos) for each in changes))

    def _marked(
        self, rows: Mapping[str, list[Finding]], models: Mapping[str, ModelMeasures]
    ) -> Mapping[str, list[Finding]]:
        """Return the rows, each with a label that says whether it can be interpreted; a refusal always can."""
        return {
            table: each if table == REFUSALS.name else mark_interpretable(each, models)
            for table, each in rows.items()
        }

    compared_freely: frozenset[str] = frozenset({"templates", "shift_templates", "ms", "answers", "draws"})

    def compared(self, findings: Findings, models: Sequence[ModelInfo]) -> Iterator[Units]:
        """Yield which neutral words each model's tests call, with its main template first."""
        rows = {table.name: table.rows for table in findings.tables}
        for lean, model in product(rows.get("leans", ()), models):
            aspect = str(lean.labels["aspect"])
            if aspect not in _COMPARED or lean.labels["model"] != model.name:
                continue
            table, where, more = _COMPARED[aspect]
            mine = [
                row
                for row in rows.get(table, ())
                if row.labels["model"] == model.name
                and row.labels["listed_as"] == "neutral"
                and all(row.labels[name] == value for name, value in where.items())
                and row.labels.get("labels", "") == lean.labels["labels"]
                and not math.isnan(row.low)
            ]
            main = str(lean.labels["template"])
            readable = [str(row.labels["template"]) for row in mine if row.labels["interpretable"] == "yes"]
            for template in dict.fromkeys([main, *readable]):
                used = [row for row in mine if row.labels["template"] == template]
                found = cells_of(used, unit="word", value=lambda row: float(row.labels["called"] != "none"))
                same = {"template": template, "number of reviews": str(used[0].n if used else 0)}
                yield Units(
                    model=model.name,
                    question=aspect,
                    measure="words that are not neutral to it",
                    asked=str(lean.labels["asked"]),
                    unit="word",
                    names=found.names,
                    values=found.values,
                    form="share",
                    more=f"takes more neutral words for positive or negative {more}",
                    less=f"takes fewer neutral words for positive or negative {more}",
                    same=same | ({"pair of labels": str(lean.labels["labels"])} if lean.labels["labels"] else {}),
                    gate="" if template in readable else gate_of(findings, model.name, aspect),
                )


_COMPARED: dict[str, tuple[str, dict[str, str], str]] = {  # aspect -> table, its rows, where a word appears
    AFTER: ("association", {}, "after reviews"),
    APPENDED: ("graded_shift", {"measure": AGAINST}, "when they are appended"),
}


PROBE = SentimentWords()
