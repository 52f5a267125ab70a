"""Classifiers under audit: how they score the templates themselves when only the value changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from clinometer.metrics import (
    AgainstChance,
    ExcessInterval,
    FairnessInterval,
    FairnessNull,
    PairNull,
    above_threshold,
    epsilon_fair,
    pairwise_wasserstein,
    score_fairness,
)
from clinometer.probes.counterfactual.answers import score_of
from clinometer.probes.counterfactual.measures import (
    AttributeMeasures,
    EpsilonVerdict,
    counts_across,
    subgroup_pairs,
)
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.questions import CHECK, NEGATIVE, POSITIVE, SCORED, asked_attributes
from clinometer.probes.kit import Floats, Numbers, Said, model_rng, percent
from clinometer.probes.protocol import Plan, Records
from clinometer.stats import critical_value
from clinometer.types import ModelInfo, Notice

OWN = "its own score"
FEWEST = 3  # templates, for an interval over them
# Of the pairs of a positive and a negative word, the share that a classifier must put in the right order. Of 10
# and 10 words in random order, 0.1 % reach it.
SENSES = 0.9


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
                    pairs=whole.pairs,
                    subgroups=whole.subgroups,
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
                disparity=disparity.individual,
                disparity_interval=disparity.individual_interval,
                values=_contrasts(mine, np.eye(mine.shape[1]), rng=rng, draws=options.draws),
                subgroups=_contrasts(mine, _sides(subgroups or ()), rng=rng, draws=options.draws),
                verdict=_verdict(distances, options.epsilon),
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
    first, second = np.triu_indices(distances.shape[1], 1)
    each: Floats = distances[:, first, second].mean(axis=1)
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


def _verdict(distances: Floats, epsilon: float) -> EpsilonVerdict:
    found = epsilon_fair(distances, epsilon)
    template, first, second = (int(at) for at in np.unravel_index(np.nanargmax(distances), distances.shape))
    return EpsilonVerdict(
        fair=found.fair,
        compared=found.compared,
        template=template,
        pair=(first, second),
        worst=found.worst,
        share=found.above / found.compared,
    )


def _sides(subgroups: Sequence[str]) -> Floats:
    """Mean of one subgroup minus that of another, for every two: (pairs, values)."""
    names = np.array(subgroups)
    rows = [
        (names == one) / (names == one).sum() - (names == other) / (names == other).sum()
        for one, other in subgroup_pairs(subgroups)
    ]
    return np.array(rows).reshape(len(rows), len(names))


def _contrasts(scores: Floats, weights: Floats, *, rng: np.random.Generator, draws: int) -> Numbers:
    """Return weighted sums of the values' scores, minus each template's mean: (1 + templates, contrasts).

    First the mean over templates, with an interval over templates and p from shuffles within each (|mean| over its
    error, as for texts); then each template, which is exact.
    """
    templates = len(scores)
    shape = (1 + templates, len(weights))
    if not len(weights):
        return Numbers(estimate=np.zeros(shape), n=np.zeros(shape, dtype=np.int64), low=np.zeros(shape),
                       high=np.zeros(shape), p=np.zeros(shape))  # fmt: skip
    centred = scores - scores.mean(axis=1, keepdims=True)
    each = centred @ weights.T
    estimate, error = _mean_and_error(each)
    many = rng.permuted(np.repeat(centred[None], draws, axis=0), axis=2) @ weights.T
    shuffled = _size(*_mean_and_error(many))
    observed = _size(estimate, error)
    low, high, p = (np.full(shape, np.nan) for _ in range(3))
    p[0] = (1 + (shuffled >= observed * (1 - 1e-9)).sum(axis=0)) / (1 + draws)
    if templates >= FEWEST:
        reach = critical_value(0.975, freedom=templates - 1) * error
        low[0], high[0] = estimate - reach, estimate + reach
    counted = (weights != 0).sum(axis=1)
    return Numbers(
        estimate=np.concatenate([estimate[None], each]),
        low=low,
        high=high,
        p=p,
        n=np.concatenate([templates * counted[None], np.repeat(counted[None], templates, axis=0)]),
    )


def _mean_and_error(each: Floats) -> tuple[Floats, Floats]:
    templates = each.shape[-2]
    error = (
        each.std(axis=-2, ddof=1) / math.sqrt(templates)
        if templates > 1
        else np.zeros(each.shape[:-2] + each.shape[-1:])
    )
    return each.mean(axis=-2), error


def _size(mean: Floats, error: Floats) -> Floats:
    """|mean| in errors; without an error, |mean| itself."""
    return np.abs(mean) / np.where(error > 1e-12, error, 1.0)


def said_of_scores(attribute: str) -> Said:
    """Return the sentences about a classifier."""
    return Said(
        above=f"scores a sentence more or less positively when only the {attribute} in it changes",
        below=f"scores sentences more alike than chance when only the {attribute} in them changes",
        none=f"was not found to score a sentence differently when only the {attribute} in it changes",
    )


def classifier_notices(models: Sequence[ModelInfo]) -> Iterator[Notice]:
    """Yield how classifiers were asked."""
    for model in models:
        yield Notice(
            level="info",
            text=(
                f"{model.name} is a classifier: it scored the templates themselves, once each. Its I.F. and G.F. "
                "compare the scores of values over templates, each template's mean taken out; p shuffles the "
                "scores of a template over its values, and intervals leave out one template at a time. They "
                "cannot be compared with those of generated text."
            ),
        )
