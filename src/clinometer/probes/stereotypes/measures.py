"""What is measured: recall of human stereotypes, negativity, similarity of models, and what tuning changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clinometer.metrics.stereotypes import gold_ranks, has_direction, similarity_matrix, standard_ranks
from clinometer.probes.kit import Floats, Ints, Label, Numbers, model_rng, present_mean
from clinometer.probes.kit.before_after import amount_number, is_mitigated, pairs_of
from clinometer.probes.stereotypes.answers import ALL, ModelAnswers
from clinometer.probes.stereotypes.options import Options
from clinometer.probes.stereotypes.questions import Question, human_questions
from clinometer.stats import (
    ShareInterval,
    cluster_bootstrap,
    critical_value,
    jackknife_correlation,
    moderated_variances,
    sign_flip_test,
    two_group_bootstrap,
    two_sided_p,
)
from clinometer.types import ModelInfo

FEWEST_GROUPS = 5  # that an interval or a comparison of models needs
FEWEST_WORDS = 10  # covered words of a group that an interval and a test of its negativity need
SHUFFLES = 9999  # of words over groups, at least; more where more than 500 groups are tested
FLIPS = 9999
SPREAD_SHUFFLES = 1999  # of negativities over groups: one test, so that p need not be smaller
HEADLINE_K = 25  # of the recall in a sentence
SHOWN = 10  # words of a ranking
TOP = 15  # attributes of each template that are compared before and after tuning, as in the paper's Figure 7
CHANGE_KS = (1, 5, 10, 25, 50, 100, 200)
RANKINGS = {"after": "by typicality", "before": "by probability"}  # columns of the attributes, and their names
KNOWN_WORDS = "words offered that the emotion lexicon covers"  # a row of the coverage table: the gate
NEGATIVITY, INEQUALITY = "negativity", "distance from the mean"

Names = NDArray[np.str_]


def mean_over_groups(
    values: Floats,
    groups: Names | None = None,
    *,
    rng: np.random.Generator,
    draws: int,
    alike: ShareInterval | None = None,
    test: bool = False,
) -> Numbers:
    """Return means of rows, (rows, ...) -> (...), with intervals that resample groups; none for too few groups.

    Args:
        values: (rows, ...).
        groups: the group of each row; without it every row is a group of its own.
        rng: where the draws come from.
        draws: of the bootstrap.
        alike: the limits where all values are alike. There all draws are alike, too: "0 to 0 %" for none of 150.
        test: whether the mean is tested against 0, by flipping the signs of whole groups.
    """
    n = np.full(values.shape[1:], len(values))
    if len(values if groups is None else np.unique(groups)) < FEWEST_GROUPS:
        return Numbers(estimate=present_mean(values), n=n)
    found = cluster_bootstrap(values, groups, rng=rng, draws=draws)
    numbers = Numbers(estimate=found.estimate, low=found.low, high=found.high, n=n)
    if alike is not None:
        same = values.min(axis=0) == values.max(axis=0)
        low, high = np.where(same, alike.low, found.low), np.where(same, alike.high, found.high)
        numbers = replace(numbers, low=low, high=high)
    if test:
        numbers = replace(numbers, p=sign_flip_test(values, clusters=groups, rng=rng, draws=FLIPS).p)
    return numbers


# ---- recall ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAttributes:
    """The human stereotypes about the groups that are asked about, by the question that their prompt asks."""

    # by question and not by its text: one prompt may name two groups ("why are black women so")
    of_question: Mapping[Question, tuple[str, ...]]  # distinct
    group: Names  # (attributes,): of each, in the order of the above
    category: Names
    unmatched: int  # rows about groups that are not asked about

    def __len__(self) -> int:
        return len(self.group)

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories that have human stereotypes."""
        return tuple(dict.fromkeys(self.category.tolist()))

    def members(self, category: str) -> Ints:
        """Return the numbers of the attributes of a category's groups."""
        return np.flatnonzero((self.category == category) | (category == ALL))


def read_human_attributes(options: Options) -> HumanAttributes:
    """Return the human stereotypes to look for; one that several engines offer at one prompt counts once."""
    found: dict[Question, dict[str, None]] = {}
    rows = 0
    for question, row in human_questions(options):
        found.setdefault(question, {})[row.attribute.strip().lower()] = None
        rows += 1
    owners = [question.group for question, attributes in found.items() for _ in attributes]
    return HumanAttributes(
        of_question={question: tuple(attributes) for question, attributes in found.items()},
        group=np.array([group.name for group in owners], dtype=np.str_),
        category=np.array([group.category for group in owners], dtype=np.str_),
        unmatched=len(options.chosen_stereotypes()) - rows,
    )


def prompt_lists(answers: ModelAnswers, ranking: str) -> dict[Question, list[str]]:
    """Return the words offered at each prompt of the data set, in the order of one of the `RANKINGS`."""
    offered = answers.attributes.filter(pl.col("group").is_null()).sort("index", ranking)
    words = offered.group_by("index", maintain_order=True).agg("word")
    return {answers.questions[index]: listed for index, listed in words.iter_rows()}


def human_ranks(answers: ModelAnswers, human: HumanAttributes) -> Floats:
    """Return the position of each human attribute by each of the `RANKINGS`: (attributes, 2); infinity: nowhere.

    Each is looked for in the list of its own prompt, not in those of the templates.
    """
    columns = []
    for ranking in RANKINGS:
        offered = prompt_lists(answers, ranking)
        columns.append(
            [
                position
                for question, attributes in human.of_question.items()
                for position in positions(offered.get(question, []), attributes).values()
            ]
        )
    return np.array(columns, dtype=np.float64).T.reshape(len(human), len(RANKINGS))


def positions(offered: Sequence[str], attributes: Sequence[str]) -> dict[str, float]:
    """Return the position of each attribute in a list, from 1 on; infinity: not in it."""
    return gold_ranks({"": offered}, {"": attributes})[""]


# ---- negativity -----------------------------------------------------------------------------------------------


def valences(answers: ModelAnswers) -> list[Ints]:
    """Return the valences of each group's covered words."""
    return [valence_of(words, answers.lexicon.words) for words in answers.profile_words]


def valence_of(words: Iterable[str], known: Mapping[str, Collection[str]]) -> Ints:
    """Return 1 for each known word that is negative, −1 for a positive one, 0 for neither or both.

    >>> valence_of(["mean", "kind", "so"], {"mean": {"negative"}, "kind": {"positive", "joy"}}).tolist()
    [1, -1]
    """
    emotions = [known[word] for word in words if word in known]
    return np.array([("negative" in each) - ("positive" in each) for each in emotions], dtype=np.int64)


def group_negativity(of_groups: Sequence[Ints]) -> Floats:
    """Return the share of negative minus the share of positive words of each group; NaN: none is covered."""
    return np.array([each.mean() if len(each) else np.nan for each in of_groups])


def shuffle_p(
    of_groups: Sequence[Ints], centre: float, *, rng: np.random.Generator, shuffles: int = SHUFFLES
) -> Floats:
    """Return p of "these words are drawn from those of all groups alike", two-sided, for each group.

    The words of all groups are shuffled over the groups. A group then gets as many words as it had, drawn without
    replacement from the pool, and only the numbers of negative, neutral and positive ones count: these are drawn
    from their distribution. NaN for a group with fewer than `FEWEST_WORDS` words.
    """
    pool = np.concatenate(of_groups) if len(of_groups) else np.zeros(0, dtype=np.int64)
    kinds = np.array([-1, 0, 1])
    sizes = np.array([(pool == kind).sum() for kind in kinds])
    p = np.full(len(of_groups), np.nan)
    for g, of_group in enumerate(of_groups):
        n = len(of_group)
        if n < FEWEST_WORDS:
            continue
        drawn = rng.multivariate_hypergeometric(sizes, n, size=shuffles, method="marginals") @ kinds / n
        # the mean over groups is not quite that over words: both are compared with what the pool gives
        observed = abs(float(of_group.mean()) - centre)
        as_far = (np.abs(drawn - pool.mean()) >= observed - 1e-12).sum()
        p[g] = (as_far + 1) / (shuffles + 1)
    return p


def paired_negativity(before: ModelAnswers, after: ModelAnswers) -> tuple[Floats, Floats]:
    """Return negativity and distance from the mean of every group: (groups, 2) before and after.

    NaN in both where one of them has no covered word.
    """
    first, second = (group_negativity(valences(each)) for each in (before, after))
    missing = np.isnan(first) | np.isnan(second)
    return _with_distance(np.where(missing, np.nan, first)), _with_distance(np.where(missing, np.nan, second))


def _with_distance(negativity: Floats) -> Floats:
    return np.stack([negativity, np.abs(negativity - present_mean(negativity))], axis=1)


# ---- are the groups described alike? --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetitions:
    """The negativity of every group in each wording of the question, minus the mean of the groups asked alike."""

    values: Floats  # (groups, wordings); NaN: too few words, or no other group was asked in the same words
    asked: Ints  # the number of the wording; −1: missing

    @property
    def wordings(self) -> int:
        """How many times a group is asked."""
        return int(self.values.shape[1])


def repeated_negativity(answers: ModelAnswers) -> Repetitions:
    """Return the negativity of each group's list, wording by wording."""
    number = {group: g for g, group in enumerate(answers.groups)}
    templates = [(i, each) for i, each in enumerate(answers.questions) if each.origin == "template"]
    # countries and people share one template, but not the others: they are two populations in it as well
    wording = {each: i for i, each in enumerate(dict.fromkeys((q.template, q.group.kind) for _, q in templates))}
    wordings = max(Counter(number[each.group] for _, each in templates).values(), default=0)
    values, asked = np.full((len(number), wordings), np.nan), np.full((len(number), wordings), -1)
    used = answers.attributes.filter(pl.col("after") <= answers.options.profile_k)
    lists = dict(used.group_by("index").agg("word").iter_rows())
    filled: Counter[int] = Counter()
    for index, question in templates:
        g = number[question.group]
        of_words = valence_of(lists.get(index, ()), answers.lexicon.words)
        if len(of_words) >= FEWEST_WORDS:
            values[g, filled[g]] = of_words.mean()
            asked[g, filled[g]] = wording[question.template, question.group.kind]
        filled[g] += 1
    return repetitions_of(values, asked)


def repetitions_of(values: Floats, asked: Ints) -> Repetitions:
    """Return negativities minus the mean of the groups asked alike; `asked` is −1 where words are too few."""
    out = np.full(values.shape, np.nan)
    for each in np.unique(asked[asked >= 0]):
        cells = asked == each
        if cells.sum() > 1:
            out[cells] = values[cells] - values[cells].mean()
    return Repetitions(values=out, asked=asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far groups lie apart beyond chance, as a standard deviation of negativity, and how sure that is."""

    estimate: float
    low: float
    high: float
    p: float
    groups: int
    detectable: float


def spread_between_groups(repeated: Repetitions, *, rng: np.random.Generator, draws: int) -> Spread:
    r"""Estimate the spread of the groups' negativity that repeats itself from one wording to the next.

    .. math:: \tau^2 = \frac1G \sum_g \frac{1}{T(T-1)} \sum_{t \ne u} d_{gt} d_{gu}

    with d the negativity of a group at a wording minus the mean of the groups asked so: a product of two wordings
    is 0 on average where groups do not differ, however much single lists vary. The square root is returned, below
    0 for a τ² below 0. Interval: bootstrap over groups. p: negativities shuffled over the groups within each
    wording, one-sided.
    """
    several = (~np.isnan(repeated.values)).sum(axis=1) > 1
    deviations, asked, groups = repeated.values[several], repeated.asked[several], int(several.sum())
    if groups < FEWEST_GROUPS:
        return Spread(estimate=np.nan, low=np.nan, high=np.nan, p=np.nan, groups=groups, detectable=np.nan)
    times = (~np.isnan(deviations)).sum(axis=1)
    # a group is a part of the mean of those asked alike: that makes products of deviations too small by 1/n
    alike = np.bincount(asked[~np.isnan(deviations)])
    deviations = deviations * np.sqrt(alike / np.maximum(alike - 1, 1))[asked]
    known = np.nan_to_num(deviations)
    total, squares = known.sum(axis=1), (known**2).sum(axis=1)
    pairs = times * (times - 1.0)
    of_group = (total**2 - squares) / pairs
    found = cluster_bootstrap(of_group, rng=rng, draws=draws)

    totals, drawn_squares = (np.zeros((SPREAD_SHUFFLES, groups)) for _ in range(2))
    for each in np.unique(asked[~np.isnan(deviations)]):
        rows, columns = np.nonzero((asked == each) & ~np.isnan(deviations))
        drawn = rng.permuted(np.tile(deviations[rows, columns], (SPREAD_SHUFFLES, 1)), axis=1)
        totals[:, rows] += drawn
        drawn_squares[:, rows] += drawn**2
    by_chance = ((totals**2 - drawn_squares) / pairs).mean(axis=1)
    noise = float(((squares - total**2 / times) / (times - 1)).mean())
    low, middle, high = (float(np.copysign(abs(x) ** 0.5, x)) for x in (found.low, found.estimate, found.high))
    return Spread(
        estimate=middle,
        low=low,
        high=high,
        p=float(((by_chance >= of_group.mean() - 1e-12).sum() + 1) / (SPREAD_SHUFFLES + 1)),
        groups=groups,
        detectable=detectable_spread(noise, times=float(times.mean()), groups=groups),
    )


def detectable_spread(noise: float, *, times: float, groups: int) -> float:
    r"""Return the spread between groups that is found four times in five.

    .. math:: \tau^2 = z \sqrt{(2\sigma^4 / T(T-1) + 4\tau^2\sigma^2 / T + 2\tau^4) / G}

    solved for τ: z = 2.80 standard errors of the estimate where groups differ by τ, with the noise σ² of one of T
    repetitions. NaN where so few groups are compared that no spread would do.

    >>> round(detectable_spread(0.01, times=5, groups=373), 3), detectable_spread(0.01, times=5, groups=12)
    (0.024, nan)
    """
    z = critical_value(0.975) + critical_value(0.8)
    a, b = 1 - 2 * z**2 / groups, 4 * z**2 * noise / (times * groups)
    if a <= 0:
        return float("nan")
    c = 2 * z**2 * noise**2 / (times * (times - 1) * groups)
    return float(np.sqrt((b + np.sqrt(b**2 + 4 * a * c)) / (2 * a)))


def group_differences(repeated: Repetitions) -> tuple[Numbers, float]:
    """Return the mean deviation of each group over the wordings with Student's intervals and p, and their freedom.

    A group's variance from wording to wording is drawn towards that of all groups, the more so the more alike they
    are: its own, of five wordings, could hardly call any group, and a common one calls unsteady groups too often.
    """
    times = (~np.isnan(repeated.values)).sum(axis=1)
    mean = present_mean(repeated.values, axis=1)
    squares = np.nansum((repeated.values - mean[:, None]) ** 2, axis=1)
    own = np.divide(squares, times - 1, out=np.full(len(times), np.nan), where=times > 1)
    variances, freedom = moderated_variances(own, float(max(times.max(initial=0) - 1, 1)))
    # at least the mean: an unsteady group may look steady in five wordings
    error = np.sqrt(np.maximum(variances, present_mean(own)) / np.maximum(times, 1))
    half = critical_value(0.975, freedom=freedom) * error
    with np.errstate(invalid="ignore", divide="ignore"):  # lists that never vary: 0/0 is no evidence
        p = two_sided_p(mean / error, freedom=freedom)
    return Numbers(estimate=mean, low=mean - half, high=mean + half, p=p, n=times), freedom


def category_difference(repeated: Repetitions, members: Ints, *, rng: np.random.Generator, draws: int) -> Numbers:
    """Return by how much these groups are described more negatively than others asked in the same words.

    Groups are the units, and the difference of the two means is resampled. No interval and no p for few groups;
    nothing at all where no other group is asked in the same words.
    """
    of_group = present_mean(repeated.values, axis=1)
    inside = np.isin(np.arange(len(of_group)), members)
    alike = np.isin(repeated.asked, np.unique(repeated.asked[inside & ~np.isnan(of_group)])).any(axis=1)
    known = ~np.isnan(of_group)
    ours, others = of_group[inside & known], of_group[~inside & alike & known]
    n = np.array(len(ours))
    if not len(ours) or not len(others):
        return Numbers(estimate=np.array(np.nan), n=n)
    if min(len(ours), len(others)) < FEWEST_GROUPS:
        return Numbers(estimate=np.array(ours.mean() - others.mean()), n=n)
    found = two_group_bootstrap(ours, others, rng=rng, draws=draws)
    return Numbers(estimate=found.estimate, low=found.low, high=found.high, p=found.p, n=n)


# ---- similarity of models -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """Similarity of all pairs of models over the groups of one category; (models, models) each."""

    category: str
    groups: int  # that have a profile in every model
    mean: Floats
    low: Floats
    high: Floats
    chance: Floats  # the mean when the groups of one model are shuffled
    p: Floats


def compare_models(answers: Sequence[ModelAnswers], category: str) -> Similarity:
    """Return the similarity of every two models, over the groups that have an emotion profile in all of them."""
    models, members = len(answers), answers[0].members(category)
    usable = np.all([has_direction(each.profiles[members]) for each in answers], axis=0)
    groups = int(usable.sum())
    if groups < FEWEST_GROUPS:
        unknown = np.full((models, models), np.nan)
        return Similarity(
            category=category, groups=groups, mean=unknown, low=unknown, high=unknown, chance=unknown, p=unknown
        )
    own = answers[0].options.self_similarity
    cosines = [similarity_matrix(each.profiles[members[usable]]) for each in answers]
    ranks = np.stack([standard_ranks(each, self_similarity=own) for each in cosines])
    limits = np.full((3, models, models), np.nan)
    for a in range(models):
        for b in range(a, models):
            limits[:, a, b] = limits[:, b, a] = mean_and_interval(ranks[a], ranks[b], self_similarity=own)
    p, chance = shuffled_groups(
        ranks,
        rng=model_rng(answers[0].plan.seed, f"similarity of models: {category}"),
        shuffles=max(999, 20 * (models * (models - 1) // 2)),  # p must be able to get small beside many pairs
    )
    mean, low, high = limits
    return Similarity(category=category, groups=groups, mean=mean, low=low, high=high, chance=chance, p=p)


def mean_and_interval(a: Floats, b: Floats, *, self_similarity: bool) -> Floats:
    r"""Return mean, low and high of the similarity of two models, given their standard ranks (groups, groups).

    The interval leaves out one group at a time: its row, and its column in the other groups' rows. With rows of
    mean 0 and length 1, m values each, the correlation of row i without column g is

    .. math:: \frac{\rho_i - c\,a_{ig} b_{ig}}{\sqrt{(1 - c\,a_{ig}^2)(1 - c\,b_{ig}^2)}}, \quad c = \frac{m}{m-1}
    """
    rho = (a * b).sum(axis=1)
    if np.isnan(rho).all():
        return np.full(3, np.nan)
    m = len(a) if self_similarity else len(a) - 1
    c = m / (m - 1)
    spread = (1 - c * a**2) * (1 - c * b**2)
    with np.errstate(invalid="ignore", divide="ignore"):  # what is left of a row may not vary at all
        without = (rho[:, None] - c * a * b) / np.sqrt(np.where(spread > 1e-12, spread, np.nan))
    np.fill_diagonal(without, np.nan)  # a group that is left out has no row either
    mean = float(np.clip(present_mean(rho), -1.0, 1.0))
    interval = jackknife_correlation(mean, present_mean(without))
    return np.array([mean, interval.low, interval.high])


def shuffled_groups(ranks: Floats, *, rng: np.random.Generator, shuffles: int) -> tuple[Floats, Floats]:
    """Return p of "the groups have nothing to do with each other" and the mean by chance, for all pairs of models.

    `ranks` are standard ranks (models, groups, groups). The groups of the second model are renamed at random, rows
    and columns together; p is one-sided and counts how often they then agree at least as well as in truth.
    """
    # a row that does not vary is missing: it counts as 0, the same in every shuffle
    flat = np.nan_to_num(ranks).astype(np.float32).reshape(len(ranks), -1)
    groups = ranks.shape[1]
    observed = flat @ flat.T / groups
    above, total = np.ones(observed.shape), np.zeros(observed.shape)
    for _ in range(shuffles):
        order = rng.permutation(groups)
        places = (order[:, None] * groups + order).ravel()
        drawn = flat @ np.take(flat, places, axis=1).T / groups
        above += drawn >= observed - 1e-5
        total += drawn
    return mirrored(above / (shuffles + 1)), mirrored(total / shuffles)


def mirrored(pairs: Floats) -> Floats:
    """Return the upper half in both halves: it does not matter which of two models is shuffled.

    >>> mirrored(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    return np.asarray(np.triu(pairs) + np.triu(pairs, k=1).T)


# ---- before and after tuning ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """A base model and a checkpoint of it, by their numbers among the models of the run."""

    base: int
    tuned: int
    labels: Mapping[str, Label]  # that the tables of changes begin with


def tunings_of(models: Sequence[ModelInfo]) -> tuple[Tuning, ...]:
    """Return every checkpoint whose base is among the models, by base, corpus and amount.

    The labels say how it was mitigated where any model of the run was. The amount is a number where all amounts of
    the run are parts of corpora, else text.
    """
    pairs = pairs_of(models)
    mitigated = any(is_mitigated(models[pair.after]) for pair in pairs)
    amounts = [amount_number(models[pair.after].tuning.get("amount", "")) for pair in pairs]
    numbers = not mitigated and None not in amounts
    found = []
    for pair, number in zip(pairs, amounts, strict=True):
        model = models[pair.after]
        tuning = model.tuning
        labels: dict[str, Label] = {"base": models[pair.before].name, "model": model.name}
        if mitigated:
            labels |= {name: tuning.get(name, "") for name in ("method", "attribute")}
        amount = tuning.get("amount", "")
        text = f"λ = {amount}" if is_mitigated(model) and amount else amount
        labels |= {"corpus": tuning.get("data", ""), "amount": number if numbers and number is not None else text}
        found.append(Tuning(base=pair.before, tuned=pair.after, labels=labels))
    return tuple(sorted(found, key=lambda each: (each.base, str(each.labels["corpus"]))))  # pairs come by amount
