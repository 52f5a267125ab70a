"""Rows of several trainings together: worked by hand, and what may not be mixed."""

import dataclasses
import math

import pytest
from fake_records import fake_model

from clinometer.probes.kit.before_after import checkpoints_of
from clinometer.probes.kit.trainings import LINE, as_concluded, lines_apart, repeated_checkpoints, with_arms
from clinometer.probes.kit.verdicts import untold_change
from clinometer.stats import benjamini_hochberg
from clinometer.types import Figure, Finding, Findings, FindingTable


def run(**arms):
    """A model and its trainings: for each arm so many seeds."""
    models = [dataclasses.replace(fake_model("given"), weights="given")]
    for arm, seeds in arms.items():
        for seed in range(seeds):
            name = f"{arm}-seed-{seed}" if seeds > 1 else arm
            tuning = {"base": "given", "method": "masked-lm", "data": arm, "amount": "1", "seed": str(seed)}
            models.append(dataclasses.replace(fake_model(name), weights=name, tuning=tuning))
    return models


def row(model, estimate, *, error=0.1, what="a", p=math.nan, **labels):
    half = 1.959964 * error
    about = {"model": model, "corpus": "news", "what": what, **labels}
    return Finding(labels=about, estimate=estimate, low=estimate - half, high=estimate + half, p=p, n=20)


def test_the_mean_has_an_interval_that_holds_units_and_trainings_by_hand():
    rows = [row("news-seed-0", -0.2), row("news-seed-1", -0.4)]
    mean, *seeds = with_arms(rows, run(news=2), by=["what"], line="corpus")
    assert mean.labels == {
        "model": "news (2 trainings)", "corpus": "news", "what": "a", "line": "news", "trainings": 2,
    }  # fmt: skip
    assert mean.estimate == pytest.approx(-0.3)
    # s² = .02 is twice u² = .01; e² = .01 + .02/2; ν = 1 · (.02/.01)² = 4, of which t is 2.776
    half = 2.776445 * math.sqrt(0.02)
    assert (mean.low, mean.high) == pytest.approx((-0.3 - half, -0.3 + half), abs=1e-5)
    assert mean.n == 20
    # trainings keep their numbers, and are told apart by their seed
    assert [(each.estimate, each.low, each.high) for each in seeds] == [
        (each.estimate, each.low, each.high) for each in rows
    ]
    assert [each.labels[LINE] for each in seeds] == ["news, seed 0", "news, seed 1"]


def test_ratios_are_averaged_on_the_scale_of_logarithms():
    rows = [
        dataclasses.replace(each, **{part: math.exp(getattr(each, part)) for part in ("estimate", "low", "high")})
        for each in (row("news-seed-0", 0.2), row("news-seed-1", 0.4))
    ]
    mean = with_arms(rows, run(news=2), by=["what"], logs=lambda each: each.labels["what"] == "a")[0]
    half = 2.776445 * math.sqrt(0.02)
    assert mean.estimate == pytest.approx(math.exp(0.3))
    assert (mean.low, mean.high) == pytest.approx((math.exp(0.3 - half), math.exp(0.3 + half)), abs=1e-4)


def test_p_and_q_hold_the_trainings_too():
    rows = [row(f"news-seed-{seed}", value, what=what, p=1e-6, family=what in "ab")
            for what in "abc" for seed, value in enumerate((-0.2, -0.4))]  # fmt: skip
    found = with_arms(rows, run(news=2), by=["what"], families=["family"])
    means = [each for each in found if each.labels["trainings"] == 2]
    assert [each.labels["what"] for each in means] == ["a", "b", "c"]
    # −.3 / √.02 is 2.12 errors; three rows that move as one have the freedom of one, so ν = 4
    assert [each.p for each in means] == pytest.approx([0.1012] * 3, abs=1e-3)
    assert [each.q for each in means] == pytest.approx([each.p for each in means])
    tested = [dataclasses.replace(each, q=0.01) for each in rows]
    told = {each.labels["trainings"]: each.q for each in with_arms(tested, run(news=2), by=["what"])}
    assert math.isnan(told[2])  # q of one training is nobody else's
    assert told[1] == 0.01
    unequal = [dataclasses.replace(each, p=0.5) if each.labels["what"] == "b" else each for each in rows]
    a, b, c = (each.q for each in with_arms(unequal, run(news=2), by=["what"], families=["family"])[:3])
    assert (a, b, c) == pytest.approx((2 * 0.1012, 0.5, 0.1012), abs=1e-3)


def test_nothing_is_added_where_no_training_was_repeated():
    rows = [row("given", 0.0), row("news", -0.2)]
    assert with_arms(rows, run(news=1), by=["what"], line="corpus") == rows
    figure = Figure(
        name="f", title="", caption="", table="t", mark="lines", x="what", y="estimate", color="corpus"
    )
    assert lines_apart(figure, rows).color == "corpus"
    together = with_arms([row("news-seed-0", 0.1), row("news-seed-1", 0.2)], run(news=2), by=["what"])
    apart = lines_apart(figure, together)
    assert (apart.color, apart.repeated) == (LINE, "trainings")
    # what was trained once has its own band, so that seeds are not thin there
    lone = with_arms(
        [row("news-seed-0", 0.1), row("news-seed-1", 0.2), row("once", 0.3, corpus="once")],
        run(news=2, once=1), by=["what"], line="corpus",
    )  # fmt: skip
    assert lines_apart(figure, lone).repeated == ""
    assert lines_apart(dataclasses.replace(figure, color=""), together).color == ""


def test_what_one_training_lacks_the_arm_lacks():
    rows = [row("news-seed-0", -0.2), row("news-seed-1", math.nan)]
    mean = with_arms(rows, run(news=2), by=["what"])[0]
    assert math.isnan(mean.estimate)
    assert math.isnan(mean.low)


def test_what_no_training_changed_stays_sure():
    rows = [row("news-seed-0", 0.0, error=0.0, p=1.0), row("news-seed-1", 0.0, error=0.0, p=1.0)]
    mean = with_arms([*rows, row("news-seed-0", 0.1, what="b"), row("news-seed-1", 0.2, what="b")],
                     run(news=2), by=["what"])[0]  # fmt: skip
    assert (mean.estimate, mean.low, mean.high, mean.p) == (0.0, 0.0, 0.0, 1.0)
    # of two numbers that units are sure of there is only their own variance, .02 with one degree of freedom
    rows[1] = row("news-seed-1", 0.2, error=0.0)
    mean = with_arms(rows, run(news=2), by=["what"])[0]
    assert (mean.estimate, mean.low) == pytest.approx((0.1, 0.1 - 12.706 * 0.1), abs=1e-3)


def test_labels_that_differ_are_averaged_and_words_are_left_out():
    rows = [
        row("news-seed-0", 0.1, before=10, after=12, lost="2: a, b"),
        row("news-seed-1", 0.2, before=10, after=13, lost="1: c"),
        row("given", 0.0, before=10, after=10, lost="0"),
    ]
    found = with_arms(rows, run(news=2), by=["what"])
    assert [each.labels["after"] for each in found] == [12.5, 12.0, 13.0, 10.0]
    assert {type(each.labels["after"]) for each in found} == {float}  # a column has one type
    assert {type(each.labels["before"]) for each in found} == {int}
    assert [each.labels["lost"] for each in found] == ["–", "2: a, b", "1: c", "0"]
    assert found[-1].labels[LINE] == "mean"  # no training of an arm: it stays where it is


def test_arms_are_apart_and_each_is_before_its_trainings():
    rows = [row(f"{arm}-seed-{seed}", value, what=what)
            for arm, values in (("news", (0.1, 0.2)), ("blog", (0.3, 0.5)))
            for seed, value in enumerate(values) for what in "ab"]  # fmt: skip
    found = with_arms([*rows, row("once", 0.7)], run(news=2, blog=2, once=1), by=["what"], line="corpus")
    names = list(dict.fromkeys(each.labels["model"] for each in found))
    assert names == ["news (2 trainings)", "news-seed-0", "news-seed-1",
                     "blog (2 trainings)", "blog-seed-0", "blog-seed-1", "once"]  # fmt: skip
    assert [each.estimate for each in found if each.labels["trainings"] == 2] == pytest.approx(
        [0.15, 0.15, 0.4, 0.4]
    )


def test_what_cannot_be_judged_gives_its_arm_no_number_and_others_no_noise():
    """Arm a is as sure as without arm b, of which one training is wild and cannot be judged."""
    alike = [row("a-seed-0", 0.1), row("a-seed-1", 0.1001)]
    wild = [row("b-seed-0", 0.1, deaf=True), row("b-seed-1", 9.0, deaf=True)]
    rows = [dataclasses.replace(each, labels={"deaf": False, **each.labels}) for each in (*alike, *wild)]
    found = with_arms(rows, run(a=2, b=2), by=["what"], counted=lambda each: not each.labels["deaf"])
    means = {each.labels["model"]: each for each in found if each.labels["trainings"] == 2}
    assert math.isnan(means["b (2 trainings)"].estimate)
    assert [each.estimate for each in found if each.labels["model"].startswith("b-")] == [0.1, 9.0]
    alone = with_arms(alike, run(a=2), by=["what"])[0]
    mean = means["a (2 trainings)"]
    assert (mean.estimate, mean.low, mean.high) == (alone.estimate, alone.low, alone.high)


def change_of(after, change, *, before=0.3, trainings=2):
    """The verdict on an arm whose lean went from `before` by `change`."""
    told = untold_change(audit="a", before="given", after=after, reason="")
    return dataclasses.replace(
        told, measure="m", change=change, change_low=change - 0.5, change_high=change + 0.5, p=0.2, q=0.3,
        lean_before=before, lean_after=before + change, trainings=(0.0,) * trainings,
        change_p=0.04,
    )  # fmt: skip


def test_the_mean_that_a_verdict_is_about_has_its_interval():
    rows = [row("news-seed-0", 0.1, p=0.01), row("news-seed-1", 0.2, p=0.01),
            row("news-seed-0", 0.3, what="b", p=0.01), row("news-seed-1", 0.5, what="b", p=0.01)]  # fmt: skip
    told = with_arms(rows, run(news=2), by=["what"], families=[])
    table = FindingTable(name="t", title="", caption="", rows=tuple(told))
    given = Findings(probe="a", tables=(table,), figures=())
    arm = "news (2 trainings)"

    def mean(*changes, what="a"):
        found = as_concluded(given, changes, lambda each: {"model": each.after} if each.measure == "m" else {})
        assert found.tables[0].rows[1:3] == table.rows[1:3], "single trainings stay as they are"
        (one,) = [
            each for each in found.tables[0].rows if each.labels.items() >= {"model": arm, "what": what}.items()
        ]
        return one

    concluded = mean(change_of(arm, 0.15))
    assert (concluded.estimate, concluded.low, concluded.high) == pytest.approx((0.15, -0.35, 0.65))
    # p is of the change, not of the distance; q is over both rows of the mean
    other = mean(change_of(arm, 0.15), what="b")
    assert concluded.p == 0.04
    assert [concluded.q, other.q] == pytest.approx(benjamini_hochberg([0.04, other.p]).tolist())
    # another estimate, another model, another measure, or one training: not about this row
    own = mean()
    assert dataclasses.replace(other, q=0.0) == dataclasses.replace(mean(what="b"), q=0.0)
    assert mean(change_of("other", 0.15)) == own
    assert mean(dataclasses.replace(change_of(arm, 0.15), measure="n")) == own
    assert mean(change_of(arm, 0.15, trainings=1)) == own


def test_one_training_of_an_arm_that_others_began_with_has_no_mean():
    rows = [row("news-seed-0", 0.1, base="news-seed-0"), row("news-seed-0", 0.1, base="given"),
            row("news-seed-1", 0.2, base="given")]  # fmt: skip
    found = with_arms(rows, run(news=2), by=["what", "base"])
    means = [each for each in found if each.labels["trainings"] == 2]
    assert [each.labels["base"] for each in means] == ["given"]
    assert len(found) == 4


def test_repeated_trainings_are_a_checkpoint_whose_control_is_that_of_the_verdicts():
    models = [dataclasses.replace(fake_model("given"), weights="given")]
    for method in ("control", "embedding"):
        for seed in "01":
            tuning = {"base": "given", "method": method, "amount": "1", "attribute": "x", "seed": seed}
            models.append(
                dataclasses.replace(fake_model(f"{method}-seed-{seed}"), weights=method + seed, tuning=tuning)
            )
    checkpoints = checkpoints_of(models)
    found = {arm.name: arm for arm, _ in repeated_checkpoints(checkpoints, models, [])}
    assert list(found) == ["control (2 trainings)", "embedding (2 trainings)"]
    assert found["embedding (2 trainings)"].against == {"before": 0}  # no verdict, no control


def test_changes_against_a_control_are_pooled_apart():
    """The control of each seed differs by 1, so that changes against it do; those since the base are alike."""
    trainings = run(news=2)
    rows = [
        row(f"news-seed-{seed}", value, against=against, what="a")
        for against, values in (("before", (0.1, 0.1001)), ("control", (0.1, 1.1)))
        for seed, value in enumerate(values)
    ]
    means = with_arms(rows, trainings, by=["what", "against"])
    arms = {each.labels["against"]: each for each in means if each.labels["trainings"] == 2}
    before, control = arms["before"], arms["control"]
    alone = with_arms(rows[:2], trainings, by=["what", "against"])[0]
    assert (before.low, before.high) == (alone.low, alone.high)
    assert control.high - control.low > 10 * (before.high - before.low)
