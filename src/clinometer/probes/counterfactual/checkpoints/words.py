"""What is said of checkpoints: how I.F. changed, by every scorer, and what that cost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clinometer.probes.counterfactual.answers import MENTIONS, SIMILAR, WHOLE
from clinometer.probes.counterfactual.checkpoints.comparisons import BEFORE, CONTROL, Checkpoint, Comparison
from clinometer.probes.counterfactual.measures import INDIVIDUAL
from clinometer.probes.counterfactual.questions import PERPLEXITY, AskedAttribute
from clinometer.probes.counterfactual.tables import EXCESS
from clinometer.probes.counterfactual.words import written_limits
from clinometer.probes.kit import is_found, q_value, select, signed, written
from clinometer.types import Finding

FEW_CHECKPOINTS = 3  # of one model, which get a long sentence each: a control and two methods

NO_CHANGE = "no measurable change"
LOWER, HIGHER, ALIKE, UNKNOWN = "is lower", "is higher", "is not measurably different", "could not be compared"


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
        limits = written_limits(excess.low, excess.high, places=3)
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
        told = written_limits(excess.low, excess.high, places=3)
        return f"{verb or NO_CHANGE} (95 % interval of the change {told})"
    return f"{verb} by {share:.0f} % ({limits})" if verb else f"{NO_CHANGE} ({limits} removed)"


def _percent(each: Comparison, test: Finding) -> tuple[str, float, str]:
    """Return "reduced", "increased" or, where nothing is measurable, ""; by how much; and its interval."""
    found = each.change.individual_reduction
    share, low, high = (100 * number for number in (found.share, found.low, found.high))
    verb = {LOWER: "reduced", HIGHER: "increased"}.get(_verdict(test), "")
    if verb == "increased":
        share, low, high = -share, -high, -low
    return verb, share, f"95 % interval {written_limits(low, high)} %"


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
    return f"{signed(estimate, 1)} {unit} ({written_limits(low, high, places=1)})"
