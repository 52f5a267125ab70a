"""Several trainings of one kind: their shifts together and apart, and which models are said to be alike."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from fake_records import fake_model
from fake_stereotypes import (
    FakeAttributes,
    conclude,
    fake,
    groups_file,
    human_file,
    lexicon_file,
    random_weights,
    row_of,
    rows_of,
)

from clinometer.data import EMOTIONS
from clinometer.probes.kit.trainings import between_arms
from clinometer.probes.stereotypes.words import similarity_headline
from clinometer.report.chart_style import PAPER
from clinometer.report.charts import chart
from clinometer.stats import benjamini_hochberg
from clinometer.types import Finding

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = [f"word{LETTERS[i // 26]}{LETTERS[i % 26]}" for i in range(120)]
GROUPS = [f"group{LETTERS[i]}" for i in range(24)]
ONCE = "one training each, so intervals leave out what another seed would change"


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trainings")
    rng = np.random.default_rng(0)
    lexicon = {word: {each for each in EMOTIONS if rng.random() < 0.3} for word in WORDS} | {"plain": set()}
    categories = {name: "first" if i < 14 else "second" for i, name in enumerate(GROUPS)}
    return {
        "groups_file": groups_file(folder, categories),
        "emotions_file": lexicon_file(folder, lexicon),
        "human_file": human_file(folder, [(f"why are {name} so", "x", name, WORDS[7]) for name in GROUPS]),
        "top_k": 40,
        "draws": 199,
        "templates": 2,
    }


def group_in(text):
    return next(word.strip("?") for word in text.split() if word.strip("?").startswith("group"))


def model(name, *, moved=0, **tuning):
    """A fake that sees so many groups in another way than the one it began with."""
    noise = random_weights(len(WORDS), seed=1, by=group_in)
    links = {group: dict.fromkeys(WORDS[at : at + 30], 400.0) for at, group in enumerate(GROUPS[:moved])}
    return fake(FakeAttributes(dict.fromkeys(WORDS, 1.0), noise=noise, links=links), name, tuning=tuning)


@pytest.fixture(scope="module")
def found(options):
    base = model("base")

    def trained(corpus, amount, moved):
        for seed, count in enumerate(moved):
            yield model(f"{corpus}-{amount}-seed-{seed}", moved=count, base=base.info.weights, method="masked-lm",
                        data=corpus, amount=amount, seed=str(seed))  # fmt: skip

    return conclude(base, *trained("news", "0.5", (2, 3, 4)), *trained("news", "1", (8, 10, 12)),
                    *trained("blog", "1", (9, 5, 13)), **options)[0]  # fmt: skip


def test_an_arm_has_a_row_that_is_the_mean_of_its_trainings_and_less_sure(found):
    for table in ("shift", "shift_mean", "recall_change", "negativity_change"):
        rows = rows_of(found, table)
        for row in (each for each in rows if each.labels["trainings"] == 3):
            about = {key: row.labels[key] for key in ("category", "k", "measure") if key in row.labels}
            arm = row.labels["model"].removesuffix(" (3 trainings)")
            each = [row_of(found, table, model=f"{arm}-seed-{seed}", **about) for seed in range(3)]
            assert row.estimate == pytest.approx(sum(one.estimate for one in each) / 3)
            assert [one.labels["line"] for one in each] == [
                f"{row.labels['line']}, seed {seed}" for seed in range(3)
            ]
            units = sum(one.high - one.low for one in each) / 3
            if math.isnan(units):  # two categories are too few for an interval of their mean
                assert table == "shift_mean"
                assert math.isnan(row.low)
                continue
            assert row.high - row.low >= units - 1e-12
            # trainings that differ are in the interval
            if len({round(one.estimate, 9) for one in each}) > 1:
                assert row.high - row.low > units
        arms = [each.labels["model"] for each in rows if each.labels["trainings"] == 3]
        assert set(arms) == {"news-0.5 (3 trainings)", "news-1 (3 trainings)", "blog-1 (3 trainings)"}


@pytest.mark.parametrize("table", ["recall_change", "negativity_change"])
def test_q_of_an_arm_is_over_its_own_rows(found, table):
    for name in ("news-1 (3 trainings)", "blog-1 (3 trainings)"):
        rows = [row for row in rows_of(found, table) if row.labels["model"] == name]
        assert [row.q for row in rows] == pytest.approx(
            benjamini_hochberg([row.p for row in rows]).tolist(), nan_ok=True
        )
        assert any(not math.isnan(row.q) for row in rows)
    assert all(math.isnan(row.q) for row in rows_of(found, "shift"))


def test_no_line_of_a_chart_goes_through_several_seeds(found):
    tables = {table.name: table for table in found.tables}
    for name in ("shift", "shift_mean"):
        (figure,) = [each for each in found.figures if each.name == name]
        assert figure.color == "line"
        points = [tuple(row.labels[key] for key in ("line", "base", "amount", *figure.menus))
                  for row in tables[name].rows]  # fmt: skip
        assert len(set(points)) == len(points)
        drawn = chart(figure, tables[name], colours=PAPER, width=600)
        assert drawn.drawn == len(points)
        assert "seed 0" in str(drawn.spec)
    for name in ("recall_change", "negativity_change"):  # whose axis names the models
        (figure,) = [each for each in found.figures if each.name == name]
        assert figure.color != "line"


def test_the_captions_say_what_the_intervals_hold(found):
    captions = {table.name: table.caption for table in found.tables}
    for name in ("shift", "shift_mean", "recall_change", "negativity_change"):
        assert "hold what differs between them" in captions[name]
        assert "The interval of one training leaves out what another seed would change" in captions[name]


def test_the_sentence_and_the_table_have_the_same_numbers(found):
    (line,) = [each for each in found.headlines if each.startswith("Tuning moves the emotion profiles")]
    arms = [
        row for row in rows_of(found, "shift") if row.labels["trainings"] == 3 and row.labels["category"] == "all"
    ]
    most = min(arms, key=lambda row: row.estimate)
    assert f"in {most.labels['model']} (from base)" in line
    numbers = (f"{abs(each):.2f}" for each in (most.estimate, most.low, most.high))
    assert "Δρ = −{} (95 % interval −{} to −{})".format(*numbers) in line
    moved = next(each for each in found.headlines if each.startswith("news-1 (3 trainings)"))
    assert "of all groups before and" in moved  # what is said of one training is said of an arm
    assert "emotion profiles: Δρ = " in moved


# ---- which models are alike -----------------------------------------------------------------------------------


def models_of(arms, *, others=("given",)):
    """Models, and trainings of the first: so many seeds of each arm."""
    infos = [dataclasses.replace(fake_model(name), weights=name) for name in others]
    for arm, seeds in arms.items():
        for seed in range(seeds):
            name = f"{arm}-seed-{seed}" if seeds > 1 else arm
            tuning = {"base": "given", "method": "masked-lm", "data": arm, "amount": "1", "seed": str(seed)}
            infos.append(dataclasses.replace(fake_model(name), weights=name, tuning=tuning))
    return infos


def said(infos, rho, *, width=0.02):
    """What is said where `rho(one, other)` is how alike two models are."""
    rows = []
    for one, other in itertools.permutations((each.name for each in infos), 2):
        value = rho(*sorted((one, other)))
        labels = {"category": "all", "model": one, "other_model": other, "by_chance": 0.1}
        rows.append(Finding(labels=labels, estimate=value, low=value - width, high=value + width, n=20))
    return list(similarity_headline(rows, infos)), rows


def test_a_model_and_its_own_trainings_are_no_pair():
    infos = models_of({"news": 2})
    assert said(infos, lambda one, other: 0.99)[0] == []
    infos = models_of({"news": 2}, others=("given", "other"))
    (line,), _ = said(infos, lambda one, other: 0.99 if "other" not in (one, other) else 0.5)
    assert "ρ = 0.50 " in line
    assert "given and other" in line or "news (2 trainings) and other" in line


def test_the_order_of_seeds_does_not_decide_which_are_alike():
    """Seed 1 of one arm is by chance nearer to another arm than seed 0 is."""
    infos = models_of({"left": 2, "right": 2, "far": 2})
    lucky = {("left-seed-1", "right-seed-1"): 0.86, ("far-seed-0", "left-seed-0"): 0.85}
    (line,), _ = said(infos, lambda one, other: lucky.get((one, other), 0.82))
    assert "most alike in" not in line
    assert "-seed-" not in line
    assert line.startswith(
        "Emotion profiles of two models are alike by ρ = 0.82 to 0.84 (3 pairs); which are nearest"
    )
    assert "cannot be told: left (2 trainings) and right (2 trainings) have 0.84" in line
    assert ONCE not in line


def test_what_is_clearly_nearest_is_said():
    infos = models_of({"left": 3, "right": 3, "far": 3})
    near = {"left", "right"}
    (line,), _ = said(infos, lambda one, other: 0.9 if {one.split("-")[0], other.split("-")[0]} == near else 0.5)
    assert line.startswith(
        "Emotion profiles are most alike in left (3 trainings) and right (3 trainings): ρ = 0.90 "
    )
    assert "by chance 0.10" in line
    # within the intervals it is not
    (line,), _ = said(infos, lambda one, other: 0.9 if {one.split("-")[0], other.split("-")[0]} == near else 0.88)
    assert "cannot be told" in line


def test_of_one_training_each_the_sentence_says_what_is_left_out():
    infos = models_of({"left": 1, "right": 1, "far": 1})
    (line,), _ = said(infos, lambda one, other: 0.9 if (one, other) == ("left", "right") else 0.5)
    assert line.startswith("Emotion profiles are most alike in left and right: ρ = 0.90 ")
    assert ONCE in line
    (line,), _ = said(models_of({}, others=("a", "b")), lambda one, other: 0.4)
    assert line.startswith("Emotion profiles of a and b are alike by ρ = 0.40 (95 % interval 0.38 to 0.42)")
    assert ONCE not in line  # nothing was trained


def test_arms_meet_seed_by_seed_and_a_model_meets_every_training_by_hand():
    infos = models_of({"left": 2, "right": 2}, others=("given", "other"))
    values = {("left-seed-0", "right-seed-0"): 0.5, ("left-seed-1", "right-seed-1"): 0.7,
              ("left-seed-0", "other"): 0.2, ("left-seed-1", "other"): 0.4,
              ("other", "right-seed-0"): 0.3, ("other", "right-seed-1"): 0.5}  # fmt: skip
    _, rows = said(infos, lambda one, other: values.get((one, other), 0.0), width=0.1959964)
    found = {(row.labels["model"], row.labels["other_model"]): row for row in between_arms(rows, infos)}
    left, right = "left (2 trainings)", "right (2 trainings)"
    assert {pair: round(row.estimate, 9) for pair, row in found.items()} == {
        (left, right): 0.6, (left, "other"): 0.3, (right, "other"): 0.4, ("given", "other"): 0.0,
    }  # fmt: skip
    # s² = .02 for all three, twice u² = .01, and they move as one: freedom 1, ν = (.02/.01)² = 4
    half = 2.776445 * math.sqrt(0.02)
    for pair in ((left, right), (left, "other"), (right, "other")):
        row = found[pair]
        assert (row.low, row.high) == pytest.approx((row.estimate - half, row.estimate + half), abs=1e-5)
    alone = found["given", "other"]
    assert (alone.low, alone.high) == pytest.approx((-0.196, 0.196), abs=1e-3)
    assert [row.labels["trainings"] for row in found.values()] == [2, 2, 2, 1]
