"""Intervals that must cover: simulated where the truth is known, 1,000 data sets for each setting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clinometer.stats import cluster_bootstrap
from clinometer.stats._clusters import group_items
from clinometer.stats._resampling import resample

DATA_SETS = 1000


@dataclass(frozen=True)
class Setting:
    clusters: int
    items: int  # in each cluster
    truth: float
    draw: Callable[
        [np.random.Generator, int, int, int], np.ndarray
    ]  # rng, clusters, items, data sets -> (c, i, d)


def correlated_normal(rng, clusters, items, many):
    # variance 0.3 between clusters and 0.7 within: intra-cluster correlation 0.3
    between = rng.normal(size=(clusters, 1, many)) * np.sqrt(0.3)
    return between + rng.normal(size=(clusters, items, many)) * np.sqrt(0.7)


def independent_skewed(rng, clusters, items, many):
    # Beta(0.6, 2.4): mean 0.2, most of it near 0, skewness 1.3
    return rng.beta(0.6, 2.4, size=(clusters, items, many))


def correlated_skewed(rng, clusters, items, many):
    # a probability for each cluster, Beta(0.6, 5.4) with mean 0.1 and skewness 1.9; items scatter around it
    p = np.clip(rng.beta(0.6, 5.4, size=(clusters, 1, many)), 1e-9, None)
    return rng.beta(4 * p, 4 * (1 - p), size=(clusters, items, many))


def paired_differences(rng, clusters, items, many):
    # both members of a pair share their cluster's probability: mean difference 0, and unequal spread
    p = rng.beta(1, 4, size=(clusters, 1, many))
    before = rng.beta(5 * p + 0.05, 5 * (1 - p) + 0.05, size=(clusters, items, many))
    after = rng.beta(20 * p + 0.2, 20 * (1 - p) + 0.2, size=(clusters, items, many))
    return after - before


SETTINGS = {
    "reviews, normal": Setting(30, 1, 0.0, correlated_normal),
    "20 items, skewed": Setting(20, 1, 0.2, independent_skewed),
    "10 templates of 20, correlated": Setting(10, 20, 0.0, correlated_normal),
    "10 templates of 7, skewed": Setting(10, 7, 0.2, independent_skewed),
    "20 templates of 10, correlated and skewed": Setting(20, 10, 0.1, correlated_skewed),
    "58 occupations of 20, correlated and skewed": Setting(58, 20, 0.1, correlated_skewed),
    "58 occupations of 20, skewed": Setting(58, 20, 0.2, independent_skewed),
    "29 occupations of 4, paired": Setting(29, 4, 0.0, paired_differences),
}


def simulate(setting: Setting, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return values (items, data sets) and the cluster of each item."""
    values = setting.draw(rng, setting.clusters, setting.items, DATA_SETS)
    return values.reshape(-1, DATA_SETS), np.repeat(np.arange(setting.clusters), setting.items)


def coverage(low, high, truth) -> float:
    return float(((low <= truth) & (truth <= high)).mean())


@pytest.mark.parametrize("name", SETTINGS)
def test_95_percent_intervals_cover_93_to_97_percent(name):
    setting = SETTINGS[name]
    rng = np.random.default_rng(0)
    values, clusters = simulate(setting, rng)
    shares = []
    for some in np.array_split(values, 5, axis=1):  # each fifth of the data sets has draws of its own
        found = cluster_bootstrap(some, clusters, rng=rng, draws=999, null=setting.truth)
        inside = (found.low <= setting.truth) & (setting.truth <= found.high)
        np.testing.assert_array_equal(found.p <= 1 - 0.95, ~inside)  # p and interval never contradict each other
        shares.append(inside.mean())
    assert 0.93 <= np.mean(shares) <= 0.97


def percentile_interval(values, clusters, rng):
    drawn = resample(values, group_items(clusters, len(values)), studentized=0, rng=rng, draws=999).means
    return np.quantile(drawn, [0.025, 0.975], axis=0)


def test_what_we_do_not_do_fails_the_same_check():
    rng = np.random.default_rng(0)
    correlated = SETTINGS["10 templates of 20, correlated"]
    values, clusters = simulate(correlated, rng)
    no_clusters = cluster_bootstrap(values, rng=rng, draws=999)
    assert coverage(no_clusters.low, no_clusters.high, 0.0) < 0.65
    too_short = cluster_bootstrap(values, clusters, rng=rng, draws=999, level=0.90)
    assert coverage(too_short.low, too_short.high, 0.0) < 0.93

    # percentiles of the very same draws: too short for few skewed clusters, too long for many independent items
    values, clusters = simulate(Setting(10, 20, 0.1, correlated_skewed), rng)
    assert coverage(*percentile_interval(values, clusters, rng), 0.1) < 0.90
    setting = SETTINGS["58 occupations of 20, skewed"]
    values, clusters = simulate(setting, rng)
    assert coverage(*percentile_interval(values, clusters, rng), setting.truth) > 0.98


def test_a_function_of_means_is_covered_too():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(40), 3)
    shared = rng.beta(1, 4, size=(40, 300))[clusters]
    # columns: a and b with E a = 0.2 + 0.2 = 0.4 and E b = 0.2 + 0.1 = 0.3; ratio 4/3
    a = shared + rng.beta(1, 4, size=shared.shape)
    b = shared + rng.beta(1, 9, size=shared.shape)
    found = cluster_bootstrap(
        np.stack([a, b], axis=2),
        clusters,
        rng=rng,
        draws=999,
        statistic=lambda means: means[..., 0] / means[..., 1],
    )
    np.testing.assert_allclose(found.estimate, a.mean(axis=0) / b.mean(axis=0))
    assert 0.92 <= coverage(found.low, found.high, 4 / 3) <= 0.98  # 300 data sets: ± 2.5 %

    # a margin of one standard deviation, as the association test asks: mean + sd of Beta(1, 4) = 0.2 + √(4/150)
    x = rng.beta(1, 4, size=(200, 300))
    found = cluster_bootstrap(
        np.stack([x, x**2], axis=2),
        rng=rng,
        draws=999,
        statistic=lambda means: means[..., 0] + np.sqrt(means[..., 1] - means[..., 0] ** 2),
    )
    assert 0.92 <= coverage(found.low, found.high, 0.2 + np.sqrt(4 / 150)) <= 0.98


def test_draws_take_clusters_and_then_items():
    # Clusters (0, 2) and (5, 9): means 1 and 7, variances within (divided by 2) 1 and 4.
    # A draw's mean has variance [variance of the cluster means, 9, + mean of (variance within / size), 1.25] / 2.
    values = np.array([[0.0], [2.0], [5.0], [9.0]])
    drawn = resample(
        values, group_items(["a", "a", "b", "b"], 4), studentized=1, rng=np.random.default_rng(0), draws=40_000
    )
    assert drawn.means.mean() == pytest.approx(4.0, abs=0.05)
    assert drawn.means.var() == pytest.approx((9 + 1.25) / 2, rel=0.03)
    # Sums S₁, S₂ of the two clusters drawn (2 items each): s² = 2 · 2·((S₁ − S₂)/2)² / 4² = (S₁ − S₂)²/16;
    # E (S₁ − S₂)² = 2 · Var S = 2 · 4 · (9 + 1.25) = 82
    assert (drawn.errors**2).mean() == pytest.approx(82 / 16, rel=0.03)


def test_unequal_clusters_weigh_by_their_items():
    found = cluster_bootstrap([1.0, 1.0, 1.0, 5.0], ["a", "a", "a", "b"], rng=np.random.default_rng(0))
    assert found.estimate == 2.0


def test_missing_values_are_left_out_and_counted():
    rng = np.random.default_rng(0)
    whole = rng.normal(1.0, 1.0, size=(60, 2))
    holed = np.concatenate([whole, np.full((20, 2), np.nan)])
    holed[:, 1] = np.nan
    found = cluster_bootstrap(holed, rng=np.random.default_rng(1))
    assert found.n.tolist() == [60, 0]
    assert found.estimate[0] == pytest.approx(whole[:, 0].mean())
    assert np.isnan([found.estimate[1], found.low[1], found.high[1], found.p[1]]).all()
    without = cluster_bootstrap(whole[:, 0], rng=np.random.default_rng(1))
    assert found.high[0] - found.low[0] == pytest.approx(without.high - without.low, rel=0.1)


def test_missing_values_do_not_spoil_coverage():
    rng = np.random.default_rng(0)
    values, clusters = simulate(Setting(20, 6, 0.0, correlated_normal), rng)
    values[rng.random(values.shape) < 0.2] = np.nan
    found = cluster_bootstrap(values, clusters, rng=rng, draws=999)
    assert 0.93 <= coverage(found.low, found.high, 0.0) <= 0.97


def test_values_that_never_differ_have_an_interval_of_no_length():
    found = cluster_bootstrap(np.full(50, 0.3), rng=np.random.default_rng(0))
    assert found.low == found.high == pytest.approx(0.3)
    assert found.p == 2 / 2000
    assert cluster_bootstrap(np.zeros(50), rng=np.random.default_rng(0)).p == 1.0


def test_a_single_cluster_has_no_interval():
    found = cluster_bootstrap([1.0, 2.0, 3.0], ["a"] * 3, rng=np.random.default_rng(0))
    assert found.estimate == 2.0
    assert np.isnan([found.low, found.high, found.p]).all()


@pytest.mark.parametrize("events", [1, 2, 3, 5])
def test_a_handful_of_events_among_many_items_has_a_finite_interval(events):
    values = np.zeros(4000)
    values[:events] = 1.0
    found = cluster_bootstrap(values, rng=np.random.default_rng(0))
    assert 0 <= found.low <= found.estimate < found.high < 20 / 4000
    assert (found.p <= 1 - 0.95) == (found.low > 0)


def test_more_items_than_one_batch_holds(monkeypatch):
    values = np.random.default_rng(0).normal(size=(40, 3))
    whole = cluster_bootstrap(values, rng=np.random.default_rng(1), draws=1999)
    monkeypatch.setattr("clinometer.stats._resampling._BATCH", 40 * 300)
    parts = cluster_bootstrap(values, rng=np.random.default_rng(1), draws=1999)
    # clusters of one use one stream of picks, however it is cut
    np.testing.assert_allclose(parts.low, whole.low)


def test_columns_are_resampled_jointly_and_keep_their_shape():
    values = np.random.default_rng(0).normal(size=(30, 2, 3))
    clusters = np.arange(30) // 3
    found = cluster_bootstrap(values, clusters, rng=np.random.default_rng(1))
    assert found.low.shape == found.n.shape == (2, 3)
    alone = cluster_bootstrap(values[:, 1, 2], clusters, rng=np.random.default_rng(1))
    assert found.low[1, 2] == pytest.approx(alone.low)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"values": []}, "at least one item"),
        ({"values": [1.0, np.inf]}, "infinite"),
        ({"values": [1.0, 2.0], "clusters": ["a"]}, "one label for each item"),
        ({"values": [1.0, 2.0], "draws": 20}, "draws"),
        ({"values": [1.0, 2.0], "level": 95.0}, "level"),
        ({"values": [1.0, 2.0], "statistic": lambda means: means.sum()}, "one row for each"),
    ],
)
def test_bad_input_is_named(arguments, said):
    with pytest.raises(ValueError, match=said):
        cluster_bootstrap(**arguments, rng=np.random.default_rng(0))


numbers = hnp.arrays(
    np.float64, (12,), elements=st.floats(-100, 100, allow_subnormal=False).map(lambda x: round(x, 3))
)
CLUSTERS = np.repeat(["a", "b", "c", "d"], 3)


def bootstrap(values, clusters=CLUSTERS, seed=0):
    return cluster_bootstrap(values, clusters, rng=np.random.default_rng(seed), draws=199)


def ends(found):
    return np.array([found.low, found.estimate, found.high])


@settings(deadline=None, max_examples=40)
@given(numbers, st.floats(-50, 50), st.floats(0.1, 10))
@example(np.array([0.0, 1, 0, 0, 1, 1, 0, 0, 2, 0, 0, 0]), 0.0, 1.0)  # infinite draws right at the quantile
def test_shift_and_scale_carry_over(values, shift, scale):
    plain = bootstrap(values)
    np.testing.assert_allclose(ends(bootstrap(values * scale)), scale * ends(plain), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ends(bootstrap(-values)), -ends(plain)[::-1], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ends(bootstrap(values + round(shift, 3))), ends(plain) + round(shift, 3), atol=1e-6)


@settings(deadline=None, max_examples=40)
@given(numbers, st.permutations(["a", "b", "c", "d"]), st.integers(0, 2**32 - 1))
def test_cluster_names_do_not_matter_and_a_seed_repeats(values, names, seed):
    renamed = np.array([dict(zip("abcd", names, strict=True))[name] for name in CLUSTERS])
    np.testing.assert_array_equal(ends(bootstrap(values, renamed, seed)), ends(bootstrap(values, seed=seed)))


@settings(deadline=None, max_examples=40)
@given(numbers)
def test_the_interval_is_in_order(values):
    found = bootstrap(values)
    assert found.low <= found.high
    assert 0 < found.p <= 1


def test_a_column_present_in_few_clusters_stays_within_its_values():
    # 3 of 58 clusters have a value: some draws hold none of them, which must not become a number
    values = np.full((58, 2), np.nan)
    values[:3, 0] = (0.11, 0.23, 0.37)
    values[:, 1] = np.linspace(0, 1, 58)
    found = cluster_bootstrap(values, rng=np.random.default_rng(0))
    assert found.estimate[0] == pytest.approx((0.11 + 0.23 + 0.37) / 3)
    assert 0.11 - 1e-12 <= found.low[0] <= found.estimate[0] <= found.high[0] <= 0.37 + 1e-12
