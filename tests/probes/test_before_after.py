"""Which models of a run belong together, and how a change is told."""

import dataclasses
import math

import pytest
from fake_records import fake_model

from clinometer.probes.kit.before_after import (
    Pair,
    change_in_words,
    missing_base_notice,
    pairs_of,
    training_of,
    tuned_notices,
)
from clinometer.types import Finding


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


def change(estimate, low, high, q):
    return Finding(labels={}, estimate=estimate, low=low, high=high, p=q, q=q, n=50)


@pytest.mark.parametrize(
    ("found", "before", "after", "told"),
    [
        (change(-0.1, -0.15, -0.05, 0.0005), 0.3, 0.2, "reduced by 0.100 (95 % interval of the change −0.150"),
        (change(0.1, 0.05, 0.15, 0.01), 0.3, 0.4, "increased by 0.100"),
        (change(-0.0003, -0.0004, -0.0002, 0.01), 0.3, 0.2997, "reduced by less than 0.001"),
        (change(0.1, 0.05, 0.15, 0.01), -0.3, -0.2, "reduced by 0.100"),
        (change(-0.4, -0.5, -0.3, 0.01), 0.3, -0.1, "turned round, by −0.400"),
        (change(-0.3, -0.4, -0.2, 0.01), 0.3, -1e-9, "reduced by 0.300"),
        (change(-0.1, -0.25, 0.05, 0.01), 0.3, 0.2, "no measurable change (−0.100; 95 % interval"),
        (change(-0.1, -0.15, -0.05, 0.06), 0.3, 0.2, "no measurable change"),
        (change(0.0, 0.0, 0.0, 1.0), 0.3, 0.3, "no measurable change (0.000"),
        (change(-0.1, math.nan, math.nan, math.nan), 0.3, 0.2, "without an interval"),
        (change(math.nan, math.nan, math.nan, math.nan), math.nan, 0.2, "unknown"),
    ],
)
def test_a_change_is_told_with_its_interval_and_only_when_it_is_sure(found, before, after, told):
    text = change_in_words(found, before=before, after=after)
    assert text.startswith(told) or told in text
    assert ("q < 0.001" in text) == (found.q < 0.001)
