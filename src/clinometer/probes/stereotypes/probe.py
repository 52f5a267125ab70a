"""The stereotypes audit as the engine sees it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from clinometer.data import load_card
from clinometer.metrics.stereotypes import has_direction, representational_similarity
from clinometer.probes.kit import Floats, tables_of
from clinometer.probes.kit.asking import ANSWER, FILL, NEXT_WORD, Units, gate_of, way_of
from clinometer.probes.kit.asking import DRAWN as DRAWN_ANSWERS
from clinometer.probes.kit.before_after import changes_of, with_changes
from clinometer.probes.kit.numbers import cells_of
from clinometer.probes.kit.trainings import lines_apart, with_arms
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.probes.stereotypes.answers import read_answers
from clinometer.probes.stereotypes.figures import CAPTIONS, figures_of
from clinometer.probes.stereotypes.measures import (
    FEWEST_GROUPS,
    FEWEST_WORDS,
    NEGATIVITY,
    read_human_attributes,
    tunings_of,
)
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
from clinometer.probes.stereotypes.words import GENERAL, GROUPS, change_headlines, headlines, notices, verdicts
from clinometer.stats import critical_value
from clinometer.types import Finding, Findings, Item, ModelInfo, Profile


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
        models = [plan.model for plan in plans]
        rows = _with_trainings(all_rows(answers, judged, tunings, human), models)
        concluded = verdicts(answers, rows)
        found = Findings(
            probe=self.name,
            tables=tables_of([caption for caption in CAPTIONS if caption.name in rows], rows),
            figures=tuple(
                lines_apart(figure, rows[figure.table])
                for figure in figures_of(rows, tunings, models=len(judged), top_k=options.top_k)
            ),
            notices=tuple(notices(answers, human)),
            headlines=tuple(headlines(concluded, rows, models, top_k=options.top_k)),
            verdicts=tuple(concluded),
        )
        changes = changes_of(self.compared, found, models)
        return with_changes(found, changes, change_headlines(changes, rows, models))

    compared_freely: frozenset[str] = frozenset(
        {"human_file", "self_similarity", "chart_groups", "answers", "draws"}
    )

    def compared(self, findings: Findings, models: Sequence[ModelInfo]) -> Iterator[Units]:
        """Yield the negativity of each group: how unequal groups are, then each category against the others."""
        rows = {table.name: table.rows for table in findings.tables}
        for model in models:
            about = [each for each in findings.verdicts if each.model == model.name]
            if not about:
                continue
            mine = [row for row in rows.get("negativity", ()) if row.labels["model"] == model.name]
            told = [row for row in mine if row.n >= FEWEST_WORDS]
            common: dict[str, Any] = {"model": model.name, "measure": NEGATIVITY, "unit": "group"}
            common["asked"] = way_of(model, (FILL, NEXT_WORD, ANSWER, DRAWN_ANSWERS)).name
            found = cells_of(told, unit="group", value=_beyond_chance)
            # that one wording cannot be told from chance does not hinder: two models answer the same wording
            gate = gate_of(findings, model.name, GENERAL)
            yield Units(
                question=GROUPS,
                names=found.names,
                values=found.values,
                form="distance",
                more="describes groups more unequally",
                less="describes groups less unequally",
                gate="" if mine and "single wording" in gate else gate,
                **common,
            )
            known = [row for row in rows.get("category_negativity", ()) if row.labels["model"] == model.name]
            # a category without others that are asked in the same words is nobody's other, either
            alone = {row.labels["category"] for row in known if math.isnan(row.estimate)}
            for own in known:
                category = str(own.labels["category"])
                aspect = f"negativity of the category {category}"
                # of two categories, the second is the others of the first, and has no verdict of its own
                if category in alone or all(each.aspect != aspect for each in about):
                    continue
                part = [row for row in told if row.labels["category"] == category]
                part += [row for row in told if row.labels["category"] not in {category, *alone}]
                found = cells_of(part, unit="group", part="category")
                yield Units(
                    question=f"the category {category}",
                    names=found.names,
                    values=found.values,
                    parts=tuple("in it" if each == category else "others" for each in found.parts),
                    weights={"in it": 1.0, "others": -1.0},
                    more=f"tells groups of the category {category} more from others by negative words",
                    less=f"tells groups of the category {category} less from others by negative words",
                    gate=gate_of(findings, model.name, aspect),
                    whole=own,
                    full=2.0,  # from −1, all attributes positive, to +1
                    **common,
                )

    def alike(self, findings: Sequence[tuple[Findings, str]]) -> tuple[Floats, int]:
        """Return how alike models see the relations between groups (models × models), and over how many groups.

        `findings` names each model in its run. ρ as in the table of similarities, over the groups and emotions
        that all of them have; NaN where these are too few.
        """
        profiles = []
        for found, model in findings:
            table = next((each.rows for each in found.tables if each.name == "emotions"), ())
            profiles.append({
                (str(row.labels["group"]), str(row.labels["emotion"])): row.estimate
                for row in table
                if row.labels["model"] == model
            })  # fmt: skip
        known = [each for each in profiles if each]  # a model that did not understand has none
        shared = [key for key in known[0] if all(key in each for each in known)] if known else []
        groups, emotions = (list(dict.fromkeys(key[at] for key in shared)) for at in (0, 1))
        vectors = [np.array([[each.get((g, e), np.nan) for e in emotions] for g in groups]) for each in profiles]
        rho = np.full((len(profiles), len(profiles)), np.nan)
        if len(groups) < FEWEST_GROUPS:
            return rho, 0
        told = [i for i, each in enumerate(profiles) if each]
        usable = np.all([has_direction(vectors[i]) for i in told], axis=0)
        for i, j in product(told, told):
            rho[i, j] = representational_similarity(vectors[i][usable], vectors[j][usable]).mean
        return rho, int(usable.sum())


def _with_trainings(rows: Mapping[str, list[Finding]], models: Sequence[ModelInfo]) -> Mapping[str, list[Finding]]:
    """Return the tables of what tuning changed with a row for each kind of training that was repeated."""
    tested: tuple[str, ...] = ()  # q is over all rows of an arm
    tables = {
        "shift": (("category",), None),
        "shift_mean": ((), None),
        "recall_change": (("category", "k"), tested),
        "negativity_change": (("category", "measure"), tested),
    }
    more = {}
    for name, (by, families) in tables.items():
        if of_table := rows.get(name):
            line = "method" if "method" in of_table[0].labels else "corpus"
            more[name] = with_arms(of_table, models, by=by, line=line, families=families)
    return {**rows, **more}


def _beyond_chance(row: Finding) -> float:
    """Return the squared distance of a group from the mean, without what chance alone gives it."""
    error = (row.high - row.low) / (2 * critical_value(0.975))
    return row.estimate**2 - error**2


PROBE = Stereotypes()
