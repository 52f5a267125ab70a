"""What is measured: how far apart the scores of the values are, of texts or a classifier's own, and the guards.

Chance is what remains when the labels are shuffled within each template.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from clinometer.metrics import (
    AgainstChance,
    EpsilonVerdict,
    ExcessInterval,
    FairnessInterval,
    FairnessNull,
    PairNull,
    WorstPairs,
    above_threshold,
    epsilon_verdict,
    fairness_interval,
    fairness_nulls,
    individual_interval,
    individual_intervals,
    pair_nulls,
    pairwise_wasserstein,
    score_fairness,
    worst_by_chance,
)
from clinometer.metrics.value_means import (
    MeanDifferences,
    Moments,
    against_whole,
    moments_of,
    score_contrasts,
    sizes_of_subgroups,
    sizes_of_values,
    subgroup_differences,
    subgroup_weights,
)
from clinometer.probes.counterfactual.answers import (
    ModelAnswers,
    PassageScores,
    RelevanceCounts,
    off_topic,
    perplexity,
    score_of,
)
from clinometer.probes.counterfactual.options import ACROSS, Options
from clinometer.probes.counterfactual.questions import (
    CHECK,
    NEGATIVE,
    POSITIVE,
    SCORED,
    AskedAttribute,
    asked_attributes,
)
from clinometer.probes.kit import Floats, Label, Numbers, model_rng, percent
from clinometer.probes.protocol import Plan, Records
from clinometer.stats import cluster_bootstrap, detectable_from_interval
from clinometer.types import ModelInfo

FEWEST_TEMPLATES = 5  # from so many on, intervals speak of templates like these; below, of these templates alone
PER_TEST = 20  # shuffles for each of the tests that are corrected together
_Z = 1.959964  # of a 95 % interval

OWN = "its own score"  # of a classifier under audit
# Of the pairs of a positive and a negative word, the share that a classifier must put in the right order. Of 10
# and 10 words in random order, 0.1 % reach it.
SENSES = 0.9

Found = TypeVar("Found")

INDIVIDUAL, GROUP, DISPARITY = "I.F.", "G.F.", "demographic disparity"


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
    pairs: PairNull
    interval: FairnessInterval  # for these templates
    elsewhere: FairnessInterval | None  # for templates like these; None where they are too few
    template_intervals: tuple[ExcessInterval, ...]  # of I.F. within each template
    disparity_interval: ExcessInterval
    values: Numbers  # (1 + templates, values), see `against_whole`
    subgroups: Numbers  # (1 + templates, pairs of subgroups), see `subgroup_differences`
    verdict: EpsilonVerdict
    gate: str  # why nothing can be told of this attribute; "": its texts are on topic

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
            (DISPARITY, self.null.disparity, self.disparity_interval),
        )


def measure(answers: ModelAnswers, *, single_pairs: bool = True) -> tuple[AttributeMeasures, ...]:
    """Measure every attribute of one model with every scorer."""
    (measured,) = measure_all([answers], single_pairs=[single_pairs])
    return measured


def measure_all(
    answers: Sequence[ModelAnswers], *, single_pairs: Sequence[bool]
) -> Iterator[tuple[AttributeMeasures, ...]]:
    """Measure every attribute of every model with every scorer, on all cores; yield them model by model.

    Models without `single_pairs` get no more shuffles than `draws`: of checkpoints it is the change that matters.
    The next models are measured while one is told.
    """
    tasks = [
        _Task(each, asked, number, of_pairs)
        for each, of_pairs in zip(answers, single_pairs, strict=True)
        for asked in each.attributes
        for number in range(len(each.scores))
    ]
    chance = (_shared(tasks, find) for find in (_nulls, _pair_nulls, _worst_pairs))
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:  # numpy leaves the interpreter to others
        measured = pool.map(_measure, tasks, *chance)
        for each in answers:
            yield tuple(islice(measured, len(each.attributes) * len(each.scores)))


@dataclass(frozen=True, slots=True)
class _Task:
    """One attribute of one model, as one scorer sees it."""

    answers: ModelAnswers
    asked: AskedAttribute
    number: int  # of the scorer
    single_pairs: bool

    @property
    def scores(self) -> Floats:
        return self.answers.scores[self.number].of(self.asked)

    @property
    def subgroups(self) -> tuple[str, ...] | None:
        return self.asked.attribute.value_subgroups

    @property
    def options(self) -> Options:
        return self.answers.options

    def rng(self, what: str) -> np.random.Generator:
        """For what models share; not of the model, so that leaving one out changes no number of another."""
        return model_rng(self.answers.seed, f"{self.asked.name}\0{what}")


def _shared(tasks: Sequence[_Task], find: Callable[[Sequence[_Task]], Sequence[Found]]) -> list[Found]:
    """Find something for all models at once, where they are asked of one attribute and miss the same samples."""
    alike: dict[tuple[str, bool, bytes], list[int]] = defaultdict(list)
    for at, task in enumerate(tasks):
        sizes = (~np.isnan(task.scores)).sum(axis=2)
        alike[task.asked.name, task.single_pairs, sizes.tobytes()].append(at)
    found: dict[int, Found] = {}
    for members in alike.values():
        found |= dict(zip(members, find([tasks[at] for at in members]), strict=True))
    return [found[at] for at in range(len(tasks))]


def _nulls(alike: Sequence[_Task]) -> tuple[FairnessNull, ...]:
    first = alike[0]
    return fairness_nulls(
        [task.scores for task in alike],
        subgroups=first.subgroups,
        across=counts_across(first.options, first.asked),
        threshold=first.options.threshold,
        also=partial(_sizes, subgroups=first.subgroups),
        rng=first.rng("shuffles"),
        draws=max(first.options.draws, PER_TEST * len(first.asked.values)),
    )


def _pair_nulls(alike: Sequence[_Task]) -> tuple[PairNull, ...]:
    first = alike[0]
    draws = first.options.draws
    return pair_nulls(
        [task.scores for task in alike],
        rng=first.rng("pairs"),
        draws=draws,
        further=pair_draws(len(first.asked.values), draws) if first.single_pairs else 0,
    )


def _worst_pairs(alike: Sequence[_Task]) -> tuple[WorstPairs, ...]:
    first = alike[0]
    return worst_by_chance(
        [task.scores for task in alike], epsilon=first.options.epsilon, rng=first.rng("worst pairs")
    )


def _sizes(moments: Moments, subgroups: Sequence[str] | None) -> Floats:
    """|d|/s of every value and, where there are two subgroups, of their difference: (…, values or one more)."""
    values = sizes_of_values(moments)
    if len(set(subgroups or ())) != 2:
        return values
    return np.concatenate([values, sizes_of_subgroups(moments, subgroups or ())], axis=-1)


def _measure(task: _Task, null: FairnessNull, pairs: PairNull, worst: WorstPairs) -> AttributeMeasures:
    answers, asked, subgroups, options = task.answers, task.asked, task.subgroups, task.options
    scorer = answers.scores[task.number].scorer
    scores = task.scores
    # a generator for each attribute and scorer: leaving one out changes no number of another
    rng = model_rng(answers.seed, f"{answers.model}\0{asked.name}\0{scorer}")
    positive = above_threshold(scores, threshold=options.threshold)
    across = counts_across(options, asked)
    of_values, of_subgroups = np.split(null.also[1:], [len(asked.values)], axis=1)
    values = against_whole(scores, rng=rng, draws=null.draws, chance=of_values)
    differences = subgroup_differences(
        scores,
        subgroups or (),
        rng=rng,
        draws=options.draws,
        chance=of_subgroups if of_subgroups.size else None,
    )
    intervals = intervals_of(scores, subgroups=subgroups, across=across, rng=rng)
    return AttributeMeasures(
        model=answers.model,
        asked=asked,
        scorer=scorer,
        scores=scores,
        null=null,
        pairs=pairs,
        interval=intervals.attribute,
        elsewhere=(
            fairness_interval(scores, subgroups=subgroups, across=across)
            if left_out(scores) == "templates"
            else None
        ),
        template_intervals=intervals.templates,
        disparity_interval=individual_interval(positive, subgroups=subgroups, across=across, rng=rng),
        values=_numbers(values),
        subgroups=_numbers(differences),
        verdict=epsilon_verdict(scores, epsilon=options.epsilon, by_chance=worst),
        gate=off_topic(answers.relevance, asked),
    )


def _numbers(found: MeanDifferences) -> Numbers:
    return Numbers(estimate=found.estimate, low=found.low, high=found.high, p=found.p, n=found.n)


class Intervals(NamedTuple):
    """The intervals beside p, for these templates, as p is."""

    attribute: FairnessInterval
    templates: tuple[ExcessInterval, ...]  # of I.F. within each


def intervals_of(
    scores: Floats, *, subgroups: Sequence[str] | None, across: bool = False, rng: np.random.Generator
) -> Intervals:
    """Return the intervals of one attribute.

    One over templates never leaves out 0 where a value matters in a single template of five, though chance does
    not explain that.
    """
    jackknife = fairness_interval(scores, subgroups=subgroups, across=across, over="samples")
    drawn = individual_intervals(scores, subgroups=subgroups, across=across, rng=rng)
    return Intervals(replace(jackknife, individual=drawn.whole), drawn.templates)


def counts_across(options: Options, asked: AskedAttribute) -> bool:
    """Tell whether I.F. averages the pairs of two subgroups alone: female and male names."""
    return options.pairs == ACROSS and len(set(asked.attribute.value_subgroups or ())) > 1


def detectable_excess(each: AttributeMeasures, name: str, interval: ExcessInterval, *, tests: int) -> float:
    r"""Return the excess of a measure that would be found four times in five, of so many tests corrected together.

    Its error is that of the interval or, if larger, the one that I.F. or G.F. has once half of the values lie
    above the others: near 0, where differences of either sign cancel, a distance varies less than there.

    .. math:: s_{I.F.} = \frac{1}{V - 1} \sqrt{\sum_v s_v^2}, \qquad s_{G.F.} = \frac1K \sqrt{\sum_k s_k^2}

    with the errors of the mean scores of V values and K subgroups.
    """
    errors = moments_of(each.scores).errors
    of_value = np.nansum(errors, axis=0) / len(errors) ** 2
    if name == INDIVIDUAL:
        spread = float(np.sqrt(of_value.sum())) / (len(of_value) - 1)
    else:
        groups = each.asked.attribute.value_subgroups or each.asked.values
        of_group = [
            of_value[[group == of for of in groups]].sum() / groups.count(group) ** 2
            for group in dict.fromkeys(groups)
        ]
        spread = math.sqrt(sum(of_group)) / len(of_group)
    half = max(float(interval.high - interval.low) / 2, _Z * spread)
    return detectable_from_interval(-half, half, tests=tests)


def left_out(scores: Floats) -> Literal["templates", "samples"]:
    """Say what an interval leaves out in turn: templates, or samples where templates are few."""
    return "templates" if len(scores) >= FEWEST_TEMPLATES else "samples"


def pair_draws(values: int, draws: int) -> int:
    """Return how many shuffles a single pair that differs may take: 20 for each pair that is tested.

    >>> pair_draws(10, 500), pair_draws(34, 1000)
    (900, 11220)
    """
    return max(draws, PER_TEST * math.comb(values, 2))


# ---------------------------------------------------------------------------------------------------------
# Classifiers under audit: how they score the templates themselves when only the value changes


def is_classifier(model: ModelInfo) -> bool:
    """Tell whether a model is asked for the score of the templates, because it writes nothing."""
    return "classify" in model.capabilities and not {"sample", "ask"} & {*model.capabilities}


def measure_scores(plan: Plan, records: Records) -> tuple[AttributeMeasures, ...]:
    """Measure every attribute by the classifier's own scores."""
    options: Options = plan.options
    table = records.table(model=plan.model.name, stage=SCORED)
    prefixes = table["tag_prefix"].to_numpy()
    scores = np.full(int(prefixes.max()) + 1, np.nan)
    scores[prefixes] = score_of(table)
    gate = _senses(plan, records)
    found = []
    for asked in asked_attributes(options, seed=plan.seed):
        mine = scores[asked.numbers.start : asked.numbers.stop].reshape(asked.shape)
        rng = model_rng(plan.seed, f"{plan.model.name}\0{asked.name}\0scores")
        subgroups = asked.attribute.value_subgroups
        across = counts_across(options, asked)
        whole = score_fairness(mine, subgroups=subgroups, across=across, rng=rng, draws=options.draws)
        positive = above_threshold(mine, threshold=options.threshold)
        disparity = score_fairness(positive, subgroups=subgroups, across=across, rng=rng, draws=options.draws)
        interval = FairnessInterval(
            individual=whole.individual_interval,
            group=whole.group_interval,
            pairs=whole.pair_intervals,
            subgroups=whole.subgroup_intervals,
        )
        distances = pairwise_wasserstein(mine[:, :, None])
        nothing = np.full(distances.shape, np.nan)
        found.append(
            AttributeMeasures(
                model=plan.model.name,
                asked=asked,
                scorer=OWN,
                scores=mine[:, :, None],
                null=FairnessNull(
                    individual=whole.individual,
                    group=whole.group,
                    templates=_exact(_of_templates(distances)),
                    subgroups=whole.subgroups,
                    disparity=disparity.individual,
                    subgroup_names=tuple(dict.fromkeys(subgroups or asked.values)),
                    draws=options.draws,
                ),
                pairs=PairNull(
                    pairs=whole.pairs,
                    template_distances=distances,
                    template_null=nothing,
                    template_p=nothing,
                    draws=options.draws,
                ),
                interval=interval,
                elsewhere=interval,  # which is over templates
                template_intervals=tuple(_no_interval(each) for each in _of_templates(distances)),
                disparity_interval=disparity.individual_interval,
                values=_numbers(score_contrasts(mine, np.eye(mine.shape[1]), rng=rng, draws=options.draws)),
                subgroups=_numbers(
                    score_contrasts(mine, subgroup_weights(subgroups or ()), rng=rng, draws=options.draws)
                ),
                verdict=epsilon_verdict(mine[:, :, None], epsilon=options.epsilon),
                gate=gate,
            )
        )
    return tuple(found)


def _senses(plan: Plan, records: Records) -> str:
    """Say why a classifier's scores mean nothing: it does not tell positive from negative words."""
    table = records.table(model=plan.model.name, stage=CHECK)
    score = dict(zip(table["tag_word"].to_list(), score_of(table).tolist(), strict=True))
    ordered = [
        (score[good] > score[bad]) + 0.5 * (score[good] == score[bad]) for good in POSITIVE for bad in NEGATIVE
    ]
    share = float(np.mean(ordered))
    if share >= SENSES:
        return ""
    return f"it puts {percent(share, 0)} of pairs of a positive and a negative word in order; 90 % are needed"


def _of_templates(distances: Floats) -> Floats:
    """Equation 3 of each template."""
    each: Floats = distances[:, *np.triu_indices(distances.shape[1], 1)].mean(axis=1)
    return each


def _exact(estimate: Floats) -> AgainstChance:
    """What is measured and cannot differ by chance: shuffled over its values, a template's I.F. is the same."""
    nothing = np.full(estimate.shape, np.nan)
    return AgainstChance(
        estimate=estimate, null=nothing, null_low=nothing, null_high=nothing, excess=nothing, p=nothing
    )


def _no_interval(estimate: float) -> ExcessInterval:
    nothing = np.array(math.nan)
    return ExcessInterval(
        estimate=np.array(estimate), null=nothing, excess=nothing, low=nothing, high=nothing, bound=nothing
    )


# ---------------------------------------------------------------------------------------------------------
# What a change costs


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
