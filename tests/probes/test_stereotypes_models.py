"""Models compared: how alike they see the groups, and what tuning changed."""

import itertools

import numpy as np
import pytest
from fake_stereotypes import (
    FakeAttributes,
    conclude,
    fake,
    groups_file,
    human_file,
    lexicon_file,
    notice_with,
    random_weights,
    row_of,
    rows_of,
)
from scipy import stats

from clinometer.data import EMOTIONS
from clinometer.metrics import representational_similarity
from clinometer.metrics.stereotypes import similarity_matrix, standard_ranks
from clinometer.probes.stereotypes.measures import mean_and_interval, shuffled_groups, tunings_of

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = [f"word{LETTERS[i // 26]}{LETTERS[i % 26]}" for i in range(120)]
GROUPS = [f"group{LETTERS[i]}" for i in range(24)]


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    lexicon = {word: {each for each in EMOTIONS if rng.random() < 0.3} for word in WORDS} | {"plain": set()}
    return {
        "groups_file": groups_file(
            folder, {name: "first" if i < 14 else "second" for i, name in enumerate(GROUPS)}
        ),
        "emotions_file": lexicon_file(folder, lexicon),
        "human_file": human_file(folder, [(f"why are {name} so", "x", name, WORDS[7]) for name in GROUPS]),
        "top_k": 40,
        "draws": 199,
        "templates": 2,
    }


def group_in(text):
    return next(word.strip("?") for word in text.split() if word.strip("?").startswith("group"))


def model(name, *, seed, links=None, tuning=None):
    """A fake that sees each group its own way, in every template the same."""
    noise = random_weights(len(WORDS), seed=seed, by=group_in)
    return fake(FakeAttributes(dict.fromkeys(WORDS, 1.0), noise=noise, links=links), name, tuning=tuning)


# ---- similarity ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared(options):
    return conclude(model("a", seed=1), model("twin", seed=1), model("b", seed=2), **options)[0]


def test_a_model_is_like_its_twin(compared):
    row = row_of(compared, "similarity", category="all", model="a", other_model="twin")
    assert (row.estimate, row.low, row.high) == pytest.approx((1.0, 1.0, 1.0))
    assert row.p == pytest.approx(1 / 1000)
    assert row.n == 24
    same = row_of(compared, "similarity", category="all", model="a", other_model="a")
    assert same.estimate == pytest.approx(1.0)
    assert np.isnan([same.low, same.p, same.q]).all()


def test_unrelated_models_are_alike_by_chance_only(compared):
    row = row_of(compared, "similarity", category="all", model="a", other_model="b")
    # a group's similarity with itself is the largest in both: 3 / (n + 1) = .12 for 24 groups
    assert row.labels["by_chance"] == pytest.approx(0.12, abs=0.01)
    assert row.low < row.labels["by_chance"] < row.high
    assert row.p > 0.05
    mirrored = row_of(compared, "similarity", category="all", model="b", other_model="a")
    assert (mirrored.estimate, mirrored.low, mirrored.p, mirrored.q) == (row.estimate, row.low, row.p, row.q)
    assert mirrored.labels["by_chance"] == row.labels["by_chance"]


def test_every_category_has_its_matrix(compared):
    rows = rows_of(compared, "similarity")
    assert len(rows) == 3 * 3 * 3
    assert {row.labels["category"]: row.n for row in rows} == {"all": 24, "first": 14, "second": 10}
    assert "most alike in a and twin: ρ = 1.00" in compared.headlines[-1]
    assert compared.headlines[-1].endswith("; the paper's most alike, RoBERTa-B and BART-B, have 0.44.")


def test_without_self_similarity_chance_is_zero(options):
    found, _ = conclude(model("a", seed=1), model("b", seed=2), **options, self_similarity=False)
    row = row_of(found, "similarity", category="all", model="a", other_model="b")
    assert row.labels["by_chance"] == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("self_similarity", [True, False])
def test_interval_agrees_with_leaving_out_one_group_at_a_time(self_similarity):
    rng = np.random.default_rng(3)
    a, b = rng.random((9, 6)), rng.random((9, 6))
    matrices = [similarity_matrix(each) for each in (a, b)]
    ranks = [standard_ranks(each, self_similarity=self_similarity) for each in matrices]
    mean, low, high = mean_and_interval(*ranks, self_similarity=self_similarity)
    assert mean == pytest.approx(representational_similarity(a, b, self_similarity=self_similarity).mean)

    z = []
    for left_out in range(9):
        rows = [i for i in range(9) if i != left_out]
        correlations = []
        for i in rows:
            columns = [j for j in rows if self_similarity or j != i]
            correlations.append(stats.pearsonr(ranks[0][i, columns], ranks[1][i, columns]).statistic)
        z.append(np.arctanh(np.mean(correlations)))
    half = stats.t.ppf(0.975, 8) * np.sqrt(8 / 9 * ((z - np.mean(z)) ** 2).sum())
    assert (low, high) == pytest.approx((np.tanh(np.arctanh(mean) - half), np.tanh(np.arctanh(mean) + half)))


def test_p_is_uniform_for_unrelated_models():
    """300 pairs: p ≤ .05 in 5 ± 1.3 %, on average ½ ± .017 (four standard deviations are let pass)."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(300):
        pair = [standard_ranks(similarity_matrix(rng.random((12, 10))), self_similarity=True) for _ in range(2)]
        p, _ = shuffled_groups(np.stack(pair), rng=rng, shuffles=99)
        found.append(p[0, 1])
    assert np.mean(np.array(found) <= 0.05) < 0.10
    assert np.mean(found) == pytest.approx(0.5, abs=0.07)


def test_shuffling_agrees_with_the_metric_on_renamed_groups():
    rng = np.random.default_rng(5)
    a, b = rng.random((7, 4)), rng.random((7, 4))
    ranks = np.stack([standard_ranks(similarity_matrix(each), self_similarity=True) for each in (a, b)])
    p, chance = shuffled_groups(ranks, rng=np.random.default_rng(0), shuffles=400)
    again = np.random.default_rng(0)
    drawn = [representational_similarity(a, b[again.permutation(7)]).mean for _ in range(400)]
    observed = representational_similarity(a, b).mean
    assert chance[0, 1] == pytest.approx(np.mean(drawn), abs=1e-5)
    assert p[0, 1] == pytest.approx((1 + np.sum(np.array(drawn) >= observed - 1e-9)) / 401)


def test_what_unrelated_models_come_to_by_chance():
    """Over all 120 orders of 5 groups the mean is exactly 3 / (n + 1).

    In every row the group itself has rank n in both models and the other n − 1 ranks meet at random. Deviations
    from the mean rank: (n − 1)/2 for the group itself, −½ on average for each other, so that the products come to
    ((n − 1)² + (n − 1))/4 = n(n − 1)/4, out of n(n² − 1)/12.
    """
    rng = np.random.default_rng(6)
    a, b = rng.random((5, 4)), rng.random((5, 4))
    drawn = [representational_similarity(a, b[list(order)]).mean for order in itertools.permutations(range(5))]
    assert np.mean(drawn) == pytest.approx(3 / 6)


def test_too_few_groups_are_not_compared(options, tmp_path):
    few = groups_file(tmp_path, {name: "tiny" if i < 4 else "large" for i, name in enumerate(GROUPS[:12])})
    found, _ = conclude(model("a", seed=1), model("b", seed=2), **{**options, "groups_file": few})
    assert np.isnan(row_of(found, "similarity", category="tiny", model="a", other_model="b").estimate)
    assert notice_with(found, "Fewer than 5 groups in: tiny").level == "warning"


def test_none_found_is_not_surely_none(shifted):
    (none, *_) = (row for row in rows_of(shifted, "recall") if row.estimate == 0)
    wilson = stats.binomtest(0, none.n).proportion_ci(method="wilson")
    assert (none.low, none.high) == pytest.approx((0.0, wilson.high))


# ---- shift --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shifted(options):
    base = model("base", seed=1)
    planted = {"groupc": {WORDS[7]: 500.0}}

    def tuned(name, amount, **how):
        tuning = {"base": base.info.weights, "method": "masked", "data": "news.txt", "amount": amount}
        return model(name, tuning=tuning, **how)

    same = tuned("some", "0.25", seed=1)
    changed = tuned("more", "1", seed=1, links=planted)
    other = tuned("other", "0.5", seed=9)
    stranger = model("stranger", seed=1, tuning={"base": "not in this run", "data": "x", "amount": "1"})
    return conclude(base, changed, same, other, stranger, **options)[0]


def test_no_change_is_no_shift(shifted):
    row = row_of(shifted, "shift", model="some", category="all")
    assert (row.estimate, row.low, row.high) == pytest.approx((0.0, 0.0, 0.0))
    assert row.labels == {"base": "base", "model": "some", "corpus": "news.txt", "amount": 0.25, "category": "all"}
    kept = row_of(shifted, "attribute_shift", model="some", group="groupc")
    assert (kept.estimate, kept.labels["added"], kept.labels["removed"]) == (1.0, "", "")
    change = row_of(shifted, "recall_change", model="some", category="all", k=1)
    assert change.estimate == 0.0
    # no change in 24: Bonett & Price with (0 + 1)/26 on both sides, ± 1.96 · √(2/26 / 26)
    assert (change.low, change.high) == pytest.approx((-0.1066, 0.1066), abs=1e-4)


def test_a_planted_change_is_named(shifted):
    row = row_of(shifted, "attribute_shift", model="more", group="groupc")
    assert row.labels["added"] == WORDS[7]
    assert len(row.labels["removed"].split(", ")) == 1  # it took one word's place
    assert row.labels["removed"] in WORDS
    assert row.estimate == pytest.approx(1 - 1 / row.n)
    others = [each for each in rows_of(shifted, "attribute_shift") if each.labels["model"] == "more"]
    assert [each.labels["group"] for each in others if each.estimate < 1] == ["groupc"]
    # the word is a human stereotype of all 24 groups: one more is recalled
    assert row_of(shifted, "recall_change", model="more", category="all", k=1).estimate == pytest.approx(1 / 24)


def test_another_model_is_a_large_shift(shifted):
    row = row_of(shifted, "shift", model="other", category="all")
    assert row.high < -0.5
    like = row_of(shifted, "similarity", category="all", model="base", other_model="other")
    assert row.estimate == pytest.approx(like.estimate - 1)
    assert "most in other (from base)" in shifted.headlines[-1]
    assert {figure.name for figure in shifted.figures} >= {"shift", "recall_change"}


def test_the_mean_over_categories_beside_the_pooled_shift(shifted):
    row = row_of(shifted, "shift_mean", model="other")
    first, second = (
        row_of(shifted, "shift", model="other", category=each).estimate for each in ("first", "second")
    )
    assert (row.estimate, row.n) == (pytest.approx((first + second) / 2), 2)
    assert row.labels["standard_deviation"] == pytest.approx(abs(first - second) / np.sqrt(2))
    assert row.estimate != pytest.approx(row_of(shifted, "shift", model="other", category="all").estimate)
    assert "the paper's models shift by −0.08 to −0.86 in single categories" in shifted.headlines[-1]


def test_shifts_come_by_amount_and_strangers_are_named(shifted):
    rows = [row for row in rows_of(shifted, "shift") if row.labels["category"] == "all"]
    assert [row.labels["amount"] for row in rows] == [0.25, 0.5, 1.0]
    assert "stranger" in notice_with(shifted, "not in this run").text


def test_amounts_that_are_not_numbers_stay_text():
    base = model("base", seed=1).info
    infos = [base, *(model(f"m{i}", seed=i, tuning={"base": base.weights, "data": "d", "amount": amount}).info
                     for i, amount in enumerate(["all of it", "0.5"]))]  # fmt: skip
    assert [each.labels["amount"] for each in tunings_of(infos)] == ["0.5", "all of it"]
