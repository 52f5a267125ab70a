"""The counterexamples audit as the engine sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from clinometer.data import load_card
from clinometer.probes.counterexamples.answers import ALL, FIRST_WORD, RESCORED, SAID, views
from clinometer.probes.counterexamples.figures import CAPTIONS, figures
from clinometer.probes.counterexamples.measures import BASE, WHOLE, measure
from clinometer.probes.counterexamples.options import Options
from clinometer.probes.counterexamples.questions import (
    DRAWN,
    check_phrasings,
    pools_of,
    questions,
    sample_backgrounds,
    stages,
)
from clinometer.probes.counterexamples.tables import CHANGE, PREFERENCE, STEREOTYPE, mitigation_rows, model_rows
from clinometer.probes.counterexamples.words import (
    FOLLOWS,
    change_headlines,
    headlines,
    notices,
    prompt_changes,
    prompt_headlines,
    verdicts,
)
from clinometer.probes.kit import select, tables_of
from clinometer.probes.kit.asking import ANSWER, BEFORE, FILL, NEXT_WORD, Units, gate_of
from clinometer.probes.kit.asking import DRAWN as DRAWN_ANSWERS
from clinometer.probes.kit.asking import RESCORED as BY_RESCORING
from clinometer.probes.kit.before_after import changes_of, with_changes
from clinometer.probes.kit.compare import Compared, compare_all
from clinometer.probes.kit.numbers import Cells, Label, cells_of
from clinometer.probes.kit.refusals import CAPTION as REFUSALS_CAPTION
from clinometer.probes.kit.refusals import refusal_figure, refusal_headline, refusal_rows, refusal_verdicts
from clinometer.probes.kit.trainings import as_concluded
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.types import ChangeVerdict, Finding, Findings, Item, ModelInfo, Profile

REFUSALS = REFUSALS_CAPTION.name


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
    capabilities: tuple[str, ...] = ("fill", "next_word", "rescore", "ask", "answer_word")
    roles: tuple[Role, ...] = ()
    options: type[Options] = Options
    user_data: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[Profile, Mapping[str, Any]] = field(
        default_factory=lambda: {
            "quick": {"backgrounds": 5, "candidates": 10, "chat_occupations": 12},
            "standard": {"backgrounds": 20, "candidates": 40},
            "paper": {"occupations": "winobias", "backgrounds": 20, "phrasings": 3, "answers": 100},
        }
    )

    @property
    def sources(self) -> str:
        """Where occupations, sentences and words come from."""
        return " ".join(load_card("counterexamples").source.split())

    def check(self, options: Options) -> None:
        """Read the user's files and make sure that there are enough backgrounds to draw from."""
        options.chosen_verbalizer()
        check_phrasings(options)
        occupations = options.chosen_occupations()
        pools = pools_of(occupations)
        for target in occupations:
            sample_backgrounds(target, pools, n=options.backgrounds, seed=0)

    def stages(self, plan: Plan) -> tuple[Stage, ...]:
        """Return what is asked, by what the model can do."""
        return stages(plan)

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Iterator[Item]:
        """Yield the questions of a stage."""
        return questions(stage, plan)

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the answers of all models; the options are the same for all."""
        options: Options = plans[0].options
        verbalizer = options.chosen_verbalizer()
        asked = [view for plan in plans for view in views(plan, records, verbalizer)]
        measured = [measure(answers, plan) for plan, answers in asked]
        by_model = [model_rows(each) for each in measured]
        rows = {name: [row for each in by_model for row in each[name]] for name in by_model[0]}
        # a change is one between answers to the same question: each way is compared with itself
        pairs: list[Compared] = []
        for way in dict.fromkeys(each.answers.way for each in measured):
            mine = [
                (plan, each) for (plan, _), each in zip(asked, measured, strict=True) if each.answers.way == way
            ]
            pairs += prompt_changes([plan for plan, _ in mine], [each for _, each in mine])
            for name, more in mitigation_rows([plan for plan, _ in mine], [each for _, each in mine]).items():
                rows[name] = rows.get(name, []) + more
        refused = [each.answers.refusals for each in measured if each.answers.refusals is not None]
        rows["refusals"] = refusal_rows(refused, seed=plans[0].seed)
        judged = [verdicts(*each) for each in zip(measured, by_model, strict=True)]
        said: list[str] = []
        for measures, of_model, of_verdicts in zip(measured, by_model, judged, strict=True):
            said += headlines(measures, of_model, of_verdicts)
        refusing = refusal_verdicts(rows["refusals"], audit=self.name)
        said += filter(None, map(refusal_headline, refusing))
        opens = next((each for each in measured if each.answers.offers), measured[0])
        shown = figures(options.ks[-1], opens.judged, evidence=self.stages(plans[0])[0].name)
        offered = opens.answers.offers  # else many tables have nothing to say
        found = Findings(
            probe=self.name,
            tables=tables_of(
                (each for each in CAPTIONS if rows[each.name] or (offered and each.name != REFUSALS)), rows
            ),
            figures=tuple(figure for figure in shown if offered or rows[figure.table])
            + ((refusal_figure(evidence=DRAWN),) if rows["refusals"] else ()),
            notices=tuple(notices([plan for plan, _ in asked], verbalizer, measured, by_model)),
            headlines=tuple(said),
            verdicts=(*(verdict for of_model in judged for verdict in of_model), *refusing),
        )
        models = [plan.model for plan in plans]
        changes = changes_of(self.compared, found, models)
        found = as_concluded(found, changes, _changed_row)
        prompts = [change.verdict for of_pair in compare_all(pairs) for change in of_pair]
        told = (*change_headlines(changes, models), *prompt_headlines(prompts))
        return with_changes(found, (*changes, *prompts), told)

    # only the base prompt is compared, which these do not touch
    compared_freely: frozenset[str] = frozenset(
        {"occupations", "chat_occupations", "backgrounds", "ks", "answers", "draws"}
    )

    def compared(self, findings: Findings, models: Sequence[ModelInfo]) -> Iterator[Units]:
        """Yield the occupations of each model, by what its conclusions rest on, then over the whole list."""
        rows = {table.name: table.rows for table in findings.tables}
        infos = {model.name: model for model in models}
        # the largest k comes last
        tops = {str(row.labels["model"]): f"top {row.labels['k']}" for row in rows.get("occupations", ())}
        views = {str(row.labels["model"]): str(row.labels["asked"]) for row in rows.get("asking", ())}
        for name, view in (views or dict.fromkeys(tops, "")).items():  # old runs do not say how they asked
            model = infos.get(name) or infos.get(name.removesuffix(" (blank)"))
            if model is None:
                continue
            of_words = FILL if "fill" in model.capabilities else NEXT_WORD
            way = {RESCORED: BY_RESCORING, FIRST_WORD: ANSWER, SAID: DRAWN_ANSWERS}.get(view, of_words)
            rests = [row.labels["counted"] for row in rows.get("conclusions", ()) if row.labels["model"] == name]
            counted = dict.fromkeys([*map(str, rests[:1]), WHOLE, *([tops[name]] if name in tops else [])])
            for question, of in product(_COMPARED, counted):
                cells = _cells(rows, name, question, of)
                own = [
                    row
                    for row in rows.get("conclusions", ())
                    if (row.labels["model"], row.labels["question"], row.labels["counted"]) == (name, question, of)
                ]
                yield Units(
                    model=name,
                    question=question,
                    measure=EXPECTED,
                    asked=way.name,
                    unit="occupation",
                    names=cells.names,
                    values=cells.values,
                    parts=cells.parts,
                    # female- and male-dominated occupations count alike, however many there are
                    weights={part: 1.0 / len(set(cells.parts)) for part in dict.fromkeys(cells.parts)},
                    more=_COMPARED[question].format("more"),
                    less=_COMPARED[question].format("less"),
                    same={"choice of words": of},
                    gate=gate_of(findings, name, question),
                    whole=own[0] if own else None,
                    changes=_changes(rows, name, of) if question == STEREOTYPE else {},
                )


EXPECTED = "expected gender"
_COMPARED = {  # question -> what a greater and a smaller distance mean
    STEREOTYPE: FOLLOWS,
    PREFERENCE: "prefers one gender {}, averaged over occupations,",
}


def _changed_row(verdict: ChangeVerdict) -> dict[str, Label]:
    """Return the labels of the row that a verdict on the stereotype is about: its top k, or the whole list."""
    if verdict.measure != f"{STEREOTYPE} ({EXPECTED})":
        return {}
    at: dict[str, Label] = {"base": verdict.before, "model": verdict.after, "measure": CHANGE}
    return at | {"prompt": BASE, "dominance": ALL}


def _changes(rows: Mapping[str, Sequence[Finding]], model: str, counted: str) -> dict[str, Finding]:
    """Return what a training changed at the base prompt since the model that it began with."""
    whole = counted == WHOLE
    at = {} if whole else {"k": int(counted.removeprefix("top "))}
    mine = select(rows.get("mitigation_whole_list" if whole else "mitigation", ()), model=model, measure=CHANGE)
    found = select(mine, prompt=BASE, dominance=ALL, **at)
    return {BEFORE: found[0]} if found else {}


def _cells(rows: Mapping[str, Sequence[Finding]], model: str, question: str, counted: str) -> Cells:
    """Return the lean (or gap) of each occupation, over the whole list or the top k words."""
    table, lean, gap = "occupations_whole_list", "", "gap"
    if counted != WHOLE:
        table, lean, gap = "occupations", "margin", ""
    label = lean if question == STEREOTYPE else gap
    at = str(counted).removeprefix("top ")
    return cells_of(
        [
            row
            for row in rows.get(table, ())
            if row.labels["model"] == model and (counted == WHOLE or str(row.labels["k"]) == at)
        ],
        unit="occupation",
        part="dominance",
        value=lambda row: float(row.labels[label]) if label else row.estimate,
    )


PROBE = Counterexamples()
