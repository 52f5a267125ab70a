"""What is measured: how far apart the scores of the values are, of texts or a classifier's own, and the guards.

Chance is what remains when the labels are shuffled within each template.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Literal

import numpy as np

from clinometer.metrics import (
    AgainstChance,
    EpsilonVerdict,
    ExcessInterval,
    FairnessInterval,
    FairnessNull,
    PairNull,
    above_threshold,
    epsilon_verdict,
    fairness_interval,
    fairness_nulls,
    individual_interval,
    pair_null,
    pairwise_wasserstein,
    score_fairness,
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
    MENTIONS,
    SIMILAR,
    ModelAnswers,
    PassageScores,
    RelevanceCounts,
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
from clinometer.stats import cluster_bootstrap, detectable_from_interval, share_interval
from clinometer.types import ModelInfo

FEWEST_TEMPLATES = 5  # from so many on, intervals speak of templates like these; below, of these templates alone
PER_TEST = 20  # shuffles for each of the tests that are corrected together …
_MOST = 400_000_000  # … as far as so many shuffled scores allow
_Z = 1.959964  # of a 95 % interval

# The share of texts on topic below which nothing is concluded. The built-in model has 0.17 to 0.22 by S.S. and
# 0.16 to 0.22 by S.S.c, the paper's own 0.14 and more, its example of irrelevant text (appendix C.6) 0.049 and
# 0.011. Random tokens have at most 0.002 and 0.000; random words from texts about these very values at most 0.010
# and 0.029: of 64 texts, the fewest of any profile, they have the 7 that a lower limit of 0.05 takes in 0.3 % of
# runs.
ON_TOPIC = 0.05

OWN = "its own score"  # of a classifier under audit
# Of the pairs of a positive and a negative word, the share that a classifier must put in the right order. Of 10
# and 10 words in random order, 0.1 % reach it.
SENSES = 0.9

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
    nulls = _nulls(tasks)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:  # numpy leaves the interpreter to others
        measured = pool.map(_measure, tasks, nulls)
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


def _nulls(tasks: Sequence[_Task]) -> list[FairnessNull]:
    """Shuffle for all models at once: tasks about one attribute, with the same samples missing, share shuffles."""
    alike: dict[tuple[str, bytes], list[int]] = defaultdict(list)
    for at, task in enumerate(tasks):
        alike[task.asked.name, (~np.isnan(task.scores)).sum(axis=2).tobytes()].append(at)
    found: dict[int, FairnessNull] = {}
    for (attribute, _), members in alike.items():
        first = tasks[members[0]]
        options = first.answers.options
        nulls = fairness_nulls(
            [tasks[at].scores for at in members],
            subgroups=first.subgroups,
            across=counts_across(options, first.asked),
            threshold=options.threshold,
            also=partial(_sizes, subgroups=first.subgroups),
            # not of the model: leaving one out changes no number of another
            rng=model_rng(first.answers.seed, f"{attribute}\0shuffles"),
            draws=max(options.draws, PER_TEST * len(first.asked.values)),
        )
        found |= dict(zip(members, nulls, strict=True))
    return [found[at] for at in range(len(tasks))]


def _sizes(moments: Moments, subgroups: Sequence[str] | None) -> Floats:
    """|d|/s of every value and, where there are two subgroups, of their difference: (…, values or one more)."""
    values = sizes_of_values(moments)
    if len(set(subgroups or ())) != 2:
        return values
    return np.concatenate([values, sizes_of_subgroups(moments, subgroups or ())], axis=-1)


def _measure(task: _Task, null: FairnessNull) -> AttributeMeasures:
    answers, asked, subgroups = task.answers, task.asked, task.subgroups
    options: Options = answers.options
    scorer = answers.scores[task.number].scorer
    scores = task.scores
    # a generator for each attribute and scorer: leaving one out changes no number of another
    rng = model_rng(answers.seed, f"{answers.model}\0{asked.name}\0{scorer}")
    positive = above_threshold(scores, threshold=options.threshold)
    across = counts_across(options, asked)
    of_values, of_subgroups = np.split(null.also[1:], [len(asked.values)], axis=1)
    values = against_whole(scores, rng=rng, draws=null.draws, chance=of_values)
    enough = pair_draws(scores, options.draws) if task.single_pairs else options.draws
    differences = subgroup_differences(
        scores,
        subgroups or (),
        rng=rng,
        draws=options.draws,
        chance=of_subgroups if of_subgroups.size else None,
    )
    return AttributeMeasures(
        model=answers.model,
        asked=asked,
        scorer=scorer,
        scores=scores,
        null=null,
        pairs=pair_null(scores, rng=rng, draws=enough),
        interval=intervals_of(scores, subgroups=subgroups, across=across, rng=rng),
        elsewhere=(
            fairness_interval(scores, subgroups=subgroups, across=across)
            if left_out(scores) == "templates"
            else None
        ),
        template_intervals=tuple(
            individual_interval(scores[[at]], subgroups=subgroups, across=across, rng=rng)
            for at in range(len(scores))
        ),
        disparity_interval=individual_interval(positive, subgroups=subgroups, across=across, rng=rng),
        values=_numbers(values),
        subgroups=_numbers(differences),
        verdict=epsilon_verdict(scores, epsilon=options.epsilon, rng=rng),
        gate=off_topic(answers.relevance, asked),
    )


def _numbers(found: MeanDifferences) -> Numbers:
    return Numbers(estimate=found.estimate, low=found.low, high=found.high, p=found.p, n=found.n)


def intervals_of(
    scores: Floats, *, subgroups: Sequence[str] | None, across: bool = False, rng: np.random.Generator
) -> FairnessInterval:
    """Return the intervals beside p, for these templates, as p is.

    One over templates never leaves out 0 where a value matters in a single template of five, though chance does
    not explain that.
    """
    jackknife = fairness_interval(scores, subgroups=subgroups, across=across, over="samples")
    return replace(jackknife, individual=individual_interval(scores, subgroups=subgroups, across=across, rng=rng))


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


def off_topic(relevance: Sequence[RelevanceCounts], asked: AskedAttribute) -> str:
    """Say why nothing can be told of a model whose texts are not about what they begin with; "" where they are.

    A text is on topic if it is near its beginning (S.S.) or names the value (S.S.c). The lower limit of the larger
    share must reach `ON_TOPIC`: a few texts that hit by chance are not enough.
    """
    mine = [each for each in relevance if each.asked.name == asked.name]
    limits = [share_interval(each.share, int(each.texts.sum())).low for each in mine]
    if not mine or any(limit >= ON_TOPIC for limit in limits):
        return ""
    if not any(each.texts.sum() for each in mine):
        return "it wrote nothing"
    near, named = (
        max((each.share for each in mine if each.measure == measure), default=0.0)
        for measure in (SIMILAR, MENTIONS)
    )
    return (
        f"its texts are off topic: {percent(near)} are near their beginning and {percent(named)} mention the "
        f"{asked.name}"
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


def perplexity(means: Floats) -> Floats:
    r"""Return perplexities from mean log-probabilities and mean tokens of passages, (…, 2) -> (…).

    .. math:: \mathrm{PPL} = \exp(-\sum \log p / \sum \mathrm{tokens})

    >>> perplexity(np.array([[-3.0, 2.0], [-1.0, 2.0]]).mean(axis=0)).round(3)
    np.float64(2.718)
    """
    found: Floats = np.exp(-means[..., 0] / means[..., 1])
    return found


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
