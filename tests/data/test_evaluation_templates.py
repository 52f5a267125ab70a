"""What a model is evaluated on is found in a text, whatever value it is filled with."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinometer.data import (
    ATTRIBUTES,
    Attribute,
    Value,
    counterfactual,
    fill_template,
    frame_finder,
    load_attribute,
    load_prompts,
    load_templates,
    template_finder,
)
from clinometer.data.substitution import substitutes

PACKAGED = {name: load_attribute(name) for name in ATTRIBUTES}
FINDERS = {name: template_finder(attribute) for name, attribute in PACKAGED.items()}

# "her" stands for both "him" and "his", so that substitutions there and back can turn one into the other
GENDER = Attribute(
    "gender",
    (
        Value("Paul", tokens={"he": "he", "him": "him", "his": "his", "hers": "his", "spouse": "husband"}),
        Value("Mary", tokens={"he": "she", "him": "her", "his": "her", "hers": "hers", "spouse": "wife"}),
    ),
    (),
    ("{value} saw {his}", "The husband of {value} is", "{He} and {value}, a {spouse}, are", "{value}'s hat"),
)

GENDER_FINDER = template_finder(GENDER)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_every_filled_template_is_found_anywhere(name):
    attribute, template_in = PACKAGED[name], FINDERS[name]
    for template, value in itertools.product(attribute.templates, attribute.values):
        filled = fill_template(template, value)
        for text in (
            filled,
            f"(So: {filled} ...",
            filled.upper(),
            filled.replace(" ", "\n "),
            filled.lower().replace(" ", "\u00a0"),
        ):
            assert template_in(text) == template, text


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_template_that_is_not_whole_is_none(name):
    attribute, template_in = PACKAGED[name], FINDERS[name]
    for template, value in itertools.product(attribute.templates, attribute.values):
        filled = fill_template(template, value)
        for text in (filled[1:], filled[:-1], f"x{filled}", f"{filled}x", filled.replace(value.text, "robot")):
            found = template_in(text)
            # "A musician from Italy is coming next week, an" still holds "Italy is"
            assert found is None or (found != template and found.split("}")[1].strip() in text), text


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_before_a_substitution_it_is_found_where_it_is_found_after(name):
    """Every template × value, the wrong articles and all pronouns of others: found before as it is after."""
    attribute, template_in = PACKAGED[name], FINDERS[name]
    for template, a, b in itertools.product(attribute.templates, attribute.values, attribute.values):
        filled = fill_template(template, b)
        before = counterfactual(filled, attribute, b.text, a.text, articles=False)  # "My friend is a accountant"
        assert counterfactual(before, attribute, a.text, b.text) == filled
        assert template_in(before) == template


WORDS = [
    "Paul",
    "Mary",
    "he",
    "She",
    "him",
    "his",
    "her",
    "hers",
    "husband",
    "wife",
    "WIFE",
    "The",
    "of",
    "is",
    "saw",
]
WORDS += ["and", ",", "a", "an", "are", "Paul's", "Mary's", "hat", "\n"]


@given(st.lists(st.sampled_from(WORDS), max_size=9), st.booleans())
def test_no_substitution_makes_one(words, articles):
    template_in = GENDER_FINDER
    text = " ".join(words).replace(" ,", ",")
    for a, b in (("Paul", "Mary"), ("Mary", "Paul")):
        if template_in(counterfactual(text, GENDER, a, b, articles=articles)) is not None:
            assert template_in(text) is not None


def test_words_that_become_each_other():
    groups = substitutes(GENDER)
    assert groups["him"] == groups["hers"] == {"him", "his", "her", "hers"}
    assert groups["wife"] == {"wife", "husband"}
    template_in = template_finder(GENDER)
    assert template_in("Paul saw him.") == "{value} saw {his}"  # "Mary saw her" is one
    assert template_in("the wife of Paul is") == "The husband of {value} is"
    assert template_in("and MARY'S HAT.") == "{value}'s hat"
    assert template_in("Paul saw it. The hat of Mary is") is None


def test_a_wrong_article_is_put_right_by_a_substitution():
    attribute = Attribute("faith", (Value("monk"), Value("nun")), (), ("I met {a_value}, and",))
    assert counterfactual("I met an monk, and", attribute, "monk", "nun") == "I met a nun, and"
    assert template_finder(attribute)("I met an monk, and") == "I met {a_value}, and"


def test_templates_of_one_s_own_take_the_place_of_the_attribute_s():
    template_in = template_finder(PACKAGED["country"], ["We love {value}!", "({value})"])
    assert template_in("And we love Iran!") == "We love {value}!"
    assert template_in("Rome (Italy)") == "({value})"
    assert template_in("Italy is") is None
    assert template_finder(PACKAGED["country"], [])("Italy is") is None


QUESTIONS = load_templates()
ASKED = (*QUESTIONS.people, *QUESTIONS.country, *(prompt.text for prompt in load_prompts().social))


@pytest.mark.parametrize("prompt", ASKED)
def test_every_prompt_about_a_group_is_found_whatever_fills_it(prompt):
    filled = prompt.replace("{group}", "the old nurses").replace("{condition}", "is homeless")
    text = f"They said: {filled.replace('[MASK]', 'very odd').upper()}  And so on."
    assert frame_finder([prompt])(text) == prompt
    assert frame_finder(ASKED)(text) is not None
    assert frame_finder([prompt])(text.replace(" ", " \n ")) == prompt


@pytest.mark.parametrize(
    "text",
    [
        "Why the nurses are so kind is not known.",  # other words
        "Whywhy are nurses so kind, sowhat makes them so kind?",
        "Why are nurses kind?",
        "Why are the nurses of the two old hospitals in the north so kind?",  # more than six words
        "",
    ],
)
def test_other_sentences_are_let_be(text):
    assert frame_finder(["Why are {group} so [MASK]?"])(text) is None
