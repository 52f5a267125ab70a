"""Training sentences mention a value and contain no template of the evaluation, before and after substitution."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinometer.data import (
    ATTRIBUTES,
    Attribute,
    Value,
    counterfactual,
    fill_template,
    find_values,
    frame_finder,
    load_attribute,
    load_prompts,
    load_templates,
    mention_finder,
    sensitive_sentences,
    template_finder,
)
from clinometer.data.corpora import read_corpus
from clinometer.data.substitution import substitutes
from clinometer.errors import DataError

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


REAL = Path(os.environ.get("CLINOMETER_TEST_DATA", "nowhere")) / "corpora"
COUNTRY, OCCUPATION, NAME = (load_attribute(name) for name in ("country", "occupation", "name"))
name_template_in = template_finder(NAME)


def counts(found):
    return found.seen, found.repeated, found.too_short, found.too_long, sum(found.with_template.values())


def test_sentences_in_the_order_of_the_corpus_with_their_first_mention():
    found = sensitive_sentences(
        [
            "Tea.\nDr. Lee asked the two nurses and a baker. Nobody came. “Ünïcode 𝒳: CEOs of Köln!” they said.",
            "no mention, nor a nursery",
            "The old Secretary was there before the editor",
        ],
        OCCUPATION,
    )
    assert [(each.value, each.text[each.start : each.end], each.text) for each in found.sentences] == [
        ("nurse", "nurses", "Dr. Lee asked the two nurses and a baker."),
        ("CEO", "CEOs", "“Ünïcode 𝒳: CEOs of Köln!” they said."),
        ("secretary", "Secretary", "The old Secretary was there before the editor"),
    ]
    assert (found.documents, *counts(found)) == (3, 3, 0, 0, 0, 0)


def test_what_is_left_out_is_counted_once():
    short, long, fine = "In Iran.", "Iran, " * 40, "We saw Iran and Italy that year."
    document = "\n".join(
        [fine, short, long, fine, "Finland is cold in the winter.", "Finland is cold in the winter."]
    )
    found = sensitive_sentences([document, fine], COUNTRY, longest=100)
    assert [each.text for each in found.sentences] == [fine]
    # 7 = 1 kept + 3 repeated + 1 short + 1 long + 1 with a template
    assert counts(found) == (7, 3, 1, 1, 1)
    assert found.with_template == {"{value} is": 1}


def test_bounds_of_length_are_inclusive():
    twenty = "We flew to Italy at."
    assert len(twenty) == 20
    assert len(sensitive_sentences([twenty], COUNTRY, longest=20).sentences) == 1
    assert len(sensitive_sentences([twenty], COUNTRY, shortest=21).sentences) == 0
    assert len(sensitive_sentences([twenty], COUNTRY, longest=19).sentences) == 0


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_no_template_is_left_nor_made_by_any_value(name):
    attribute = load_attribute(name)
    template_in = template_finder(attribute)
    texts = [
        f"{before}{fill_template(template, value)} {after}"
        for template in attribute.templates
        for value in attribute.values
        for before, after in (("", "fine."), ("and then, she wrote, ", "not what one hoped for"))
    ]
    other = "Last year {value} came along with a friend."
    texts += [fill_template(other, value) for value in attribute.values]
    found = sensitive_sentences(texts, attribute)
    # a template of two sentences is taken apart, and neither is a template
    assert set(found.with_template) == {each for each in attribute.templates if ". " not in each}
    assert found.sentences
    assert {each.value for each in found.sentences} == {value.text for value in attribute.values}
    for each, b in itertools.product(found.sentences, attribute.values):
        for text in (each.text, each.text[: each.end]):
            assert template_in(counterfactual(text, attribute, each.value, b.text)) is None


def test_an_attribute_with_shared_tokens_and_words_of_two():
    attribute = Attribute(
        "group",
        (
            Value("old man", tokens={"he": "he"}),
            Value("boy", tokens={"he": "he"}),
            Value("girl", tokens={"he": "she"}),
        ),
        (),
        ("{value} is",),
    )
    found = sensitive_sentences(
        ["He went far away, far away.\nIt was an old  man, they say.\nSo she said."], attribute
    )
    assert [(each.value, each.text[each.start : each.end]) for each in found.sentences] == [
        ("old man", "old  man")
    ]
    assert counts(found) == (2, 0, 1, 0, 0)


PIECES = [
    "Emma",
    "JAKE",
    "Raven",
    "raven",
    "O'Connor",
    "is",
    "said he feels",
    "J.",
    "Then.",
    "\n",
    "é",
    "“",
    "!” He",
]


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join), max_size=4))
@settings(deadline=None)  # each example builds its searches anew
def test_each_with_its_first_mention_and_always_the_same(documents):
    found = sensitive_sentences(documents, NAME, shortest=1)
    assert found == sensitive_sentences(iter(documents), NAME, shortest=1)
    assert len({each.text for each in found.sentences}) == len(found.sentences)
    for each in found.sentences:
        mention = next(mention_finder(NAME)(each.text))
        assert (mention.value, mention.start, mention.end) == (each.value, each.start, each.end)
        assert name_template_in(each.text) is None
    assert found.seen == len(found.sentences) + found.repeated + sum(found.with_template.values())
    # no mention is lost where sentences are told apart
    whole = {value for document in documents for value in find_values(document, NAME)}
    assert bool(whole) == bool(found.seen)


def test_a_corpus_without_a_sensitive_token_is_named():
    found = sensitive_sentences(["Nothing here.", "Nor here, at any time."], OCCUPATION)
    with pytest.raises(DataError) as raised:
        found.require_some(OCCUPATION, corpus="news")
    assert str(raised.value) == (
        "no sentence of 'news' (2 documents) mentions an occupation (attendant, teacher, … 29 values); "
        "give a corpus that does"
    )
    sensitive_sentences(["They all went to see the nurse."], OCCUPATION).require_some(OCCUPATION, corpus="news")


def test_a_corpus_of_which_everything_is_left_out_is_named():
    found = sensitive_sentences(["In Iran.", "Finland is cold in the winter."], COUNTRY)
    with pytest.raises(
        DataError, match=r"none of the 2 sentences of 'x' that mention a country .* 1 are too short.* 1 hold"
    ):
        found.require_some(COUNTRY, corpus="x")


def test_speed():
    text = "The old man, who came from far away, was not there at that time of the year, they say. " * 20
    documents = [f"{text}\n{text} A nurse from Iran met Jake. {number}\n{text}" for number in range(600)]  # 3 MB
    started = time.process_time()
    for attribute in (COUNTRY, OCCUPATION, NAME):
        assert len(sensitive_sentences(documents, attribute).sentences) == 1
    assert time.process_time() - started < 9  # at least 1 MB a second, on the slowest machine


@pytest.mark.skipif(not REAL.is_dir(), reason="needs corpora/ in the folder $CLINOMETER_TEST_DATA")
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_real_news(name):
    attribute = load_attribute(name)
    template_in = template_finder(attribute)
    documents = [document.text for document in read_corpus([REAL / "abc.jsonl.xz"])]
    found = sensitive_sentences(documents, attribute)
    assert len(found.sentences) > 20
    for each in found.sentences:
        assert find_values(each.text[each.start : each.end], attribute) == (each.value,)
        assert template_in(each.text) is None
        for b in attribute.values:
            assert template_in(counterfactual(each.text, attribute, each.value, b.text)) is None


def test_prompts_about_other_groups_are_left_out_and_counted():
    text = "Why are old teachers in Iraq so kind? We went to Iceland that year."
    found = sensitive_sentences([text], load_attribute("country"), prompts=["Why are {group} so [MASK]?"])
    assert [each.value for each in found.sentences] == ["Iceland"]
    assert found.with_template == {"Why are {group} so [MASK]?": 1}
    assert len(sensitive_sentences([text], load_attribute("country")).sentences) == 2
