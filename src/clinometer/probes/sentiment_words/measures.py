"""What is measured of one model by the association test and the shift test.

The association test asks how far apart a word's probabilities are after positive and after negative reviews. The
shift test asks how appending a word moves the labels of reviews. Let x be +1 where the label of a review became
positive, −1 where it became negative, 0 where it did not change. Accuracy on negative reviews falls by the mean of
x over them, and accuracy on positive reviews rises by its mean over those, so

    Neg_Diff − Pos_Diff = mean of x over negative reviews + mean of x over positive reviews

and the strength is the same sum of two means of v = (1/n) Σ_K x_K / K², one value for each review. So an interval
resamples the two classes of reviews, and a test flips the signs of the reviews' values. With as many positive as
negative reviews it does not matter which are which, so shuffling their labels could not test anything.

A label moves only if the log-odds of the label words cross 0, so the strength sees nothing of reviews that are far
from it, and little of a word that pushes the way most labels already are. The graded strength takes the change of
the log-odds itself, averaged over K, reviews of a class, and the two classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clinometer.metrics import sat_effect, sat_polarity, sst_strength
from clinometer.probes.kit import LEVEL, Floats, Ints, Label, Numbers, model_rng
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.sentiment_words.answers import (
    Bools,
    Classes,
    ModelAnswers,
    Odds,
    SentimentCheck,
    check_templates,
    labels_of,
    main_template,
    read_answers,
    shift_templates,
)
from clinometer.probes.sentiment_words.options import Options
from clinometer.stats import benjamini_hochberg, sign_flip_test, two_group_bootstrap
from clinometer.types import Finding, ModelInfo

ASSOCIATION, SHIFT, RELATIVE_SHIFT = "association", "shift", "shift against average"
GRADED, RELATIVE_GRADED = "graded shift", "graded shift against average"
ALL_KS = "all K"
# What is called biased: a word with a sign by the paper's rule, or only if its q-value is small too. The paper's
# rule is itself a threshold (on the effect, or 0 for the strength), so the interval is not asked as well.
PAPER, PAPER_AND_Q = "paper", f"q ≤ {LEVEL}"
RULES = (PAPER, PAPER_AND_Q)
# of one K: both accuracies move, and in opposite directions; the paper does not say by which rule Table 2 counts
OPPOSITE = "opposite signs"
SHUFFLES = 199  # of the labels, to see how many words chance calls biased: p can then get down to 0.005
FEWEST_DRAWS = 9_999
# Words whose log-probabilities spread widely in one class of reviews (deviation above 1: very skewed) and so many
# times less in the other are not judged: few extreme reviews decide which mean is larger, and neither test nor
# interval keeps its level.
VERY_SKEWED, MOST_UNEQUAL = 1.0, 1.5
_SHUFFLED_AT_ONCE = 4_000_000  # labels held at a time, so that memory stays flat
_TIE = 1e-9  # relative: two sums of the same numbers in another order are equal

# m, rule -> (shuffles,): shares of the words that are called biased by chance
ChanceShares = Mapping[tuple[float, str], Floats]


# ---- numbers of words


@dataclass(frozen=True, slots=True, kw_only=True)
class WordScores:
    """A score of each word with interval, p and q; (words,) or (words, ks)."""

    numbers: Numbers
    q: Floats  # corrected over the words of a class

    @property
    def estimate(self) -> Floats:
        """The scores themselves."""
        return self.numbers.estimate

    @property
    def signs(self) -> Ints:
        """The sign of each score, 0 if it is missing."""
        # what remains of a difference of equal numbers is rounding
        known = np.nan_to_num(self.estimate)
        return np.where(np.abs(known) < 1e-12, 0, np.sign(known)).astype(np.int64)

    def finding(self, at: tuple[int, ...], labels: Mapping[str, Label]) -> Finding:
        """Return the score at one place as a finding."""
        return replace(self.numbers.finding(at, labels), q=float(self.q[at]))


def signs_by_rule(signs: Ints, q: Floats, rule: str) -> Ints:
    """Return the signs of the words that a rule calls biased, 0 elsewhere."""
    called: Ints = signs if rule == PAPER else np.where(q <= LEVEL, signs, 0)
    return called


def q_by_class(p: Floats, classes: Classes) -> Floats:
    """Return q-values corrected over the words of each class, column by column: (words,) or (words, ks)."""
    q = np.full(p.shape, np.nan)
    columns, corrected = p.reshape(len(p), -1), q.reshape(len(p), -1)
    for name in np.unique(classes):
        members = classes == name
        for column in range(columns.shape[1]):
            corrected[members, column] = benjamini_hochberg(columns[members, column])
    return q


def draws_for(tests: int) -> int:
    """Return how many draws a test needs if its p-values are corrected over so many words.

    The smallest p, times the words, times the two primary questions, must be below 0.05: one word can lean alone.
    """
    return max(FEWEST_DRAWS, 50 * tests)


# ---- the association test


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """What the association test says of every word."""

    effect: WordScores  # (words,), in standard deviations
    comparable: Bools  # (words,): not both very skewed and far more so in one class
    polarity: Mapping[float, Ints]  # m -> (words,)


def measure_association(
    probability: Floats,
    positive: Bools,
    classes: Classes,
    shuffled: Floats,
    *,
    ms: Sequence[float],
    rng: np.random.Generator,
    draws: int,
) -> Association:
    """Test every word, (reviews, words) -> (words,); `shuffled` are its `shuffled_differences`.

    The interval resamples positive and negative reviews apart. p shuffles the labels of the reviews and asks
    whether the two means differ, so it does not depend on m. A word whose probability does not vary within a class
    has no interval.
    """
    first, second = probability[positive], probability[~positive]
    effect = sat_effect(first, second)
    low, high = np.full(effect.shape, np.nan), np.full(effect.shape, np.nan)
    varies = (np.ptp(first, axis=0) > 0) & (np.ptp(second, axis=0) > 0)
    if varies.any():
        # the scale of a word does not matter to its effect; without it, squares of tiny numbers would be lost
        scale = probability[:, varies].max(axis=0)
        scaled = (first[:, varies] / scale, second[:, varies] / scale)
        moments = [np.stack([part, part**2], axis=-1) for part in scaled]
        interval = two_group_bootstrap(*moments, statistic=_effect_of_moments, rng=rng, draws=draws)
        low[varies], high[varies] = interval.low, interval.high
    p = shuffle_p(shuffled, class_difference(probability, positive))
    n = np.full(effect.shape, len(probability), dtype=np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        spreads = [np.log(part).std(axis=0) for part in (first, second)]
        wider = np.maximum(*spreads)
        unequal = wider / np.minimum(*spreads)
    return Association(
        comparable=(wider <= VERY_SKEWED) | (unequal <= MOST_UNEQUAL),
        effect=WordScores(
            numbers=Numbers(estimate=effect, low=low, high=high, p=p, n=n), q=q_by_class(p, classes)
        ),
        polarity={m: sat_polarity(first, second, m=m) for m in ms},
    )


def _effect_of_moments(first: Floats, second: Floats) -> Floats:
    """Return the effect from the means of p and p² in both classes: (draws, words, 2) twice -> (draws, words)."""
    difference = first[..., 0] - second[..., 0]
    below = np.where((difference > 0)[..., None], second, first)  # the deviation is that of the smaller mean
    variance = below[..., 1] - below[..., 0] ** 2
    deviation = np.sqrt(np.maximum(variance, 1e-12 * below[..., 1]))
    effect: Floats = difference / deviation
    return effect


def class_difference(values: Floats, positive: Bools) -> Floats:
    """Return the mean over positive minus the mean over negative reviews: (reviews, words) -> (words,)."""
    difference: Floats = values[positive].mean(axis=0) - values[~positive].mean(axis=0)
    return difference


def shuffled_differences(values: Floats, positive: Bools, *, rng: np.random.Generator, draws: int) -> Floats:
    """Return |class_difference| with shuffled labels, sorted for each word: (reviews, words) -> (draws, words)."""
    centred = values - values.mean(axis=0)  # numbers near zero are rounded less
    count, total = int(positive.sum()), len(positive)
    found = np.empty((draws, values.shape[1]))
    batch = max(1, _SHUFFLED_AT_ONCE // total)
    for done in range(0, draws, batch):
        rows = min(batch, draws - done)
        labels = rng.permuted(np.tile(positive, (rows, 1)), axis=1)
        # the centred values sum to 0: the negative reviews hold what the positive ones lack
        found[done : done + rows] = np.abs(labels.astype(np.float64) @ centred)
    found *= 1 / count + 1 / (total - count)
    found.sort(axis=0)
    return found


def shuffle_p(shuffled: Floats, difference: Floats) -> Floats:
    r"""Return p of the observed differences, two-sided: (draws, words) and (words,) -> (words,).

    .. math:: p = (1 + \#\{|T^*| \ge |T|\}) / (1 + \mathrm{draws})

    The same test as `stats.two_group_permutation`, except that the shuffles are kept: many sets of labels can be
    tested against them.
    """
    draws, words = shuffled.shape
    wanted = np.abs(difference) * (1 - _TIE)
    below = np.array([np.searchsorted(shuffled[:, word], wanted[word]) for word in range(words)])
    p: Floats = (1 + draws - below) / (1 + draws)
    return p


def chance_shares(
    probability: Floats, positive: Bools, shuffled: Floats, *, ms: Sequence[float], rng: np.random.Generator
) -> ChanceShares:
    """Return which shares of the words the test calls biased if the labels of the reviews mean nothing.

    The test, with its q-values, is made on reviews whose labels are shuffled: (reviews, words) -> (shuffles,) for
    each m and rule. `shuffled` differences of the same words give the p-values: shuffling labels twice has the
    distribution of shuffling them once. A word is called biased at m if its effect is larger than m.
    """
    shares: dict[tuple[float, str], list[float]] = {(m, rule): [] for m in ms for rule in RULES}
    for labels in rng.permuted(np.tile(positive, (SHUFFLES, 1)), axis=1):
        size = np.abs(sat_effect(probability[labels], probability[~labels]))
        q = benjamini_hochberg(shuffle_p(shuffled, class_difference(probability, labels)))
        for (m, rule), found in shares.items():
            found.append(float(signs_by_rule((size > m).astype(np.int64), q, rule).mean()))
    return {key: np.array(values) for key, values in shares.items()}


def chance_p(shares: Floats, share: float) -> float:
    """Return how often chance calls at least this share of the words biased."""
    return float((1 + (shares >= share - 1e-12).sum()) / (1 + len(shares)))


# ---- the shift test


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """What the shift test says of every appended word."""

    neg_diff: Floats  # (words, ks): accuracy on negative reviews before minus after
    pos_diff: Floats
    strength: WordScores  # (words,): the paper's q
    relative: WordScores  # (words,): strength minus that of the average other neutral word
    by_k: WordScores  # (words, ks): Neg_Diff − Pos_Diff
    graded: WordScores  # (words,): mean change of the log-odds of the label words
    relative_graded: WordScores  # (words,): the same minus that of the average other neutral word

    @property
    def opposite(self) -> Ints:
        """The sign of each word at each K if the accuracies move in opposite directions, else 0: (words, ks)."""
        negative, positive = np.sign(self.neg_diff), np.sign(self.pos_diff)
        signs: Ints = np.where(negative * positive < 0, negative, 0).astype(np.int64)
        return signs

    @property
    def contradicted(self) -> Bools:
        """Whether strength and graded strength are both found, with opposite signs: (words,)."""
        called = [signs_by_rule(each.signs, each.q, PAPER_AND_Q) for each in (self.strength, self.graded)]
        return called[0] * called[1] < 0

    @property
    def truly_neutral(self) -> Bools:
        """Whether both accuracies move, and the same way, at each K (§4.3): (words, ks)."""
        return np.sign(self.neg_diff) * np.sign(self.pos_diff) > 0


def measure_shift(
    before: Odds,
    after: Odds,
    positive: Bools,
    classes: Classes,
    *,
    ks: tuple[int, ...],
    rng: np.random.Generator,
    draws: int,
) -> Shift:
    """Test every appended word: log-odds before (reviews,) and after (words, ks, reviews), `classes` of words."""
    labels = labels_of(after) - labels_of(before)[None, None]
    moved = labels.astype(np.float64).transpose(2, 0, 1)  # (reviews, words, ks)
    value = (moved / np.square(ks, dtype=np.float64)).mean(axis=2)  # (reviews, words)
    change = (after - before[None, None]).mean(axis=1, dtype=np.float64).T / 2  # halved: two classes are summed
    # tested together: strength and graded strength, both also against the average, and each K
    single = (value, against_average(value, classes), change, against_average(change, classes))
    tested = np.concatenate([np.stack(single, axis=2), moved], axis=2)
    # the sum of two means is the difference of one and the other's negative
    interval = two_group_bootstrap(tested[~positive], -tested[positive], rng=rng, draws=draws)
    # the mean over all reviews of weighted values is the sum of the two classes' means
    weights = np.where(positive, len(positive) / positive.sum(), len(positive) / (~positive).sum())
    p = sign_flip_test(tested * weights[:, None, None], rng=rng, draws=draws_for(value.shape[1])).p
    q = q_by_class(p, classes)
    n = np.full(p.shape, len(positive), dtype=np.int64)
    neg_diff, pos_diff = moved[~positive].mean(axis=0), -moved[positive].mean(axis=0)

    def scores(column: int | slice, estimate: Floats) -> WordScores:
        low, high = interval.low[:, column], interval.high[:, column]
        return WordScores(
            numbers=Numbers(estimate=estimate, low=low, high=high, p=p[:, column], n=n[:, column]), q=q[:, column]
        )

    return Shift(
        neg_diff=neg_diff,
        pos_diff=pos_diff,
        strength=scores(0, sst_strength(neg_diff, pos_diff, ks)),
        relative=scores(1, interval.estimate[:, 1]),
        by_k=scores(slice(4, None), neg_diff - pos_diff),
        graded=scores(2, interval.estimate[:, 2]),
        relative_graded=scores(3, interval.estimate[:, 3]),
    )


def against_average(value: Floats, classes: Classes) -> Floats:
    """Return each word's value minus the average of the other neutral words: (reviews, words).

    The average is the interquartile mean: over the middle half of the others by their own mean, so that a few
    extreme words do not move it.

    >>> against_average(np.array([[0.0, 0.1, 0.2, 9.0, -9.0]]), np.array(["neutral"] * 5)).round(2)
    array([[-0.15,  0.  ,  0.15,  8.95, -9.15]])
    """
    order = np.argsort(value.mean(axis=0), kind="stable")
    order = order[classes[order] == "neutral"]
    relative = np.full(value.shape, np.nan)
    for word in range(value.shape[1]):
        others = order[order != word]
        cut = len(others) // 4
        if len(others):  # a single neutral word has no others
            relative[:, word] = value[:, word] - value[:, others[cut : len(others) - cut]].mean(axis=1)
    return relative


# ---- all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMeasures:
    """What was measured of one model; without tests if too few reviews were answered or a class has no words."""

    info: ModelInfo
    options: Options
    answers: ModelAnswers
    main_template: str  # of the headlines and comparisons
    checks: Mapping[str, SentimentCheck]  # by template
    associations: Mapping[str, Association]  # by template
    chances: Mapping[str, ChanceShares]  # by template, of the neutral words
    shifts: Mapping[tuple[str, str], Shift]  # by template and pair

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.info.name

    @property
    def measured(self) -> bool:
        """Whether there are enough reviews and words to say anything."""
        return bool(self.checks)

    @property
    def main_shift(self) -> Shift | None:
        """The shift test with the main template and the first pair of label words that the model has."""
        return self.shifts.get((self.main_template, self.main_pair or ""))

    @property
    def main_pair(self) -> str | None:
        """The first pair of label words that the model has."""
        return next((pair.name for pair in self.answers.words.pairs), None)

    def failed(self, template: str | None = None, pair: str | None = None) -> str:
        """Return why findings with a template and label words (default: the main ones) mean nothing, or ""."""
        check = self.checks.get(template or self.main_template)
        return "nothing was measured" if check is None else check.failed(pair or self.main_pair)

    def interpretable(self, template: str | None = None, pair: str | None = None) -> bool:
        """Tell whether findings with a template and label words (default: the main ones) can be interpreted."""
        return not self.failed(template, pair)


def measure_model(plan: Plan, records: Records) -> ModelMeasures:
    """Read and test the answers of one model."""
    answers = read_answers(plan, records, shift_templates=shift_templates(plan, records))
    return measure_answers(plan, answers, main=main_template(plan, records))


def measure_answers(plan: Plan, answers: ModelAnswers, *, main: str) -> ModelMeasures:
    """Test the answers of one model, with its main template."""
    options: Options = plan.options
    rng = model_rng(plan.seed, plan.model.name)
    positive, classes, draws = answers.positive, answers.classes, options.draws
    neutral = classes == "neutral"
    most = max(len(words) for words in answers.words.used.values())
    enough = max(draws_for(int(neutral.sum())), 20 * most)
    checks = check_templates(plan, answers, rng=rng)
    associations, chances, shifts = {}, {}, {}
    for template in answers.probability if checks else ():  # a classifier has no words to expect
        probability = answers.probability[template]
        shuffled = shuffled_differences(probability, positive, rng=rng, draws=enough)
        associations[template] = measure_association(
            probability, positive, classes, shuffled, ms=options.ms, rng=rng, draws=draws
        )
        chances[template] = chance_shares(
            probability[:, neutral], positive, shuffled[:, neutral], ms=options.ms, rng=rng
        )
    for key, after in answers.after.items() if checks else ():
        shifts[key] = measure_shift(
            answers.before[key], after, positive, answers.shift_classes, ks=options.ks, rng=rng, draws=draws
        )
    return ModelMeasures(
        info=plan.model,
        options=options,
        answers=answers,
        main_template=main,
        checks=checks,
        associations=associations,
        chances=chances,
        shifts=shifts,
    )
