"""The counterfactual audit as the engine sees it, and how its findings are put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clinometer.data import load_card
from clinometer.probes.counterfactual import comparisons, tables, words
from clinometer.probes.counterfactual.answers import read_answers
from clinometer.probes.counterfactual.figures import CAPTIONS, figures
from clinometer.probes.counterfactual.measures import measure
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.questions import check_files, questions, stages
from clinometer.probes.kit import tables_of
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.types import Finding, Findings, Item, Profile, Verdict


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
    options: type[Options] = Options
    user_data: Mapping[str, str] = field(default_factory=dict)  # nothing from the user's data folder
    profiles: Mapping[Profile, Mapping[str, Any]] = field(
        default_factory=lambda: {
            "quick": {"samples": 8, "max_values": 4, "max_templates": 2, "similarity_samples": 8},
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
        return stages(plan)

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Iterator[Item]:
        """Yield the requests of a stage."""
        return questions(stage, plan, records)

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the texts of all models; the options are the same for all."""
        options: Options = plans[0].options
        models = [plan.model for plan in plans]
        answers = [read_answers(plan, records) for plan in plans]
        attributes = answers[0].attributes
        checkpoints = comparisons.checkpoints_of(models)
        rows: dict[str, list[Finding]] = {caption.name: [] for caption in CAPTIONS}
        notices = list(words.general_notices(plans, attributes))
        headlines: list[str] = []
        verdicts: list[Verdict] = []

        def add(**more: Iterable[Finding]) -> None:
            for name, found in more.items():
                rows[name] += found

        for number, each in enumerate(answers):
            is_checkpoint = any(checkpoint.model == number for checkpoint in checkpoints)
            measured = measure(each, single_pairs=not is_checkpoint)
            fairness = tables.fairness_rows(measured)
            found = words.verdicts_of(measured, fairness)
            verdicts += found
            add(fairness=fairness, scorers=tables.scorer_rows(each), relevance=tables.relevance_rows(each))
            for one in measured:
                add(
                    values=tables.value_rows(one),
                    other_templates=tables.other_template_rows(one),
                    pairs=tables.pair_rows(one),
                    # twenty thousand rows of a model: of a checkpoint the change is what is asked about
                    pair_templates=() if is_checkpoint else tables.pair_template_rows(one),
                    subgroup_difference=tables.subgroup_difference_rows(one),
                    subgroups=tables.subgroup_rows(one),
                    templates=tables.template_rows(one),
                    verdict=tables.verdict_rows(one, epsilon=options.epsilon),
                    distributions=tables.distribution_rows(one),
                )
            add(
                perplexity=tables.perplexity_rows(each),
                words=tables.word_rows(each, measured),
                texts=tables.text_rows(each, measured),
            )
            add(human_correlation=tables.correlation_rows(each), human_fairness=tables.human_fairness_rows(each))
            notices += words.model_notices(each)
            if not is_checkpoint:  # the report lists what changed in these
                notices += words.pair_notices(measured)
                headlines += words.model_headlines(found, measured, rows)
        results: list[words.CheckpointResults] = []
        for checkpoint in checkpoints:
            compared = list(comparisons.compare(checkpoint, answers))
            changes, costs = comparisons.change_rows(compared), list(comparisons.cost_rows(checkpoint, answers))
            add(change=changes, reduction=comparisons.reduction_rows(compared), costs=costs)
            for asked in checkpoint.shown_for(attributes):
                results.append(words.results_of(checkpoint, asked, compared, changes, costs))
        add(mitigation=comparisons.mitigation_rows(models, checkpoints, attributes, rows))
        add(weights=comparisons.weight_rows(models, checkpoints), human_agreement=tables.agreement_rows(options))
        notices += comparisons.checkpoint_notices(models, checkpoints, rows["costs"], draws=options.draws)
        notices += words.human_notices(options, answers)
        present = frozenset(name for name, found in rows.items() if found)
        bases = len({checkpoint.base for checkpoint in checkpoints})
        return Findings(
            probe=self.name,
            tables=tables_of((caption for caption in CAPTIONS if caption.name in present), rows),
            figures=figures(attributes, present, models=len(models), bases=bases),
            notices=tuple(notices),
            headlines=(*headlines, *words.checkpoint_headlines(results)),
            verdicts=tuple(verdicts),
        )


PROBE = Counterfactual()
