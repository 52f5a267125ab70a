"""Which way single words lean: the association test and the strength of the shift test (sentiment-words audit)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDING = 1e-12  # relative: two means of the same values in another order, or in longer sums, count as equal


def sat_polarity(p_pos: ArrayLike, p_neg: ArrayLike, *, m: float) -> Ints:
    r"""Return the polarity of each word by the Sentiment Association Test: 1 positive, −1 negative, 0 neither.

    .. math:: \bar p^+ > \bar p^- + m\,\sigma^- \;\Rightarrow\; +1, \qquad
              \bar p^- > \bar p^+ + m\,\sigma^+ \;\Rightarrow\; -1

    with mean and standard deviation over the reviews of one class, §3.2 of the paper. It does not say which
    standard deviation; ours divides by the number of reviews (ddof = 0; the other is 0.03 % larger at 2,000).

    `p_pos` (positive reviews, words) and `p_neg` (negative reviews, words) hold the probability of each word at
    the mask; the classes may differ in size. NaN is a missing review and is left out. A word without any value in
    one of the classes raises ValueError, because whole numbers have no NaN. Leave such words out; `sat_effect`
    gives NaN for them.

    Means 0.3 and 0.1, deviation 0.1 of the second: the word is called positive for m < 2.

    >>> sat_polarity([[0.2], [0.4]], [[0.0], [0.2]], m=1.5), sat_polarity([[0.2], [0.4]], [[0.0], [0.2]], m=2.5)
    (array([1]), array([0]))
    """
    if not m >= 0:  # also true of NaN
        raise ValueError(f"m is {m}; expected a number of standard deviations, 0 or more")
    positive, negative = _moments(p_pos, p_neg)
    missing = np.flatnonzero(np.isnan(positive.mean) | np.isnan(negative.mean))
    if missing.size:
        raise ValueError(
            f"word {missing[0]} (of {missing.size} such) has no value in one of the classes; leave out words that "
            "were never scored"
        )
    difference = _difference(positive, negative)
    above = difference > m * negative.deviation
    below = -difference > m * positive.deviation
    polarity: Ints = above.astype(np.int64) - below.astype(np.int64)
    return polarity


def sat_effect(p_pos: ArrayLike, p_neg: ArrayLike) -> Floats:
    r"""Return how far apart the two classes are for each word, in the unit of the Sentiment Association Test.

    .. math:: e = \begin{cases} (\bar p^+ - \bar p^-)/\sigma^- & \bar p^+ > \bar p^- \\
                                (\bar p^+ - \bar p^-)/\sigma^+ & \text{else} \end{cases}

    `sat_polarity` calls a word biased, with the sign of e, if |e| > m. Shapes and missing values as there; NaN if
    a word has no value in one of the classes, ±inf if the class with the smaller mean does not vary (as with a
    single review).

    >>> sat_effect([[0.2], [0.4]], [[0.0], [0.2]]).round(6)
    array([2.])
    """
    positive, negative = _moments(p_pos, p_neg)
    difference = _difference(positive, negative)
    unit = np.where(difference > 0, negative.deviation, positive.deviation)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / unit)


def sst_strength(neg_diff: ArrayLike, pos_diff: ArrayLike, ks: Sequence[int]) -> Floats:
    r"""Return the strength q of each word's lean in the Sentiment Shift Test; positive means a positive lean.

    .. math:: q = \frac{1}{n} \sum_K \frac{\mathrm{Neg\_Diff}_K - \mathrm{Pos\_Diff}_K}{K^2}

    §3.3 of the paper: Neg_Diff and Pos_Diff are the accuracy on negative and on positive reviews before minus
    after the word was appended K times, and n is the number of K. The unit is that of the accuracies; the scores
    that the paper prints are larger than its formula can give, so only ranks can be compared with it.

    `neg_diff` and `pos_diff` have shape (..., K), in the order of `ks`; the result has shape (...). A missing
    difference (NaN) makes q NaN.

    K = 5 and 10: ½ · ((10 − −5)/25 + (20 − −10)/100) = ½ · (0.6 + 0.3)

    >>> sst_strength([[10.0, 20.0]], [[-5.0, -10.0]], [5, 10])
    array([0.45])
    """
    negative, positive = np.asarray(neg_diff, dtype=np.float64), np.asarray(pos_diff, dtype=np.float64)
    times = np.asarray(ks, dtype=np.float64)
    if times.ndim != 1 or not times.size or not (times >= 1).all():
        raise ValueError(f"ks is {ks!r}; expected at least one number of repetitions, each 1 or more")
    if negative.shape != positive.shape or negative.shape[-1:] != times.shape:
        raise ValueError(
            f"found shapes {negative.shape} and {positive.shape} for {times.size} ks; expected (..., ks) twice"
        )
    strength: Floats = ((negative - positive) / times**2).mean(axis=-1)
    return strength


@dataclass(frozen=True, slots=True)
class _Moments:
    mean: Floats  # (words,)
    deviation: Floats


def _moments(*classes: ArrayLike) -> tuple[_Moments, ...]:
    arrays = [np.asarray(values, dtype=np.float64) for values in classes]
    if any(array.ndim != 2 for array in arrays) or len({array.shape[1] for array in arrays}) != 1:
        raise ValueError(
            f"found shapes {' and '.join(str(array.shape) for array in arrays)}; expected (reviews, words) twice, "
            "with the same words"
        )
    return tuple(_moments_of(array) for array in arrays)


def _moments_of(values: Floats) -> _Moments:
    present = ~np.isnan(values)
    n = present.sum(axis=0)
    with np.errstate(invalid="ignore"):  # a word without any value: 0/0
        mean = np.where(present, values, 0.0).sum(axis=0) / n
        deviations = np.where(present, values - mean, 0.0)
        deviations[np.abs(deviations) <= _ROUNDING * np.abs(mean)] = 0.0
        return _Moments(mean, np.sqrt((deviations**2).sum(axis=0) / n))


def _difference(positive: _Moments, negative: _Moments) -> Floats:
    difference: Floats = positive.mean - negative.mean
    difference[np.abs(difference) <= _ROUNDING * np.abs(positive.mean)] = 0.0
    return difference
