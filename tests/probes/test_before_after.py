"""Which models of a run belong together, and how a change is told."""

import dataclasses
import math

import numpy as np
import pytest
from fake_records import fake_model

from clinometer.probes.kit.asking import BEFORE, Units
from clinometer.probes.kit.before_after import (
    Pair,
    arms_of,
    change_headline,
    changes_of,
    checkpoints_of,
    missing_base_notice,
    pairs_of,
    training_of,
    tuned_notices,
    with_changes,
)
from clinometer.probes.kit.compare import Compared, compare_all
from clinometer.types import ChangeVerdict, Findings


def model(name, weights, *, dtype="float32", **tuning):
    return dataclasses.replace(fake_model(name), weights=weights, dtype=dtype, tuning=tuning)


def mitigated(name, weights, *, base, amount, method="embedding", **others):
    return model(name, weights, base=base, method=method, amount=amount, attribute="occupation", **others)


def test_checkpoints_follow_their_base_by_strength_then_method():
    models = [
        mitigated("hundred", "w100", base="w", amount="100"),
        model("given", "w"),
        mitigated("nine", "w9", base="w", amount="9"),
        mitigated("feeling", "s9", base="w", amount="9", method="sentiment"),
        mitigated("control", "w0", base="w", amount="0", method="control"),
        model("unrelated", "x"),
    ]
    # 0, 9 (embedding before sentiment), 100: by number, since "100" < "9" as text
    assert [models[pair.after].name for pair in pairs_of(models)] == ["control", "nine", "feeling", "hundred"]
    assert {pair.before for pair in pairs_of(models)} == {1}


def test_models_that_were_not_tuned_have_no_pair():
    assert pairs_of([model("a", "w"), model("b", "w")]) == ()
    assert pairs_of([model("a", ""), model("b", "x", base="")]) == ()


def test_a_base_that_is_missing_is_named_and_not_replaced():
    models = [model("other", "x"), mitigated("lost", "w1", base="w", amount="1")]
    assert pairs_of(models) == ()
    notice = missing_base_notice(models)
    assert "not in this run: lost" in notice.text
    assert missing_base_notice([model("w", "w"), *models]) is None


@pytest.mark.parametrize(("ratio", "level"), [("1.0499", "info"), ("1.0501", "warning"), ("", "info")])
def test_what_a_masked_checkpoint_cost_is_told_and_warned_of_where_it_is_much(ratio, level):
    tuned = mitigated("ten", "w10", base="w", amount="10", quality="perplexity +9 %", quality_ratio=ratio)
    (notice,) = tuned_notices([model("given", "w"), tuned])
    assert notice.level == level
    assert notice.text.startswith("What it cost, ten (embedding on occupation, λ = 10): perplexity +9 %.")
    assert ("worse at its own task" in notice.text) == (level == "warning")


def test_a_base_in_two_precisions_is_taken_in_the_checkpoints_own():
    models = [model("half", "w", dtype="float16"), model("full", "w"), model("tuned", "v", base="w")]
    assert pairs_of(models) == (Pair(before=1, after=2),)


def test_a_checkpoint_of_a_checkpoint_is_paired_with_the_one_it_began_with():
    chain = [model("a", "1"), model("b", "2", base="1"), model("c", "3", base="2")]
    assert pairs_of(chain) == (Pair(before=0, after=1), Pair(before=1, after=2))


def test_unchanged_weights_are_not_their_own_base():
    assert pairs_of([model("given", "w"), model("same", "w", base="w")]) == (Pair(before=0, after=1),)
    assert pairs_of([model("same", "w", base="w")]) == ()


def test_training_in_a_few_words():
    assert training_of(model("given", "w")) == "as given"
    assert training_of(mitigated("m", "v", base="w", amount="10")) == "embedding on occupation, λ = 10"
    assert training_of(model("t", "v", base="w", method="masked-lm", data="news", amount="0.5")) == (
        "masked-lm, news, 0.5"
    )


def test_trainings_that_differ_in_their_seed_alone_are_one_arm():
    def trained(name, seed, **more):
        return model(name, name, base="w", method="masked-lm", data="news", **{"amount": "1", "seed": seed} | more)

    models = [
        model("given", "w"), trained("m-news-1-seed-0", "0"), trained("m-news-1-seed-1", "1", quality="x"),
        trained("half", "0", amount="0.5"), trained("unsaid", ""),
    ]  # fmt: skip
    assert {arm.name: [pair.after for pair in arm.pairs] for arm in arms_of(models)} == {
        "half": [3], "m-news-1-seed-0": [1], "m-news-1-seed-1": [2], "unsaid": [4],
    }  # fmt: skip  # a training without a seed may be anything: nothing of its kind is a repetition
    assert {arm.name: [pair.after for pair in arm.pairs] for arm in arms_of(models[:-1])} == {
        "half": [3], "m-news-1 (2 trainings)": [1, 2],
    }  # fmt: skip
    # of one seed twice something else differs, such as a rate that the card does not tell
    assert len(arms_of([*models[:2], trained("other", "0")])) == 2


def told(**more):
    numbers = dict.fromkeys(("estimate", "low", "high", "p", "q", "lean_before", "lean_after", "change"), 0.1)
    given = ChangeVerdict(
        audit="stigma", before="given", after="ten", measure="conditions (attitude)", state="worse", n=50,
        unit="condition", change_low=0.1, change_high=0.1, detectable=0.05, sentence="ten leans more than given.",
        trainings=(0.1,), **numbers,
    )  # fmt: skip
    return dataclasses.replace(given, **more)


def test_a_headline_about_a_change_is_its_verdict_with_what_was_trained_and_its_numbers():
    models = [model("given", "w"), mitigated("ten", "v", base="w", amount="10")]
    line = change_headline(
        told(estimate=0.04, low=0.01, high=0.07, q=0.0005, lean_after=0.14), models, more="and so"
    )
    assert line == (
        "ten (embedding on occupation, λ = 10) leans more than given: conditions (attitude), +0.100 before and "
        "+0.140 after; distance from even-handed +0.040 (95 % interval +0.010 to +0.070, q < 0.001; 0.050 would "
        "be found four times in five; one training, so the interval leaves out what another seed would change); "
        "and so."
    )
    several = change_headline(told(trainings=(0.1, 0.2), detectable=math.nan), models)
    assert "after each of 2 trainings 0.100, 0.200, and the interval holds what differs" in several
    assert "four times in five" not in several
    once = change_headline(told(trainings=(0.1, 0.2), fewer_controls=True), models)
    assert "between them; the control was trained less often, and what another seed would change" in once
    untold = told(state="cannot tell", sentence="ten and given cannot be compared: no answers.")
    assert change_headline(untold, models).endswith("cannot be compared: no answers (conditions (attitude)).")


NOTHING = Findings(probe="p", tables=(), figures=())
WORDS = np.random.default_rng(1).normal(0, 0.1, size=60)
UNEVEN = {"given": 0.3} | {f"control-seed-{s}": 0.3 + 0.2 * s for s in range(3)}
CONTROL, TEN = "control (3 trainings)", "ten (3 trainings)"


def leaning(name, lean, *, noise=0.02):
    values = WORDS + lean + noise * np.random.default_rng(len(name)).normal(size=60)
    return Units(
        model=name, question="words", measure="lean", asked="fill", unit="word", full=9.0,
        names=tuple(f"w{i}" for i in range(60)), values=values[:, None], more="leans more", less="leans less",
    )  # fmt: skip


def changes(leans, *, controls=3):
    """What follows of trainings with so many controls: `control` and `ten`, with the lean of each."""
    models = [model("given", "w")]
    for name, amount, count in (("control", "0", controls), ("ten", "10", 3)):
        way = {"base": "w", "amount": amount} | ({"method": "control"} if amount == "0" else {})
        models += [mitigated(f"{name}-seed-{s}", f"{name}{s}", seed=str(s), **way) for s in range(count)]
    units = {each.name: leaning(each.name, leans[each.name]) for each in models}
    verdicts = changes_of(lambda _, some: [units[each.name] for each in some], NOTHING, models)
    return {(each.before, each.after): each for each in verdicts}


def test_each_training_is_compared_with_the_control_of_its_own_seed():
    """Controls differ by 0.2 from seed to seed, and so does what is 0.1 beyond each: of that, one can be sure."""
    found = changes(UNEVEN | {f"ten-seed-{s}": UNEVEN[f"control-seed-{s}"] + 0.1 for s in range(3)})
    against = found[CONTROL, TEN]
    assert against.training_changes == pytest.approx((0.1, 0.1, 0.1), abs=0.02)
    assert against.state == "worse"
    assert found["given", TEN].state == found["given", CONTROL].state == "no change found"
    assert found["given", TEN].training_changes == pytest.approx((0.1, 0.3, 0.5), abs=0.02)
    rows = with_changes(NOTHING, [against], ()).tables[1].rows
    assert [row.labels["training"] for row in rows] == ["mean", "seed 0", "seed 1", "seed 2"]
    assert [row.estimate for row in rows] == pytest.approx([0.1] * 4, abs=0.02)


def test_what_controls_differ_in_is_in_the_interval_against_them():
    even = dict.fromkeys(UNEVEN, 0.3)
    trained = {f"ten-seed-{s}": 0.4 for s in range(3)}
    calm, uneven = changes(even | trained), changes(UNEVEN | trained)
    assert (calm[CONTROL, TEN].state, uneven[CONTROL, TEN].state) == ("worse", "no change found")


def test_changes_against_controls_say_nothing_of_those_since_the_base():
    """So `clinometer compare`, which knows no controls, has the same numbers."""
    leans = {"given": 0.3} | {f"control-seed-{s}": 0.3 + 0.02 * s for s in range(3)}
    leans |= {f"ten-seed-{s}": 0.4 + 0.03 * (s % 2) for s in range(3)}
    found = changes(leans)
    pairs = [
        Compared(
            before="given", after=arm, role=BEFORE, seeds=("0", "1", "2"),
            audits={"p": [([leaning("given", 0.3)], [leaning(f"{arm}-seed-{s}", leans[f"{arm}-seed-{s}"])])
                          for s in range(3)]},
        )
        for arm in ("control", "ten")
    ]  # fmt: skip
    for arm, (change,) in zip((CONTROL, TEN), compare_all(pairs), strict=True):
        again = dataclasses.replace(change.verdict, after=arm, sentence=found["given", arm].sentence)
        assert again == found["given", arm]


def test_fewer_controls_of_several_trainings_is_said_to_be_one():
    trained = {f"ten-seed-{s}": 0.4 for s in range(3)}
    found = changes({"given": 0.3, "control-seed-0": 0.3} | trained, controls=1)
    assert {pair: each.fewer_controls for pair, each in found.items()} == {
        ("given", "control-seed-0"): False, ("given", TEN): False, ("control-seed-0", TEN): True,
    }  # fmt: skip
    assert not any(each.fewer_controls for each in changes(UNEVEN | trained).values())
    two = changes({"given": 0.3, "control-seed-0": 0.3, "control-seed-1": 0.3} | trained, controls=2)
    assert [pair for pair, each in two.items() if each.fewer_controls] == [("control (2 trainings)", TEN)]


def test_arms_that_were_numbered_through_have_names_of_their_own():
    models = [model("given", "w")]
    models += [
        mitigated(f"run-{n}", f"r{n}", base="w", amount="1" if n < 2 else "10", seed=str(n % 2)) for n in range(4)
    ]
    assert [arm.name for arm in arms_of(models)] == [
        "run-0 to run-1 (2 trainings)",
        "run-2 to run-3 (2 trainings)",
    ]


def without_strength(name, weights, *, method, **others):
    return model(name, weights, base="w", method=method, attribute="occupation", **others)


def test_a_method_without_a_fairness_loss_has_no_strength_and_others_keep_theirs_as_numbers():
    models = [
        model("given", "w"),
        mitigated("ten", "w10", base="w", amount="10"),
        without_strength("exchanged", "ws", method="swapped"),
        mitigated("control", "w0", base="w", amount="0", method="control"),
    ]
    found = {each.name: each for each in checkpoints_of(models)}
    assert list(found) == ["control", "ten", "exchanged"]
    assert (found["ten"].strength, found["control"].strength) == (10.0, 0.0)
    assert math.isnan(found["exchanged"].strength)
    assert found["exchanged"].control_name == "control"
    assert training_of(models[2]) == "swapped on occupation"
    assert training_of(models[1]) == "embedding on occupation, λ = 10"


def test_a_control_is_that_of_the_same_way_of_training_and_other_ways_are_no_repetitions():
    def way(name, method, seed, **others):
        amount = {"amount": "0"} if method == "control" else {}
        return without_strength(name, name, method=method, seed=seed, data="news", **amount, **others)

    models = [
        model("given", "w"),
        way("plain-control", "control", "0"),
        way("mixed-control", "control", "0", ordinary="0.5", lora="8"),
        way("mixed", "swapped", "0", ordinary="0.5", lora="8"),
        way("plain", "swapped", "0"),
        way("plain-again", "swapped", "1"),
        way("mixed-more", "swapped", "2", ordinary="0.5"),
        way("mixed-again", "swapped", "1", ordinary="0.5", lora="8"),
        way("plain-control-again", "control", "1"),
    ]
    controls = {each.name: each.control_name for each in checkpoints_of(models)}
    assert (controls["mixed"], controls["plain"]) == ("mixed-control", "plain-control")
    assert controls["plain-again"] == "plain-control-again"
    # a control of its way with another seed, and not one of its seed in another way
    assert controls["mixed-again"] == "mixed-control"
    arms = {tuple(models[pair.after].name for pair in arm.pairs) for arm in arms_of(models)}
    assert ("plain", "plain-again") in arms
    assert ("mixed-more",) in arms
