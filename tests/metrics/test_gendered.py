"""Gendered mass and Eq. 1, worked by hand and against a second, plainer implementation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinometer.metrics import (
    GenderedMass,
    gender_gap,
    gendered_mass,
    log_relative_probability,
    stereotypical_margin,
)

# "The [MASK] works as a nurse.": woman .30, she .20, man .10, nurse .05
LOGPROBS = np.log([[0.30, 0.20, 0.10, 0.05]])
GENDERS = np.array([[1, 1, -1, 0]])


@pytest.mark.parametrize(
    ("k", "female", "male", "neither"),
    [
        (1, 0.30, 0.00, 0.00),
        (3, 0.50, 0.10, 0.00),  # .30 + .20 | .10
        (4, 0.50, 0.10, 0.05),
        (10, 0.50, 0.10, 0.05),  # only four words were offered
    ],
)
def test_mass_by_hand(k, female, male, neither):
    mass = gendered_mass(LOGPROBS, GENDERS, k=k)
    assert mass.female == pytest.approx([female])
    assert mass.male == pytest.approx([male])
    assert mass.neither == pytest.approx([neither])


def test_gap_and_margin_by_hand():
    mass = gendered_mass(LOGPROBS, GENDERS, k=4)
    assert gender_gap(mass) == pytest.approx([0.40])  # .50 − .10
    assert stereotypical_margin(mass, np.array([1])) == pytest.approx([0.40])  # a female-dominated occupation
    assert stereotypical_margin(mass, np.array([-1])) == pytest.approx([-0.40])  # a male-dominated one


def test_padding_weighs_nothing_and_missing_is_missing():
    logprobs = np.log([[0.5, 0.25], [0.5, 0.25]])
    logprobs[0, 1] = -np.inf
    logprobs[1, 1] = np.nan
    mass = gendered_mass(logprobs, np.array([[1, 0], [1, -1]]), k=2)
    assert mass.female[0] == 0.5
    assert mass.neither[0] == 0.0
    assert np.isnan([mass.female[1], mass.male[1], mass.neither[1]]).all()
    assert gendered_mass(logprobs, np.array([[1, 0], [1, -1]]), k=1).female[1] == 0.5  # the NaN is beyond k


def test_k_must_be_positive():
    with pytest.raises(ValueError, match="k is 0"):
        gendered_mass(LOGPROBS, GENDERS, k=0)
    with pytest.raises(ValueError, match="k is -1"):
        log_relative_probability(GENDERS, LOGPROBS, GENDERS, LOGPROBS, k=-1)


def test_relative_probability_by_hand():
    # after knowledge: woman(1) .4, man(2) .2, nurse(3) .1     base: man(2) .4, woman(1) .1, person(4) .05
    words, base = np.array([[1, 2, 3]]), np.array([[2, 1, 4]])
    after, before = np.log([[0.4, 0.2, 0.1]]), np.log([[0.4, 0.1, 0.05]])
    ratios = np.exp(log_relative_probability(words, after, base, before, k=3))
    assert ratios[0, :2] == pytest.approx([4.0, 0.5])  # .4/.1 and .2/.4
    assert np.isnan(ratios[0, 2])  # nurse is not in the base list
    # the first word alone: woman after, man before: nothing is shared
    assert np.isnan(log_relative_probability(words, after, base, before, k=1)).all()


def test_two_spellings_of_a_word_are_one_word():
    # "Woman" .1 and "woman" .3 after knowledge; "woman" .2 before: (.1 + .3) / .2 = 2, once
    ratios = log_relative_probability(
        np.array([[1, 1]]), np.log([[0.3, 0.1]]), np.array([[1, 5]]), np.log([[0.2, 0.1]]), k=2
    )
    assert np.exp(ratios[0, 0]) == pytest.approx(2.0)
    assert np.isnan(ratios[0, 1])


def test_padding_is_never_shared():
    padding = np.array([[1, -1]])
    logprobs = np.array([[math.log(0.5), -np.inf]])
    ratios = log_relative_probability(padding, logprobs, padding, logprobs, k=2)
    assert ratios[0, 0] == 0.0
    assert np.isnan(ratios[0, 1])


answers = st.integers(1, 6).flatmap(
    lambda size: st.tuples(
        st.lists(st.integers(0, 5), min_size=size, max_size=size),
        st.lists(st.floats(0.01, 0.16), min_size=size, max_size=size),
    )
)


@settings(max_examples=200, deadline=None)
@given(after=answers, before=answers, k=st.integers(1, 7))
def test_agrees_with_a_plain_implementation(after, before, k):
    genders = {0: 1, 1: 1, 2: -1, 3: -1, 4: 0, 5: 0}

    def probabilities(answer):
        found = {}
        for word, probability in list(zip(*answer, strict=True))[:k]:
            found[word] = found.get(word, 0.0) + probability
        return found

    plain_after, plain_before = probabilities(after), probabilities(before)
    words, logprobs = np.array([after[0]]), np.log([after[1]])
    mass = gendered_mass(logprobs, np.vectorize(genders.get)(words), k=k)
    for gender, found in ((1, mass.female), (-1, mass.male), (0, mass.neither)):
        plain = sum(value for word, value in plain_after.items() if genders[word] == gender)
        assert found[0] == pytest.approx(plain)

    ratios = log_relative_probability(words, logprobs, np.array([before[0]]), np.log([before[1]]), k=k)[0]
    found = {after[0][place]: math.exp(ratio) for place, ratio in enumerate(ratios) if not math.isnan(ratio)}
    assert (~np.isnan(ratios)).sum() == len(found)
    assert found == pytest.approx(
        {word: value / plain_before[word] for word, value in plain_after.items() if word in plain_before}
    )


@given(st.floats(0, 1), st.floats(0, 1))
def test_margins_of_the_two_dominances_are_opposite(female, male):
    mass = GenderedMass(female=np.full(2, female), male=np.full(2, male), neither=np.zeros(2))
    margins = stereotypical_margin(mass, np.array([1, -1]))
    assert margins[0] == -margins[1]
