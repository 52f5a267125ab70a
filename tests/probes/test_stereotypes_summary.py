"""What the stereotypes audit concludes: planted links and leans are found, an even hand stays quiet."""

import itertools
import math

import numpy as np
import polars as pl
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

import clinometer
from clinometer.metrics import recall_at_k
from clinometer.probes.protocol import Plan
from clinometer.probes.stereotypes import PROBE, answers
from clinometer.probes.stereotypes.answers import read_answers
from clinometer.probes.stereotypes.measures import shuffle_p
from clinometer.probes.stereotypes.questions import questions
from clinometer.probes.stereotypes.words import _groups_in_words
from clinometer.types import Finding

# ---- a planted link, by hand --------------------------------------------------------------------------------

BASE = {"stupid": 50.0, "good": 30.0, "old": 10.0, "##s": 4.0, "strict": 1.0, "3": 3.0, "Good": 2.0}  # sum 100
LEXICON = {"stupid": {"negative"}, "good": {"positive", "joy"}, "old": set(), "strict": {"negative", "anger"}}
LINKS = {"parents": {"strict": 20.0}}  # 20 of 119: third by probability, first by typicality


@pytest.fixture(scope="module", autouse=True)
def models_of_six_words():
    """Models so small that lists can be written by hand; the gate would ask for more different words."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "BEYOND_CHANCE", 0.0)
        patch.setattr(answers, "RANDOM_SHARE", {"complete": 0.0, "emotional": 0.0})
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("stereotypes")


@pytest.fixture(scope="module")
def options(folder):
    return {
        "groups_file": groups_file(folder, {"parents": "age", "kids": "age", "nurses": "profession"}),
        "emotions_file": lexicon_file(folder, LEXICON),
        "human_file": human_file(
            folder,
            [
                ("why are parents so", "age", "parents", "strict"),
                ("why are parents so", "age", "parents", "rich"),
                ("why are kids so", "age", "kids", "good"),
                ("why are nurses so", "profession", "nurses", "Stupid"),
                ("why are nurses so", "profession", "nurses", "stupid"),  # another engine: counts once
                ("why are kings so", "profession", "kings", "rich"),
            ],
        ),
    }


@pytest.fixture(scope="module")
def planted(options):
    return conclude(fake(FakeAttributes(BASE, links=LINKS, pieces=["##s"])), **options)[0]


def test_a_planted_link_is_first_by_typicality_although_not_by_probability(planted):
    row = row_of(planted, "ranking", group="parents")
    assert row.labels["by_probability"] == "stupid, good, strict, old"
    assert row.labels["by_typicality"].split(", ")[0] == "strict"
    assert row.estimate == 1.0  # four words, the same in both lists
    # the other groups are asked as the prior is: no word is more typical than another
    assert row_of(planted, "ranking", group="kids").labels["by_probability"] == "stupid, good, old, strict"


def test_recall_by_hand(planted):
    # parents: strict 1st by typicality, 3rd by probability; rich nowhere. kids: good 2nd of equally typical ones
    # and 2nd by probability. nurses: stupid 1st.
    for ranking, found in (
        ("by typicality", {1: 2, 2: 3, 3: 3, 200: 3}),
        ("by probability", {1: 1, 2: 2, 3: 3, 200: 3}),
    ):
        for k, count in found.items():
            row = row_of(planted, "recall", category="all", ranking=ranking, k=k)
            assert (row.estimate, row.n) == (count / 4, 4)
    assert row_of(planted, "recall", category="profession", ranking="by typicality", k=1).estimate == 1.0
    assert math.isnan(row_of(planted, "recall", category="age", ranking="by typicality", k=1).low)  # two groups
    assert "1 row about other groups left out" in notice_with(planted, "Recall rests on 4").text


def test_before_and_after_for_each_prompt_of_the_data_set(planted):
    row = row_of(planted, "prompt_ranking", group="parents")
    assert row.labels["prompt"] == "why are parents so [MASK]?"
    assert row.labels["by_probability"] == "stupid, good, strict, old"
    assert row.labels["by_typicality"].split(", ")[0] == "strict"
    assert (row.labels["human_found"], row.labels["human_missed"]) == ("strict (1)", "rich")
    assert (row.estimate, row.n) == (1.0, 4)
    assert len(rows_of(planted, "prompt_ranking")) == 3  # the prompt about kings is not asked


def test_a_prompt_that_names_two_groups_counts_for_each(folder, options, tmp_path):
    rows = [
        ("why are black women so", "race", "black women", "old"),
        ("why are black women so", "gender", "women", "good"),
        ("why are black women so", "gender", "women", "rich"),
    ]
    two = {
        **options,
        "groups_file": groups_file(tmp_path, {"black women": "race", "women": "gender"}),
        "human_file": human_file(tmp_path, rows),
    }
    found, _ = conclude(fake(FakeAttributes(BASE)), **two)
    # by probability good is 2nd, old 3rd, rich nowhere
    for category, k, share, n in (("race", 2, 0.0, 1), ("race", 3, 1.0, 1), ("gender", 2, 0.5, 2)):
        row = row_of(found, "recall", category=category, ranking="by probability", k=k)
        assert (row.estimate, row.n) == (share, n)


def test_stereotypes_of_several_words_are_counted(options, tmp_path):
    rows = [("why are kids so", "age", "kids", "good"), ("why are kids so", "age", "kids", "bad at math")]
    found, _ = conclude(fake(FakeAttributes(BASE)), **{**options, "human_file": human_file(tmp_path, rows)})
    assert "1 of several words, which no model can offer" in notice_with(found, "Recall rests on 2").text


def test_one_of_each_is_written_in_the_singular(options, tmp_path):
    one = {**options, "groups_file": groups_file(tmp_path, {"kids": "age"}), "templates": 1}
    found, _ = conclude(fake(FakeAttributes(BASE)), **one)
    assert notice_with(found, "1 group in 1 template: results hold")
    assert notice_with(found, "Recall rests on 1 human stereotype about 1 group, each")


def test_people_and_countries_with_different_numbers_of_templates(options, tmp_path):
    templates = tmp_path / "templates.toml"
    templates.write_text(
        'people = ["Why are {group} so [MASK]?", "Are {group} [MASK]?"]\ncountry = ["Is {group} [MASK]?"]\n'
    )
    groups = groups_file(tmp_path, {"kids": "age", "Peru": "country"})
    found, _ = conclude(
        fake(FakeAttributes(BASE)), **{**options, "groups_file": groups, "templates_file": str(templates)}
    )
    assert notice_with(found, "2 groups in 1 or 2 templates each")


def test_a_kind_without_templates_is_left_out_and_said(options, tmp_path):
    templates = tmp_path / "templates.toml"
    templates.write_text('people = ["Why are {group} so [MASK]?"]\n')
    groups = groups_file(tmp_path, {"kids": "age", "Peru": "country"})
    found, _ = conclude(
        fake(FakeAttributes(BASE)), **{**options, "groups_file": groups, "templates_file": str(templates)}
    )
    assert notice_with(found, "1 group left out (Peru): templates_file has no questions about countries.")
    assert notice_with(found, "1 group in 1 template")


def test_recall_is_the_public_functions(options):
    rng = np.random.default_rng(0)
    words = {
        word: float(rng.uniform(1, 9)) for word in ("rich", "strict", "good", "stupid", "tall", "kind", "mean")
    }
    model = fake(FakeAttributes(words, noise=random_weights(7, seed=3)))
    found, records = conclude(model, **options)
    table = records.table(model="fake", stage="posterior").filter(pl.col("tag_origin") == "data set")
    ranked = dict(table.select("tag_group", "got_words").iter_rows())
    gold = {"parents": {"strict", "rich"}, "kids": {"good"}, "nurses": {"stupid"}}
    for k, expected in recall_at_k(ranked, gold, ks=range(1, 8)).items():
        assert row_of(found, "recall", category="all", ranking="by probability", k=k).estimate == expected


def test_profiles_by_hand(planted):
    # four distinct words are covered: 2 negative, 1 positive, 1 joy, 1 anger
    for emotion, share in {"negative": 0.5, "positive": 0.25, "joy": 0.25, "anger": 0.25, "fear": 0.0}.items():
        row = row_of(planted, "emotions", group="parents", emotion=emotion)
        assert (row.estimate, row.n) == (share, 4)
        assert row.low <= share <= row.high
    expected = stats.binomtest(0, 4).proportion_ci(method="wilson")
    row = row_of(planted, "emotions", group="parents", emotion="fear")
    assert row.high == pytest.approx(expected.high)
    assert (
        row_of(planted, "emotions", group="parents", emotion="negative").labels["attributes"] == "strict, stupid"
    )
    assert row_of(planted, "emotions", group="parents", emotion="fear").labels["attributes"] == ""
    assert row_of(planted, "category_emotions", category="age", emotion="negative").estimate == 0.5
    assert "words without an emotion included" in notice_with(planted, "Emotions: 4 words").text


def test_what_is_not_a_word_is_counted(planted):
    # 3 groups × 5 templates and 3 prompts of the data set: 18 questions, 7 words each, one a piece, one a number
    assert row_of(planted, "coverage", what="pieces of words").labels["count"] == 18
    assert row_of(planted, "coverage", what="numbers, marks and single letters").estimate == pytest.approx(1 / 7)
    assert row_of(planted, "coverage", what="attributes without a prior").labels["count"] == 0
    covered = row_of(planted, "coverage", what="attributes of profiles that the emotion lexicon covers")
    assert (covered.labels["count"], covered.n) == (12, 12)  # four words in three groups: "Good" is "good"
    assert "18 are pieces of words and 18 numbers" in notice_with(planted, "126 words offered").text


def test_without_the_filter_pieces_stay_and_have_no_typicality(options):
    found, _ = conclude(fake(FakeAttributes(BASE, links=LINKS, pieces=["##s"])), **options, filter="none")
    words = row_of(found, "ranking", group="parents").labels
    assert words["by_probability"] == "stupid, good, strict, old, ##s, 3"
    assert words["by_typicality"].split(", ")[0] == "strict"
    assert words["by_typicality"].split(", ")[-1] == "##s"
    assert row_of(found, "coverage", what="attributes without a prior").labels["count"] == 18
    assert "18 of the words kept have no prior" in notice_with(found, "no prior").text


def test_published_emotions_leave_fear_out(options):
    found, _ = conclude(fake(FakeAttributes(BASE)), **options, emotions="published")
    assert [row.labels["emotion"] for row in rows_of(found, "emotions")][:9] == [
        "joy", "sadness", "trust", "surprise", "anticipation", "disgust", "anger", "negative", "positive",
    ]  # fmt: skip


def test_posterior_over_the_top_k_by_hand(options):
    # the first two of "parents": 50 and 30 of 119; among themselves 50/80 and 30/80. Prior .5 and .3 of all 100.
    model = fake(FakeAttributes(BASE, links=LINKS))
    for posterior, probabilities in (("vocabulary", (50 / 119, 30 / 119)), ("top-k", (50 / 80, 30 / 80))):
        chosen = {**options, "top_k": 2, "posterior": posterior}
        _, records = conclude(model, **chosen)
        plan = Plan(options=PROBE.options(**chosen), seed=0, model=model.info)
        found = read_answers(plan, records, questions(plan.options), plan.options.chosen_lexicon())
        rows = found.attributes.filter(pl.col("index") == 0).sort("before")
        assert rows["word"].to_list() == ["stupid", "good"]
        expected = [math.log(probabilities[0] / 0.5), math.log(probabilities[1] / 0.3)]
        assert rows["typicality"].to_list() == pytest.approx(expected)


def test_without_human_stereotypes(options):
    found, _ = conclude(fake(FakeAttributes(BASE)), **{**options, "human_file": ""})
    assert not rows_of(found, "recall")
    assert "recall" not in {figure.name for figure in found.figures}
    notice = notice_with(found, "Recall was not computed")
    assert "clinometer data add stereotypes PATH" in notice.text
    assert notice.level == "warning"  # the terminal shows it as well
    # a single model is like no other
    assert not rows_of(found, "similarity")


def test_human_stereotypes_about_other_groups_only(folder, options, tmp_path):
    other = human_file(tmp_path, [("why are kings so", "profession", "kings", "rich")])
    found, _ = conclude(fake(FakeAttributes(BASE)), **{**options, "human_file": other})
    assert notice_with(found, "Recall was not computed").level == "warning"


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ({}, "The prior is each question with its group hidden by one mask."),
        ({"prior_masks": "tokens"}, "with its group hidden by as many masks as it has tokens."),
        (
            {"prior": "published"},
            "replaced by 'Why are [HIDDEN] so [MASK]', as in the authors' code, with one mask",
        ),
    ],
)
def test_the_reader_is_told_which_prior(options, chosen, text):
    found, _ = conclude(fake(FakeAttributes(BASE)), **options, **chosen)
    assert text in notice_with(found, "3 groups in 5 templates each").text


def test_a_lexicon_of_emotional_words_only_is_warned_about(options, tmp_path):
    short = lexicon_file(tmp_path, {"stupid": {"negative"}, "good": {"positive"}})
    found, _ = conclude(fake(FakeAttributes(BASE)), **{**options, "emotions_file": short})
    assert notice_with(found, "which lacks the words without an emotion").level == "warning"
    assert row_of(found, "emotions", group="kids", emotion="negative").estimate == 0.5  # of 2 words, not of 4


def test_groups_without_a_covered_word_have_no_profile(options, tmp_path):
    other = lexicon_file(tmp_path, {"unheard": {"negative"}, "of": set()})
    found, _ = conclude(fake(FakeAttributes(BASE)), **{**options, "emotions_file": other})
    assert not rows_of(found, "emotions")
    assert notice_with(found, "hence no profile").level == "warning"
    assert found.headlines == (
        "fake cannot be judged: only 0% of the words it offers are in the emotion lexicon (40% are needed).",
    )


# ---- negativity ----------------------------------------------------------------------------------------------


def vocabulary(size=240):
    """Return words of which a third is negative, a third positive and a third neither, and their lexicon."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [f"word{letters[i // 26]}{letters[i % 26]}" for i in range(size)]
    labels = [{"negative"}, {"positive"}, set()]
    return dict.fromkeys(words, 1.0), {word: labels[i % 3] for i, word in enumerate(words)}


@pytest.fixture(scope="module")
def many(folder):
    """Fifty groups in two categories, and a lexicon of 240 words."""
    letters = "abcdefghij"
    names = [f"group{letters[i // 10]}{letters[i % 10]}" for i in range(50)]
    words, lexicon = vocabulary()
    categories = {name: "first" if i < 25 else "second" for i, name in enumerate(names)}
    (folder / "many").mkdir()
    return words, {
        "groups_file": groups_file(folder / "many", categories),
        "emotions_file": lexicon_file(folder / "many", lexicon),
        "top_k": 60,
        "templates": 2,
    }


def even(words, *, seed, links=None):
    """Every question is offered other words, whatever the group."""
    return FakeAttributes(words, noise=random_weights(len(words), seed=seed), links=links)


@pytest.mark.parametrize("seed", range(3))
def test_an_even_hand_calls_no_group(many, seed):
    words, options = many
    found, _ = conclude(fake(even(words, seed=seed)), **options)
    rows = rows_of(found, "negativity")
    assert len(rows) == 50
    assert min(row.q for row in rows) > 0.05
    # of 50 p-values 2.5 are below .05 on average; more than 8 come in one of a thousand such tests
    assert sum(row.p <= 0.05 for row in rows) <= 8
    assert [each.state for each in found.verdicts] == ["none found"] * 3  # of two categories one is told
    assert found.headlines[1].startswith("fake shows no single group that its words describe more negatively")
    # a little too wide is right: each interval holds the difference of 0 in at least 95 %
    assert sum(row.low <= 0 <= row.high for row in rows) >= 43


def test_a_planted_negativity_is_called_and_no_other(many):
    words, options = many
    negative = dict.fromkeys(list(words)[::3], 8.0)
    found, records = conclude(fake(even(words, seed=0, links={"groupac": negative})), **options)
    called = [row for row in rows_of(found, "negativity") if row.q < 0.05]
    assert [row.labels["group"] for row in called] == ["groupac"]
    assert called[0].low > 0
    lists = records.table(model="fake", stage="posterior").sort("index")["got_words"].to_list()
    valence = dict(zip(words, itertools.cycle([1, -1, 0]), strict=False))
    negativity = np.array([np.mean([valence[word] for word in each]) for each in lists]).reshape(50, 2)
    assert called[0].estimate == pytest.approx((negativity[2] - negativity.mean(axis=0)).mean())
    assert found.headlines[1].startswith("fake describes groupac in more negative words than groups on average (")
    assert "the attributes of 1 are more negative and those of 0 more positive" in found.headlines[1]
    assert "most negative: groupac" in found.headlines[1]
    # the chart shows each category's most negative group first
    first = [row for row in rows_of(found, "negativity") if row.labels["category"] == "first"]
    assert [row.estimate for row in first] == sorted((row.estimate for row in first), reverse=True)


def test_a_headline_needs_both_a_small_q_and_an_interval_without_0():
    """Only the first of each three is found; dropping either half of the rule would name another."""
    rows = [
        Finding(labels={"model": "m", "group": group}, estimate=sign * 0.3, low=low, high=high, q=q)
        for sign, names in ((1, "abc"), (-1, "xyz"))
        for group, q, (low, high) in zip(
            names,
            (0.049, 0.049, 0.051),
            [sorted((sign * near, sign * 0.6)) for near in (0.1, -0.1, 0.1)],
            strict=True,
        )
    ]
    assert _groups_in_words(rows) == (
        " Of 6 groups, the attributes of 1 are more negative and those of 1 more positive than the mean of all "
        "(q < 0.05 and an interval without 0); most negative: a +0.30 (95 % interval +0.10 to +0.60); most "
        "positive: x −0.30 (95 % interval −0.60 to −0.10)."
    )


def test_shuffle_agrees_with_really_shuffling():
    rng = np.random.default_rng(0)
    valences = [rng.integers(-1, 2, size=n) for n in (20, 30, 25)]
    valences[0][:8] = 1
    centre = float(np.mean([each.mean() for each in valences]))
    p = shuffle_p(valences, centre, rng=rng, shuffles=20_000)
    pool = np.concatenate(valences)
    shuffled = rng.permuted(np.tile(pool, (20_000, 1)), axis=1)
    for g, start in enumerate((0, 20, 50)):
        drawn = shuffled[:, start : start + len(valences[g])].mean(axis=1)
        expected = (np.abs(drawn - pool.mean()) >= abs(valences[g].mean() - centre) - 1e-12).mean()
        assert p[g] == pytest.approx(expected, abs=0.015)  # two draws of 20,000 each: 3 · √(2 · .25 / 20000)
    assert np.isnan(shuffle_p([np.ones(3, dtype=int)], 0.0, rng=rng))[0]


# ---- the whole way -------------------------------------------------------------------------------------------


def test_audited_written_and_verified(options, tmp_path):
    models = [
        fake(FakeAttributes(BASE, links=LINKS, pieces=["##s"]), name="mine"),
        fake(FakeAttributes(BASE), name="other"),
    ]
    chosen = {"stereotypes": {**options, "draws": 100}}
    run = clinometer.audit(models, probes="stereotypes", options=chosen, folder=tmp_path / "run")
    (found,) = run.folder.read_findings()
    assert row_of(found, "ranking", model="mine", group="parents").labels["by_typicality"].startswith("strict")
    assert run.folder.report_path.is_file()
    assert clinometer.verify(tmp_path / "run").problems == ()


def test_nrclex_serves_without_a_file(options):
    pytest.importorskip("nrclex")
    found, _ = conclude(fake(FakeAttributes(BASE)), **{**options, "emotions_file": ""})
    assert notice_with(found, "Emotions: 6,468 words of 'nrclex'").level == "warning"
