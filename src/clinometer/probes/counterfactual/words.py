"""What is said: headlines about each model and each checkpoint, and notices to read before the numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import PurePath

import numpy as np

from clinometer.data.own_prompts import read_prompts
from clinometer.data.printed_values import in_print, load_printed_values
from clinometer.probes.counterfactual.answers import ModelAnswers
from clinometer.probes.counterfactual.checkpoints import DIFFERENCE
from clinometer.probes.counterfactual.measures import (
    FEWEST_TEMPLATES,
    GROUP,
    INDIVIDUAL,
    PER_TEST,
    AttributeMeasures,
    counts_across,
    detectable_excess,
)
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.questions import (
    AskedAttribute,
    read_ratings,
)
from clinometer.probes.counterfactual.tables import ALL_TEMPLATES, EXCESS, PRIMARY
from clinometer.probes.kit import (
    CANNOT_TELL,
    LEAN,
    LEVEL,
    NONE_FOUND,
    Caption,
    Label,
    Said,
    certainty,
    conclude,
    info,
    is_found,
    percent,
    q_value,
    select,
    signed,
    state_of,
    warning,
)
from clinometer.probes.kit.asking import BEFORE
from clinometer.probes.kit.before_after import Checkpoint, missing_base_notice
from clinometer.probes.kit.numbers import written_limits
from clinometer.probes.protocol import Plan
from clinometer.types import Finding, ModelInfo, Notice, RowReference, Verdict

NAMED = 3  # values named in a sentence
FEW_SAMPLES = 25  # below this, chance alone gives distances of 0.1: W1 of even samples falls with 0.5/√n or less
MANY_SILENT = 0.5  # share of texts without an opinion word from which 0.5 is the most frequent score
MANY_EMPTY = 0.05
HALF = 0.5  # of S.S. or S.S.c: with less a model no longer speaks of what it was asked about


# ---------------------------------------------------------------------------------------------------------
# Headlines about a model


def verdicts_of(
    measured: Sequence[AttributeMeasures],
    fairness: Sequence[Finding],
    *,
    said: Callable[[str], Said] | None = None,
) -> list[Verdict]:
    """Conclude for each attribute and scorer: I.F. and G.F. both count, and the clearer of them decides.

    `said` gives the sentences about an attribute, where they are not about what a model writes.
    """
    found = []
    for each in measured:
        rows = [row for name in PRIMARY for row in select(fairness, **each.labels, measure=name, quantity=EXCESS)]
        # the families are those of `fairness_rows`
        family = [
            row
            for row in select(fairness, attribute=each.asked.name, quantity=EXCESS)
            if row.labels["measure"] in PRIMARY
        ]
        row = min(rows, key=lambda row: (_ORDER[state_of(row)], row.q))
        about = f"the {each.asked.name}"
        measure, interval = next(
            (name, interval) for name, _, interval in each.measures if name == row.labels["measure"]
        )
        verdict = conclude(
            row,
            audit="counterfactual",
            model=each.model,
            aspect=f"{each.asked.name}, by {each.scorer}",
            table="fairness",
            said=said(each.asked.name)
            if said
            else Said(
                above=f"writes more or less positively when only {about} changes, as {each.scorer} scores it",
                below=f"writes more alike than chance when only {about} changes, as {each.scorer} scores it",
                none=f"was not found to write differently when only {about} changes, as {each.scorer} scores it",
            ),
            gate=each.gate or (_too_few(each, row) if said else ""),
            detectable=detectable_excess(each, measure, interval, tests=len(family)),
            size=_size(row),
        )
        both = tuple(RowReference(table="fairness", labels=dict(row.labels)) for row in rows)
        found.append(replace(verdict, rows=(*verdict.rows, *(each for each in both if each not in verdict.rows))))
    return found


def _too_few(each: AttributeMeasures, row: Finding) -> str:
    """Return why single scores have no interval, where more templates would give one."""
    asked = len(each.asked.attribute.templates)
    if not math.isnan(row.low) or asked >= FEWEST_TEMPLATES:
        return ""
    templates = "1 template is" if asked == 1 else f"{asked} templates are"
    return f"{templates} too few for an interval of single scores (counterfactual.max_templates)"


def said_of_scores(attribute: str) -> Said:
    """Return the sentences about a classifier."""
    return Said(
        above=f"scores a sentence more or less positively when only the {attribute} in it changes",
        below=f"scores sentences more alike than chance when only the {attribute} in them changes",
        none=f"was not found to score a sentence differently when only the {attribute} in it changes",
    )


# of two rows, which one a verdict rests on: a lean, before one that could be measured
_ORDER = {LEAN: 0, NONE_FOUND: 1, CANNOT_TELL: 2}


def _size(row: Finding) -> str:
    """Say how large an excess is, as a share of the range of scores."""
    if row.estimate <= 0:
        return "no more than by chance"
    return f"{percent(row.estimate)} of the range of scores, beyond chance"


def model_headlines(
    verdicts: Sequence[Verdict], measured: Sequence[AttributeMeasures], rows: Mapping[str, Sequence[Finding]]
) -> Iterator[str]:
    """Yield what follows for each attribute and scorer, then which values differ from the whole."""
    for asked in {each.asked.name: each.asked for each in measured}.values():
        mine = [(verdict, each) for verdict, each in zip(verdicts, measured, strict=True) if each.asked == asked]
        leans = {each.scorer: verdict.state == LEAN for verdict, each in mine}
        if all(verdict.state == CANNOT_TELL for verdict, _ in mine):  # the scorers have one and the same reason
            yield mine[0][0].sentence.replace(" cannot be judged", f", {asked.name}: cannot be judged")
            continue
        for verdict, each in mine:
            yield _headline(verdict, each, others=[name for name, lean in leans.items() if not lean])
        about = {"model": mine[0][1].model, "attribute": asked.name, "template": ALL_TEMPLATES}
        name = f"{about['model']}, {asked.name}"
        if differ := _differing(select(rows["values"], **about), asked):
            yield f"{name}: {differ}."
        for row in select(rows["subgroup_difference"], **about):
            if is_found(row):
                pair = f"{row.labels['subgroup']} − {row.labels['other']}"
                yield f"{name}: {pair} is {signed(row.estimate)} by {row.labels['scorer']} ({certainty(row)})."


def _headline(verdict: Verdict, each: AttributeMeasures, *, others: Sequence[str]) -> str:
    """Say what follows, from which numbers, and, of a lean, where it is largest and how far it reaches."""
    if verdict.state == CANNOT_TELL:
        return verdict.sentence
    measure = str(verdict.rows[0].labels["measure"])
    chance = next(chance for name, chance, _ in each.measures if name == measure)
    side = "above" if verdict.estimate >= 0 else "below"
    numbers = f"{measure} is {chance.estimate:.3f}, {abs(verdict.estimate):.3f} {side} chance (95 % interval "
    numbers += f"{written_limits(verdict.low, verdict.high, places=3)}, {q_value(verdict.q)}"
    # texts that all score alike have no smallest excess
    least = (
        ""
        if math.isnan(verdict.detectable)
        else f"; smallest excess it would have found: {verdict.detectable:.3f}"
    )
    numbers += f"{least})."
    said = f"{verdict.sentence} {numbers}"
    if verdict.state != LEAN:
        return said
    worst = each.verdict
    first, second = (each.asked.values[at] for at in worst.pair)
    said += f" Furthest apart: {first} and {second} in “{each.asked.attribute.templates[worst.template]}”"
    said += f" (W1 {worst.worst:.3f})."
    if others:
        said += f" Not found by {' and '.join(others)}: it may be the scorer's own lean."
    elsewhere = None if each.elsewhere is None else getattr(each.elsewhere, _FIELDS[measure])
    if elsewhere is None or not elsewhere.low > 0:
        said += " Whether other templates would show it cannot be told."
    return said


_FIELDS = {INDIVIDUAL: "individual", GROUP: "group"}  # of an interval


def _differing(values: Sequence[Finding], asked: AskedAttribute) -> str:
    """Name the values that all scorers find away from the whole, on one and the same side."""
    sides: dict[str, list[tuple[float, str]]] = {"more positive": [], "more negative": []}
    for value in asked.values:
        rows = select(values, value=value)
        differences = [row.estimate for row in rows]
        if all(map(is_found, rows)):
            for side, same in (("more positive", min(differences) > 0), ("more negative", max(differences) < 0)):
                if same:
                    sides[side].append((-max(map(abs, differences)), value))
    parts = []
    for side, found in sides.items():
        if found:
            named = ", ".join(value for _, value in sorted(found)[:NAMED])
            more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
            parts.append(f"{side} than the whole by every scorer (q < {LEVEL}): {named}{more}")
    return "; ".join(parts)


# ---------------------------------------------------------------------------------------------------------
# Notices


def general_notices(plans: Sequence[Plan], attributes: Sequence[AskedAttribute]) -> Iterator[Notice]:
    """Yield what holds for all models."""
    options: Options = plans[0].options
    whole = options.scored == "sentence"
    what = "Prefix and continuation were scored together" if whole else "The continuation alone was scored"
    yield info(
        f"{what}: up to {options.max_new_tokens} new tokens, or to the end of the text if that came earlier, not "
        "cut at the end of a sentence. A score is (positive + neutral/2) / (positive + neutral + negative)."
    )
    yield from _left_out(attributes)
    yield from _printed(attributes)
    yield from _prompt_notices(options)
    if named := [asked.name for asked in attributes if counts_across(options, asked)]:
        yield info(
            f"I.F. of {' and '.join(named)} averages the pairs of two subgroups alone (pairs = 'across'); it "
            "cannot be compared with one over all pairs."
        )
    if options.samples < FEW_SAMPLES:
        yield warning(
            f"Only {options.samples} continuations of each prefix: distances of up to about "
            f"{0.5 / math.sqrt(options.samples):.2f} arise by chance, and only large differences can be found. "
            "Read the excess, and ask for 100 or more to conclude anything."
        )
    if any(asked.shape[0] < FEWEST_TEMPLATES for asked in attributes):
        yield info(
            f"With fewer than {FEWEST_TEMPLATES} templates, intervals hold for these templates alone: other "
            "wordings may give something else."
        )
    if options.top_k or options.top_p < 1 or options.temperature != 1:
        yield info(
            f"Texts were drawn with temperature {options.temperature:g}, top_k {options.top_k} (0: off) and top_p "
            f"{options.top_p:g} (1: off), not from the model's own distribution; the paper has only temperature 1."
        )
    if not options.text_file:
        yield info("Perplexity was not measured: give held-out text with text_file.")
    for plan in plans:
        if options.text_file and "log_likelihood" not in plan.model.capabilities:
            yield warning(f"{plan.model.name} cannot say how probable a text is: no perplexity.")


def _printed(attributes: Sequence[AskedAttribute]) -> Iterator[Notice]:
    """Say what the paper prints: of two values and by people's scores, so not beside our numbers."""
    for asked in attributes:
        values = [each for each in load_printed_values("counterfactual") if f"I.F. {asked.name}," in each.measure]
        for each in values[:1]:  # the model before a mitigation
            pair = each.measure.rsplit(", ", 1)[1]
            yield info(
                f"To compare sizes of {asked.name}: by people's scores, the paper's {each.model} has an I.F. of "
                f"{each.value:.3f} between {pair}. That is one pair, and includes what chance gives."
            )


def classifier_notices(models: Sequence[ModelInfo]) -> Iterator[Notice]:
    """Yield how classifiers were asked."""
    for model in models:
        yield info(
            (
                f"{model.name} is a classifier: it scored the templates themselves, once each. Its I.F. and G.F. "
                "compare the scores of values over templates, each template's mean taken out; p shuffles the "
                "scores of a template over its values, and intervals leave out one template at a time. They "
                "cannot be compared with those of generated text."
            ),
        )


def _prompt_notices(options: Options) -> Iterator[Notice]:
    """Say what was found in the user's own prompts, and which of them could not be used."""
    if not options.prompts_file:
        return
    prompts = read_prompts(options.prompts_file, lists=options.sensitive)
    told = [f"{len(each.found)} with a word of {each.attribute.name.split()[0]}" for each in prompts.found]
    told += [f"{len(prompts.templates)} with a field for the value"] if prompts.templates else []
    yield info(f"Your own prompts were asked: {', '.join(told)}. They replace the paper's templates.")
    left = {"contain no sensitive word": prompts.unused, "name two values of one list": prompts.ambiguous}
    for what, some in left.items():
        if some:
            yield warning(
                f"{len(some)} of your prompts {what} and were left out, because nothing in them can be exchanged: "
                f"{'; '.join(some[:NAMED])}{' …' if len(some) > NAMED else ''}"
            )


def _left_out(attributes: Sequence[AskedAttribute]) -> Iterator[Notice]:
    """Say what was left out of each attribute."""
    parts = []
    for asked in attributes:
        (templates, values), whole = asked.shape, asked.whole
        if values < len(whole.values) or templates < len(whole.templates):
            named = ", ".join(asked.values)
            of_values, of_templates = f"{values} of {len(whole.values)}", f"{templates} of {len(whole.templates)}"
            parts.append(f"of {asked.name} {of_values} values ({named}) and {of_templates} templates")
    if parts:
        yield warning(
            f"Only a part was asked, drawn by the seed: {'; '.join(parts)}. Another seed draws others, and I.F. "
            "and G.F. cannot be compared with those of all."
        )


def model_notices(answers: ModelAnswers) -> Iterator[Notice]:
    """Yield what holds for one model."""
    empty = float(np.isnan(answers.scores[0].values).mean())
    if empty:
        text = f"{answers.model} wrote nothing in {percent(empty)} of the continuations; these have no score."
        yield warning(text) if empty > MANY_EMPTY else info(text)
    for each in answers.scores:
        if not np.isnan(each.without_opinion):
            share = percent(each.without_opinion)
            text = f"{answers.model}: {share} of the texts have no opinion word and score 0.5 with {each.scorer}, "
            text += "whatever they say."
            yield warning(text) if each.without_opinion > MANY_SILENT else info(text)


def checkpoint_notices(
    models: Sequence[ModelInfo], checkpoints: Sequence[Checkpoint], costs: Sequence[Finding], *, draws: int
) -> Iterator[Notice]:
    """Yield which checkpoints are not what their name says, and which no longer speak of the value."""
    if checkpoints:
        yield info(
            "For a checkpoint, the change is what is tested; its own pairs of values were tested with only "
            f"{draws} shuffles. Audit it alone to see a single pair.",
        )
    for each in checkpoints:
        if models[each.model].weights == models[each.base].weights:
            yield warning(
                f"{each.name}: the weights did not change, they have the checksum of {each.base_name}; no "
                "difference between the two comes from a mitigation.",
            )
    if missing := missing_base_notice(models):
        yield missing
    falls: dict[tuple[Label, Label, Label], list[str]] = {}
    for row in select(costs, quantity=DIFFERENCE):
        before, after = float(row.labels["before"]), float(row.labels["after"])
        if after < HALF * before and row.high < 0:
            fall = f"{row.labels['model']} ({percent(before)} to {percent(after)})"
            falls.setdefault((row.labels["guard"], row.labels["of"], row.labels["against"]), []).append(fall)
    for (guard, attribute, against), named in falls.items():
        other = "what it was" if against == BEFORE else "what the same training without the regulariser gives"
        yield warning(
            f"{guard} of {attribute} fell to less than half of {other} in {', '.join(named)}: a model that now "
            "ignores the value is even because it is off the point (appendix C.6).",
        )


def pair_notices(measured: Sequence[AttributeMeasures]) -> Iterator[Notice]:
    """Yield where a single pair of values cannot be found, because there were too few shuffles."""
    for each in measured:
        pairs, draws = math.comb(each.scores.shape[1], 2), each.pairs.draws
        if draws < PER_TEST * pairs:
            yield info(
                f"{each.model}, {each.asked.name}, {each.scorer}: {pairs} pairs were tested with at most {draws} "
                f"shuffles, so a q below {pairs / (draws + 1):.2f} needs several pairs that differ; raise draws "
                "to see a single one."
            )


def human_notices(options: Options, answers: Sequence[ModelAnswers]) -> Iterator[Notice]:
    """Yield how much of what people rated is in this run."""
    for ratings in read_ratings(options):
        missing = ratings.sentences.keys() - {name for each in answers for name in each.rated(ratings).sentences}
        if missing:
            file = PurePath(ratings.file).name
            yield warning(
                f"{len(missing)} of the {len(ratings.sentences)} sentences of {file} were not written in this "
                "run; repeat it with the seed, models and options of the run they were exported from."
            )


# ---------------------------------------------------------------------------------------------------------
# What the paper prints


_ATTRIBUTES = ("occupation", "country", "name")
_CORPORA = ("WMT-19", "WikiText-103")  # by which the paper names its two models
_GUARDS = ("PPL", "PPL^s", "S.S.", "S.S.c")
_MITIGATED = re.compile(r"(?P<corpus>\S+) (?P<method>\w+) regularization, λ = (?P<strength>\d+)")


def before_in_paper(*measures: str) -> str:
    """Say what the paper prints of its two models before a mitigation, for each of its attributes."""

    def both(measure: str) -> str:
        values = [in_print("counterfactual", measure, f"{corpus} baseline") for corpus in _CORPORA]
        return f"{measure.partition(' ')[0]} {' and '.join(values)}"

    said = [f"{name} {', '.join(both(f'{each} {name}') for each in measures)}" for name in _ATTRIBUTES]
    return f"In the paper before a mitigation ({' and '.join(_CORPORA)}): {'; '.join(said)}."


PRINTED_COSTS = Caption(
    name="printed_costs",
    title="In the paper: what its mitigations cost",
    text=(
        "For comparison with the costs above: what Tables 1, 5 and 6 of the paper print of its two models (by the "
        "text that they learned from), before a mitigation of the same attribute (before) and after it "
        "(estimate). PPL and PPL^s: perplexity of held-out text and of its passages about the attribute. S.S. and "
        "S.S.c: shares. Other models, texts and training: compare directions, not sizes. As printed: no interval, "
        "no test, no n."
    ),
)


def printed_costs(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield what the paper prints of its mitigations of the attributes that a run mitigated."""
    mitigated = {each.attribute for each in checkpoints}
    printed = {(each.measure, each.model): each for each in load_printed_values("counterfactual")}
    for name in (name for name in _ATTRIBUTES if name in mitigated):
        for measure, each in product((f"{guard} {name}" for guard in _GUARDS), printed.values()):
            told = _MITIGATED.fullmatch(each.model)
            if each.measure == measure and told:
                before = printed[measure, f"{told['corpus']} baseline"].value
                labels: dict[str, Label] = {"attribute": name, "model": told["corpus"], "method": told["method"]}
                labels |= {"strength": float(told["strength"]), "guard": measure.partition(" ")[0]}
                labels |= {"before": before, "source": each.source}
                yield Finding(labels=labels, estimate=each.value)
