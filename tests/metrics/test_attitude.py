"""Negative attitude and its aggregation, worked by hand and against plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinometer.metrics import negative_attitude, overall_attitude

RATED = {"likely": "positive", "easy": "positive", "unlikely": "negative", "odd": "neutral", "blue": "irrelevant"}


def shares(found):
    return found.negative, found.positive, found.neutral


def test_shares_by_hand():
    # rated and relevant: .1 + .2 positive, .4 negative, .1 neutral, together .8
    found = negative_attitude([("likely", 0.1), ("easy", 0.2), ("unlikely", 0.4), ("odd", 0.1)], RATED)
    assert shares(found) == pytest.approx((0.5, 0.375, 0.125))
    assert found.coverage == pytest.approx(0.8)


def test_irrelevant_and_unrated_words_leave_the_ratio_and_the_coverage():
    # .1 negative and .3 positive: .25; .4 of the .9 given, and of the model's 1, stand in the ratio
    found = negative_attitude([("unlikely", 0.1), ("likely", 0.3), ("blue", 0.3), ("zyx", 0.2)], RATED)
    assert shares(found) == pytest.approx((0.25, 0.75, 0.0))
    assert found.coverage == pytest.approx(0.4)


def test_words_are_stripped_and_lower_cased():
    found = negative_attitude([(" Unlikely", 0.2), ("UNLIKELY ", 0.1), ("\tlikely\n", 0.1)], RATED)
    assert found.negative == pytest.approx(0.75)  # (.2 + .1) / .4
    assert found.coverage == pytest.approx(0.4)


@pytest.mark.parametrize("words", [[], [("blue", 0.6), ("zyx", 0.3)], [("likely", 0.0)]])
def test_nothing_rated_is_missing_and_not_zero(words):
    found = negative_attitude(words, RATED)
    assert all(math.isnan(share) for share in shares(found))
    assert found.coverage == 0


def test_a_missing_probability_makes_the_prompt_missing():
    found = negative_attitude([("likely", 0.5), ("zyx", math.nan)], RATED)
    assert all(math.isnan(value) for value in (*shares(found), found.coverage))


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"'likely' is -0\.5; expected a number from 0 to 1"):
        negative_attitude([("likely", -0.5)], RATED)
    with pytest.raises(ValueError, match="'likely' is rated 'good'; expected one of positive"):
        negative_attitude([("likely", 0.5)], {"likely": "good"})


def plain_attitude(predictions, ratings):
    """The equation once more, one sum for each attitude."""
    total = {}
    for name in ("positive", "negative", "neutral"):
        total[name] = sum(p for word, p in predictions if ratings.get(word.strip().lower()) == name)
    whole = total["positive"] + total["negative"] + total["neutral"]
    return {name: value / whole for name, value in total.items()} if whole else None, whole


words = st.lists(
    st.tuples(st.sampled_from([*RATED, "Likely", " unlikely", "zyx"]), st.floats(0, 0.1, allow_subnormal=False)),
    max_size=10,
)


@given(words)
def test_as_plain_sums(predictions):
    found = negative_attitude(predictions, RATED)
    expected, whole = plain_attitude(predictions, RATED)
    assert found.coverage == pytest.approx(whole)
    if expected is None:
        assert math.isnan(found.negative)
    else:
        assert shares(found) == pytest.approx((expected["negative"], expected["positive"], expected["neutral"]))


@given(words, st.floats(0.1, 1))
def test_shares_add_up_and_depend_neither_on_order_nor_on_scale(predictions, scale):
    found = negative_attitude(predictions, RATED)
    turned = negative_attitude([(word, p * scale) for word, p in predictions[::-1]], RATED)
    assert turned.coverage == pytest.approx(found.coverage * scale)
    if found.coverage > 1e-12:
        assert sum(shares(found)) == pytest.approx(1)
        assert shares(turned) == pytest.approx(shares(found))


def test_prompts_then_sub_conditions_then_templates_then_models_by_hand():
    # 1 model, 1 template, 3 sub-conditions, 2 prompts. a: (.2 + .4)/2 = .3, b: (.6 + .8)/2 = .7, alone: .1
    found = overall_attitude([[[[0.2, 0.4], [0.6, 0.8], [0.1, 0.1]]]], ["both", "both", "alone"])
    assert found.conditions == ("both", "alone")
    assert found.by_template[0, 0] == pytest.approx([0.5, 0.1])
    # 2 models × 2 templates: ((.1 + .3)/2 + (.5 + .9)/2)/2 = (.2 + .7)/2
    found = overall_attitude([[[[0.1]], [[0.3]]], [[[0.5]], [[0.9]]]], ["x"])
    assert found.by_template[:, :, 0] == pytest.approx(np.array([[0.1, 0.3], [0.5, 0.9]]))
    assert found.by_model[:, 0] == pytest.approx([0.2, 0.7])
    assert found.overall == pytest.approx([0.45])


def test_the_order_of_the_steps_shows_where_something_is_missing():
    # sub-condition a has one prompt of two (.8), b both (.1, .3: .2): (.8 + .2)/2 = .5, not (.8 + .1 + .3)/3 = .4
    found = overall_attitude([[[[0.8, np.nan], [0.1, 0.3]]]], ["c", "c"])
    assert found.overall == pytest.approx([0.5])
    # the first model lacks a template: (.6 + (.2 + .4)/2)/2 = .45, and not (.6 + .2 + .4)/3 = .4
    found = overall_attitude([[[[0.6]], [[np.nan]]], [[[0.2]], [[0.4]]]], ["c"])
    assert found.overall == pytest.approx([0.45])


def test_a_condition_without_any_answer_is_missing():
    found = overall_attitude([[[[np.nan], [0.5]]]], ["gone", "there"])
    assert np.isnan(found.overall[0])
    assert found.overall[1] == 0.5


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"shape \(1, 1, 2\) for 2 sub-conditions"):
        overall_attitude([[[0.1, 0.2]]], ["a", "b"])
    with pytest.raises(ValueError, match=r"for 3 sub-conditions"):
        overall_attitude([[[[0.1], [0.2]]]], ["a", "b", "c"])


def plain_mean(values):
    kept = [value for value in values if not math.isnan(value)]
    return sum(kept) / len(kept) if kept else math.nan


def plain_overall(values, conditions):
    """The aggregation as loops over models, templates, conditions and sub-conditions."""
    overall = {}
    for condition in conditions:
        models = []
        for model in values:
            templates = []
            for template in model:
                subs = [
                    plain_mean(prompts)
                    for prompts, name in zip(template, conditions, strict=True)
                    if name == condition
                ]
                templates.append(plain_mean(subs))
            models.append(plain_mean(templates))
        overall[condition] = plain_mean(models)
    return overall


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.floats(0, 0.9))
def test_as_plain_loops(seed, missing):
    rng = np.random.default_rng(seed)
    values = rng.random((2, 3, 6, 4))
    values[rng.random(values.shape) < missing] = np.nan
    conditions = [f"c{number}" for number in rng.integers(4, size=6)]
    found = overall_attitude(values, conditions)
    expected = plain_overall(values.tolist(), conditions)
    assert found.overall == pytest.approx([expected[name] for name in found.conditions], nan_ok=True)
    assert list(found.conditions) == list(expected)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_complete_answers_need_no_order_of_templates_and_models(seed):
    """The paper takes the mean of 24 model-template cells at once: the same where nothing is missing."""
    values = np.random.default_rng(seed).random((6, 4, 5, 7))
    found = overall_attitude(values, list("abcde"))
    assert found.overall == pytest.approx(values.mean(axis=(0, 1, 3)))
    assert (found.overall >= values.min()).all()
    assert (found.overall <= values.max()).all()
