from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import clinometer.metrics.fairness_resampling as resampling
from clinometer.metrics import (
    above_threshold,
    demographic_disparity,
    epsilon_fair,
    fairness_interval,
    fairness_null,
    fairness_nulls,
    group_fairness,
    individual_fairness,
    individual_interval,
    individual_intervals,
    paired_change,
    pairwise_wasserstein,
    subgroup_wasserstein,
    wasserstein1,
)
from clinometer.metrics.fairness import quantile_grid, small_labels
from clinometer.metrics.fairness_pooled import PooledDistances
from clinometer.metrics.value_means import shuffled_scores

SAMPLES = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=30)


def test_by_hand():
    # equal sizes: sorted, 0.1 → 0.2 and 0.5 → 0.9, mean of 0.1 and 0.4
    assert wasserstein1([0.5, 0.1], [0.2, 0.9]) == pytest.approx(0.25)
    # thirds against halves: steps of 1/3, 1/6, 1/6, 1/3 with |0 − 0|, |0.6 − 0|, |0.6 − 1|, |1 − 1|
    assert wasserstein1([0, 0.6, 1], [0, 1]) == pytest.approx(0.6 / 6 + 0.4 / 6)
    # one score: the mean distance to it
    assert wasserstein1([0.5], [0.0, 0.5, 0.6, 1.0]) == pytest.approx((0.5 + 0 + 0.1 + 0.5) / 4)


@given(SAMPLES, SAMPLES)
def test_equal_to_scipy(x, y):
    assert wasserstein1(x, y) == pytest.approx(stats.wasserstein_distance(x, y), abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(1000, 1000), (1000, 999), (25, 1000), (1, 7)])
def test_equal_to_scipy_for_large_samples(n, m):
    rng = np.random.default_rng(0)
    x, y = rng.beta(2, 5, size=n), np.round(rng.beta(5, 2, size=m), 1)
    assert wasserstein1(x, y) == pytest.approx(stats.wasserstein_distance(x, y), abs=1e-12)


@given(SAMPLES, SAMPLES, SAMPLES)
def test_it_is_a_distance(x, y, z):
    assert wasserstein1(x, x) == 0
    assert wasserstein1(x, y) == pytest.approx(wasserstein1(y, x), abs=1e-12)
    assert wasserstein1(x, z) <= wasserstein1(x, y) + wasserstein1(y, z) + 1e-12


def test_it_is_the_mean_disparity_over_thresholds():
    """Equation 1: E over uniform τ of |p(S > τ) − p(S̃ > τ)|, here on a fine grid of τ."""
    rng = np.random.default_rng(1)
    x, y = rng.beta(2, 3, size=40), rng.beta(3, 2, size=25)
    thresholds = (np.arange(200_000) + 0.5) / 200_000
    above = [1 - np.searchsorted(np.sort(each), thresholds, side="right") / len(each) for each in (x, y)]
    assert wasserstein1(x, y) == pytest.approx(np.abs(above[0] - above[1]).mean(), abs=1e-5)


@pytest.mark.parametrize(
    ("a", "b"), [((0.3, 0.2), (0.7, 0.2)), ((0.5, 0.1), (0.5, 0.3)), ((0.45, 0.15), (0.55, 0.15))]
)
def test_truncated_gaussians(a, b):
    """The paper's Figure 2: two Gaussians cut to [0, 1]; W1 is the area between their distribution functions."""
    curves = [stats.truncnorm(-mean / sd, (1 - mean) / sd, loc=mean, scale=sd) for mean, sd in (a, b)]
    at = np.linspace(0, 1, 20_001)
    area = np.trapezoid(np.abs(curves[0].cdf(at) - curves[1].cdf(at)), at)
    # samples without noise: the quantiles themselves
    u = (np.arange(5000) + 0.5) / 5000
    assert wasserstein1(curves[0].ppf(u), curves[1].ppf(u)) == pytest.approx(area, abs=1e-4)
    rng = np.random.default_rng(2)
    drawn = [curve.rvs(size=20_000, random_state=rng) for curve in curves]
    assert wasserstein1(*drawn) == pytest.approx(area, abs=0.006)


def test_missing_scores_are_left_out():
    assert wasserstein1([0.1, np.nan, 0.5], [0.2, 0.9]) == pytest.approx(0.25)
    assert np.isnan(wasserstein1([np.nan], [0.2]))
    assert np.isnan(wasserstein1([], [0.2]))


@pytest.mark.parametrize("sizes", [[5], [3, 3, 3], [7, 11, 13], [1000, 999, 1]])
def test_the_steps_of_a_grid_are_the_samples_own(sizes):
    grid = quantile_grid(np.array(sizes))
    assert grid.widths.sum() == pytest.approx(1)
    for size, places in zip(sizes, grid.places, strict=True):
        mass = np.bincount(places, weights=grid.widths, minlength=size)
        np.testing.assert_allclose(mass, np.full(size, 1 / size), atol=1e-12)


@given(
    st.lists(st.tuples(st.sampled_from([0, 0.1, 0.25, 0.5, 0.9, 1]), st.integers(0, 3)), min_size=1, max_size=40)
)
def test_groups_against_everything(scored):
    scores, groups = np.array([each[0] for each in scored], float), np.array([each[1] for each in scored])
    found = PooledDistances(scores, np.bincount(groups, minlength=4)).of(small_labels(groups))
    for group in range(4):
        mine = scores[groups == group]
        expected = stats.wasserstein_distance(mine, scores) if len(mine) else np.nan
        assert found[group] == pytest.approx(expected, abs=1e-12, nan_ok=True)


def plain_individual(scores):
    """I.F. with loops and scipy."""
    found = []
    for template in np.asarray(scores, float):
        present = [scores_of_value[~np.isnan(scores_of_value)] for scores_of_value in template]
        for x, y in itertools.combinations(present, 2):
            if len(x) and len(y):
                found.append(stats.wasserstein_distance(x, y))
    return np.mean(found)


def plain_group(scores, subgroups):
    scores, everything = np.asarray(scores, float), np.asarray(scores, float).ravel()
    found = []
    for name in set(subgroups):
        mine = scores[:, [label == name for label in subgroups]].ravel()
        found.append(stats.wasserstein_distance(mine[~np.isnan(mine)], everything[~np.isnan(everything)]))
    return np.mean(found)


def some_scores(rng, *, tied=False, missing=0.0, shape=(3, 5, 17)):
    scores = rng.beta(2, 3, size=shape)
    scores = np.round(scores * 4) / 4 if tied else scores
    scores[rng.random(shape) < missing] = np.nan
    return scores


# ---------------------------------------------------------------- I.F., G.F. and their parts


def test_individual_fairness_by_hand():
    # template 1: W1(a, b) = 0.2, W1(a, c) = 0.5, W1(b, c) = 0.3; template 2: all alike
    first = [[0.1, 0.3], [0.3, 0.5], [0.6, 0.8]]
    second = [[0.2, 0.9], [0.9, 0.2], [0.2, 0.9]]
    assert individual_fairness([first, second]) == pytest.approx((0.2 + 0.5 + 0.3) / 6)
    np.testing.assert_allclose(
        pairwise_wasserstein([first, second])[0], [[0, 0.2, 0.5], [0.2, 0, 0.3], [0.5, 0.3, 0]], atol=1e-12
    )


def test_group_fairness_pools_templates():
    # a: 0 in the first template and 1 in the second, b the other way round: pooled they are alike, one by one not
    scores = [[[0.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]]]
    assert group_fairness(scores) == 0
    assert individual_fairness(scores) == 1
    # one template: half of everything is 0 and half is 1, so either value is 0.5 away from it
    assert group_fairness(scores[:1]) == 0.5


def test_group_fairness_with_subgroups_by_hand():
    # everything: 0, 0.5, 0.5, 1; male: 0, 0, 0.5, 0.5, one half moves by 0.5; female: 0.5, 0.5, 1, 1, likewise
    scores = [[[0.0], [0.5], [0.5], [1.0]]]
    found = subgroup_wasserstein(scores, ["male", "male", "female", "female"])
    assert found.subgroups == ("male", "female")
    np.testing.assert_allclose(found.distances, [0.25, 0.25])
    assert group_fairness(scores, ["male", "male", "female", "female"]) == pytest.approx(0.25)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_equal_to_plain_loops(tied, missing):
    rng = np.random.default_rng(3)
    scores = some_scores(rng, tied=tied, missing=missing)
    if missing:
        scores[1, 2] = np.nan  # a value without any sample in a template
    subgroups = ["x", "y", "x", "y", "z"]
    assert individual_fairness(scores) == pytest.approx(plain_individual(scores))
    assert group_fairness(scores, subgroups) == pytest.approx(plain_group(scores, subgroups))
    assert group_fairness(scores) == pytest.approx(plain_group(scores, list("abcde")))


def test_the_order_of_samples_templates_and_values_does_not_matter():
    rng = np.random.default_rng(4)
    scores = some_scores(rng)
    shuffled = rng.permuted(scores, axis=2)[[2, 0, 1]][:, [4, 1, 0, 3, 2]]
    assert individual_fairness(shuffled) == pytest.approx(individual_fairness(scores))
    assert group_fairness(shuffled) == pytest.approx(group_fairness(scores))


def test_disparity_averaged_over_thresholds_is_individual_fairness():
    scores = some_scores(np.random.default_rng(5))
    thresholds = (np.arange(400) + 0.5) / 400
    mean = np.mean([demographic_disparity(scores, threshold=at) for at in thresholds])
    assert mean == pytest.approx(individual_fairness(scores), abs=3e-3)


def test_disparity_by_hand_and_missing():
    # above 0.5: 1 of 2 and 2 of 2 (the third is missing)
    scores = [[[0.4, 0.6, np.nan], [0.6, 0.8, np.nan]]]
    assert demographic_disparity(scores, threshold=0.5) == 0.5
    assert np.isnan(above_threshold(scores, threshold=0.5)[0, 0, 2])


def test_epsilon():
    matrices = np.array([[[0, 0.1], [0.1, 0]], [[0, 0.3], [0.3, 0]], [[0, np.nan], [np.nan, 0]]])
    verdict = epsilon_fair(matrices, 0.3)  # W1 < ε: 0.3 itself is not fair
    assert (verdict.fair, verdict.worst, verdict.above, verdict.compared, verdict.missing) == (False, 0.3, 1, 2, 1)
    assert epsilon_fair(matrices, 0.31).fair
    assert not epsilon_fair(matrices[2:], 0.31).fair  # nothing was measured


@pytest.mark.parametrize("call", [individual_fairness, group_fairness, pairwise_wasserstein, fairness_interval])
@pytest.mark.parametrize("scores", [[0.1], [[[0.1, 0.2]]], [[[np.inf], [0.1]]]])
def test_wrong_scores_are_refused(call, scores):
    with pytest.raises(ValueError, match="found"):
        call(scores)


def test_wrong_options_are_refused():
    scores, rng = np.zeros((1, 2, 3)), np.random.default_rng(0)
    with pytest.raises(ValueError, match="one for each value"):
        group_fairness(scores, ["a"])
    with pytest.raises(ValueError, match="above 0"):
        epsilon_fair([[0, 1], [1, 0]], 0)
    with pytest.raises(ValueError, match="values × values"):
        epsilon_fair([0.1], 0.1)
    with pytest.raises(ValueError, match="draws"):
        fairness_null(scores, rng=rng, draws=0)
    with pytest.raises(ValueError, match="over="):
        fairness_interval(scores, over="values")
    with pytest.raises(ValueError, match="same templates"):
        paired_change(scores, np.zeros((2, 2, 3)))


# ---------------------------------------------------------------- against chance


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_what_is_observed_is_the_metric_itself(tied, missing):
    rng = np.random.default_rng(6)
    scores = some_scores(rng, tied=tied, missing=missing)
    if missing:
        scores[1, 2] = np.nan
    subgroups = ["x", "y", "x", "y", "z"]
    found = fairness_null(scores, subgroups=subgroups, rng=rng, draws=5)
    assert found.individual.estimate == pytest.approx(plain_individual(scores))
    assert found.group.estimate == pytest.approx(plain_group(scores, subgroups))
    assert found.subgroup_names == ("x", "y", "z")
    np.testing.assert_allclose(found.subgroups.estimate, subgroup_wasserstein(scores, subgroups).distances)
    assert found.disparity.estimate == pytest.approx(demographic_disparity(scores, threshold=0.5))
    np.testing.assert_allclose(found.templates.estimate, [plain_individual(each[None]) for each in scores])


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_null_is_that_of_shuffled_labels(missing):
    """It has the mean and the spread of a plain shuffle within each template."""
    rng = np.random.default_rng(7)
    scores = some_scores(rng, tied=True, missing=missing, shape=(2, 3, 12))
    subgroups = ["x", "x", "y"]
    plain = []
    for _ in range(800):
        shuffled = scores.copy()
        for template in shuffled:
            present = ~np.isnan(template)
            template[present] = rng.permutation(template[present])
        disparity = demographic_disparity(shuffled, threshold=0.5)
        plain.append((individual_fairness(shuffled), group_fairness(shuffled, subgroups), disparity))
    mean, sd = np.mean(plain, axis=0), np.std(plain, axis=0)
    found = fairness_null(scores, subgroups=subgroups, rng=rng, draws=3000)
    for at, part in enumerate((found.individual, found.group, found.disparity)):
        assert part.null == pytest.approx(mean[at], abs=4 * sd[at] * np.sqrt(1 / 3000 + 1 / 800))
        drawn = np.array([each[at] for each in plain])
        for share, limit in (
            (0.025, part.null_low),
            (0.975, part.null_high),
        ):
            # with ties, many are at the limit itself
            assert (drawn < limit - 1e-9).mean() - 0.02 <= share <= (drawn < limit + 1e-9).mean() + 0.02
        assert part.excess == pytest.approx(part.estimate - part.null)


@pytest.mark.parametrize("missing", [False, True])
def test_many_sets_of_scores_are_shuffled_as_each_alone(missing):
    """One set of shuffles serves all: what is found for one does not depend on the others."""
    rng = np.random.default_rng(3)
    scores = rng.uniform(size=(3, 2, 4, 15))
    scores[:, 1, 2, 9:] = np.nan if missing else scores[:, 1, 2, 9:]
    groups = ["x", "x", "y", "y"]
    together = fairness_nulls(list(scores), subgroups=groups, rng=np.random.default_rng(1), draws=49)
    for each, found in zip(scores, together, strict=True):
        alone = fairness_null(each, subgroups=groups, rng=np.random.default_rng(1), draws=49)
        for name in ("individual", "group", "templates", "subgroups", "disparity"):
            np.testing.assert_array_equal(getattr(found, name).null, getattr(alone, name).null)
            np.testing.assert_array_equal(getattr(found, name).p, getattr(alone, name).p)
    scores[1, 0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="different samples missing"):
        fairness_nulls(list(scores), rng=rng, draws=9)


@pytest.mark.parametrize("missing", [(), (3, 2), (3, 4, 2)])
def test_another_statistic_sees_the_moments_of_each_shuffle(missing):
    """The observed ones first. A shuffle keeps each template's scores, so their mean, weighted by samples."""
    rng = np.random.default_rng(3)
    scores = rng.uniform(size=(2, 3, 5)) + 100  # far from 0, where squares lose digits
    for value, kept in enumerate(missing):  # the second with as many as the first on average
        scores[1, value, kept:] = np.nan
    scores[0, 2] = 100.25  # a value that does not vary has no error
    sizes = (~np.isnan(scores)).sum(axis=2)
    seen = []
    (found,) = fairness_nulls(
        [scores], also=lambda each: seen.append(each) or each.means[:, :, 0], rng=rng, draws=9
    )
    assert found.also.shape == (10, 2)
    observed, *_ = seen
    np.testing.assert_allclose(observed.means[0], np.nanmean(scores, axis=2))
    np.testing.assert_allclose(observed.errors[0], np.nanvar(scores, axis=2, ddof=1) / sizes, atol=1e-14)
    assert observed.errors[0, 0, 2] == 0
    means, errors = (np.concatenate([getattr(each, name) for each in seen]) for name in ("means", "errors"))
    assert means.shape == errors.shape == (10, 2, 3)
    assert len(np.unique(means[:, 0, 0])) > 5
    np.testing.assert_allclose((means * sizes).sum(axis=2), np.tile(np.nansum(scores, axis=(1, 2)), (10, 1)))
    # n (n − 1) e + n m² is the sum of squares, which a shuffle keeps, too
    squares = (sizes * (sizes - 1) * errors + sizes * means**2).sum(axis=2)
    np.testing.assert_allclose(squares, np.tile(np.nansum(scores**2, axis=(1, 2)), (10, 1)))


@pytest.mark.parametrize("kind", ["continuous", "tied", "unequal"])
def test_p_values_are_uniform_where_the_value_does_not_matter(kind):
    rng = np.random.default_rng(8)
    p = []
    for _ in range(150):
        # templates differ, values do not
        scores = rng.beta(2, np.array([1, 4])[:, None, None], size=(2, 3, 20))
        if kind == "tied":
            scores = np.round(scores * 2) / 2
        if kind == "unequal":
            scores[:, 0, 8:] = np.nan
        found = fairness_null(scores, rng=rng, draws=99)
        p.append((found.individual.p, found.group.p, found.subgroups.p[2], found.disparity.p))
    for at, column in enumerate(np.array(p).T):
        # with many ties, as shares above a threshold have, large p-values are too many, never small ones
        side = "greater" if kind == "tied" or at == 3 else "two-sided"
        assert stats.kstest(column, "uniform", alternative=side).pvalue > 0.002
        assert (column <= 0.05).mean() <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 150)


def test_a_planted_shift_is_found_and_sized():
    rng = np.random.default_rng(9)
    scores = rng.uniform(0, 0.8, size=(10, 6, 100))
    scores[:, 2] += 0.15
    found = fairness_null(scores, rng=rng, draws=499)
    assert found.individual.p == found.group.p == 1 / 500
    # 5 of the 15 pairs are 0.15 apart: 0.05, which lies between the excess and I.F. itself
    assert 0.03 < found.individual.excess < 0.05 < found.individual.estimate < 0.08
    assert np.argmin(found.subgroups.p) == 2 or found.subgroups.p[2] == 1 / 500


def test_equal_scores_are_no_finding():
    found = fairness_null(np.full((2, 3, 10), 0.5), rng=np.random.default_rng(0), draws=19)
    assert (found.individual.estimate, found.individual.null, found.individual.p) == (0, 0, 1)
    assert (found.group.estimate, found.group.p) == (0, 1)


def test_a_value_without_samples_is_missing():
    scores = some_scores(np.random.default_rng(10))
    scores[:, 3] = np.nan
    for few in (scores, np.round(scores)):
        found = fairness_null(few, rng=np.random.default_rng(0), draws=19)
        assert np.isnan(found.subgroups.p[3])
        assert found.individual.estimate == pytest.approx(plain_individual(few))


@pytest.mark.parametrize(("samples", "low", "high"), [(25, 0.05, 0.10), (100, 0.025, 0.05), (1000, 0.008, 0.016)])
def test_how_far_apart_samples_of_one_distribution_lie(samples, low, high):
    """The size of the null by the number of samples, for scores with one hump, flat, or mostly 0 and 1."""
    rng = np.random.default_rng(11)
    for shape in ((2, 2), (1, 1), (0.5, 0.5)):
        scores = rng.beta(*shape, size=(2, 4, samples))
        found = fairness_null(scores, rng=rng, draws=100).individual
        assert low <= found.null <= high * 1.05
        assert found.null == pytest.approx(individual_fairness(rng.beta(*shape, size=(40, 4, samples))), rel=0.15)


# ---------------------------------------------------------------- intervals


@pytest.mark.parametrize("samples", [10, 25, 200])
@pytest.mark.parametrize("tied", [False, True])
def test_the_null_in_closed_form_is_that_of_the_shuffles(samples, tied):
    rng = np.random.default_rng(12)
    scores = some_scores(rng, tied=tied, missing=0.1, shape=(4, 5, samples))
    subgroups = ["x", "x", "y", "y", "z"]
    closed = fairness_interval(scores, subgroups=subgroups)
    drawn = fairness_null(scores, subgroups=subgroups, rng=rng, draws=2000)
    assert closed.individual.null == pytest.approx(drawn.individual.null, rel=0.02)
    assert closed.group.null == pytest.approx(drawn.group.null, rel=0.04)
    np.testing.assert_allclose(closed.subgroups.null, drawn.subgroups.null, rtol=0.08)
    shuffled = [
        pairwise_wasserstein(each) for many in shuffled_scores(scores, rng=rng, draws=400) for each in many
    ]
    pairs = np.mean(shuffled, axis=(0, 1))
    np.fill_diagonal(pairs, np.nan)
    np.testing.assert_allclose(closed.pairs.null, pairs, rtol=0.1)
    assert closed.individual.estimate == pytest.approx(drawn.individual.estimate)
    assert closed.group.estimate == pytest.approx(drawn.group.estimate)


def test_the_interval_of_individual_fairness_is_a_t_interval_over_templates():
    """I.F. is a mean over templates, and the jackknife of a mean is its usual standard error."""
    scores = some_scores(np.random.default_rng(13), shape=(8, 3, 30))
    found = fairness_interval(scores, level=0.9).individual
    each = [fairness_interval(scores[[at]]).individual.excess for at in range(8)]
    half = stats.t.ppf(0.95, 7) * np.std(each, ddof=1) / np.sqrt(8)
    assert found.excess == pytest.approx(np.mean(each))
    assert found.low == pytest.approx(np.mean(each) - half)
    assert found.high == pytest.approx(np.mean(each) + half)


def simulated(rng, *, shift, templates=10, samples=30):
    """Scores that differ by template, of which value 0 is moved by a shift that differs by template, too."""
    moved = np.zeros((templates, 3, 1))
    moved[:, 0, 0] = rng.normal(shift, shift / 2, size=templates)
    start = rng.uniform(0, 0.3, size=(templates, 1, 1))
    return start + moved + 0.3 * rng.beta(2, 2, size=(templates, 3, samples))


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_intervals_cover(shift):
    rng = np.random.default_rng(14)
    found = [fairness_interval(simulated(rng, shift=shift)) for _ in range(100)]
    # the distance of value 0 from the other two is the mean of |shift|, and 2 of the 3 pairs have it
    normal = stats.foldnorm(2, scale=shift / 2).mean() if shift else 0.0
    true = 2 / 3 * normal
    for part, truth in (("individual", true), ("group", None)):
        intervals = [getattr(each, part) for each in found]
        expected = np.mean([each.excess for each in intervals])
        covered = np.mean([each.low <= expected <= each.high for each in intervals])
        assert covered >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 100)
        if truth is not None:
            assert expected <= truth + 0.002 <= np.mean([each.estimate for each in intervals]) + 0.004
            assert np.mean([each.low <= truth <= each.bound for each in intervals]) >= 0.95


def test_one_template_has_no_interval_over_templates_but_over_samples():
    rng = np.random.default_rng(15)
    scores = simulated(rng, shift=0.2, templates=1, samples=200)
    assert np.isnan(fairness_interval(scores).individual.low)
    found = fairness_interval(scores, over="samples").individual
    true = individual_fairness(scores)
    assert found.low < found.excess < true < found.bound < found.low + 0.1
    assert np.isnan(fairness_interval(scores[:, :, :1], over="samples").individual.low)


def test_a_change_is_found_and_no_change_is_not():
    rng = np.random.default_rng(16)
    p = []
    for _ in range(60):
        before, after = simulated(rng, shift=0.1), simulated(rng, shift=0.1, samples=60)
        p.append(paired_change(before, after).individual_excess.p)
    # two models that differ by chance only; the smaller sample has the larger null, so the excess differs a little
    assert np.mean(np.array(p) <= 0.05) < 0.15
    found = paired_change(simulated(rng, shift=0.2), simulated(rng, shift=0.0))
    for part in (found.individual, found.group, found.individual_excess, found.group_excess):
        assert part.low < part.change < part.high < 0
        assert part.change == pytest.approx(part.after - part.before)
        assert part.p < 0.05


def test_what_a_template_has_in_common_before_and_after_cancels():
    rng = np.random.default_rng(17)
    before = simulated(rng, shift=0.2, samples=400)
    after = before.copy()
    after[:, 0] -= 0.02
    found = paired_change(before, after).individual
    apart = fairness_interval(before).individual
    assert found.high - found.low < 0.5 * (apart.high - apart.low)
    assert np.isnan(paired_change(before[:1], after[:1]).individual.p)


@pytest.mark.parametrize("missing", [False, True])
def test_pairs_of_two_subgroups_alone(missing):
    """I.F. with `across`: the mean over the pairs of different subgroups, by its null and both intervals."""
    rng = np.random.default_rng(4)
    scores = rng.uniform(size=(3, 4, 12))
    if missing:
        scores[:, 1, 8:] = np.nan
    groups = ["x", "x", "y", "y"]
    pairs = pairwise_wasserstein(scores)
    expected = np.mean([pairs[:, at, other] for at in (0, 1) for other in (2, 3)])
    null = fairness_null(scores, subgroups=groups, across=True, rng=rng, draws=19)
    assert null.individual.estimate == pytest.approx(expected)
    assert null.templates.estimate.mean() == pytest.approx(expected)
    left_out = fairness_interval(scores, subgroups=groups, across=True)
    assert left_out.individual.estimate == pytest.approx(expected)
    drawn = individual_interval(scores, subgroups=groups, across=True, rng=rng, draws=19)
    assert drawn.estimate == pytest.approx(expected)
    assert drawn.low < drawn.excess < drawn.high
    change = paired_change(scores, scores, subgroups=groups, across=True)
    assert change.individual.before == pytest.approx(expected)
    everything = fairness_null(scores, subgroups=groups, rng=rng, draws=19).individual.estimate
    assert everything == pytest.approx(individual_fairness(scores))
    assert everything != pytest.approx(expected)


def test_what_is_drawn_anew_is_measured_as_the_metric_itself():
    rng = np.random.default_rng(5)
    scores = rng.uniform(size=(1, 5, 9))
    scores[0, 2, 4:], scores[0, 3] = np.nan, np.nan
    template = resampling._Resampled.of(scores[0], np.arange(5))
    assert template.scores[template.ranks[0]] == pytest.approx(np.sort(scores[0, 0]) - np.nanmedian(scores))
    distance, null = template._measured(template.ranks[None])
    assert distance[0] / template.pairs == pytest.approx(individual_fairness(scores))
    assert null[0] * template._scale == pytest.approx(fairness_interval(scores, over="samples").individual.null)


@pytest.mark.parametrize("groups", [[0, 1, 2, 3, 4], [0, 0, 1, 1, 0]])
def test_scores_of_two_kinds_are_measured_by_their_shares(groups):
    rng = np.random.default_rng(6)
    scores = rng.choice([0.25, 0.75], size=(5, 9))
    scores[2, 4:], scores[3] = np.nan, np.nan
    template = resampling._Resampled.of(scores, np.array(groups))
    lower = int((np.nan_to_num(scores, nan=1.0) == 0.25).sum())
    for many in template._drawn(0.5, rng=rng, draws=7):
        larger = ((many >= lower) & (many < len(template.scores))).sum(axis=2)
        np.testing.assert_allclose(template._of_two_scores(larger), template._measured(many), atol=1e-12)


@pytest.mark.parametrize("kept", [0.0, 0.3, 1.0])
def test_how_often_is_drawn_as_score_by_score(kept):
    """Binomial counts have the means and the spread of scores that are drawn one by one; so do means of others."""
    rng = np.random.default_rng(7)
    scores = (rng.uniform(size=(4, 20)) < [[0.1], [0.5], [0.6], [0.9]]).astype(float)
    scores[1, 12:] = np.nan
    template = resampling._Resampled.of(scores, np.arange(4))
    lower, draws = int((scores == 0).sum()), 4000
    one_by_one = np.concatenate(
        [
            ((many >= lower) & (many < len(template.scores))).sum(axis=2)
            for many in template._drawn(kept, rng=rng, draws=draws)
        ]
    )
    at_once = template._drawn_of_two(kept, rng=rng, draws=draws)
    # by hand: a value's own share, as far as it is kept, and that of all scores
    n = (~np.isnan(scores)).sum(axis=1)
    likely = kept * np.nanmean(scores, axis=1) + (1 - kept) * np.nanmean(scores)
    error = 5 * np.sqrt(n * likely * (1 - likely) / draws) + 1e-12
    for counts in (one_by_one, at_once):
        assert np.abs(counts.mean(axis=0) - n * likely).max() <= error.max()
        assert (np.abs(counts.mean(axis=0) - n * likely) <= error).all()
        assert counts.var(axis=0) == pytest.approx(n * likely * (1 - likely), rel=0.15)


def test_intervals_of_templates_are_those_of_each_alone():
    """Where templates have nothing in common, what is drawn for all serves each: the errors agree."""
    rng = np.random.default_rng(8)
    scores = rng.uniform(size=(3, 4, 60))
    scores[0, 0] += 0.4
    scores[1, 1] += 0.4
    found = individual_intervals(scores, rng=rng, draws=999)
    for at, each in enumerate(found.templates):
        alone = individual_interval(scores[[at]], rng=rng, draws=999)
        assert (each.estimate, each.null) == (alone.estimate, alone.null)
        if at < 2:  # in the third, what the others share may be kept
            assert each.high - each.low == pytest.approx(alone.high - alone.low, rel=0.15)
    assert [bool(each.low > 0) for each in found.templates] == [True, True, False]
    # worked by hand: the weights of templates with the same pairs are equal, so is the whole's excess their mean
    assert found.whole.excess == pytest.approx(np.mean([each.excess for each in found.templates]))


@pytest.mark.parametrize(("kind", "gap", "where"), [("hump", 0.0, 0), ("steps", 0.25, 1), ("hump", 0.06, 5)])
def test_intervals_drawn_anew_cover(kind, gap, where):
    """95 % intervals of 120 samples: fewer than 106 hold the truth once in 1,000 times."""
    found = []
    for seed in range(120):
        rng = np.random.default_rng([seed, where])
        scores = rng.beta(4, 4, size=(5, 4, 25))
        scores[:where, 0] += gap
        scores[:where, 1] -= gap
        scores = np.clip(scores, 0, 1)
        each = individual_interval(np.round(2 * scores) / 2 if kind == "steps" else scores, rng=rng, draws=49)
        found.append((each.low, each.excess, each.high))
    low, excess, high = np.array(found).T
    assert ((low <= excess.mean()) & (excess.mean() <= high)).sum() >= 106


def test_of_single_texts_no_interval_is_told_wherever_they_stand():
    scores = np.full((3, 3, 4), np.nan)
    scores[:, :, 0] = np.random.default_rng(0).uniform(size=(3, 3))
    found = individual_intervals(scores, rng=np.random.default_rng(1))
    assert np.isnan([each.low for each in (found.whole, *found.templates)]).all()
    assert found.whole.estimate == pytest.approx(float(individual_fairness(scores)))
    scores[0] = np.random.default_rng(2).uniform(size=(3, 4))  # the others have nothing to vary by
    found = individual_intervals(scores, rng=np.random.default_rng(1))
    assert np.isnan([each.low for each in found.templates]).tolist() == [False, True, True]
    assert found.whole.low < found.whole.high
