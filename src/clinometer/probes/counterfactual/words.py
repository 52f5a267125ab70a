"""What is said: headlines about each model and each checkpoint, and notices to read before the numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from clinometer.data.printed_values import load_printed_values
from clinometer.probes.counterfactual.answers import MENTIONS, SIMILAR, WHOLE, ModelAnswers
from clinometer.probes.counterfactual.comparisons import BEFORE, CONTROL, Checkpoint, Comparison
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
    PERPLEXITY,
    AskedAttribute,
    read_ratings,
)
from clinometer.probes.counterfactual.tables import ALL_TEMPLATES, EXCESS, PRIMARY
from clinometer.probes.kit import (
    CANNOT_TELL,
    LEAN,
    LEVEL,
    NONE_FOUND,
    Said,
    certainty,
    conclude,
    is_found,
    percent,
    q_value,
    select,
    signed,
    state_of,
    written,
)
from clinometer.probes.kit.words import NO_INTERVAL
from clinometer.probes.protocol import Plan
from clinometer.types import Finding, Notice, RowReference, Verdict

NAMED = 3  # values named in a sentence
FEW_CHECKPOINTS = 3  # of one model, which get a long sentence each: a control and two methods
FEW_SAMPLES = 25  # below this, chance alone gives distances of 0.1: W1 of even samples falls with 0.5/√n or less
MANY_SILENT = 0.5  # share of texts without an opinion word from which 0.5 is the most frequent score
MANY_EMPTY = 0.05

NO_CHANGE = "no measurable change"
LOWER, HIGHER, ALIKE, UNKNOWN = "is lower", "is higher", "is not measurably different", "could not be compared"


# ---------------------------------------------------------------------------------------------------------
# Headlines about a model


def verdicts_of(measured: Sequence[AttributeMeasures], fairness: Sequence[Finding]) -> list[Verdict]:
    """Conclude for each attribute and scorer: I.F. and G.F. both count, and the clearer of them decides."""
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
            said=Said(
                above=f"writes more or less positively when only {about} changes, as {each.scorer} scores it",
                below=f"writes more alike than chance when only {about} changes, as {each.scorer} scores it",
                none=f"was not found to write differently when only {about} changes, as {each.scorer} scores it",
            ),
            gate=each.gate,
            detectable=detectable_excess(each, measure, interval, tests=len(family)),
            size=_size(row, each.asked.name),
        )
        both = tuple(RowReference(table="fairness", labels=dict(row.labels)) for row in rows)
        found.append(replace(verdict, rows=(*verdict.rows, *(each for each in both if each not in verdict.rows))))
    return found


# of two rows, which one a verdict rests on: a lean, before one that could be measured
_ORDER = {LEAN: 0, NONE_FOUND: 1, CANNOT_TELL: 2}


def _size(row: Finding, attribute: str) -> str:
    """Say how large an excess is: as a share of the range of scores, and beside what the paper prints."""
    said = f"{percent(max(row.estimate, 0.0))} of the range of scores, beyond chance"
    printed = [each for each in load_printed_values("counterfactual") if f"I.F. {attribute}," in each.measure]
    for each in printed[:1]:  # the model before a mitigation
        pair = each.measure.rsplit(", ", 1)[1]
        said += f"; by people's scores, the paper's {each.model} has {each.value:.3f} between {pair}"
    return said


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
    numbers += f"{_limits(verdict.low, verdict.high, places=3)}, {q_value(verdict.q)}; "
    numbers += f"smallest excess it would have found: {verdict.detectable:.3f})."
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


def _limits(low: float, high: float, *, places: int = 0) -> str:
    return NO_INTERVAL if math.isnan(low) else f"{written(low, places)} to {written(high, places)}"


# ---------------------------------------------------------------------------------------------------------
# Headlines about checkpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointResults:
    """What is known of one checkpoint about one attribute."""

    checkpoint: Checkpoint
    attribute: str
    comparisons: Sequence[Comparison]  # with the model before, by each scorer
    tests: Sequence[Finding]  # rows of the change table: excess of I.F.
    costs: Sequence[Finding]  # rows of the costs table

    @property
    def strength(self) -> str:
        """λ as it is printed."""
        strength = self.checkpoint.strength
        return f"{strength:g}" if isinstance(strength, float) else str(strength)

    @property
    def training(self) -> str:
        """The method, and its strength where the checkpoint was mitigated."""
        method = self.checkpoint.method
        return f"{method}, λ = {self.strength}" if self.checkpoint.attribute else method

    def tested(self, against: str) -> dict[str, Finding]:
        """Return for each scorer whether the excess differs from the other model's."""
        return {str(test.labels["scorer"]): test for test in select(self.tests, against=against)}

    def verdicts(self, against: str) -> dict[str, str]:
        """Say for each scorer whether I.F. is lower than the other model's."""
        return {scorer: _verdict(test) for scorer, test in self.tested(against).items()}


def results_of(
    checkpoint: Checkpoint,
    asked: AskedAttribute,
    comparisons: Sequence[Comparison],
    changes: Sequence[Finding],
    costs: Sequence[Finding],
) -> CheckpointResults:
    """Choose what is about one attribute from all that is known of a checkpoint."""
    return CheckpointResults(
        checkpoint=checkpoint,
        attribute=asked.name,
        comparisons=[each for each in comparisons if each.asked == asked and each.against == BEFORE],
        tests=select(changes, attribute=asked.name, measure=INDIVIDUAL, quantity=EXCESS),
        costs=costs,
    )


def checkpoint_headlines(results: Sequence[CheckpointResults]) -> Iterator[str]:
    """Yield a sentence for each checkpoint; if one model has many, short ones after an overview of them."""
    groups: dict[tuple[int, str], list[CheckpointResults]] = {}
    for each in results:
        groups.setdefault((each.checkpoint.base, each.attribute), []).append(each)
    for group in groups.values():
        if len(group) > FEW_CHECKPOINTS:
            yield overview(group)
            yield from map(_short_headline, group)
        else:
            yield from map(_long_headline, group)


_RESULTS = {
    "every": "Lower than the control's by every scorer",
    "some": "Lower than the control's by some scorers only",
    "higher": "Higher than the control's by some scorer",
    "alike": "Not measurably different from the control's",
    "unknown": "Could not be compared with the control",
    "": "Without a control",
}


def overview(results: Sequence[CheckpointResults]) -> str:
    """Count the checkpoints with less I.F. than before, and name those with less than their control."""
    controls = [each for each in results if each.checkpoint.method == CONTROL]
    others = [each for each in results if each.checkpoint.method != CONTROL]
    mitigated = [each for each in others if each.checkpoint.attribute]
    counts = [
        f"{[_over_scorers(each, BEFORE) for each in some].count('every')} of {len(some)} {name}"
        for name, some in (("checkpoints", mitigated or others), ("controls", controls))
        if some
    ]
    base = results[0].checkpoint.base_name
    said = f"{base}, {results[0].attribute}: I.F. is measurably lower than before by every scorer in "
    said += " and in ".join(counts)
    for how, words in _RESULTS.items() if controls else ():
        if some := [each for each in mitigated if _over_scorers(each, CONTROL) == how]:
            said += f". {words}: {_names(some)}"
    return f"{said}."


def _over_scorers(result: CheckpointResults, against: str) -> str:
    """Sum up what all scorers say about I.F. and the other model's; "" where there is no such model."""
    verdicts = set(result.verdicts(against).values())
    if not verdicts:
        return ""
    if LOWER in verdicts:
        return "every" if verdicts == {LOWER} else "some"
    if HIGHER in verdicts:
        return "higher"
    return "unknown" if verdicts == {UNKNOWN} else "alike"


def _names(results: Sequence[CheckpointResults]) -> str:
    """Name checkpoints by method and strengths; where that fits several of them, by their names."""
    if len({each.training for each in results}) < len(results):
        return "; ".join(each.checkpoint.name for each in results)
    by_method = itertools.groupby(results, key=lambda each: each.checkpoint.method)
    return "; ".join(f"{method}, λ = {', '.join(each.strength for each in some)}" for method, some in by_method)


def _long_headline(result: CheckpointResults) -> str:
    """Say how I.F. changed by every scorer, against before and against the control, and what that cost.

    The control separates what the method did from what training did, in the costs as well: training alone may hide
    them.
    """
    tested = result.tested(BEFORE)
    parts = [f"by {each.scorer} {_change(each, tested[each.scorer])}" for each in result.comparisons]
    said = f"{_name(result)}: I.F. {'; '.join([*parts, *_costs(result, BEFORE)])}."
    if verdicts := result.verdicts(CONTROL):
        parts = [f"I.F. {_by_verdict(verdicts)}", *_costs(result, CONTROL)]
        said += f" Compared with the same training without the regulariser: {'; '.join(parts)}."
    return said


def _short_headline(result: CheckpointResults) -> str:
    """Say what percentage is gone, and what it costs against the control; against before where there is none."""
    tested = result.tested(BEFORE)
    parts = [
        f"{_short_change(each, tested[each.scorer])} according to {each.scorer}" for each in result.comparisons
    ]
    said = f"{_name(result)}: excess of I.F. {', '.join(parts)}"
    if verdicts := result.verdicts(CONTROL):
        parts = [_by_verdict(verdicts), *_costs(result, CONTROL)]
        return f"{said}. Compared with the control, I.F. {'; '.join(parts)}."
    return f"{'; '.join([said, *_costs(result, BEFORE)])}."


def _name(result: CheckpointResults) -> str:
    return f"{result.training} ({result.checkpoint.name}), {result.attribute}"


def _change(each: Comparison, test: Finding) -> str:
    found = each.change
    values = f"{written(found.individual.before, 3)} to {written(found.individual.after, 3)}"
    excess = found.individual_excess
    if math.isnan(excess.low):
        return f"{values}, without an interval"
    q = "" if math.isnan(test.q) else f", {q_value(test.q)}"
    verb, share, limits = _percent(each, test)
    if math.isnan(share):  # there may have been no excess before
        limits = _limits(excess.low, excess.high, places=3)
        return f"{verb or NO_CHANGE}, {values} (95 % interval of the change of its excess {limits}{q})"
    if verb:
        return f"{verb} by {share:.0f} % of its excess ({limits}{q}), {values}"
    return f"{NO_CHANGE}, {values} ({limits} of its excess removed{q})"


def _short_change(each: Comparison, test: Finding) -> str:
    excess = each.change.individual_excess
    if math.isnan(excess.low):
        return UNKNOWN
    verb, share, limits = _percent(each, test)
    if math.isnan(share):
        return f"{verb or NO_CHANGE} (95 % interval of the change {_limits(excess.low, excess.high, places=3)})"
    return f"{verb} by {share:.0f} % ({limits})" if verb else f"{NO_CHANGE} ({limits} removed)"


def _percent(each: Comparison, test: Finding) -> tuple[str, float, str]:
    """Return "reduced", "increased" or, where nothing is measurable, ""; by how much; and its interval."""
    found = each.change.individual_reduction
    share, low, high = (100 * number for number in (found.share, found.low, found.high))
    verb = {LOWER: "reduced", HIGHER: "increased"}.get(_verdict(test), "")
    if verb == "increased":
        share, low, high = -share, -high, -low
    return verb, share, f"95 % interval {_limits(low, high)} %"


def _verdict(test: Finding) -> str:
    if math.isnan(test.low):
        return UNKNOWN
    if not is_found(test):
        return ALIKE
    return LOWER if test.high < 0 else HIGHER


def _by_verdict(verdicts: Mapping[str, str]) -> str:
    """Name the scorers by which the checkpoint lies below its control, above it, or neither."""
    scorers: dict[str, list[str]] = {}
    for scorer, verdict in verdicts.items():
        scorers.setdefault(verdict, []).append(scorer)
    return ", ".join(f"{verdict} according to {' and '.join(names)}" for verdict, names in scorers.items())


def _costs(result: CheckpointResults, against: str) -> Iterator[str]:
    costs = select(result.costs, against=against)
    for row in select(costs, guard=PERPLEXITY, of=WHOLE):
        yield f"{PERPLEXITY} {_cost(row, less=1.0, unit='%')}"
    for guard in (SIMILAR, MENTIONS):
        for row in select(costs, guard=guard, of=result.attribute)[:1]:  # of the first encoder
            yield f"{guard} {_cost(row, less=0.0, unit='points')}"


def _cost(row: Finding, *, less: float, unit: str) -> str:
    if math.isnan(row.estimate):
        return "not measured"
    estimate, low, high = (100 * (number - less) for number in (row.estimate, row.low, row.high))
    return f"{signed(estimate, 1)} {unit} ({_limits(low, high, places=1)})"


# ---------------------------------------------------------------------------------------------------------
# Notices


def general_notices(plans: Sequence[Plan], attributes: Sequence[AskedAttribute]) -> Iterator[Notice]:
    """Yield what holds for all models."""
    options: Options = plans[0].options
    whole = options.scored == "sentence"
    what = "Prefix and continuation were scored together" if whole else "The continuation alone was scored"
    yield _info(
        f"{what}: up to {options.max_new_tokens} new tokens, or to the end of the text if that came earlier, not "
        "cut at the end of a sentence. A score is (positive + neutral/2) / (positive + neutral + negative)."
    )
    yield from _left_out(attributes)
    if named := [asked.name for asked in attributes if counts_across(options, asked)]:
        yield _info(
            f"I.F. of {' and '.join(named)} averages the pairs of two subgroups alone (pairs = 'across'); it "
            "cannot be compared with one over all pairs."
        )
    if options.samples < FEW_SAMPLES:
        yield _warning(
            f"Only {options.samples} continuations of each prefix: distances of up to about "
            f"{0.5 / math.sqrt(options.samples):.2f} arise by chance, and only large differences can be found. "
            "Read the excess, and ask for 100 or more to conclude anything."
        )
    if any(asked.shape[0] < FEWEST_TEMPLATES for asked in attributes):
        yield _info(
            f"With fewer than {FEWEST_TEMPLATES} templates, intervals hold for these templates alone: other "
            "wordings may give something else."
        )
    if options.top_k or options.top_p < 1 or options.temperature != 1:
        yield _info(
            f"Texts were drawn with temperature {options.temperature:g}, top_k {options.top_k} (0: off) and top_p "
            f"{options.top_p:g} (1: off), not from the model's own distribution; the paper has only temperature 1."
        )
    if not options.text_file:
        yield _info("Perplexity was not measured: give held-out text with text_file.")
    for plan in plans:
        if options.text_file and "log_likelihood" not in plan.model.capabilities:
            yield _warning(f"{plan.model.name} cannot say how probable a text is: no perplexity.")


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
        yield _warning(
            f"Only a part was asked, drawn by the seed: {'; '.join(parts)}. Another seed draws others, and I.F. "
            "and G.F. cannot be compared with those of all."
        )


def model_notices(answers: ModelAnswers) -> Iterator[Notice]:
    """Yield what holds for one model."""
    empty = float(np.isnan(answers.scores[0].values).mean())
    if empty:
        text = f"{answers.model} wrote nothing in {percent(empty)} of the continuations; these have no score."
        yield _warning(text) if empty > MANY_EMPTY else _info(text)
    for each in answers.scores:
        if not np.isnan(each.without_opinion):
            share = percent(each.without_opinion)
            text = f"{answers.model}: {share} of the texts have no opinion word and score 0.5 with {each.scorer}, "
            text += "whatever they say."
            yield _warning(text) if each.without_opinion > MANY_SILENT else _info(text)


def pair_notices(measured: Sequence[AttributeMeasures]) -> Iterator[Notice]:
    """Yield where a single pair of values cannot be found, because there were too few shuffles."""
    for each in measured:
        pairs, draws = math.comb(each.scores.shape[1], 2), each.pairs.draws
        if draws < PER_TEST * pairs:
            yield _info(
                f"{each.model}, {each.asked.name}, {each.scorer}: {pairs} pairs were tested with {draws} "
                f"shuffles, so a q below {pairs / (draws + 1):.2f} needs several pairs that differ; raise draws "
                "to see a single one."
            )


def human_notices(options: Options, answers: Sequence[ModelAnswers]) -> Iterator[Notice]:
    """Yield how much of what people rated is in this run."""
    for ratings in read_ratings(options):
        missing = ratings.sentences.keys() - {name for each in answers for name in each.rated(ratings).sentences}
        if missing:
            file = PurePath(ratings.file).name
            yield _warning(
                f"{len(missing)} of the {len(ratings.sentences)} sentences of {file} were not written in this "
                "run; repeat it with the seed, models and options of the run they were exported from."
            )


def _info(text: str) -> Notice:
    return Notice(level="info", text=text)


def _warning(text: str) -> Notice:
    return Notice(level="warning", text=text)
