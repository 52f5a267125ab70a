"""What all audits share: captions, means of what is present, the rule of a conclusion, wording, option limits."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest

from clinometer.errors import SpecError
from clinometer.probes.kit import (
    LEVEL,
    RULE,
    Caption,
    certainty,
    group_means,
    interval,
    is_found,
    percent,
    percent_interval,
    present_mean,
    q_value,
    signed,
    tables_of,
    written,
)
from clinometer.probes.kit.audits import Count, Draws, Listed, Positive, wrong_option
from clinometer.spec import build
from clinometer.types import Finding, FindingTable

NAN = math.nan


def finding(estimate=0.2, low=NAN, high=NAN, q=NAN):
    return Finding(labels={}, estimate=estimate, low=low, high=high, p=q, q=q, n=9)


# captions


def test_tables_follow_the_order_of_their_captions_and_keep_the_version():
    captions = (
        Caption(name="second", title="Second", text="What it says.", version=3),
        Caption(name="first", title="First", text="How to read it."),
    )
    one, two, three = finding(1.0), finding(2.0), finding(3.0)
    assert tables_of(captions, {"first": [one], "second": [two, three]}) == (
        FindingTable(name="second", title="Second", caption="What it says.", rows=(two, three), version=3),
        FindingTable(name="first", title="First", caption="How to read it.", rows=(one,), version=1),
    )


def test_a_caption_without_rows_gives_an_empty_table():
    (table,) = tables_of([Caption(name="empty", title="Empty", text="")], {})
    assert (table.name, table.rows) == ("empty", ())


# means


def test_present_mean_by_hand():
    # columns: (1 + 3) / 2; 4 alone; nothing
    values = np.array([[1.0, NAN, NAN], [3.0, 4.0, NAN]])
    assert present_mean(values).tolist() == pytest.approx([2.0, 4.0, NAN], nan_ok=True)
    # rows: 1 alone; (3 + 4) / 2
    assert present_mean(values, axis=1).tolist() == [1.0, 3.5]
    # both axes: (1 + 3 + 4) / 3
    assert present_mean(values, axis=(0, 1)) == pytest.approx(8 / 3)


def test_present_mean_of_nothing_is_missing_without_a_warning():
    assert present_mean(np.empty((0, 2))).tolist() == pytest.approx([NAN, NAN], nan_ok=True)
    assert np.isnan(present_mean(np.array([NAN, NAN])))


def test_present_mean_of_zeros_is_zero_and_not_missing():
    assert present_mean(np.array([0.0, NAN, 0.0])) == 0.0


def test_group_means_by_hand():
    # group 0: (1 + 3) / 2 and 10; group 1: no row; group 2: 5 and nothing present
    values = np.array([[1.0, 10.0], [5.0, NAN], [3.0, NAN]])
    means = group_means(values, np.array([0, 2, 0]), 3)
    assert means.shape == (3, 2)
    assert means.ravel().tolist() == pytest.approx([2.0, 10.0, NAN, NAN, 5.0, NAN], nan_ok=True)


def test_group_means_agree_with_a_loop_and_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((40, 2, 3))
    values[rng.random(values.shape) < 0.3] = NAN
    group = rng.integers(4, size=40)
    means = group_means(values, group, 4)
    for number in range(4):
        assert means[number] == pytest.approx(np.nanmean(values[group == number], axis=0))
    order = rng.permutation(40)
    assert group_means(values[order], group[order], 4) == pytest.approx(means)


def test_group_means_of_no_rows():
    means = group_means(np.empty((0, 2)), np.empty(0, dtype=np.int64), 2)
    assert means.shape == (2, 2)
    assert np.isnan(means).all()


def test_means_leave_their_input_alone():
    values = np.array([1.0, NAN])
    present_mean(values)
    group_means(values, np.array([0, 0]), 1)
    assert np.isnan(values[1])


# the rule of a conclusion


@pytest.mark.parametrize(
    ("low", "high", "q", "found"),
    [
        (0.1, 0.3, 0.01, True),
        (-0.3, -0.1, 0.01, True),
        (0.1, 0.3, 0.0499, True),
        (0.1, 0.3, 0.05, False),  # q must be below the level, not at it
        (0.1, 0.3, 0.2, False),
        (-0.1, 0.3, 0.01, False),  # the interval holds 0
        (0.0, 0.3, 0.01, False),  # and here 0 is its end
        (-0.3, 0.0, 0.01, False),
        (NAN, NAN, 0.01, False),  # without an interval nothing is found
        (0.1, 0.3, NAN, False),  # nor without a test
    ],
)
def test_a_finding_needs_a_small_q_and_an_interval_without_zero(low, high, q, found):
    assert is_found(finding(low=low, high=high, q=q)) is found


def test_the_rule_in_words_names_its_level():
    assert LEVEL == 0.05
    assert RULE == "q < 0.05 and an interval without 0"


# numbers in words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (signed(0.1234), "+0.123"),
        (signed(-0.1234), "−0.123"),  # a minus, not a hyphen
        (signed(0.0004), "0.000"),
        (signed(-0.0004), "0.000"),
        (signed(-0.0006), "−0.001"),
        (signed(1.26, places=1), "+1.3"),
        (written(0.126), "0.13"),
        (written(-0.126), "−0.13"),
        (q_value(0.001), "q = 0.001"),
        (q_value(0.00099), "q < 0.001"),
        (q_value(NAN), "not tested"),
        (percent(0.1234), "12.3 %"),
        (percent(1.0, places=0), "100 %"),
        (interval(finding(low=-0.1, high=0.3)), "95 % interval −0.100 to +0.300"),
        (interval(finding(low=-0.1, high=0.3), write=written), "95 % interval −0.10 to 0.30"),
        (interval(finding(low=NAN, high=0.3)), "no interval"),
        (interval(finding(low=0.1, high=NAN)), "no interval"),
        (certainty(finding(low=0.1, high=0.3, q=0.02)), "95 % interval +0.100 to +0.300, q = 0.020"),
        (certainty(finding()), "no interval, not tested"),
        (percent_interval(finding(0.2, 0.1, 0.35)), "20.0 % (95 % interval 10.0 % to 35.0 %)"),
        (percent_interval(finding(0.2)), "20.0 % (no interval)"),
    ],
)
def test_numbers_in_words(text, expected):
    assert text == expected


# limits of options


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    draws: Draws = 1999
    skipped: Count = 0
    workers: Positive = 1
    ks: Annotated[tuple[Positive, ...], *Listed] = (3,)
    names: Annotated[tuple[str, ...], *Listed] = ("a",)


@pytest.mark.parametrize(
    "options",
    [
        {"draws": 100},
        {"draws": 100_000},
        {"skipped": 0},
        {"workers": 1},
        {"ks": [10, 3]},
        {"ks": (1,)},  # Python gives a tuple, TOML a list
        {"names": ["b", "a"]},
    ],
)
def test_options_at_their_limits_are_taken_as_given(options):
    built = build(Options, options, where="options.x")
    ((name, value),) = options.items()
    assert getattr(built, name) == (tuple(value) if name in ("ks", "names") else value)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"draws": 99}, "draws: Input should be greater than or equal to 100; found 99"),
        ({"draws": 100_001}, "draws: Input should be less than or equal to 100000; found 100001"),
        ({"draws": 200.0}, "draws: Input should be a valid integer; found 200.0"),
        ({"draws": "200"}, "draws: Input should be a valid integer; found '200'"),
        ({"draws": True}, "draws: Input should be a valid integer; found True"),
        ({"skipped": -1}, "skipped: Input should be greater than or equal to 0; found -1"),
        ({"workers": 0}, "workers: Input should be greater than or equal to 1; found 0"),
        ({"ks": []}, "ks: Tuple should have at least 1 item after validation, not 0; found []"),
        ({"ks": [3, 3]}, "a value is given twice; give each once; found [3, 3]"),
        ({"ks": [3, 0]}, "ks.1: Input should be greater than or equal to 1; found 0"),
        ({"ks": 3}, "ks: Input should be a valid array; found 3"),
        ({"names": ["a", "b", "a"]}, "a value is given twice; give each once; found ['a', 'b', 'a']"),
    ],
)
def test_options_beyond_their_limits_are_refused_by_name(options, complaint):
    with pytest.raises(SpecError) as caught:
        build(Options, options, where="options.x")
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(f"options.x: {next(iter(options))}")


def test_an_option_with_a_message_of_its_own():
    error = wrong_option("stigma", "words", "x", "expected two words")
    assert isinstance(error, SpecError)
    assert str(error) == "stigma: words = 'x' is not valid; expected two words"
