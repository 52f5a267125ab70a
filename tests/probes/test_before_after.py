"""Which models of a run belong together, and how a change is told."""

import dataclasses
import math

import pytest
from fake_records import fake_model

from clinometer.probes.kit.before_after import (
    Pair,
    arms_of,
    change_headline,
    checkpoints_of,
    missing_base_notice,
    pairs_of,
    training_of,
    tuned_notices,
)
from clinometer.types import ChangeVerdict


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
    untold = told(state="cannot tell", sentence="ten and given cannot be compared: no answers.")
    assert change_headline(untold, models).endswith("cannot be compared: no answers (conditions (attitude)).")


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
