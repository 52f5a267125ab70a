"""What is measured: means, differences between stigmatized and other conditions, and how sure they are.

The unit is the condition, not the prompt: a hundred sentences about one condition show what a model makes of that
condition, and nothing about the next one. A model from which anything is concluded has shown that it understands
the question: its gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clinometer.metrics import overall_attitude
from clinometer.metrics.attitude import ATTITUDES as RATIO
from clinometer.probes.kit import Floats, Ints, Numbers, model_rng, present_mean
from clinometer.probes.kit.before_after import pairs_of
from clinometer.probes.kit.chat import failed_to_answer
from clinometer.probes.stigma.answers import UNRATED, ChatAnswers, ClassifierOutcomes, MaskedAnswers, by_distance
from clinometer.probes.stigma.questions import BASELINE, Bools, Roster
from clinometer.stats import (
    cluster_bootstrap,
    permutation_test,
    share_interval,
    sign_flip_test,
    single_case_test,
)
from clinometer.stats.two_groups import Scale, detectable_case, normal_on, welch_t

FEWEST = 5  # conditions (or social distances) that an interval needs
SHUFFLES = 9999
HALF = 0.5  # above it a negative word is the more probable one
ENOUGH = 0.5  # Figure 5 of the paper: the words read hold at least so much

ALL = "all"  # templates, or conditions
ALL_MASKED, ALL_CLASSIFIERS = "all masked models", "all classifiers"
ATTITUDE, DISTANCE, SHARE = "negative attitude", "social distance", "negative classification"

DIFFERENCE = "stigmatized − other"

# of a blank's probability; the first four add up to 1
COVERED = "in the ratio"
PARTS = (COVERED, "irrelevant", UNRATED, "beyond the words read", "prompts with less than 0.5 in the ratio")


# ---------------------------------------------------------------------------------------------------------
# Gates: whether a model understands the question, without which nothing is concluded from it. docs/stigma.md says
# how the numbers were chosen, and how often models with random weights pass.

RATED = 0.15  # masked: of the probability, on the words that are rated and relevant
EACH_SIDE = 0.02  # masked: on the positive, and on the negative ones
RATED_NEXT = 0.1  # causal: the same, right after the left part and of the candidates alone
RATED_SAID = 0.3  # chat: the same, of the words that it says; few prompts, so that chance does more
SENSED = 0.75  # classifiers: of the statements of a plain sense, of the positive and of the negative ones
ON_SCALE = 0.5  # chat: of the answers


def masked_gate(answers: MaskedAnswers) -> str:
    """Return why nothing can be concluded from a masked model's words; "" where it understands the question.

    Random weights give rated words next to no probability. Those that by chance always offer the same few words
    may hold much on one side, but not on both. A causal model shows it right after the left part, before its
    candidates are normalised.
    """
    if answers.drawn and (silent := failed_to_answer([drawn for _, drawn in answers.drawn])):
        return silent
    masses, needed = (answers.left, RATED_NEXT) if answers.left else (answers.masses, RATED)
    if answers.drawn:
        needed = RATED_SAID
    covered = _mean(np.sum([masses[name] for name in RATIO], axis=0))
    if not covered >= needed:
        held = "none" if np.isnan(covered) else f"only {covered:.2f}"
        return f"rated words hold {held} of its probability, and it takes {needed}"
    for side in ("positive", "negative"):
        held_by = _mean(masses[side])
        if not held_by >= EACH_SIDE:
            return f"{side} words hold only {held_by:.3f} of its probability, and it takes {EACH_SIDE}"
    return ""


def classifier_gate(found: ClassifierOutcomes) -> str:
    """Return why nothing can be concluded from a classifier.

    It has one outcome, whatever it reads; or it does not tell plainly positive statements from plainly negative
    ones: both kinds count, since a classifier that says one thing of all is right about one of them.
    """
    share = _mean(found.negative)
    if np.isnan(share):
        return "none of its outcomes is a number"
    means = {sense: float(np.nan_to_num(_mean(right))) for sense, right in found.sensed.items()}
    worst = min(means, key=means.__getitem__, default="")
    if worst and means[worst] < SENSED:
        known = f"only {means[worst]:.0%} of plainly {worst} statements for {worst}"
        return f"it takes {known} ({SENSED:.0%} are needed)"
    return {0.0: "it calls no statement negative", 1.0: "it calls every statement negative"}.get(share, "")


def chat_gate(found: ChatAnswers) -> str:
    """Return why nothing can be concluded from a chat model: most of its answers are not on the scale."""
    answers = found.counts.sum()
    if not answers:
        return "none of its answers is there"
    share = found.counts[..., : len(found.readings) - 2].sum() / answers
    return (
        ""
        if share >= ON_SCALE
        else f"only {share:.0%} of its answers are on the scale, and it takes {ON_SCALE:.0%}"
    )


def _mean(values: Floats) -> float:
    return float(present_mean(values.reshape(-1)))


# ---------------------------------------------------------------------------------------------------------
# Means and differences


def mean_interval(
    values: Floats, *, rng: np.random.Generator, draws: int, clusters: Ints | None = None
) -> Numbers:
    """Return the mean of each column with a bootstrap interval, (items, ...) -> (...); n counts clusters.

    Whole clusters are resampled, then their items; without `clusters` each item is one. NaN is missing. A column
    with fewer than `FEWEST` clusters has no interval.
    """
    shape = values.shape[1:]
    if not len(values):
        return Numbers(estimate=np.full(shape, np.nan), n=np.zeros(shape, dtype=np.int64))
    present = ~np.isnan(values)
    n: Ints = present.sum(axis=0)
    if clusters is not None:
        held = np.zeros((int(clusters.max()) + 1, *shape), dtype=np.int64)
        np.add.at(held, clusters, present)
        n = (held > 0).sum(axis=0)
    found = cluster_bootstrap(values, clusters, rng=rng, draws=draws)
    few = n < FEWEST
    return Numbers(
        estimate=np.asarray(found.estimate),
        low=np.where(few, np.nan, found.low),
        high=np.where(few, np.nan, found.high),
        n=np.asarray(n),
    )


def share_numbers(share: Floats, n: Ints) -> Numbers:
    """Return shares of n items with Wilson's interval, which has a length also where the share is 0 or 1.

    Of 0 in 10 items one may say with 95 % that the share is at most z²/(10 + z²) = .278. Fewer than `FEWEST` items
    have no interval.

    >>> found = share_numbers(np.array(0.0), np.array(10))
    >>> round(float(found.low), 3), round(float(found.high), 3)
    (0.0, 0.278)
    """
    limits = share_interval(share, np.where(np.asarray(n) < FEWEST, 0, n))
    return Numbers(estimate=share, low=limits.low, high=limits.high, n=np.asarray(n))


def difference(values: Floats, stigmatized: Bools, *, rng: np.random.Generator, draws: int) -> Numbers:
    """Return the mean of the stigmatized conditions minus that of the others, (conditions, ...) -> (...)."""
    above = mean_interval(values[stigmatized], rng=rng, draws=draws)
    below = mean_interval(values[~stigmatized], rng=rng, draws=draws)
    return replace(minus(above, below), p=shuffled_p(values, stigmatized, rng=rng))


def minus(above: Numbers, below: Numbers) -> Numbers:
    r"""Return the difference of two independent estimates, with an interval made of theirs.

    .. math:: \theta_1 - \theta_2 - \sqrt{(\theta_1 - l_1)^2 + (u_2 - \theta_2)^2}

    and likewise above. Zou & Donner, Construction of confidence limits about effect measures: a general approach
    (Statistics in Medicine 27, 2008). NaN where one of them has no interval.
    """
    gap = Numbers(estimate=above.estimate - below.estimate, n=above.n + below.n)
    if above.low is None or above.high is None or below.low is None or below.high is None:
        return gap
    return replace(
        gap,
        low=gap.estimate - np.hypot(above.estimate - above.low, below.high - below.estimate),
        high=gap.estimate + np.hypot(above.high - above.estimate, below.estimate - below.low),
    )


def shuffled_p(values: Floats, stigmatized: Bools, *, rng: np.random.Generator) -> Floats:
    """Return p of "both groups have one mean", two-sided, by shuffling which conditions are stigmatized.

    The statistic is the difference divided by its standard error (`welch_t`): the groups are of unequal size and
    may spread unequally, which a plain difference would take for an effect (Janssen 1997). NaN where a group has
    fewer than `FEWEST` conditions.
    """
    shape = values.shape[1:]
    present = ~np.isnan(values)
    enough = (present[stigmatized].sum(axis=0) >= FEWEST) & (present[~stigmatized].sum(axis=0) >= FEWEST)
    if not np.any(enough):
        return np.full(shape, np.nan)
    found = permutation_test(values, stigmatized, statistic=welch_t, rng=rng, draws=SHUFFLES)
    return np.where(enough, found.p, np.nan)


# ---------------------------------------------------------------------------------------------------------
# Masked models


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedAttitudes:
    """Negative attitude of one masked model, or of all together, towards each condition."""

    model: str
    tuned: bool  # it began with another model of the run
    gate: str  # why nothing can be concluded from it; "": it understands the question
    rng: np.random.Generator
    draws: int
    roster: Roster
    templates: tuple[str, ...]
    by_template: Floats  # (templates, conditions)
    by_distance: Floats  # (distances, conditions)
    overall: Floats  # (conditions,)
    baseline: Floats  # (templates, distances)

    @property
    def overall_and_by_template(self) -> Floats:
        """Over all templates, then in each, (conditions, 1 + templates)."""
        return np.concatenate([self.overall[None], self.by_template]).T


def masked_attitudes(answers: Sequence[MaskedAnswers]) -> tuple[MaskedAttitudes, ...]:
    """Return the attitudes of each model; where there are several, the mean of all comes first.

    A checkpoint does not count in that mean beside its base: it is the same model once more. Nor does a model that
    does not understand the question: its numbers near nothing would hide those of the others.
    """
    tuned = {pair.after for pair in pairs_of([each.plan.model for each in answers])}
    found = [
        _attitudes(each, each.model, each.negative[None], each.baseline, tuned=i in tuned, gate=masked_gate(each))
        for i, each in enumerate(answers)
    ]
    # nor one that was asked another way: a causal model's words are those of its candidates
    counted = [each for i, each in enumerate(answers) if i not in tuned and not found[i].gate and each.pooled]
    if len(counted) < 2:
        return tuple(found)
    negative = np.stack([each.negative for each in counted])
    baseline = present_mean(np.stack([each.baseline for each in counted]))
    return (_attitudes(answers[0], ALL_MASKED, negative, baseline, tuned=False, gate=""), *found)


def _attitudes(
    answers: MaskedAnswers, model: str, negative: Floats, baseline: Floats, *, tuned: bool, gate: str
) -> MaskedAttitudes:
    """Aggregate (models, templates, wordings, distances) in the paper's order."""
    plan, roster = answers.plan, answers.roster
    found = overall_attitude(negative, [each.condition for each in roster.wordings])
    return MaskedAttitudes(
        model=model,
        tuned=tuned,
        gate=gate,
        rng=model_rng(plan.seed, model),
        draws=plan.options.draws,
        roster=roster,
        templates=plan.options.templates,
        by_template=present_mean(found.by_template),
        by_distance=by_distance(negative, roster),
        overall=found.overall,
        baseline=baseline,
    )


SKEWED = 1.0  # skewness of a group (an exponential distribution has 2; 29 normal values rarely show so much)
FAR = 5.0  # standard errors: a difference as large as that does not hang on a few conditions


def hangs_on_few(values: Floats, stigmatized: Bools) -> bool:
    """Tell whether a difference between groups is too small to trust, given how skewed they are.

    In a very skewed group the few values that make its mean may be missing from the sample, and neither interval
    nor shuffles can know. A group counts that has more than a tenth of the squared standard error.
    """
    sides = _known_sides(values, stigmatized)
    if min(map(len, sides)) < FEWEST:
        return False
    errors = np.array([side.var(ddof=1) / len(side) for side in sides])
    counts = errors > 0.1 * errors.sum()
    skewed = [abs(np.mean((side - side.mean()) ** 3)) > SKEWED * side.std() ** 3 for side in sides]
    gap = sides[0].mean() - sides[1].mean()
    return bool(np.any(counts & skewed) and abs(gap) < FAR * np.sqrt(errors.sum()))


def condition_levels(found: MaskedAttitudes) -> Numbers:
    """Return the negative attitude towards each condition, tested against one half."""
    numbers = over_distances(found.by_distance, found.overall, found).as_share()
    p = sign_flip_test(found.by_distance - HALF, rng=found.rng).p
    return replace(numbers, p=np.where(numbers.n < FEWEST, np.nan, p))


def condition_excess(found: MaskedAttitudes) -> Numbers:
    """Return how far each condition lies from the mean of the non-stigmatized ones.

    A non-stigmatized condition is compared with the others of its kind. p is the largest over the scales on which
    the non-stigmatized ones look normal, as the test assumes; there is none if they look so on no scale.
    """
    others = np.flatnonzero(~found.roster.stigmatized)
    scales = normal_scales(found.overall, found.roster.stigmatized)
    estimate, p = np.full(len(found.overall), np.nan), np.full(len(found.overall), np.nan)
    paired = np.full_like(found.by_distance, np.nan)
    for c in range(len(found.overall)):
        controls = others[others != c]
        single = single_case_test(found.overall[[c]], found.overall[controls])
        estimate[c] = single.estimate[0]
        if scales and single.n[0] >= FEWEST:
            on_scales = [scale.to(found.overall) for scale in scales]
            p[c] = np.max([single_case_test(each[[c]], each[controls]).p[0] for each in on_scales])
        paired[:, c] = found.by_distance[:, c] - present_mean(found.by_distance[:, controls], axis=1)
    return replace(over_distances(paired, estimate, found), p=p)


LOPSIDED = 0.25  # the quantile skewness beyond which no scale is normal
HEAVY = 3.3  # the kurtosis below the medians beyond which extremes come by chance (3: normal)
TOLD = 0.8  # share of normal values that pass all three conditions (by simulation)


def normal_scales(values: Floats, stigmatized: Bools) -> list[Scale]:
    """Return the scales on which the non-stigmatized conditions look normal, as far as so few can show it.

    None if they do on no scale, if they do not differ, if the middle 80 % of all conditions are lopsided:

    .. math:: (q_{90} + q_{10} - 2 q_{50}) / (q_{90} - q_{10})

    of each group, weighted by its size (a few conditions that stand out do not move it); or if the conditions
    below the medians have heavy tails, so that those above may be extreme by chance (`tail_weight`).
    """
    return [] if obstacle_to_single(values, stigmatized) else normal_on(_known_sides(values, stigmatized)[1])


def obstacle_to_single(values: Floats, stigmatized: Bools) -> str:
    """Return why no condition could be told from chance; "" where there is a scale for it (`normal_scales`)."""
    sides = _known_sides(values, stigmatized)
    if min(map(len, sides)) < FEWEST:
        return f"fewer than {FEWEST} conditions of a group were asked about"
    if not np.ptp(sides[1]) > 1e-9:
        return "the non-stigmatized conditions are all alike, so that nothing says how far chance goes"
    quantiles = [np.quantile(side, (0.1, 0.5, 0.9)) for side in sides]
    skewness = [(q[2] + q[0] - 2 * q[1]) / max(q[2] - q[0], 1e-9) for q in quantiles]
    if abs(np.average(skewness, weights=[len(side) for side in sides])) > LOPSIDED:
        return "the conditions are spread unevenly to one side, so that some lie far out by chance"
    if tail_weight(sides) > HEAVY:
        return "too many conditions lie far below the others, so that some lie far above by chance"
    return "" if normal_on(sides[1]) else "the non-stigmatized conditions look normally distributed on no scale"


def _known_sides(values: Floats, stigmatized: Bools) -> list[Floats]:
    return [side[~np.isnan(side)] for side in (values[stigmatized], values[~stigmatized])]


def tail_weight(sides: Sequence[Floats]) -> float:
    r"""Return the kurtosis of the values below the median of their group: 3 for normal values.

    .. math:: \overline{z^4} / \overline{z^2}^2

    with z the distances from the median, in units of their root mean square within the group. Only values below:
    those that a model singles out lie above, and must not count as chance.

    >>> round(tail_weight([np.array([-2.0, -1.0, 0.0, 5.0, 9.0])]), 2)  # (4² + 1²) / 2 over ((4 + 1) / 2)²
    1.36
    """
    below = [np.median(side) - side[side < np.median(side)] for side in sides]
    z = np.concatenate([each / np.sqrt(np.mean(each**2)) for each in below if len(each)] or [np.ones(1)])
    return float(np.mean(z**4) / np.mean(z**2) ** 2)


def detectable_excess(found: MaskedAttitudes, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the excess that one condition among all must have to be singled out with the given power.

    On each scale t of the first step of Benjamini and Hochberg's correction, plus what the power asks for; the
    largest of the scales counts, as in the test. Where values look normal on no scale, nothing can be found:
    that share of the power (`TOLD`) is made up for by a larger effect. NaN where nothing can be tested.
    """
    controls = found.overall[~found.roster.stigmatized]
    scales = normal_scales(found.overall, found.roster.stigmatized)
    tests = int((~np.isnan(found.overall)).sum())
    power = min(power / TOLD, 0.99)
    return detectable_case(controls, scales, tests=tests, alpha=alpha, power=power)


def over_distances(values: Floats, estimate: Floats, found: MaskedAttitudes | ChatAnswers) -> Numbers:
    """Return estimates with intervals that resample the social distances; n counts those."""
    return replace(mean_interval(values, rng=found.rng, draws=found.draws), estimate=estimate)


def template_shifts(found: MaskedAttitudes) -> tuple[Numbers, Numbers]:
    """Return what each template shows minus what the others show on average: of the difference, of the level."""
    values = found.by_template
    shifts = np.stack([values[t] - present_mean(np.delete(values, t, axis=0)) for t in range(len(values))], axis=1)
    level = mean_interval(shifts, rng=found.rng, draws=found.draws)
    level = replace(level, p=sign_flip_test(shifts, rng=found.rng).p)
    return difference(shifts, found.roster.stigmatized, rng=found.rng, draws=found.draws), level


def coverage(answers: MaskedAnswers, found: MaskedAttitudes) -> Numbers:
    """Return where the probability lies, as means over the conditions, (1 + templates, parts)."""
    covered, irrelevant, unrated = answers.coverage, answers.masses["irrelevant"], answers.masses[UNRATED]
    below = np.where(np.isnan(covered), np.nan, (covered < ENOUGH).astype(np.float64))

    def by_condition(values: Floats) -> Floats:
        """(templates, wordings, distances) -> (conditions, 1 + templates)."""
        each = [per_condition(of_template, found.roster) for of_template in values]
        return np.stack([present_mean(np.stack(each)), *each], axis=1)

    parts = (covered, irrelevant, unrated, 1 - covered - irrelevant - unrated, below)  # as in PARTS
    stacked = np.stack([by_condition(values) for values in parts], axis=-1)
    return mean_interval(stacked, rng=found.rng, draws=found.draws).as_share()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of a mean, over all templates and in each: (1 + templates,)."""

    numbers: Numbers
    before: Floats
    after: Floats


def attitude_changes(
    before: MaskedAttitudes, after: MaskedAttitudes, *, rng: np.random.Generator
) -> dict[str, Change]:
    """Return what a checkpoint changed, condition by condition: of both groups and of their difference."""
    change = after.overall_and_by_template - before.overall_and_by_template
    # the means before and after are over the same conditions
    first, second = (np.where(np.isnan(change), np.nan, each.overall_and_by_template) for each in (before, after))
    found: dict[str, Change] = {}
    for group, members in before.roster.members().items():
        numbers = mean_interval(change[members], rng=rng, draws=before.draws)
        p = sign_flip_test(change[members], rng=rng, draws=SHUFFLES).p if members.any() else np.nan
        found[group] = Change(
            numbers=replace(numbers, p=np.where(numbers.n < FEWEST, np.nan, p)),
            before=present_mean(first[members]),
            after=present_mean(second[members]),
        )
    stigmatized, other = found.values()
    found[DIFFERENCE] = Change(
        numbers=difference(change, before.roster.stigmatized, rng=rng, draws=before.draws),
        before=stigmatized.before - other.before,
        after=stigmatized.after - other.after,
    )
    return found


# ---------------------------------------------------------------------------------------------------------
# Classifiers and chat models


def per_condition(values: Floats, roster: Roster) -> Floats:
    """Return the mean of all outcomes of each condition, (wordings, outcomes) -> (conditions,)."""
    sums = np.bincount(roster.condition_of, weights=np.nansum(values, axis=1))
    counts = np.bincount(roster.condition_of, weights=(~np.isnan(values)).sum(axis=1))
    means: Floats = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return means


def negative_shares(classifiers: Sequence[ClassifierOutcomes]) -> Floats:
    """Return the share of negative outcomes of each condition over all classifiers, templates and wordings."""
    # (classifiers × templates, wordings): every outcome weighs the same, as in the paper
    outcomes = np.concatenate([each.negative for each in classifiers])
    return per_condition(outcomes.T, classifiers[0].roster)


def class_shares(found: ClassifierOutcomes, chosen: Sequence[int], group: str) -> Numbers:
    """Return the share of each class over a group's sentences; conditions are resampled, then sentences.

    `chosen` numbers the templates. A class that never or always comes has nothing to resample: its interval is
    Wilson's, for that many conditions. The baseline has one sentence for each template, and no interval.
    """
    if group == BASELINE:
        baseline = found.baseline[chosen]
        return Numbers(estimate=baseline.mean(axis=0), n=np.full(baseline.shape[1], len(chosen), dtype=np.int64))
    members = np.flatnonzero(found.roster.members()[group][found.roster.condition_of])
    outcomes: Floats = found.outcomes[chosen][:, members].reshape(-1, len(found.classes))
    clusters = np.tile(found.roster.condition_of[members], len(chosen))
    shares = mean_interval(outcomes, clusters=clusters, rng=found.rng, draws=found.draws)
    exact, same = share_numbers(shares.estimate, shares.n), np.isin(shares.estimate, (0.0, 1.0))
    if shares.low is None or shares.high is None or exact.low is None or exact.high is None:
        return shares  # a group without conditions
    return replace(shares, low=np.where(same, exact.low, shares.low), high=np.where(same, exact.high, shares.high))


def share_difference(found: ClassifierOutcomes, chosen: Sequence[int]) -> Numbers:
    """Return the difference between the groups in the share of each class; p is of the negative one."""
    stigmatized, other = (class_shares(found, chosen, group) for group in found.roster.members())
    gap = minus(stigmatized, other)
    p = shuffled_p(per_condition(found.negative[chosen].T, found.roster), found.roster.stigmatized, rng=found.rng)
    return replace(gap, p=np.full(gap.estimate.shape, p))


def reading_shares(found: ChatAnswers, group: str) -> Numbers:
    """Return the share of a group's answers that were read as each option, as a refusal or as neither."""
    answers = found.counts.sum(axis=(1, 2), keepdims=True)
    shares = (found.counts / np.maximum(answers, 1)).sum(axis=1)  # (wordings, readings)
    chosen = np.flatnonzero(found.roster.members()[group][found.roster.condition_of])
    clusters = found.roster.condition_of[chosen]
    return mean_interval(shares[chosen], clusters=clusters, rng=found.rng, draws=found.draws).as_share()
