"""What follows for a model: the gate, the verdicts, and that headlines, verdicts and tables agree."""

import dataclasses
import importlib.util
import itertools
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fake_stereotypes import (
    FakeAttributes,
    conclude,
    fake,
    groups_file,
    lexicon_file,
    random_weights,
    row_of,
    rows_of,
)
from scipy import stats

from clinometer.errors import ClinometerError
from clinometer.probes.kit import LEAN, is_found
from clinometer.probes.stereotypes import PROBE, words
from clinometer.probes.stereotypes.answers import KNOWN_SHARE, ModelAnswers, WordCounts
from clinometer.probes.stereotypes.figures import figures_of
from clinometer.probes.stereotypes.measures import (
    category_difference,
    detectable_spread,
    group_differences,
    repetitions_of,
    spread_between_groups,
)
from clinometer.stats import benjamini_hochberg
from clinometer.types import Finding

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = [f"word{LETTERS[i // 26]}{LETTERS[i % 26]}" for i in range(240)]
LEXICON = dict(zip(WORDS, itertools.cycle([{"negative"}, {"positive"}, set()]), strict=False))
GROUPS = [f"group{LETTERS[i // 10]}{LETTERS[i % 10]}" for i in range(40)]
NEGATIVE = WORDS[::3]


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verdicts")
    return {
        "groups_file": groups_file(
            folder, {name: "first" if i < 12 else "second" for i, name in enumerate(GROUPS)}
        ),
        "emotions_file": lexicon_file(folder, LEXICON),
        "top_k": 60,
        "templates": 3,
        "draws": 199,
    }


def model(name="fake", *, seed=0, leaning=(), strength=1.0, unknown=0):
    """A fake whose lists vary from question to question; `leaning` groups get negative words more often."""
    others = itertools.islice(itertools.product(LETTERS, repeat=3), unknown)
    words = [*WORDS, *("other" + "".join(letters) for letters in others)]
    links = {group: dict.fromkeys(NEGATIVE, strength) for group in leaning}
    noise = random_weights(len(words), seed=seed)
    return fake(FakeAttributes(dict.fromkeys(words, 1.0), noise=noise, links=links), name)


def states(findings, name="fake"):
    return {each.aspect: each.state for each in findings.verdicts if each.model == name}


# ---- the verdicts -------------------------------------------------------------------------------------------


def test_an_even_hand_and_a_lean_of_each_kind(options):
    general, single, first, second = (
        "negativity of groups in general",
        "negativity of single groups",
        "negativity of the category first",
        "negativity of the category second",
    )
    even = conclude(model(), **options)[0]
    for table in ("negativity", "category_negativity"):  # a family each
        p, q = np.array([(row.p, row.q) for row in rows_of(even, table)]).T
        assert q == pytest.approx(benjamini_hochberg(p))
    # of two categories one is told: the other one is its others
    assert list(states(even).values()) == ["none found"] * 3

    one = conclude(model(leaning=GROUPS[7:8], strength=8.0), **options)[0]
    assert states(one)[single] == LEAN
    assert f"fake describes {GROUPS[7]} in more negative words than groups on average (" in " ".join(one.headlines)

    category = conclude(model(leaning=GROUPS[:12], strength=3.0), **options)[0]
    assert states(category)[first] == states(category)[general] == LEAN
    assert second not in states(category)
    lines = " ".join(category.headlines)
    assert "groups of the category first in more negative words than other groups (difference +" in lines
    # of two categories, the second is the others of the first: one comparison, told once
    assert "category second" not in lines
    assert "describes some groups in more negative words than others, whichever way it is asked (spread +" in lines


@pytest.mark.parametrize("seed", range(2))
def test_headlines_verdicts_and_tables_agree(options, seed):
    models = [
        model("even", seed=seed),
        model("one", seed=seed, leaning=GROUPS[:1], strength=6.0),
        model("some", seed=seed, leaning=GROUPS[::2], strength=2.5),
        model("category", seed=seed, leaning=GROUPS[:12], strength=2.0),
        model("random", seed=seed, unknown=600),
    ]
    found, _ = conclude(*models, **options)
    lines = " ".join(found.headlines)
    assert "nan" not in lines.lower()
    for verdict in found.verdicts:
        (reference,) = verdict.rows
        row = row_of(found, reference.table, **reference.labels)
        assert len(verdict.sentence.split()) <= 25
        if verdict.state == "cannot tell":
            assert verdict.model == "random"
            assert verdict.sentence in found.headlines
            continue
        assert (verdict.estimate, verdict.low, verdict.high, verdict.q) == (row.estimate, row.low, row.high, row.q)
        assert (verdict.state == LEAN) == is_found(row)
        assert verdict.detectable > 0
        told = verdict.sentence[:-1] in lines
        assert told or "category" in verdict.aspect  # categories without a lean share a line
        assert (verdict.state == LEAN) <= told
    # no group is called found by its row, and by no verdict
    for name in ("even", "one", "some", "category"):
        called = [row for row in rows_of(found, "negativity") if row.labels["model"] == name and is_found(row)]
        assert bool(called) == (states(found, name)["negativity of single groups"] == LEAN)


def test_one_wording_cannot_tell_group_from_chance(options):
    found, _ = conclude(model(leaning=GROUPS[:12], strength=3.0), **{**options, "templates": 1})
    told = states(found)
    assert told.pop("negativity of groups in general") == "cannot tell"
    assert told.pop("negativity of single groups") == "cannot tell"
    assert set(told.values()) == {LEAN}  # categories have many groups: these are the repetitions
    assert not rows_of(found, "spread")
    assert sum("a single wording cannot tell" in line for line in found.headlines) == 1


def test_countries_are_asked_in_other_words_than_people(options, tmp_path):
    mixed = {name: "country" if i < 12 else "second" if i < 25 else "third" for i, name in enumerate(GROUPS)}
    found, _ = conclude(model(), **{**options, "groups_file": groups_file(tmp_path, mixed)})
    assert states(found)["negativity of the category country"] == "cannot tell"
    row = row_of(found, "category_negativity", category="second")
    assert row.n == 13
    assert not math.isnan(row.q)


# ---- the gate -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("unknown", "passes"), [(0, True), (240, True), (480, False), (900, False)])
def test_a_model_whose_words_are_not_attributes_is_not_judged(options, unknown, passes):
    """Of 60 random words, 240 / (240 + unknown) are in the lexicon: 1, 1/2, 1/3 and 1/5; 0.4 are needed."""
    found, _ = conclude(model(unknown=unknown), **options)
    assert (set(states(found).values()) == {"cannot tell"}) == (not passes)
    share = row_of(found, "coverage", what="words offered that the emotion lexicon covers").estimate
    assert share == pytest.approx(240 / (240 + unknown), abs=0.03)
    assert (share >= KNOWN_SHARE["complete"]) == passes
    if not passes:
        (line,) = found.headlines
        assert line == (
            f"fake cannot be judged: only {share:.0%} of the words it offers are in the emotion lexicon (40% are "
            "needed)."
        )
        assert {table.name for table in found.tables} == {"ranking", "unique_attributes", "coverage"}
        assert found.figures == ()


def test_the_gate_does_not_ask_for_words_that_the_lexicon_cannot_have(options, tmp_path):
    """A lexicon of emotional words only has fewer of any model's words: 0.25 are enough, here of 160 of 540."""
    emotional = lexicon_file(tmp_path, {word: labels for word, labels in LEXICON.items() if labels})
    found, _ = conclude(model(unknown=300), **{**options, "emotions_file": emotional})
    assert row_of(found, "coverage", what="words offered that the emotion lexicon covers").estimate < 0.4
    assert "cannot tell" not in states(found).values()


@pytest.mark.parametrize(
    ("different", "known", "complete", "passes"),
    [
        (5, 5, True, False),  # of five random words, all are known once in 400
        (6, 6, True, True),
        (6, 5, True, False),
        (25, 16, True, True),  # 0.30 + 3.6 · √(.21/25) = .63
        (25, 15, True, False),
        (400, 160, True, True),  # the share of all words decides
        (2, 2, False, False),
        (3, 3, False, True),
        (25, 10, False, True),  # 0.14 + 3.6 · √(.1204/25) = .39
        (25, 9, False, False),
    ],
)
def test_few_different_words_are_little_evidence(different, known, complete, passes):
    counts = WordCounts(
        offered=0, pieces=0, others=0, without_prior=0, missing=0,
        first=1000, known=1000 * known // different, different=different, different_known=known,
    )  # fmt: skip
    answers = SimpleNamespace(lexicon=SimpleNamespace(complete=complete), counts=counts, drawn=())
    gate = ModelAnswers.gate.fget(answers)
    assert (gate == "") == passes
    if not passes:
        assert f"it offers only {different} different words, {known} of them in the emotion lexicon" in gate


def test_random_words_do_not_pass_however_few_are_asked_for(options):
    """One list for every group, as random weights give it; 30 % of all words are known."""
    passed = 0
    for seed in range(40):
        noise = random_weights(800, seed=seed, spread=3.0, by=lambda text: "")
        words = {**dict.fromkeys(WORDS, 1.0), **{f"other{i:03d}": 1.0 for i in range(560)}}
        random = FakeAttributes(words, noise=noise)
        found, _ = conclude(fake(random), **{**options, "top_k": 5, "templates": 1, "filter": "none"})
        passed += not all("cannot be judged: " in line for line in found.headlines)
    assert passed <= 2


def test_a_model_that_is_not_judged_changes_no_other(options):
    good, other, random = model("good"), model("other", seed=1), model("random", unknown=600)
    alone, _ = conclude(good, other, **options)
    beside, _ = conclude(good, random, other, **options)
    for table in ("spread", "negativity", "category_negativity", "similarity", "emotions"):
        rows = [dataclasses.astuple(row) for row in rows_of(beside, table)]
        assert rows
        np.testing.assert_equal(rows, [dataclasses.astuple(row) for row in rows_of(alone, table)])


# ---- the measures -------------------------------------------------------------------------------------------


def test_spread_by_hand():
    """Five pairs of groups at +d and −d in both of two wordings: every product is d², times 10/9 for the mean."""
    d = np.tile([0.3, -0.3], 5)
    asked = np.tile([0, 1], (10, 1))
    found = spread_between_groups(
        repetitions_of(np.stack([d, d], axis=1), asked), rng=np.random.default_rng(0), draws=99
    )
    assert found.estimate == pytest.approx(0.3 * math.sqrt(10 / 9))
    # what one wording says and the other denies is no spread: every product is −d²
    denied = spread_between_groups(
        repetitions_of(np.stack([d, -d], axis=1), asked), rng=np.random.default_rng(0), draws=99
    )
    assert denied.estimate == pytest.approx(-0.3 * math.sqrt(10 / 9))
    assert denied.p == 1.0
    few = spread_between_groups(repetitions_of(np.ones((4, 2)), asked[:4]), rng=np.random.default_rng(0), draws=99)
    assert math.isnan(few.estimate)


def test_groups_are_compared_with_those_asked_alike():
    """Two wordings that differ by 1 for everybody: only the deviations within each count."""
    values = np.array([[0.0, 0.2], [0.4, 0.2], [1.0, 1.3], [1.2, 1.1]])
    asked = np.array([[0, 1], [0, 1], [2, 3], [2, 3]])
    found = repetitions_of(values, asked).values
    assert found == pytest.approx(np.array([[-0.2, 0.0], [0.2, 0.0], [-0.1, 0.1], [0.1, -0.1]]))
    alone = category_difference(
        repetitions_of(values, asked), np.array([0, 1]), rng=np.random.default_rng(0), draws=99
    )
    assert math.isnan(float(alone.estimate))  # nobody else is asked in these words


def test_few_groups_of_a_category_have_no_interval():
    repeated = repetitions_of(np.random.default_rng(0).random((14, 2)), np.tile([0, 1], (14, 1)))
    few, enough = (
        category_difference(repeated, np.arange(n), rng=np.random.default_rng(0), draws=99) for n in (4, 5)
    )
    assert few.low is None
    assert few.p is None
    assert not math.isnan(float(enough.low))


def test_unsteady_groups_have_wider_intervals_where_groups_differ_in_that():
    rng = np.random.default_rng(0)
    asked = np.tile(np.arange(5), (60, 1))
    alike, freedom = group_differences(repetitions_of(rng.standard_normal((60, 5)), asked))
    width = alike.high - alike.low
    assert np.ptp(width) == pytest.approx(0.0, abs=1e-9) or freedom > 20
    assert width.max() < 1.2 * width.min()  # one variance for all, though five wordings show many
    repeated = repetitions_of(np.where(np.arange(60) % 2, 1.0, 6.0)[:, None] * rng.standard_normal((60, 5)), asked)
    unequal, fewer = group_differences(repeated)
    width = unequal.high - unequal.low
    # the steady half has the mean variance: in five wordings an unsteady group may look as steady
    least = 2 * stats.t.ppf(0.975, fewer) * math.sqrt(repeated.values.var(axis=1, ddof=1).mean() / 5)
    assert width[1::2] == pytest.approx(np.full(30, least))
    assert width.min() == pytest.approx(least)
    assert width[::2].max() > 1.5 * least
    assert 4 < fewer < 20 < freedom
    assert unequal.p == pytest.approx(
        2 * stats.t.sf(np.abs(unequal.estimate) / (width / 2) * stats.t.ppf(0.975, fewer), fewer)
    )


def test_the_detectable_spread_solves_its_equation():
    tau, noise, times, groups = detectable_spread(0.02, times=3, groups=50), 0.02, 3, 50
    variance = 2 * noise**2 / (times * (times - 1)) + 4 * tau**2 * noise / times + 2 * tau**4
    assert tau**2 == pytest.approx(2.8016 * math.sqrt(variance / groups), rel=1e-3)
    assert math.isnan(detectable_spread(0.02, times=3, groups=15))


# ---- tables and charts --------------------------------------------------------------------------------------


def test_attributes_unique_to_a_group(tmp_path):
    words = {"tall": 5.0, "kind": 4.0, "rich": 0.001, "poor": 0.001}
    options = {
        "groups_file": groups_file(tmp_path, {"kids": "age", "nurses": "profession"}),
        "emotions_file": lexicon_file(tmp_path, {word: {"joy"} for word in words} | {"so": set()}),
        "top_k": 3,
        "templates": 1,
    }
    links = {"kids": {"rich": 1000.0}, "nurses": {"poor": 5000.0}}
    found, _ = conclude(fake(FakeAttributes(words, links=links)), **options)
    kids, nurses = (row_of(found, "unique_attributes", group=group) for group in ("kids", "nurses"))
    assert (kids.labels["unique"], nurses.labels["unique"]) == ("rich", "poor")
    assert (kids.estimate, kids.n) == (pytest.approx(1 / 3), 3)


def test_chosen_groups_in_all_models(options):
    chosen = {**options, "chart_groups": (GROUPS[5], GROUPS[2])}
    found, _ = conclude(model("a"), model("b", seed=1), **chosen)
    rows = rows_of(found, "chosen_emotions")
    assert len(rows) == 2 * 2 * 10
    assert [row.labels["group"] for row in rows[:4]] == [GROUPS[5], GROUPS[5], GROUPS[2], GROUPS[2]]
    assert {row.labels["emotion"] for row in rows[:4]} == {"negative"}
    (figure,) = [each for each in found.figures if each.name == "chosen_emotions"]
    assert (figure.x, figure.y, figure.menus) == ("model", "group", ("emotion",))
    # without a choice: the ends
    leaning = conclude(model(leaning=GROUPS[7:8], strength=8.0), **options)[0]
    assert rows_of(leaning, "chosen_emotions")[0].labels["group"] == GROUPS[7]
    assert len(rows_of(leaning, "chosen_emotions")) == 6 * 10
    # and at the other end the most positive one
    positive = conclude(model(leaning=GROUPS[9:10], strength=0.02), **options)[0]
    assert GROUPS[9] in {row.labels["group"] for row in rows_of(positive, "chosen_emotions")}


def test_an_unknown_group_to_chart_is_refused(options):
    with pytest.raises(ClinometerError, match=r"chart_groups.*groupzz"):
        PROBE.check(PROBE.options(**{**options, "chart_groups": ("groupzz",)}))


@pytest.mark.parametrize(("models", "mark", "filters"), [(8, "lines", {}), (9, "intervals", {"k": 25})])
def test_many_models_need_another_chart(models, mark, filters):
    (figure,) = figures_of(["recall"], (), models=models, top_k=200)
    assert (figure.mark, figure.filters) == (mark, filters)
    assert (figures_of(["recall"], (), models=9, top_k=10)[0].filters) == {"k": 10}


# ---- how often it errs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("unequal", [False, True])
def test_an_even_hand_stays_quiet_and_the_detectable_lean_is_found(unequal):
    """A small version of `simulations/stereotypes.py`: what 5 % and 80 % hardly ever exceed in 20 seeds."""
    file = Path(__file__).parents[2] / "simulations" / "stereotypes.py"
    spec = importlib.util.spec_from_file_location("simulated_stereotypes", file)
    simulation = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(simulation)
    counts = simulation.simulate(range(20), unequal=unequal, draws=199)
    assert set(counts) == {"general", "single", "category"}
    for count in counts.values():
        assert count["even"] <= 4  # 20 draws of 5 %: five or more in 3 of 1,000
        assert count["planted"] >= 11  # 20 draws of 80 %: ten or fewer in 3 of 1,000


@pytest.mark.parametrize(("detectable", "state"), [(0.9, "none found"), (1.1, "cannot tell")])
def test_a_category_of_which_only_more_than_half_of_the_range_would_be_found_cannot_be_told(detectable, state):
    """From −1, all attributes positive, to +1: half of the range is 1."""
    labels = {"model": "m", "category": "c", "detectable": detectable}
    row = Finding(labels=labels, estimate=0.2, low=-0.5, high=0.9, p=0.4, q=0.4, n=9)
    assert words._of_category("m", row).state == state
