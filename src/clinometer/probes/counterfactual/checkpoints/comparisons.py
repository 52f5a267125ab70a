"""Before and after: a checkpoint, the model it began with, and its control; what changed, and what that cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from clinometer.metrics import Change, PairedChange, Reduction, paired_change
from clinometer.probes.counterfactual.answers import (
    MENTIONS,
    SIMILAR,
    WHOLE,
    ModelAnswers,
    PassageScores,
    RelevanceCounts,
    passages_about,
)
from clinometer.probes.counterfactual.measures import (
    FEWEST_TEMPLATES,
    GROUP,
    INDIVIDUAL,
    counts_across,
    left_out,
    off_topic,
    perplexity,
)
from clinometer.probes.counterfactual.questions import PERPLEXITY, AskedAttribute
from clinometer.probes.counterfactual.tables import ABSENT, ALL_VALUES, EXCESS, MEASURED, Rows, row_of
from clinometer.probes.kit import Floats, Label, model_rng, percent, select, with_q
from clinometer.probes.kit.before_after import Pair, amount_number, is_mitigated, missing_base_notice, pairs_of
from clinometer.stats import cluster_bootstrap
from clinometer.types import Finding, ModelInfo, Notice

AS_GIVEN, CONTROL, BEFORE = "as given", "control", "before"
METHODS = (AS_GIVEN, CONTROL, "embedding", "sentiment")  # the order in which tables and charts name them
RATIO, DIFFERENCE = "after / before", "after − before"
SIMILAR_PERCENT, MENTIONS_PERCENT = f"{SIMILAR} %", f"{MENTIONS} %"  # as the paper prints them
HALF = 0.5  # of S.S. or S.S.c: with less a model no longer speaks of what it was asked about
DIGITS = 12  # of a checksum that are shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint of a model of the run; `model`, `base` and `control` are numbers among the models."""

    name: str
    base_name: str
    model: int
    base: int
    control: int | None  # the same training without the fairness loss; of a control itself: None
    method: str
    strength: Label  # λ: a number where all strengths of the run are numbers
    attribute: str  # whose influence was to be reduced; "": tuned for something else

    @property
    def labels(self) -> dict[str, Label]:
        """Which checkpoint a row is about."""
        return {"model": self.name, "method": self.method, "strength": self.strength}

    @property
    def against(self) -> dict[str, int]:
        """The models that it is compared with."""
        return {BEFORE: self.base} | ({} if self.control is None else {CONTROL: self.control})

    def shown_for(self, attributes: Sequence[AskedAttribute]) -> tuple[AskedAttribute, ...]:
        """Return the attributes that its results are about: its own, or all where that was not asked about."""
        own = tuple(asked for asked in attributes if asked.name == self.attribute)
        return own or tuple(attributes)


def checkpoints_of(models: Sequence[ModelInfo]) -> tuple[Checkpoint, ...]:
    """Return every checkpoint whose base is among the models, by base, attribute, method and strength."""
    pairs = pairs_of(models)
    amounts = {pair.after: amount_number(models[pair.after].tuning.get("amount", "")) for pair in pairs}
    numbered = None not in amounts.values()
    found = []
    for pair in pairs:  # they come by strength
        tuning, amount = models[pair.after].tuning, amounts[pair.after]
        found.append(
            Checkpoint(
                name=models[pair.after].name,
                base_name=models[pair.before].name,
                model=pair.after,
                base=pair.before,
                control=_control(pair, models, pairs),
                method=tuning.get("method", "") or "tuned",
                strength=amount if numbered and amount is not None else tuning.get("amount", "") or ABSENT,
                attribute=tuning.get("attribute", ""),
            )
        )

    def place(each: Checkpoint) -> tuple[int, str, int, str]:
        known = METHODS.index(each.method) if each.method in METHODS else len(METHODS)
        return each.base, each.attribute, known, each.method

    return tuple(sorted(found, key=place))


def _control(pair: Pair, models: Sequence[ModelInfo], pairs: Sequence[Pair]) -> int | None:
    """The control of a checkpoint: of the same base and attribute, and best of the same data and seed."""
    own = models[pair.after].tuning
    if own.get("method") == CONTROL or not is_mitigated(models[pair.after]):
        return None
    controls = [
        other.after
        for other in pairs
        if other.before == pair.before
        and models[other.after].tuning.get("method") == CONTROL
        and models[other.after].tuning.get("attribute") == own["attribute"]
    ]
    return min(
        controls,
        key=lambda at: sum(models[at].tuning.get(name) != own.get(name) for name in ("data", "seed")),
        default=None,
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a guard was before and after, and how it changed; NaN where one of them counts nothing."""

    before: float
    after: float
    n: int
    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan


def perplexity_cost(
    old: PassageScores, new: PassageScores, part: str, *, rng: np.random.Generator, draws: int
) -> Cost:
    """Return perplexity after / before, of a part of the held-out text; resampled are passages, both together."""
    both = np.concatenate([old.sums, new.sums], axis=1)
    some = both[new.parts[part] & (both[:, 1] > 0) & (both[:, 3] > 0)]
    if not len(some):
        return Cost(before=math.nan, after=math.nan, n=0)
    before, after = (float(perplexity(sums.mean(axis=0))) for sums in (some[:, :2], some[:, 2:]))

    def log_ratio(means: Floats) -> Floats:  # on this scale, ratios are symmetric
        ratio: Floats = means[:, 0] / means[:, 1] - means[:, 2] / means[:, 3]
        return ratio

    found = cluster_bootstrap(some, statistic=log_ratio, rng=rng, draws=draws)
    estimate, low, high = (math.exp(float(number)) for number in (found.estimate, found.low, found.high))
    return Cost(before=before, after=after, n=len(some), estimate=estimate, low=low, high=high, p=float(found.p))


def relevance_cost(old: RelevanceCounts, new: RelevanceCounts, *, rng: np.random.Generator, draws: int) -> Cost:
    """Return a share of continuations after − before.

    Resampled are templates, where there are enough, and then prefixes; before and after together.
    """
    columns = np.stack([old.hits, old.texts, new.hits, new.texts], axis=-1)
    templates, values, _ = columns.shape
    of_template = np.repeat(np.arange(templates), values) if templates >= FEWEST_TEMPLATES else None
    n = int(old.texts.sum() + new.texts.sum())
    if not (old.texts.sum() and new.texts.sum()):
        return Cost(before=old.share, after=new.share, n=n)

    def difference(means: Floats) -> Floats:
        change: Floats = means[:, 2] / means[:, 3] - means[:, 0] / means[:, 1]
        return change

    found = cluster_bootstrap(columns.reshape(-1, 4), of_template, statistic=difference, rng=rng, draws=draws)
    estimate, low, high, p = (float(number) for number in (found.estimate, found.low, found.high, found.p))
    return Cost(before=old.share, after=new.share, n=n, estimate=estimate, low=low, high=high, p=p)


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
            mine = [each for each in checkpoints if each.base == base and asked in each.shown_for(attributes)]
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


def weight_rows(models: Sequence[ModelInfo], checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield the share of the weights of each checkpoint that differ from its base, as its card says."""
    for each in checkpoints:
        model, base = models[each.model], models[each.base]
        counts = (model.tuning.get(name, "") for name in ("changed", "weights"))
        changed, every = (int(text) if text.isdecimal() else None for text in counts)
        labels = {
            **each.labels,
            "base": base.name,
            "checksum_before": base.weights[:DIGITS],
            "checksum_after": model.weights[:DIGITS],
            "changed": ABSENT if changed is None else f"{changed:,}",
            "weights": ABSENT if every is None else f"{every:,}",
        }
        yield row_of(labels, math.nan if changed is None or not every else changed / every, n=changed or 0)


def checkpoint_notices(
    models: Sequence[ModelInfo], checkpoints: Sequence[Checkpoint], costs: Sequence[Finding], *, draws: int
) -> Iterator[Notice]:
    """Yield which checkpoints are not what their name says, and which no longer speak of the value."""
    if checkpoints:
        yield _notice(
            "info",
            "For a checkpoint, the change is what is tested; its own pairs of values were tested with only "
            f"{draws} shuffles. Audit it alone to see a single pair.",
        )
    for each in checkpoints:
        if models[each.model].weights == models[each.base].weights:
            yield _notice(
                "warning",
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
        yield _notice(
            "warning",
            f"{guard} of {attribute} fell to less than half of {other} in {', '.join(named)}: a model that now "
            "ignores the value is even because it is off the point (appendix C.6).",
        )


def _notice(level: Literal["info", "warning"], text: str) -> Notice:
    return Notice(level=level, text=text)
