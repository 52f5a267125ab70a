"""Training sentences mention a value, and hold no template of the evaluation, before and after substitution."""

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
    load_attribute,
    mention_finder,
    sensitive_sentences,
    template_finder,
)
from clinometer.data.corpora import read_corpus
from clinometer.errors import DataError

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
