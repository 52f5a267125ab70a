"""Two groups, and a case against controls: intervals cover a known truth, and tests keep their error rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from clinometer.stats import permutation_test, single_case_test, two_group_bootstrap, two_group_permutation
from clinometer.stats._clusters import group_items
from clinometer.stats._resampling import Draws, limits, resample

DATA_SETS = 2000  # a share of 95 % has a standard error of 0.5 %

Sampler = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


@dataclass(frozen=True)
class Setting:
    items: tuple[int, int]  # in the first and in the second group
    draw: tuple[Sampler, Sampler]
    truth: float


def normal(deviation: float) -> Sampler:
    return lambda rng, shape: rng.normal(0, deviation, size=shape)


def lognormal(sigma: float, scale: float = 1.0) -> Sampler:
    # mean scale · exp(σ²/2), variance scale² · (exp σ² − 1) · exp σ²
    return lambda rng, shape: scale * np.exp(rng.normal(0, sigma, size=shape))


def beta(a: float, b: float) -> Sampler:
    return lambda rng, shape: rng.beta(a, b, size=shape)


def binary(p: float) -> Sampler:
    return lambda rng, shape: (rng.random(shape) < p).astype(float)


SETTINGS = {
    "normal": Setting((30, 30), (normal(1), normal(1)), 0.0),
    "few with a large spread against many with a small": Setting((20, 60), (normal(3), normal(1)), 0.0),
    "skewed probabilities": Setting((40, 40), (beta(0.6, 2.4), beta(2, 8)), 0.0),  # both have mean 0.2
    "exp(normal), equal": Setting((100, 100), (lognormal(1), lognormal(1)), 0.0),
    "exp(normal), very skewed but equal": Setting((400, 400), (lognormal(1.5), lognormal(1.5)), 0.0),
    "exp(normal), unequal spread": Setting(
        (400, 400), (lognormal(1), lognormal(0.5)), np.exp(1 / 2) - np.exp(1 / 8)
    ),
    "accuracies": Setting((60, 60), (binary(0.1), binary(0.3)), -0.2),
    "rare events": Setting((400, 400), (binary(0.02), binary(0.02)), 0.0),
}


def simulate(setting: Setting, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    first, second = (
        draw(rng, (items, DATA_SETS)) for draw, items in zip(setting.draw, setting.items, strict=True)
    )
    return first, second


@pytest.mark.parametrize("name", SETTINGS)
def test_95_percent_intervals_cover_93_to_97_percent(name):
    setting = SETTINGS[name]
    rng = np.random.default_rng(0)
    first, second = simulate(setting, rng)
    shares = []
    for some in np.array_split(np.arange(DATA_SETS), 10):  # each tenth of the data sets has draws of its own
        found = two_group_bootstrap(first[:, some], second[:, some], rng=rng, draws=999, null=setting.truth)
        inside = (found.low <= setting.truth) & (setting.truth <= found.high)
        np.testing.assert_array_equal(found.p <= 1 - 0.95, ~inside)  # p and interval never contradict each other
        shares.append(inside.mean())
    assert 0.93 <= np.mean(shares) <= 0.97


def test_a_quantile_for_each_tail_fails_the_same_check():
    # very skewed but equal groups: what cluster_bootstrap does with its tails covers 90 % here
    rng = np.random.default_rng(0)
    first, second = (group[:, :600] for group in simulate(SETTINGS["exp(normal), very skewed but equal"], rng))
    single = group_items(None, 400)
    drawn = [
        resample(group - group.mean(axis=0), single, studentized=600, rng=rng, draws=999)
        for group in (first, second)
    ]
    moved = Draws(drawn[0].means - drawn[1].means, np.hypot(drawn[0].errors, drawn[1].errors))
    error = np.sqrt((first.var(axis=0, ddof=1) + second.var(axis=0, ddof=1)) / 400)
    found = limits(first.mean(axis=0) - second.mean(axis=0), error, moved, null=0.0, alpha=0.05)
    assert ((found.low <= 0) & (found.high >= 0)).mean() < 0.925
    too_short = two_group_bootstrap(first, second, rng=rng, draws=999, level=0.90)
    assert ((too_short.low <= 0) & (too_short.high >= 0)).mean() < 0.93


def squares(values: np.ndarray) -> np.ndarray:
    return np.stack([values, values**2], axis=-1)


def effect(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The association test's effect: the difference over the deviation of the group with the smaller mean."""
    difference = one[..., 0] - other[..., 0]
    variances = [means[..., 1] - means[..., 0] ** 2 for means in (one, other)]
    return difference / np.sqrt(np.where(difference > 0, variances[1], variances[0]))


# mean e^½ and variance (e − 1) e for σ = 1: 1.5 times as much differs by ½ e^½ / √((e − 1) e)
LOGNORMAL_EFFECT = 0.5 * np.exp(0.5) / np.sqrt((np.e - 1) * np.e)


@pytest.mark.parametrize(
    ("items", "draw", "truth", "at_most"),
    [
        (100, (lambda rng, shape: 1 + normal(1)(rng, shape), normal(1)), 1.0, 0.97),
        (400, (lognormal(1, scale=1.5), lognormal(1)), LOGNORMAL_EFFECT, 0.97),
        (400, (lognormal(1), lognormal(1, scale=1.5)), -LOGNORMAL_EFFECT, 0.97),
        # at 0 the unit changes from one group's deviation to the other's, which makes the draws spread more
        (400, (lognormal(1), lognormal(1)), 0.0, 0.985),
    ],
)
def test_an_effect_in_standard_deviations_is_covered_too(items, draw, truth, at_most):
    rng = np.random.default_rng(0)
    first, second = simulate(Setting((items, items), draw, truth), rng)
    inside = []
    for some in np.array_split(np.arange(DATA_SETS), 10):
        found = two_group_bootstrap(
            squares(first[:, some]), squares(second[:, some]), statistic=effect, rng=rng, draws=499
        )
        inside.append((found.low <= truth) & (truth <= found.high))
    assert 0.93 <= np.mean(inside) <= at_most
    assert found.n.tolist() == [2 * items] * 200


def test_by_hand():
    # means 3 and 1: difference 2. Deviations (−1, 0, 1) and (−1, 1): s² = 2/(3·2) + 2/(2·1) = 4/3
    found = two_group_bootstrap([2.0, 3.0, 4.0], [0.0, 2.0], rng=np.random.default_rng(0))
    assert found.estimate == 2.0
    assert found.n == 5
    assert found.high - 2.0 == pytest.approx(2.0 - found.low)
    # as a function of the means the same statistic gives the same interval, also where it is computed by slopes
    slopes = two_group_bootstrap(
        [2.0, 3.0, 4.0], [0.0, 2.0], statistic=lambda one, other: one - other, rng=np.random.default_rng(0)
    )
    assert slopes.low == pytest.approx(found.low, rel=1e-6)


def test_the_standard_error_is_welchs():
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.3, 1, size=(300, 1)), rng.normal(0, 2, size=(500, 1))
    found = two_group_bootstrap(first, second, rng=rng)
    welch = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    # with hundreds of normal values t* is almost Student's t
    assert found.low[0] == pytest.approx(welch.low[0], abs=0.03)
    assert found.high[0] == pytest.approx(welch.high[0], abs=0.03)


def test_missing_values_are_left_out_and_counted():
    rng = np.random.default_rng(0)
    first, second = rng.normal(1, 1, size=(60, 3)), rng.normal(0, 1, size=(50, 3))
    holed = np.concatenate([first, np.full((20, 3), np.nan)])
    holed[:, 1] = np.nan  # nothing in this column
    holed[1:, 2] = np.nan  # one value, which has no spread to speak of
    found = two_group_bootstrap(holed, second, rng=np.random.default_rng(1))
    assert found.n.tolist() == [110, 50, 51]
    assert found.estimate[0] == pytest.approx(first[:, 0].mean() - second[:, 0].mean())
    assert np.isnan([found.estimate[1], found.low[1], found.p[1]]).all()
    assert found.estimate[2] == pytest.approx(first[0, 2] - second[:, 2].mean())
    assert np.isnan([found.low[2], found.high[2], found.p[2]]).all()
    whole = two_group_bootstrap(first[:, 0], second[:, 0], rng=np.random.default_rng(1))
    assert found.high[0] - found.low[0] == pytest.approx(whole.high - whole.low, rel=0.1)


def test_missing_values_do_not_spoil_coverage():
    rng = np.random.default_rng(0)
    first, second = simulate(SETTINGS["exp(normal), equal"], rng)
    first[rng.random(first.shape) < 0.2] = np.nan
    found = two_group_bootstrap(first, second, rng=rng, draws=999)
    assert 0.93 <= ((found.low <= 0) & (found.high >= 0)).mean() <= 0.975


def test_values_that_never_differ():
    same = two_group_bootstrap(np.full(70, 0.3), np.full(49, 0.3), rng=np.random.default_rng(0))
    assert same.estimate == same.low == same.high == 0.0  # whatever rounding makes of the two means
    assert same.p == 1.0
    other = two_group_bootstrap(np.full(70, 0.3), np.full(49, 0.1), rng=np.random.default_rng(0))
    assert other.low == other.high == pytest.approx(0.2)
    assert other.p == 2 / 2000


def test_a_single_item_has_no_interval():
    found = two_group_bootstrap([1.0], [2.0, 4.0], rng=np.random.default_rng(0))
    assert found.estimate == -2.0
    assert np.isnan([found.low, found.high, found.p]).all()


def test_a_statistic_that_many_draws_cannot_give_has_no_interval():
    # the second group's deviation hangs on one item of 40, which 36 % of the draws leave out
    first, second = np.random.default_rng(0).random((50, 2)), np.zeros((40, 2))
    second[0] = 0.3
    second[:, 1] = 0.3  # no deviation at all: not even an estimate
    found = two_group_bootstrap(squares(first), squares(second), statistic=effect, rng=np.random.default_rng(0))
    assert found.estimate[0] == pytest.approx(first[:, 0].mean() / second[:, 0].std() - 1 / np.sqrt(39))
    assert not np.isfinite(found.estimate[1])
    assert np.isnan([found.low, found.high, found.p]).all()


@pytest.mark.parametrize("events", [1, 2, 5])
def test_a_handful_of_events_among_many_items_has_a_finite_interval(events):
    first, second = np.zeros(2000), np.zeros(2000)
    first[:events] = 1.0
    found = two_group_bootstrap(first, second, rng=np.random.default_rng(0))
    assert -10 / 2000 < found.low <= found.estimate < found.high < 20 / 2000
    assert (found.p <= 1 - 0.95) == (found.low > 0 or found.high < 0)


def test_columns_are_resampled_jointly_and_keep_their_shape():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(30, 2, 3)), rng.normal(size=(25, 2, 3))
    found = two_group_bootstrap(first, second, rng=np.random.default_rng(1))
    assert found.low.shape == found.p.shape == found.n.shape == (2, 3)
    alone = two_group_bootstrap(first[:, 1, 2], second[:, 1, 2], rng=np.random.default_rng(1))
    assert found.low[1, 2] == pytest.approx(alone.low)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"first": [], "second": [1.0]}, "at least one item"),
        ({"first": 1.0, "second": 2.0}, "two groups"),
        ({"first": [[1.0]], "second": [[1.0, 2.0]]}, "same columns"),
        ({"first": [1.0, np.inf], "second": [1.0]}, "infinite"),
        ({"first": [1.0, 2.0], "second": [1.0, 2.0], "draws": 20}, "draws"),
        ({"first": [1.0, 2.0], "second": [1.0, 2.0], "level": 95.0}, "level"),
        ({"first": [1.0, 2.0], "second": [1.0, 2.0], "statistic": lambda a, b: (a - b).sum()}, "one row for each"),
    ],
)
def test_bad_input_is_named(arguments, said):
    with pytest.raises(ValueError, match=said):
        two_group_bootstrap(**arguments, rng=np.random.default_rng(0))
    if "draws" not in arguments and "level" not in arguments and "statistic" not in arguments:
        with pytest.raises(ValueError, match=said):
            two_group_permutation(**arguments, rng=np.random.default_rng(0))


def groups(size):
    elements = st.floats(-100, 100, allow_subnormal=False).map(lambda x: round(x, 3))
    return hnp.arrays(np.float64, (size,), elements=elements)


def ends(first, second):
    found = two_group_bootstrap(first, second, rng=np.random.default_rng(0), draws=199)
    assert found.low <= found.estimate <= found.high
    assert 0 < found.p <= 1
    return np.array([found.low, found.estimate, found.high])


@settings(deadline=None, max_examples=40)
@given(groups(9), groups(9), st.floats(-50, 50), st.floats(0.1, 10))
# draws of the seven equal items of both groups have no spread, and are at the estimate but for rounding
@example(
    np.array([90.093] * 7 + [179.823, 52.459]),
    np.array([-71.168] * 7 + [18.562, -108.802]),
    32.77,
    4.290931844828498,
)
@example(
    np.array([-69.895] * 6 + [9.048, -85.352, -51.995]),
    np.array([-3.558] * 6 + [75.385, -19.015, 14.342]),
    17.35,
    0.3424577071842957,
)
def test_shift_and_scale_carry_over(first, second, shift, scale):
    plain = ends(first, second)
    np.testing.assert_allclose(ends(first * scale, second * scale), scale * plain, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ends(first + shift, second + shift), plain, atol=1e-6)
    np.testing.assert_allclose(ends(first + shift, second), plain + shift, atol=1e-6)
    np.testing.assert_allclose(ends(-first, -second), -plain[::-1], atol=1e-6)


def test_permutation_agrees_with_scipy_and_with_the_general_test():
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.5, 1, size=(9, 4)), rng.normal(0, 1, size=(7, 4))
    found = two_group_permutation(first, second, rng=np.random.default_rng(1))
    np.testing.assert_allclose(found.estimate, first.mean(axis=0) - second.mean(axis=0))
    assert found.n.tolist() == [16] * 4
    exact = stats.permutation_test(
        (first, second),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        vectorized=True,
        n_resamples=np.inf,
    )  # all 11,440 ways; random shuffles err by at most 3 · √(p (1 − p) / 9999)
    assert found.p == pytest.approx(exact.pvalue, abs=0.02)
    general = permutation_test(
        np.concatenate([first, second]), np.arange(16) < 9, rng=np.random.default_rng(1), draws=9999
    )
    np.testing.assert_allclose(found.p, general.p)


def test_permutation_p_values_are_uniform_where_nothing_differs():
    rng = np.random.default_rng(0)
    first, second = np.exp(rng.normal(size=(80, 1000))), np.exp(rng.normal(size=(120, 1000)))
    p = two_group_permutation(first, second, rng=rng, draws=999).p
    # 1,000 tests at 5 %: 50 expected, standard deviation 7
    assert 29 <= (p <= 0.05).sum() <= 71


def test_permutation_with_missing_and_constant_columns():
    rng = np.random.default_rng(0)
    first, second = rng.normal(3, 1, size=(40, 3)), rng.normal(0, 1, size=(40, 3))
    first[::4, 0] = np.nan
    first[:, 1] = second[:, 1] = 0.3
    first[:, 2] = np.nan
    found = two_group_permutation(first, second, rng=rng, draws=999)
    assert found.n.tolist() == [70, 80, 40]
    assert found.p[0] == 2 / 1000
    assert found.estimate[1] == 0.0
    assert found.p[1] == 1.0
    assert np.isnan(found.estimate[2])
    assert np.isnan(found.p[2])


def test_tiny_probabilities_are_tested_as_well_as_large_ones():
    rng = np.random.default_rng(0)
    first, second = np.exp(rng.normal(0.3, 1, size=(100, 5))), np.exp(rng.normal(0, 1, size=(100, 5)))
    large = two_group_permutation(first, second, rng=np.random.default_rng(1), draws=999)
    tiny = two_group_permutation(first * 1e-12, second * 1e-12, rng=np.random.default_rng(1), draws=999)
    np.testing.assert_array_equal(large.p, tiny.p)
    large = two_group_bootstrap(first, second, rng=np.random.default_rng(1))
    tiny = two_group_bootstrap(first * 1e-12, second * 1e-12, rng=np.random.default_rng(1))
    np.testing.assert_allclose(tiny.low, large.low * 1e-12)


def test_single_case_by_hand():
    # controls 1, 2, 3: m = 2, s = 1; case 6: t = 4 / √(1 + 1/3) = 3.4641 with 2 degrees of freedom.
    # For 2 degrees the tail is known: p = 1 − t / √(2 + t²) = 1 − 3.4641 / √14 = .07418
    found = single_case_test([6.0, -2.0, 2.0], [1.0, 2.0, 3.0])
    assert found.estimate == pytest.approx([4, -4, 0])
    assert found.p == pytest.approx([0.07418, 0.07418, 1], abs=1e-5)
    assert found.n.tolist() == [3, 3, 3]


def test_as_a_two_sample_t_test_with_one_sample_of_one():
    """With one value on one side the pooled variance is the other side's: Student's test is the same."""
    rng = np.random.default_rng(0)
    controls = rng.normal(size=12)
    for case in (-2.0, 0.1, 3.0):
        expected = stats.ttest_ind([case], controls, equal_var=True).pvalue
        assert single_case_test([case], controls).p[0] == pytest.approx(expected)


def test_missing_values_and_controls_without_spread():
    found = single_case_test([1.0, np.nan], [0.0, np.nan, 0.5, 0.2])
    assert found.n.tolist() == [3, 0]
    assert np.isnan(found.p).tolist() == [False, True]
    assert np.isnan(single_case_test([1.0], [0.1 + 0.2, 0.3, 0.3]).p).all()
    assert np.isnan(single_case_test([1.0], [0.3]).p).all()
    assert np.isnan(single_case_test([1.0], []).estimate).all()


def test_error_rate():
    """20,000 cases from the controls' own distribution: p ≤ .05 in 5 %, standard deviation .15 %."""
    rng = np.random.default_rng(1)
    p = [single_case_test(rng.normal(size=20), rng.normal(size=8)).p for _ in range(1000)]
    assert (np.concatenate(p) <= 0.05).mean() == pytest.approx(0.05, abs=0.01)  # 1,000 sets of controls
