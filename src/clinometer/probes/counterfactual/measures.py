"""What is measured: how far apart the scores of the values are, and what changed from one model to another.

Chance is what remains when the labels are shuffled within each template.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from clinometer.metrics import (
    AgainstChance,
    Change,
    ExcessInterval,
    FairnessInterval,
    FairnessNull,
    PairedChange,
    Reduction,
    above_threshold,
    epsilon_fair,
    fairness_interval,
    fairness_null,
    paired_change,
    pairwise_wasserstein,
)
from clinometer.probes.counterfactual.answers import ModelAnswers, PassageScores, RelevanceCounts
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.questions import AskedAttribute
from clinometer.probes.kit import Floats, Label, Numbers, model_rng, present_mean
from clinometer.probes.kit.before_after import Pair, amount_number, is_mitigated, pairs_of
from clinometer.stats import cluster_bootstrap
from clinometer.types import ModelInfo

FEWEST_TEMPLATES = 5  # from so many on, intervals speak of templates like these; below, of these templates alone
PER_TEST = 20  # shuffles for each of the tests that are corrected together …
_MOST = 400_000_000  # … as far as so many shuffled scores allow
WORST_DRAWS = 199  # shuffles behind the verdict at ε: a mean and a rough p are enough for it
_Z = 1.959964  # of a 95 % interval
_BATCH = 4_000_000  # scores held at a time
_TIE = 1e-12

INDIVIDUAL, GROUP, DISPARITY = "I.F.", "G.F.", "demographic disparity"
AS_GIVEN, CONTROL, BEFORE = "as given", "control", "before"
METHODS = (AS_GIVEN, CONTROL, "embedding", "sentiment")  # the order in which tables and charts name them
ABSENT = "–"


# ---------------------------------------------------------------------------------------------------------
# One model


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeMeasures:
    """The distances between the values of one attribute, as one scorer sees them."""

    model: str
    asked: AskedAttribute
    scorer: str
    scores: Floats  # templates × values × samples
    null: FairnessNull
    interval: FairnessInterval
    disparity: AgainstChance
    disparity_interval: ExcessInterval
    values: Numbers  # (1 + templates, values), see `against_whole`
    verdict: EpsilonVerdict

    @property
    def labels(self) -> dict[str, Label]:
        """What every table begins with."""
        return {"model": self.model, "attribute": self.asked.name, "scorer": self.scorer}

    @property
    def measures(self) -> tuple[tuple[str, AgainstChance, ExcessInterval], ...]:
        """The name of each measure of all values, its value and chance, and its interval."""
        return (
            (INDIVIDUAL, self.null.individual, self.interval.individual),
            (GROUP, self.null.group, self.interval.group),
            (DISPARITY, self.disparity, self.disparity_interval),
        )


def measure(answers: ModelAnswers, *, single_pairs: bool = True) -> tuple[AttributeMeasures, ...]:
    """Measure every attribute with every scorer.

    Without `single_pairs` there are no more shuffles than `draws`: the tests of pairs take most of the time, and
    of a dozen checkpoints of one model it is their change that is asked about.
    """
    return tuple(
        _measure(answers, asked, number, single_pairs=single_pairs)
        for asked in answers.attributes
        for number in range(len(answers.scores))
    )


def _measure(
    answers: ModelAnswers, asked: AskedAttribute, number: int, *, single_pairs: bool
) -> AttributeMeasures:
    options: Options = answers.options
    scorer = answers.scores[number].scorer
    scores = answers.scores[number].of(asked)
    # a generator for each attribute and scorer: leaving one out changes no number of another
    rng = model_rng(answers.seed, f"{answers.model}\0{asked.name}\0{scorer}")
    subgroups = asked.attribute.value_subgroups
    positive = above_threshold(scores, threshold=options.threshold)
    over = left_out(scores)
    draws = pair_draws(scores, options.draws) if single_pairs else options.draws
    return AttributeMeasures(
        model=answers.model,
        asked=asked,
        scorer=scorer,
        scores=scores,
        null=fairness_null(scores, subgroups=subgroups, rng=rng, draws=draws),
        interval=fairness_interval(scores, subgroups=subgroups, over=over),
        disparity=fairness_null(positive, subgroups=subgroups, rng=rng, draws=options.draws).individual,
        disparity_interval=fairness_interval(positive, subgroups=subgroups, over=over).individual,
        values=against_whole(scores, rng=rng, draws=max(options.draws, PER_TEST * scores.shape[1])),
        verdict=epsilon_verdict(scores, epsilon=options.epsilon, rng=rng),
    )


def left_out(scores: Floats) -> Literal["templates", "samples"]:
    """Say what an interval leaves out in turn: templates, or samples where templates are few."""
    return "templates" if len(scores) >= FEWEST_TEMPLATES else "samples"


def pair_draws(scores: Floats, draws: int) -> int:
    """Return how many shuffles the tests of all pairs take: 20 for each, or what is feasible.

    >>> pair_draws(np.zeros((10, 10, 100)), 500), pair_draws(np.zeros((10, 34, 1000)), 1000)
    (900, 1176)
    """
    return max(draws, min(PER_TEST * math.comb(scores.shape[1], 2), _MOST // max(scores.size, 1)))


def against_whole(scores: Floats, *, rng: np.random.Generator, draws: int) -> Numbers:
    r"""Set the mean score of each value against the mean of all values in the same template.

    .. math:: d_v = \frac1T \sum_t (m_{tv} - \frac1V \sum_w m_{tw}), \quad
        s^2 = \frac1{T^2} \sum_t \sum_w (\delta_{vw} - \tfrac1V)^2 \frac{s_{tw}^2}{n_{tw}}

    (templates, values, samples) -> (1 + templates, values): first the mean over templates, then each template.
    The interval, d ± 1.96 s, holds for these templates; there is none where a prefix has one text only. p, of the
    mean over templates alone, shuffles the samples of a template over its values, each of which keeps its number.
    A value without a sample in a template is left out there, and V counts the others.
    """
    values = scores.shape[1]
    each = _differences(scores)
    present = ~np.isnan(each)
    shares = present / np.maximum(present.sum(axis=1, keepdims=True), 1)  # of each value in the mean of all
    weights = (np.eye(values) - shares[:, None]) ** 2  # (templates, of value, from value)
    errors = np.where(present, _error_squared(scores), 0.0)
    variance = (weights * errors[:, None]).sum(axis=2)  # (templates, values)
    difference = np.concatenate([present_mean(each)[None], each])
    overall = np.where(present, variance, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1) ** 2
    error = np.sqrt(np.concatenate([overall[None], variance]))
    error[np.isnan(difference)] = np.nan
    as_far = np.zeros(values)
    observed = np.abs(difference[0])
    for shuffled in _shuffled(scores, rng=rng, draws=draws):
        as_far += (np.abs(present_mean(_differences(shuffled), axis=-2)) >= observed - _TIE).sum(axis=0)
    p = np.full(difference.shape, np.nan)
    p[0] = np.where(np.isnan(observed), np.nan, (1 + as_far) / (1 + draws))
    samples = (~np.isnan(scores)).sum(axis=2)
    return Numbers(
        estimate=difference,
        low=difference - _Z * error,
        high=difference + _Z * error,
        p=p,
        n=np.concatenate([samples.sum(axis=0)[None], samples]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonVerdict:
    """Equation 2 at one ε, and what chance gives; NaN where nothing could be compared."""

    fair: bool
    compared: int
    worst: float = math.nan
    worst_null: float = math.nan
    worst_p: float = math.nan
    share: float = math.nan  # of pairs that are not below ε
    share_null: float = math.nan


def epsilon_verdict(scores: Floats, *, epsilon: float, rng: np.random.Generator) -> EpsilonVerdict:
    """Tell whether every pair in every template is below ε, and whether the same values shuffled would be."""
    observed = epsilon_fair(pairwise_wasserstein(scores), epsilon)
    if not observed.compared:
        return EpsilonVerdict(fair=False, compared=0)
    by_chance = [
        epsilon_fair(pairwise_wasserstein(shuffled), epsilon)
        for batch in _shuffled(scores, rng=rng, draws=WORST_DRAWS)
        for shuffled in batch
    ]
    worst = np.array([each.worst for each in by_chance])
    return EpsilonVerdict(
        fair=observed.fair,
        compared=observed.compared,
        worst=observed.worst,
        worst_null=float(worst.mean()),
        worst_p=float((1 + (worst >= observed.worst - _TIE).sum()) / (1 + WORST_DRAWS)),
        share=observed.above / observed.compared,
        share_null=float(np.mean([each.above / each.compared for each in by_chance])),
    )


def _shuffled(scores: Floats, *, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """Yield the scores with those of each template in a new order, some draws at a time.

    NaN stays where it is: a value with few samples is further out by chance, and must be so in a shuffle, too.
    """
    rows = scores.reshape(len(scores), -1)
    known = ~np.isnan(rows)
    size = max(1, _BATCH // max(rows.size, 1))
    for done in range(0, draws, size):
        many = np.repeat(rows[None], min(size, draws - done), axis=0)
        for template, at in enumerate(known):
            many[:, template, at] = rng.permuted(many[:, template, at], axis=1)
        yield many.reshape(-1, *scores.shape)


def _differences(scores: Floats) -> Floats:
    """Mean of each value minus that of all values: (…, templates, values, samples) -> (…, templates, values).

    NaN where a value has no sample, or is alone.
    """
    means = present_mean(scores, axis=-1)
    alone = (~np.isnan(means)).sum(axis=-1, keepdims=True) < 2
    return np.where(alone, np.nan, means - present_mean(means, axis=-1)[..., None])


def _error_squared(scores: Floats) -> Floats:
    """Squared standard error of each prefix's mean: (templates, values)."""
    n = (~np.isnan(scores)).sum(axis=2)
    sums = np.nansum((scores - present_mean(scores, axis=2)[..., None]) ** 2, axis=2)
    error: Floats = np.divide(sums, n * (n - 1.0), out=np.full(sums.shape, np.nan), where=n > 1)
    return error


def perplexity(means: Floats) -> Floats:
    r"""Return perplexities from mean log-probabilities and mean tokens of passages, (…, 2) -> (…).

    .. math:: \mathrm{PPL} = \exp(-\sum \log p / \sum \mathrm{tokens})

    >>> perplexity(np.array([[-3.0, 2.0], [-1.0, 2.0]]).mean(axis=0)).round(3)
    np.float64(2.718)
    """
    found: Floats = np.exp(-means[..., 0] / means[..., 1])
    return found


# ---------------------------------------------------------------------------------------------------------
# Before and after: a checkpoint, the model it began with, and its control


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
                yield Comparison(
                    checkpoint=checkpoint,
                    against=against,
                    asked=asked,
                    scorer=new_scores.scorer,
                    change=paired_change(before, after, subgroups=subgroups, over=left_out(before)),
                    n=int((~np.isnan(before)).sum() + (~np.isnan(after)).sum()),
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
