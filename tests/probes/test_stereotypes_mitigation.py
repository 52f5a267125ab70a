"""A mitigated model against its base: tuning by strength, and the change of negativity."""

import dataclasses
import math

import numpy as np
import pytest
from fake_records import fake_model
from fake_stereotypes import FakeAttributes, conclude, fake, groups_file, lexicon_file, row_of, rows_of
from scipy import stats

from clinometer.probes.kit.trainings import with_arms
from clinometer.probes.stereotypes.measures import INEQUALITY, NEGATIVITY
from clinometer.probes.stereotypes.words import headlines
from clinometer.types import Finding

LETTERS = "abcdefghijklmnopqrstuvwxyz"
GROUPS = [f"group{LETTERS[i]}" for i in range(20)]
BAD, GOOD = ([f"{kind}{LETTERS[i]}" for i in range(20)] for kind in ("bad", "good"))


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mitigation")
    words = dict.fromkeys(BAD, ("negative", "anger")) | dict.fromkeys(GOOD, ("positive", "joy"))
    return {
        "groups_file": groups_file(
            folder, {name: "first" if i < 12 else "second" for i, name in enumerate(GROUPS)}
        ),
        "emotions_file": lexicon_file(folder, words),
        "top_k": 20,
        "draws": 199,
        "templates": 1,
    }


def model(name, bad, **tuning):
    """A fake whose 20 attributes of the i-th group are bad[i] bad and 20 − bad[i] good words."""
    links = {
        group: dict.fromkeys([*BAD[:count], *GOOD[: 20 - count]], 100.0)
        for group, count in zip(GROUPS, bad, strict=True)
    }
    return fake(FakeAttributes(dict.fromkeys([*BAD, *GOOD], 1.0), links=links), name, tuning=tuning)


def mitigated(name, bad, *, base, amount, method="embedding"):
    return model(name, bad, base=base, method=method, amount=amount, attribute="occupation", data="text")


# before: half of the groups have 16 bad words of 20, half 4: negativity ±.6; after: 13 and 7: ±.3
BEFORE, AFTER = [16, 4] * 10, [13, 7] * 10


@pytest.fixture(scope="module")
def found(options):
    base = model("given", BEFORE)
    weights = base.info.weights
    return conclude(
        mitigated("hundred", AFTER, base=weights, amount="100"),
        base,
        mitigated("nine", [15, 5] * 10, base=weights, amount="9"),
        mitigated("control", BEFORE, base=weights, amount="0", method="control"),
        **options,
    )[0]


def test_negativity_and_distance_by_hand(found):
    level = row_of(found, "negativity_change", model="hundred", category="all", measure=NEGATIVITY)
    assert (level.labels["before"], level.labels["after"], level.estimate) == pytest.approx((0.0, 0.0, 0.0))
    distance = row_of(found, "negativity_change", model="hundred", category="all", measure=INEQUALITY)
    assert (distance.labels["before"], distance.labels["after"]) == pytest.approx((0.6, 0.3))
    assert distance.estimate == pytest.approx(-0.3)
    assert distance.q < 0.01
    assert distance.n == 20
    nine = row_of(found, "negativity_change", model="nine", category="second", measure=INEQUALITY)
    assert (nine.estimate, nine.n) == (pytest.approx(-0.1), 8)  # 15 of 20: ±.5


def test_the_control_that_changed_nothing_is_no_measurable_change(found):
    for row in rows_of(found, "negativity_change"):
        if row.labels["model"] == "control":
            assert (row.estimate, row.low, row.high, row.p) == (0.0, 0.0, 0.0, 1.0)
    general = {(each.before, each.after): each for each in found.changes if each.measure.startswith("groups in")}
    assert general["given", "control"].state == "no change found"
    assert general["given", "hundred"].state == general["control", "hundred"].state == "better"
    said = {(line.split()[0], line.partition(" than ")[2].split(":")[0]): line for line in found.headlines}
    assert "control (control on occupation, λ = 0) shows no change from given that" in found.headlines[0]
    assert "lies 0.600 from the mean of all groups before and 0.500 after" in said["nine", "given"]
    assert "distance from even-handed −" in said["hundred", "given"]
    assert "Δρ = " in said["hundred", "given"]
    assert ("hundred", "control") in said
    assert not any("Tuning moves" in line for line in found.headlines)


def test_a_strength_is_not_a_share_of_a_corpus(found):
    rows = [row for row in rows_of(found, "shift") if row.labels["category"] == "all"]
    assert [(row.labels["method"], row.labels["amount"]) for row in rows] == [
        ("control", "λ = 0"), ("embedding", "λ = 9"), ("embedding", "λ = 100"),
    ]  # fmt: skip
    assert {row.labels["attribute"] for row in rows} == {"occupation"}
    (figure,) = [figure for figure in found.figures if figure.name == "shift"]
    assert (figure.x, figure.color) == ("amount", "method")
    assert "λ" in figure.caption
    tables = {table.name: table for table in found.tables}
    for figure in found.figures:
        labels = {*tables[figure.table].rows[0].labels, "estimate"}
        named = {figure.x, figure.y, figure.color, figure.row, figure.column, *figure.menus, *figure.filters}
        assert named - {""} <= labels
    for table in found.tables:
        assert len({tuple(row.labels) for row in table.rows}) == 1


def test_a_corpus_keeps_its_share_without_a_mitigated_model(options):
    base = model("given", BEFORE)
    tuned = model("tuned", AFTER, base=base.info.weights, method="masked-lm", data="news", amount="0.5")
    found, _ = conclude(base, tuned, **options)
    row = row_of(found, "shift", category="all")
    assert list(row.labels) == ["base", "model", "corpus", "amount", "category"]
    assert row.labels["amount"] == 0.5
    (figure,) = [figure for figure in found.figures if figure.name == "shift"]
    assert figure.color == "corpus"
    assert any("Tuning moves" in line for line in found.headlines)
    # what tuning on a corpus does to negativity is reported as well
    assert row_of(found, "negativity_change", category="all", measure=INEQUALITY).estimate == pytest.approx(-0.3)


def test_corpora_and_strengths_in_one_run(options):
    base = model("given", BEFORE)
    weights = base.info.weights
    tuned = model("tuned", AFTER, base=weights, method="masked-lm", data="news", amount="0.5")
    found, _ = conclude(base, tuned, mitigated("ten", AFTER, base=weights, amount="10"), **options)
    rows = [row for row in rows_of(found, "shift") if row.labels["category"] == "all"]
    assert {(row.labels["attribute"], row.labels["amount"]) for row in rows} == {
        ("", "0.5"),
        ("occupation", "λ = 10"),
    }
    told = [line.split(" ", 1)[0] for line in found.headlines if "negativity of a group's" in line]
    assert told == ["tuned", "ten"]  # what a corpus changed is told as well


def test_change_agrees_with_a_plain_loop_and_with_scipy(options):
    rng = np.random.default_rng(7)
    before = rng.integers(2, 19, size=20)
    after = np.clip(before + rng.integers(-3, 4, size=20), 1, 19)
    base = model("given", before.tolist())
    tuned = mitigated("after", after.tolist(), base=base.info.weights, amount="10")
    found, _ = conclude(base, tuned, **options)

    # of 20 words b are bad: negativity (b − (20 − b)) / 20
    first, second = ([(2 * int(b) - 20) / 20 for b in bad] for bad in (before, after))
    centres = [sum(values) / 20 for values in (first, second)]
    changes = {
        NEGATIVITY: [b - a for a, b in zip(first, second, strict=True)],
        INEQUALITY: [abs(b - centres[1]) - abs(a - centres[0]) for a, b in zip(first, second, strict=True)],
    }
    for measure, values in changes.items():
        row = row_of(found, "negativity_change", category="all", measure=measure)
        assert row.estimate == pytest.approx(np.mean(values))
        t = stats.ttest_1samp(values, 0.0)
        interval = t.confidence_interval()
        assert (row.low, row.high) == pytest.approx(tuple(interval), abs=0.2 * (interval.high - interval.low))
        assert row.p == pytest.approx(t.pvalue, abs=0.04)


def test_without_its_base_a_mitigated_model_has_no_change(options):
    found, _ = conclude(
        mitigated("after", AFTER, base="elsewhere", amount="10"), model("other", BEFORE), **options
    )
    assert rows_of(found, "negativity_change") == ()
    assert rows_of(found, "shift") == ()
    assert any("not in this run: after" in notice.text for notice in found.notices)


def test_few_groups_have_no_interval(options, tmp_path):
    few = groups_file(tmp_path, {name: "tiny" if i < 4 else "large" for i, name in enumerate(GROUPS)})
    base = model("given", BEFORE)
    tuned = mitigated("after", AFTER, base=base.info.weights, amount="10")
    found, _ = conclude(base, tuned, **{**options, "groups_file": few})
    row = row_of(found, "negativity_change", category="tiny", measure=INEQUALITY)
    assert row.estimate == pytest.approx(-0.3)
    assert math.isnan(row.low)
    assert math.isnan(row.q)


def shift_row(model, estimate, *, width=0.05, category="all"):
    labels = {"base": "given", "model": model, "corpus": "c", "amount": 1.0, "category": category}
    return Finding(labels=labels, estimate=estimate, low=estimate - width, high=estimate + width, n=20)


def shift_said(shifts):
    """What is said of arms, each with the shifts of its trainings."""
    infos = [dataclasses.replace(fake_model("given"), weights="given")]
    rows = []
    for arm, values in shifts.items():
        for seed, value in enumerate(values):
            name = f"{arm}-seed-{seed}" if len(values) > 1 else arm
            tuning = {"base": "given", "method": "masked-lm", "data": arm, "amount": "1", "seed": str(seed)}
            infos.append(dataclasses.replace(fake_model(name), weights=name, tuning=tuning))
            rows += [shift_row(name, value), shift_row(name, value + 0.01, category="c")]
    told = with_arms(rows, infos, by=["category"], line="corpus")
    (line,) = headlines([], {"shift": told}, infos, top_k=20)
    return line


def test_what_moves_most_is_said_only_beyond_training_noise():
    """The same corpus with another seed once gave −.215 and −.348."""
    one = shift_said({"left": [-0.215], "right": [-0.348]})
    assert "most in right (from given): Δρ = −0.35" in one
    assert "one training each, so intervals leave out what another seed would change" in one
    noisy = shift_said({"left": [-0.215, -0.348, -0.25], "right": [-0.348, -0.2, -0.3]})
    assert "in right (3 trainings) (from given) by Δρ = −0.28" in noisy
    assert "not measurably more than in left (3 trainings) (−0.27" in noisy
    assert "one training each" not in noisy
    clear = shift_said({"left": [-0.2, -0.21, -0.19], "right": [-0.6, -0.61, -0.62]})
    assert "most in right (3 trainings)" in clear
    assert "most in" not in shift_said({"left": [-0.30], "right": [-0.31]})
    assert "most in alone" in shift_said({"alone": [-0.3]})
