"""Before and after: a checkpoint, the model it began with, its control; what changed, and what is said of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clinometer.metrics import Change, PairedChange, Reduction, paired_change
from clinometer.probes.counterfactual.answers import (
    MENTIONS,
    SIMILAR,
    WHOLE,
    ModelAnswers,
    off_topic,
    passages_about,
)
from clinometer.probes.counterfactual.measures import (
    GROUP,
    INDIVIDUAL,
    Cost,
    counts_across,
    left_out,
    perplexity_cost,
    relevance_cost,
)
from clinometer.probes.counterfactual.questions import PERPLEXITY, AskedAttribute
from clinometer.probes.counterfactual.tables import ALL_VALUES, EXCESS, MEASURED, Rows, row_of
from clinometer.probes.kit import Label, model_rng, q_value, select, signed, with_q, written
from clinometer.probes.kit.asking import BEFORE, CONTROL
from clinometer.probes.kit.before_after import AS_GIVEN, FEWER_CONTROLS, Checkpoint
from clinometer.probes.kit.numbers import ABSENT, written_limits
from clinometer.probes.kit.verdicts import BETTER, UNTOLD, WORSE
from clinometer.probes.kit.verdicts import NO_CHANGE as UNCHANGED
from clinometer.types import ChangeState, ChangeVerdict, Finding, ModelInfo

RATIO, DIFFERENCE = "after / before", "after − before"
SIMILAR_PERCENT, MENTIONS_PERCENT = f"{SIMILAR} %", f"{MENTIONS} %"  # as the paper prints them
FEW_CHECKPOINTS = 3  # of one model, which get a long sentence each: a control and two methods

NO_CHANGE = "no measurable change"
LOWER, HIGHER, ALIKE, UNKNOWN = "is lower", "is higher", "is not measurably different", "could not be compared"
_WORDS: Mapping[ChangeState, str] = {BETTER: LOWER, WORSE: HIGHER, UNCHANGED: ALIKE, UNTOLD: UNKNOWN}
BEYOND = "beyond chance"  # how I.F. and G.F. are measured where models are compared


def shown_for(checkpoint: Checkpoint, attributes: Sequence[AskedAttribute]) -> tuple[AskedAttribute, ...]:
    """Return the attributes that its results are about: its own, or all where that was not asked about."""
    own = tuple(asked for asked in attributes if asked.name == checkpoint.attribute)
    return own or tuple(attributes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One checkpoint and one other model, on the same prompts with the same seeds: one attribute, one scorer."""

    checkpoint: Checkpoint
    against: str
    asked: AskedAttribute
    scorer: str
    change: PairedChange
    n: int  # texts of both

    @property
    def labels(self) -> dict[str, Label]:
        """What the tables of changes begin with."""
        about: dict[str, Label] = {"attribute": self.asked.name, "scorer": self.scorer, "against": self.against}
        return self.checkpoint.labels | about

    @property
    def measures(self) -> tuple[tuple[str, Change, Change, Reduction], ...]:
        """The name of each measure, its change as measured and of the excess, and how much of that is gone."""
        found = self.change
        return (
            (INDIVIDUAL, found.individual, found.individual_excess, found.individual_reduction),
            (GROUP, found.group, found.group_excess, found.group_reduction),
        )


def compare(checkpoint: Checkpoint, answers: Sequence[ModelAnswers]) -> Iterator[Comparison]:
    """Compare a checkpoint with its base, and with its control if there is one."""
    new = answers[checkpoint.model]
    for against, number in checkpoint.against.items():
        for asked in new.attributes:
            for old_scores, new_scores in zip(answers[number].scores, new.scores, strict=True):
                before, after = old_scores.of(asked), new_scores.of(asked)
                subgroups = asked.attribute.value_subgroups
                change = paired_change(
                    before,
                    after,
                    subgroups=subgroups,
                    across=counts_across(new.options, asked),
                    over=left_out(before),
                )
                if any(off_topic(each.relevance, asked) for each in (answers[number], new)):
                    change = _unjudged(change)
                yield Comparison(
                    checkpoint=checkpoint,
                    against=against,
                    asked=asked,
                    scorer=new_scores.scorer,
                    change=change,
                    n=int((~np.isnan(before)).sum() + (~np.isnan(after)).sum()),
                )


def _unjudged(change: PairedChange) -> PairedChange:
    """Take intervals and p away: a model that writes about something else has not become even."""
    unknown = {"low": math.nan, "high": math.nan, "p": math.nan}
    nothing = Reduction(share=math.nan, low=math.nan, high=math.nan)
    return PairedChange(
        individual=replace(change.individual, **unknown),
        group=replace(change.group, **unknown),
        individual_excess=replace(change.individual_excess, **unknown),
        group_excess=replace(change.group_excess, **unknown),
        individual_reduction=nothing,
        group_reduction=nothing,
    )


# ---------------------------------------------------------------------------------------------------------
# Tables


def change_rows(comparisons: Sequence[Comparison]) -> list[Finding]:
    """Return after − before of every measure of one checkpoint.

    q is over its excess rows against one model: whether something changed, and whether the method did that, are
    two questions, and what is found of one must not lower the bar of the other.
    """

    def rows(against: str) -> Iterator[Finding]:
        for each in comparisons:
            for measure, whole, excess, reduction in each.measures if each.against == against else ():
                # the p-value of the excess alone is corrected: that of the measured value asks the same again
                for quantity, found, reduced_by, p in (
                    (MEASURED, whole, math.nan, math.nan),
                    (EXCESS, excess, 100 * reduction.share, excess.p),
                ):
                    labels = {
                        **each.labels,
                        "measure": measure,
                        "quantity": quantity,
                        "before": round(found.before, 4),
                        "after": round(found.after, 4),
                        "reduced_by": round(reduced_by, 1),
                    }
                    yield row_of(labels, found.change, found.low, found.high, p=p, n=each.n)

    return [
        row for against in dict.fromkeys(each.against for each in comparisons) for row in with_q(rows(against))
    ]


def reduction_rows(comparisons: Sequence[Comparison]) -> Iterator[Finding]:
    """Yield how much of the excess before is gone, in percent."""
    for each in comparisons:
        for measure, _, excess, found in each.measures:
            labels = {
                **each.labels,
                "measure": measure,
                "excess_before": round(excess.before, 4),
                "excess_after": round(excess.after, 4),
            }
            yield row_of(labels, 100 * found.share, 100 * found.low, 100 * found.high, n=each.n)


def cost_rows(checkpoint: Checkpoint, answers: Sequence[ModelAnswers]) -> Iterator[Finding]:
    """Yield the ratio of perplexities and the differences of S.S. and S.S.c of one checkpoint."""

    def row(cost: Cost, against: str, guard: str, of: str, by: str, quantity: str) -> Finding:
        about = {"against": against, "guard": guard, "of": of, "by": by, "quantity": quantity}
        values = {"before": round(cost.before, 4), "after": round(cost.after, 4)}
        labels = {**checkpoint.labels, **about, **values}
        return row_of(labels, cost.estimate, cost.low, cost.high, p=cost.p, n=cost.n)

    new = answers[checkpoint.model]
    draws = new.options.draws
    for against, number in checkpoint.against.items():
        old = answers[number]
        rng = model_rng(new.seed, f"{new.model}\0costs\0{against}")
        if old.passages is not None and new.passages is not None:
            for part in new.passages.parts:
                cost = perplexity_cost(old.passages, new.passages, part, rng=rng, draws=draws)
                yield row(cost, against, PERPLEXITY, part, "passages", RATIO)
        for before, after in zip(old.relevance, new.relevance, strict=True):
            cost = relevance_cost(before, after, rng=rng, draws=draws)
            yield row(cost, against, after.measure, after.asked.name, after.by, DIFFERENCE)


def mitigation_rows(
    models: Sequence[ModelInfo],
    checkpoints: Sequence[Checkpoint],
    attributes: Sequence[AskedAttribute],
    rows: Rows,
) -> Iterator[Finding]:
    """Yield a row for each model, attribute and scorer: what was given first, then method by method, λ by λ."""
    scorers = dict.fromkeys(str(row.labels["scorer"]) for row in rows["fairness"])
    numbered = all(isinstance(each.strength, float) for each in checkpoints)
    given: dict[str, Label] = {"method": AS_GIVEN, "strength": math.nan if numbered else ABSENT}
    bases = dict.fromkeys(each.base for each in checkpoints)
    for base in bases:
        which = {"base": models[base].name} if len(bases) > 1 else {}
        for asked in attributes:
            mine = [each for each in checkpoints if each.base == base and asked in shown_for(each, attributes)]
            shown = [(models[base].name, given)] if mine else []
            shown += [(each.name, {"method": each.method, "strength": each.strength}) for each in mine]
            for scorer in scorers:
                for name, how in shown:
                    yield _side_by_side(name, {**how, **which}, asked.name, scorer, rows)


def _side_by_side(model: str, how: dict[str, Label], attribute: str, scorer: str, rows: Rows) -> Finding:
    about = {"model": model, "attribute": attribute}
    found = {
        (row.labels["measure"], row.labels["quantity"]): row
        for row in select(rows["fairness"], **about, scorer=scorer)
    }
    whole = found[INDIVIDUAL, MEASURED]
    # the long name at the end, so that the table begins with what is compared
    labels: dict[str, Label] = {**how, "attribute": attribute, "scorer": scorer}
    labels[INDIVIDUAL] = round(whole.estimate, 4)
    if rows["perplexity"]:
        of_part = {row.labels["part"]: row.estimate for row in select(rows["perplexity"], model=model)}
        for name, part in (("PPL", WHOLE), ("PPL^s", passages_about(attribute))):
            labels[name] = round(of_part.get(part, math.nan), 2)
    for row in select(rows["relevance"], **about, value=ALL_VALUES):
        name = SIMILAR_PERCENT if row.labels["measure"] == SIMILAR else MENTIONS_PERCENT
        another = f"{SIMILAR} % ({row.labels['by']})"  # by a second encoder
        labels[another if name in labels else name] = round(100 * row.estimate, 2)
    labels[GROUP] = round(found[GROUP, MEASURED].estimate, 4)
    labels[EXCESS] = round(found[INDIVIDUAL, EXCESS].estimate, 4)
    return row_of({**labels, "model": model}, whole.estimate, whole.low, whole.high, n=whole.n)


# ---------------------------------------------------------------------------------------------------------
# Headlines


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointResults:
    """What is known of one checkpoint about one attribute."""

    checkpoint: Checkpoint
    attribute: str
    comparisons: Sequence[Comparison]  # with the model before, by each scorer
    changes: Sequence[ChangeVerdict]  # of the excess of I.F., against the model before and against its control
    costs: Sequence[Finding]  # rows of the costs table

    @property
    def trainings(self) -> int:
        """How many trainings it is the mean of."""
        return max((1, *(len(each.trainings) for each in self.changes)))

    @property
    def strength(self) -> str:
        """λ as it is printed."""
        strength = self.checkpoint.strength
        return f"{strength:g}" if isinstance(strength, float) else str(strength)

    @property
    def training(self) -> str:
        """The method, and its strength where the checkpoint was mitigated with one."""
        method, strength = self.checkpoint.method, self.checkpoint.strength
        none = isinstance(strength, float) and math.isnan(strength)
        return f"{method}, λ = {self.strength}" if self.checkpoint.attribute and not none else method

    def tested(self, against: str) -> dict[str, ChangeVerdict]:
        """Return for each scorer what follows from the excess beside the other model's."""
        other = self.checkpoint.base_name if against == BEFORE else self.checkpoint.control_name
        start = f"{INDIVIDUAL} of {self.attribute} by "
        return {
            each.measure.removeprefix(start).removesuffix(f" ({BEYOND})"): each
            for each in self.changes
            if each.measure.startswith(start) and each.before == other
        }

    def verdicts(self, against: str) -> dict[str, str]:
        """Say for each scorer whether I.F. is lower than the other model's."""
        return {scorer: _WORDS[change.state] for scorer, change in self.tested(against).items()}


def results_of(
    checkpoint: Checkpoint,
    asked: AskedAttribute,
    comparisons: Sequence[Comparison],
    changes: Sequence[ChangeVerdict],
    costs: Sequence[Finding],
) -> CheckpointResults:
    """Choose what is about one attribute from all that is known of a checkpoint."""
    return CheckpointResults(
        checkpoint=checkpoint,
        attribute=asked.name,
        comparisons=[each for each in comparisons if each.asked == asked and each.against == BEFORE],
        changes=[each for each in changes if each.after == checkpoint.name],
        costs=costs,
    )


def checkpoint_headlines(results: Sequence[CheckpointResults]) -> Iterator[str]:
    """Yield a sentence for each checkpoint; if one model has many, short ones after an overview of them."""
    groups: dict[tuple[int, str], list[CheckpointResults]] = {}
    for each in results:
        groups.setdefault((each.checkpoint.base, each.attribute), []).append(each)
    for group in groups.values():
        if len(group) > FEW_CHECKPOINTS:
            yield f"{overview(group)} {_noise(group)}"
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


def _noise(results: Sequence[CheckpointResults]) -> str:
    """Say whether what another seed would change is in the intervals."""
    numbers = sorted({each.trainings for each in results})
    each = " each" if len(results) > 1 else ""
    if numbers == [1]:
        return f"One training{each}: intervals leave out what another seed would change."
    if 1 not in numbers:
        count = " to ".join(dict.fromkeys((str(numbers[0]), str(numbers[-1]))))
        said = f"Means of {count} trainings{each}; intervals hold what differs between them"
        fewer = any(change.fewer_controls for each in results for change in each.tested(CONTROL).values())
        return f"{said}; {FEWER_CONTROLS}." if fewer else f"{said}."
    return "Intervals of one training leave out what another seed would change; those of several hold it."


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
    named = []
    for _, group in itertools.groupby(results, key=lambda each: each.checkpoint.method):
        first, *more = group
        named.append(", ".join([first.training, *(each.strength for each in more)]))
    return "; ".join(named)


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
    return f"{said} {_noise([result])}"


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


def _change(each: Comparison, test: ChangeVerdict) -> str:
    found = each.change
    values = f"{written(found.individual.before, 3)} to {written(found.individual.after, 3)}"
    excess = found.individual_excess
    if math.isnan(excess.low):
        return f"{values}, without an interval"
    if test.state == UNTOLD:
        return f"{values}, {UNKNOWN} ({test.reason})"
    q = "" if math.isnan(test.q) else f", {q_value(test.q)}"
    verb, share, limits = _percent(each, test)
    if math.isnan(share):  # there may have been no excess before
        limits = written_limits(excess.low, excess.high, places=3)
        return f"{verb or NO_CHANGE}, {values} (95 % interval of the change of its excess {limits}{q})"
    if verb:
        return f"{verb} by {share:.0f} % of its excess ({limits}{q}), {values}"
    return f"{NO_CHANGE}, {values} ({limits} of its excess removed{q})"


def _short_change(each: Comparison, test: ChangeVerdict) -> str:
    excess = each.change.individual_excess
    if test.state == UNTOLD:
        return UNKNOWN
    verb, share, limits = _percent(each, test)
    if math.isnan(share):
        told = written_limits(excess.low, excess.high, places=3)
        return f"{verb or NO_CHANGE} (95 % interval of the change {told})"
    return f"{verb} by {share:.0f} % ({limits})" if verb else f"{NO_CHANGE} ({limits} removed)"


def _percent(each: Comparison, test: ChangeVerdict) -> tuple[str, float, str]:
    """Return "reduced", "increased" or, where nothing is measurable, ""; by how much; and its interval."""
    found = each.change.individual_reduction
    share, low, high = (100 * number for number in (found.share, found.low, found.high))
    verb = {BETTER: "reduced", WORSE: "increased"}.get(test.state, "")
    if verb == "increased":
        share, low, high = -share, -high, -low
    return verb, share, f"95 % interval {written_limits(low, high)} %"


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
    return f"{signed(estimate, 1)} {unit} ({written_limits(low, high, places=1)})"
