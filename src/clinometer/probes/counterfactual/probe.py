"""The counterfactual audit as the engine sees it, and how its findings are put together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, product
from typing import Any

import numpy as np

from clinometer.data import load_card
from clinometer.metrics import mean_change, widened_reduction
from clinometer.probes.counterfactual import checkpoints as tuned
from clinometer.probes.counterfactual import tables, words
from clinometer.probes.counterfactual.answers import ModelAnswers, name_of, read_answers, refusals_of
from clinometer.probes.counterfactual.figures import CAPTIONS, figures
from clinometer.probes.counterfactual.measures import (
    GROUP,
    INDIVIDUAL,
    AttributeMeasures,
    is_classifier,
    measure_all,
    measure_scores,
)
from clinometer.probes.counterfactual.options import Options, fitted
from clinometer.probes.counterfactual.questions import (
    SAMPLES,
    SCORED,
    asked_attributes,
    check_files,
    questions,
    stages,
    ways_of,
)
from clinometer.probes.counterfactual.tables import EXCESS, MEASURED, Rows
from clinometer.probes.kit import select, tables_of
from clinometer.probes.kit.asking import BEFORE, CONTINUED, CONTROL, LABEL, SAMPLED, Units, gate_of
from clinometer.probes.kit.before_after import Checkpoint, changes_of, checkpoints_of, with_changes
from clinometer.probes.kit.numbers import cells_of
from clinometer.probes.kit.refusals import refusal_headline, refusal_rows, refusal_verdicts
from clinometer.probes.kit.trainings import lines_apart, repeated_checkpoints, with_arms
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.types import ChangeVerdict, Finding, Findings, Item, ModelInfo, Notice, Profile, Verdict


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
    capabilities: tuple[str, ...] = ("sample", "ask", "classify")
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
    options: type[Options] = Options
    user_data: Mapping[str, str] = field(default_factory=dict)  # nothing from the user's data folder
    profiles: Mapping[Profile, Mapping[str, Any]] = field(
        default_factory=lambda: {
            "quick": {
                "samples": 8,
                "chat_samples": 4,
                "max_values": 4,
                "max_templates": 2,
                "similarity_samples": 8,
            },
            "standard": {"samples": 100},
            "paper": {"samples": 1000, "draws": 1000},
        }
    )

    @property
    def sources(self) -> str:
        """Where values and templates come from."""
        return " ".join(load_card("counterfactual").source.split())

    def check(self, options: Options) -> None:
        """Read the user's files."""
        check_files(options)

    def stages(self, plan: Plan) -> tuple[Stage, ...]:
        """Return what is asked of whom, in order."""
        return stages(fitted(plan))

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Iterator[Item]:
        """Yield the requests of a stage."""
        return questions(stage, fitted(plan), records)

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the texts, or scores, of all models; the options are the same for all."""
        options: Options = plans[0].options
        plans = [fitted(plan) for plan in plans]
        classifiers = [plan for plan in plans if is_classifier(plan.model)]
        writers = [plan for plan in plans if plan not in classifiers]
        attributes = asked_attributes(options, seed=plans[0].seed)
        found = _Collected(options)
        found.notices += words.general_notices(writers, attributes) if writers else ()
        found.notices += words.classifier_notices([plan.model for plan in classifiers])
        for plan in classifiers:
            found.add_scores(plan, records)
        asked = [(plan, way) for plan in writers for way in ways_of(plan)]
        models = [_named(plan, way) for plan, way in asked]
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:  # reading leaves the interpreter to others
            answers = list(pool.map(lambda each: read_answers(each[0], records, each[1]), asked))
        checkpoints = checkpoints_of(models)
        tuned_ones = {checkpoint.model for checkpoint in checkpoints}
        measured = measure_all(answers, single_pairs=[at not in tuned_ones for at in range(len(answers))])
        for at, (each, of_model) in enumerate(zip(answers, measured, strict=True)):
            found.add_texts(each, of_model, is_checkpoint=at in tuned_ones)
        for plan, way in asked:
            if "sample" not in plan.model.capabilities:
                found.add_refusals(plan, records, way)
        compared: dict[int, list[tuned.Comparison]] = {}
        for checkpoint in checkpoints:
            of_one = compared[checkpoint.model] = list(tuned.compare(checkpoint, answers))
            found.add(
                change=tuned.change_rows(of_one),
                reduction=tuned.reduction_rows(of_one),
                costs=tuned.cost_rows(checkpoint, answers),
            )
        rows = found.rows
        found.add(mitigation=tuned.mitigation_rows(models, checkpoints, attributes, rows))
        found.add(printed_costs=words.printed_costs(checkpoints))
        found.add(weights=tables.weight_rows(models, checkpoints), human_agreement=tables.agreement_rows(options))
        found.notices += words.checkpoint_notices(models, checkpoints, rows["costs"], draws=options.draws)
        found.notices += words.human_notices(options, answers)
        present = frozenset(name for name, of_table in rows.items() if of_table)
        concluded = Findings(
            probe=self.name,
            tables=tables_of((caption for caption in CAPTIONS if caption.name in present), rows),
            figures=figures(
                attributes,
                present,
                models=len(models) + len(classifiers),
                bases=len({checkpoint.base for checkpoint in checkpoints}),
                evidence=SAMPLES if writers else SCORED,
            ),
            notices=tuple(found.notices),
            headlines=tuple(found.headlines),
            verdicts=tuple(found.verdicts),
        )
        verdicts = changes_of(self.compared, concluded, models)
        rows |= _with_arm_rows(rows, models)
        told = {each.model: (each, compared[each.model]) for each in checkpoints}
        for arm, every in repeated_checkpoints(checkpoints, models, verdicts):
            of_arm = list(_compare_arm(arm, [compared[each.model] for each in every], verdicts, rows["change"]))
            rows["change"] = _retold(rows["change"], tuned.change_rows(of_arm))
            rows["reduction"] = _retold(rows["reduction"], list(tuned.reduction_rows(of_arm)))
            told[arm.model] = arm, of_arm  # at the place of the first; no verdict is about one of several
        results = [
            tuned.results_of(each, of, of_one, verdicts, select(rows["costs"], model=each.name))
            for each, of_one in told.values()
            if any(verdict.after == each.name for verdict in verdicts)
            for of in tuned.shown_for(each, attributes)
        ]
        concluded = replace(
            concluded,
            tables=tables_of((caption for caption in CAPTIONS if caption.name in present), rows),
            figures=tuple(lines_apart(figure, rows[figure.table]) for figure in concluded.figures),
        )
        # what training changed comes after what the models do
        return with_changes(concluded, verdicts, tuned.checkpoint_headlines(results), first=False)

    # what is asked may differ, for shared templates are compared; the rest changes no score
    compared_freely: frozenset[str] = frozenset({
        "attributes", "max_values", "max_templates", "samples", "chat_samples", "epsilon", "threshold",
        "similarity",
        "similarity_samples", "compared_samples", "text_file", "human_file", "human_relevance_file", "draws",
    })  # fmt: skip

    def compared(self, findings: Findings, models: Sequence[ModelInfo]) -> Iterator[Units]:
        """Yield the excess of I.F. and G.F. of each attribute and scorer; by template, then by pair."""
        rows = {table.name: table.rows for table in findings.tables}
        for row, model in product(rows.get("fairness", ()), models):
            labels = row.labels
            measure = str(labels["measure"])
            if labels["model"] != model.name or labels["quantity"] != EXCESS or measure not in (INDIVIDUAL, GROUP):
                continue
            about = {name: labels[name] for name in ("model", "attribute", "scorer")}
            of_templates, of_pairs, values = (
                [each for each in rows.get(table, ()) if all(each.labels[n] == v for n, v in about.items())]
                for table in ("templates", "pair_templates", "values")
            )
            named = sorted({str(each.labels["value"]) for each in values})
            way = SAMPLED if "sample" in model.capabilities else LABEL if is_classifier(model) else CONTINUED
            cells = cells_of(of_templates, unit="template", value=_excess)
            common: dict[str, Any] = {
                "model": model.name,
                "question": f"{measure} of {labels['attribute']} by {labels['scorer']}",
                "measure": tuned.BEYOND,
                "asked": way.name,
                "more": f"lets the {labels['attribute']} change what it writes more ({measure})",
                "less": f"lets the {labels['attribute']} change what it writes less ({measure})",
                "gate": _gate(findings, model.name, f"{labels['attribute']}, by {labels['scorer']}"),
                "changes": {
                    str(each.labels["against"]): each
                    for each in select(rows.get("change", ()), **about, measure=measure, quantity=EXCESS)
                },
            }
            yield Units(
                unit="template",
                names=cells.names,
                values=cells.values if measure == INDIVIDUAL else np.full_like(cells.values, np.nan),
                form="measured",
                whole=row,
                same={"set of values": ", ".join(named)},
                **common,
            )
            if measure == INDIVIDUAL and of_pairs:
                pairs = [
                    replace(each, labels={**each.labels, "pair": " · ".join(map(str, _pair(each)))})
                    for each in of_pairs
                ]
                found = cells_of(pairs, unit="pair", part="template", value=_excess)
                yield Units(
                    unit="pair of value",
                    names=found.names,
                    values=found.values,
                    form="distance",
                    clusters=found.parts,
                    **common,
                )


def _excess(row: Finding) -> float:
    return row.estimate - float(row.labels["by_chance"])


def _pair(row: Finding) -> tuple[Any, ...]:
    """Return template and values of a row; which value comes first depends on the model."""
    return row.labels["template"], *sorted((str(row.labels["value"]), str(row.labels["other"])))


def _gate(findings: Findings, model: str, aspect: str) -> str:
    """Return why a model cannot be judged; that it has no interval of its own is seen in its numbers."""
    gate = gate_of(findings, model, aspect)
    return "" if gate == "too little was measured for an interval" else gate


# ---------------------------------------------------------------------------------------------------------
# Several trainings of one kind


def _compare_arm(
    arm: Checkpoint,
    trainings: Sequence[Sequence[tuned.Comparison]],
    changes: Sequence[ChangeVerdict],
    rows: Sequence[Finding],
) -> Iterator[tuned.Comparison]:
    """Compare several trainings of one kind, on average, with what each of them was compared with.

    The limits of the excess are those of the verdicts, those of the distances as measured stand in `rows`.
    """
    verdicts = {(each.before, each.measure): each for each in changes if each.after == arm.name}
    together: dict[tuple[str, str, str], list[tuned.Comparison]] = {}
    for each in chain.from_iterable(trainings):
        together.setdefault((each.against, each.asked.name, each.scorer), []).append(each)
    for (against, attribute, scorer), every in together.items():
        if against not in arm.against:
            continue
        mean = mean_change([each.change for each in every])
        other = arm.base_name if against == BEFORE else arm.control_name
        parts: dict[str, Any] = {}
        for measure, name in ((INDIVIDUAL, "individual"), (GROUP, "group")):
            about = {"model": arm.name, "attribute": attribute, "scorer": scorer, "against": against}
            (row,) = select(rows, **about, measure=measure, quantity=MEASURED)
            verdict = verdicts[other, f"{measure} of {attribute} by {scorer} ({tuned.BEYOND})"]
            limits = {"low": verdict.change_low, "high": verdict.change_high, "p": verdict.p}
            excess = replace(getattr(mean, f"{name}_excess"), **limits)
            parts[name] = replace(getattr(mean, name), low=row.low, high=row.high)
            parts[f"{name}_excess"] = excess
            shared = against == CONTROL and not verdict.fewer_controls
            reduction = getattr(mean, f"{name}_reduction")
            parts[f"{name}_reduction"] = widened_reduction(reduction, excess, shared=shared)
        yield replace(every[0], checkpoint=arm, change=replace(mean, **parts), n=min(each.n for each in every))


def _with_arm_rows(rows: Rows, models: Sequence[ModelInfo]) -> dict[str, list[Finding]]:
    """Return the tables of checkpoints with a row for each kind of training that was repeated."""
    own = {
        "mitigation": ("attribute", "scorer"),
        "change": ("attribute", "scorer", "against", "measure", "quantity"),
        "reduction": ("attribute", "scorer", "against", "measure"),
        "costs": ("against", "guard", "of", "by", "quantity"),
    }
    found = {
        name: with_arms(
            rows[name], models, by=by, line="method", logs=lambda row: row.labels.get("quantity") == tuned.RATIO
        )
        for name, by in own.items()
    }
    # models stay side by side, and a distance is not below 0
    places = {key: at for at, key in enumerate(dict.fromkeys(map(_side, rows["mitigation"])))}
    found["mitigation"] = [
        replace(row, low=float(np.maximum(row.low, 0.0)))
        for row in sorted(found["mitigation"], key=lambda row: places[_side(row)])
    ]
    return found


def _side(row: Finding) -> tuple[Any, ...]:
    return row.labels.get("base"), row.labels["attribute"], row.labels["scorer"]


def _retold(rows: Sequence[Finding], better: Sequence[Finding]) -> list[Finding]:
    """Return rows with the numbers of those that are about the same."""
    about = ("model", "attribute", "scorer", "against", "measure", "quantity")
    known = {tuple(each.labels.get(name) for name in about): each for each in better}
    found = []
    for row in rows:
        one = known.get(tuple(row.labels.get(name) for name in about))
        found.append(replace(one, labels={**row.labels, **one.labels}) if one else row)
    return found


# ---------------------------------------------------------------------------------------------------------
# Model by model


def _named(plan: Plan, way: str) -> ModelInfo:
    """Return the model under the name that its way to be asked has.

    Only the first way is compared with that of a checkpoint: the second would be taken for a model of its own.
    """
    if not way:
        return plan.model
    return replace(plan.model, name=name_of(plan, way), weights=f"{plan.model.weights} {way}", tuning={})


class _Collected:
    """What is found, model by model."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.rows: dict[str, list[Finding]] = {caption.name: [] for caption in CAPTIONS}
        self.notices: list[Notice] = []
        self.headlines: list[str] = []
        self.verdicts: list[Verdict] = []

    def add(self, **more: Iterable[Finding]) -> None:
        """Add rows to tables."""
        for name, found in more.items():
            self.rows[name] += found

    def add_scores(self, plan: Plan, records: Records) -> None:
        """Add what a classifier makes of the templates."""
        measured = measure_scores(plan, records)
        fairness = tables.fairness_rows(measured)
        found = words.verdicts_of(measured, fairness, said=words.said_of_scores)
        self.add(fairness=fairness)
        for one in measured:
            self._add_distances(one, every_pair=True)
        self.verdicts += found
        self.headlines += words.model_headlines(found, measured, self.rows)

    def add_texts(
        self, answers: ModelAnswers, measured: Sequence[AttributeMeasures], *, is_checkpoint: bool
    ) -> None:
        """Add what follows from the texts of a model."""
        fairness = tables.fairness_rows(measured)
        found = words.verdicts_of(measured, fairness)
        self.verdicts += found
        self.add(fairness=fairness, scorers=tables.scorer_rows(answers), relevance=tables.relevance_rows(answers))
        for one in measured:
            self._add_distances(one, every_pair=not is_checkpoint)
        self.add(
            perplexity=tables.perplexity_rows(answers),
            outputs=tables.output_rows(answers),
            words=tables.word_rows(answers, measured),
            texts=tables.text_rows(answers, measured),
            human_correlation=tables.correlation_rows(answers),
            human_fairness=tables.human_fairness_rows(answers),
        )
        self.notices += words.model_notices(answers)
        if not is_checkpoint:  # the report lists what changed in these
            self.notices += words.pair_notices(measured)
            self.headlines += words.model_headlines(found, measured, self.rows)

    def add_refusals(self, plan: Plan, records: Records, way: str) -> None:
        """Add for whom a chat model refuses, attribute by attribute: another one changes no verdict."""
        for attribute, asked in refusals_of(plan, records, way).items():
            rows = [
                replace(row, labels={**row.labels, "attribute": attribute})
                for row in refusal_rows([asked], seed=plan.seed)
            ]
            found = [
                replace(verdict, aspect=f"{attribute}, {verdict.aspect}")
                for verdict in refusal_verdicts(rows, audit=PROBE.name)
            ]
            self.add(refusals=rows)
            self.verdicts += found
            self.headlines += filter(None, map(refusal_headline, found))

    def _add_distances(self, one: AttributeMeasures, *, every_pair: bool) -> None:
        self.add(
            values=tables.value_rows(one),
            other_templates=tables.other_template_rows(one),
            pairs=tables.pair_rows(one),
            # twenty thousand rows of a model: of a checkpoint the change is what is asked about
            pair_templates=tables.pair_template_rows(one) if every_pair else (),
            subgroup_difference=tables.subgroup_difference_rows(one),
            subgroups=tables.subgroup_rows(one),
            templates=tables.template_rows(one),
            verdict=tables.verdict_rows(one, epsilon=self.options.epsilon),
            distributions=tables.distribution_rows(one),
        )


PROBE = Counterfactual()
