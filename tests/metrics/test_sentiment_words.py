"""The association test and the shift test's strength, worked by hand and against plain loops."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clinometer.metrics import sat_effect, sat_polarity, sst_strength

# Three words, two positive and three negative reviews.
#   great:  positive .2 .4        mean .3   std .1
#           negative .0 .1 .2     mean .1   std √(.02/3) = .08165    effect (.3 − .1)/.08165 = 2.449
#   cheese: positive .0 .2        mean .1   std .1
#           negative .1 .3 .5     mean .3   std √(.08/3) = .1633     effect −(.3 − .1)/.1 = −2
#   table:  positive .1 .3        mean .2   std .1
#           negative .1 .2 .3     mean .2                            effect 0
POSITIVE = np.array([[0.2, 0.0, 0.1], [0.4, 0.2, 0.3]])
NEGATIVE = np.array([[0.0, 0.1, 0.1], [0.1, 0.3, 0.2], [0.2, 0.5, 0.3]])


@pytest.mark.parametrize(
    ("m", "expected"),
    [
        (0, [1, -1, 0]),
        (0.5, [1, -1, 0]),
        (1.9, [1, -1, 0]),
        (2.1, [1, 0, 0]),  # past cheese's 2
        (2.5, [0, 0, 0]),  # past great's 2.449
    ],
)
def test_polarity_by_hand(m, expected):
    polarity = sat_polarity(POSITIVE, NEGATIVE, m=m)
    assert polarity.tolist() == expected
    assert polarity.dtype == np.int64


def test_effect_by_hand():
    assert sat_effect(POSITIVE, NEGATIVE) == pytest.approx([0.2 / math.sqrt(0.02 / 3), -2.0, 0.0])


def test_the_unit_is_the_deviation_of_the_class_with_the_smaller_mean():
    # the positive class never varies: the word is positive by the spread of the negative class, .1
    steady = [[0.3], [0.3]]
    wide = [[0.0], [0.2]]
    assert sat_effect(steady, wide) == pytest.approx([2.0])
    assert sat_effect(wide, steady) == pytest.approx([-2.0])
    assert sat_effect([[0.3], [0.5]], [[0.1], [0.1]]) == [np.inf]
    assert sat_effect([[0.1]] * 3, [[0.3], [0.5]]) == [-np.inf]
    assert sat_polarity([[0.1]] * 3, [[0.3], [0.5]], m=1e9).tolist() == [-1]
    assert sat_effect([[0.1]] * 3, [[0.1]] * 7) == [0.0]  # the same value in sums of another length
    assert sat_polarity([[0.1]] * 3, [[0.1]] * 7, m=0).tolist() == [0]


def test_missing_reviews_are_left_out_and_missing_words_are_not_neutral():
    holed = np.concatenate([NEGATIVE, np.full((2, 3), np.nan)])
    np.testing.assert_array_equal(sat_effect(POSITIVE, holed), sat_effect(POSITIVE, NEGATIVE))
    assert sat_polarity(POSITIVE, holed, m=1).tolist() == [1, -1, 0]
    holed[:, 1] = np.nan
    assert np.isnan(sat_effect(POSITIVE, holed)).tolist() == [False, True, False]
    with pytest.raises(ValueError, match=r"word 1 \(of 1 such\) has no value"):
        sat_polarity(POSITIVE, holed, m=1)


@pytest.mark.parametrize(
    ("p_pos", "p_neg", "m", "said"),
    [
        (POSITIVE, NEGATIVE, -0.5, "m is -0.5"),
        (POSITIVE, NEGATIVE, math.nan, "m is nan"),
        (POSITIVE, NEGATIVE[:, :2], 1, "same words"),
        (POSITIVE[0], NEGATIVE[0], 1, r"expected \(reviews, words\)"),
        (np.zeros((0, 3)), NEGATIVE, 1, "no value"),
    ],
)
def test_bad_input_is_named(p_pos, p_neg, m, said):
    with pytest.raises(ValueError, match=said):
        sat_polarity(p_pos, p_neg, m=m)


def plain_polarity(positive, negative, m):
    """The paper's sentence, word by word."""
    polarity = []
    for word in range(positive.shape[1]):
        liked = [float(p) for p in positive[:, word] if not math.isnan(p)]
        disliked = [float(p) for p in negative[:, word] if not math.isnan(p)]
        if statistics.fmean(liked) > statistics.fmean(disliked) + m * statistics.pstdev(disliked):
            polarity.append(1)
        elif statistics.fmean(disliked) > statistics.fmean(liked) + m * statistics.pstdev(liked):
            polarity.append(-1)
        else:
            polarity.append(0)
    return polarity


@pytest.mark.parametrize("m", [0.5, 1, 1.5])
def test_agrees_with_a_plain_loop(m):
    rng = np.random.default_rng(0)
    lean = rng.normal(0, 1.5, size=60)
    positive = np.exp(rng.normal(lean / 2, 0.7, size=(40, 60)))
    negative = np.exp(rng.normal(-lean / 2, 0.7, size=(30, 60)))
    positive[rng.random(positive.shape) < 0.1] = np.nan
    polarity = sat_polarity(positive, negative, m=m)
    assert polarity.tolist() == plain_polarity(positive, negative, m)
    assert set(polarity.tolist()) == {-1, 0, 1}  # all three were tried


probabilities = st.floats(0, 1).map(lambda p: round(p, 4))
classes = st.integers(1, 4).flatmap(
    lambda words: st.tuples(
        *(
            st.integers(2, 6).flatmap(
                lambda reviews: hnp.arrays(np.float64, (reviews, words), elements=probabilities)
            )
            for _ in range(2)
        )
    )
)


@settings(max_examples=200, deadline=None)
@given(classes, st.floats(0, 3))
def test_polarity_is_the_sign_of_an_effect_larger_than_m(both, m):
    effect = sat_effect(*both)
    assume((np.abs(np.abs(effect) - m) > 1e-9).all())
    np.testing.assert_array_equal(sat_polarity(*both, m=m), np.where(np.abs(effect) > m, np.sign(effect), 0))


@settings(max_examples=100, deadline=None)
@given(classes, st.floats(0.1, 3), st.floats(0.01, 100))
def test_swapping_the_classes_flips_the_sign_and_scale_does_not_matter(both, m, scale):
    positive, negative = both
    effect = sat_effect(positive, negative)
    np.testing.assert_allclose(sat_effect(negative, positive), -effect)
    assume((np.abs(np.abs(effect) - m) > 1e-9).all())
    polarity = sat_polarity(positive, negative, m=m)
    np.testing.assert_array_equal(sat_polarity(negative, positive, m=m), -polarity)
    np.testing.assert_array_equal(sat_polarity(scale * positive, scale * negative, m=m), polarity)
    stricter = sat_polarity(positive, negative, m=m + 1)  # a larger m can only take verdicts away
    assert (np.abs(stricter) <= np.abs(polarity)).all()


def test_strength_by_hand():
    # K = 5: (4 − −2)/25 = .24; K = 10: (6 − −3)/100 = .09; K = 15: (9 − 0)/225 = .04; mean .37/3
    assert sst_strength([4, 6, 9], [-2, -3, 0], [5, 10, 15]) == pytest.approx(0.37 / 3)
    # fidelity: the largest magnitude with accuracies in percent, (200/25 + 200/100 + 200/225)/3 = 3.63
    assert sst_strength([100.0] * 3, [-100.0] * 3, [5, 10, 15]) == pytest.approx(3.63, abs=0.001)


def test_strength_of_many_words_keeps_their_shape_and_missing_stays_missing():
    rng = np.random.default_rng(0)
    ks = (5, 10, 15)
    negative, positive = rng.normal(size=(2, 7, 4, 3))
    negative[2, 1, 0] = np.nan
    strength = sst_strength(negative, positive, ks)
    assert strength.shape == (7, 4)
    for i in range(7):
        for j in range(4):
            plain = sum((negative[i, j, k] - positive[i, j, k]) / ks[k] ** 2 for k in range(3)) / 3
            assert strength[i, j] == pytest.approx(plain, nan_ok=True)
    assert np.isnan(strength).sum() == 1
    np.testing.assert_array_equal(sst_strength(positive, negative, ks), -strength)


@pytest.mark.parametrize(
    ("negative", "positive", "ks", "said"),
    [
        ([1.0], [1.0], [], "ks is"),
        ([1.0], [1.0], [0], "ks is"),
        ([1.0], [1.0], [5, 10], "2 ks"),
        ([1.0, 2.0], [1.0], [5, 10], "found shapes"),
        (1.0, 1.0, [5], "found shapes"),
    ],
)
def test_bad_differences_are_named(negative, positive, ks, said):
    with pytest.raises(ValueError, match=said):
        sst_strength(negative, positive, ks)
