"""Sentences end where a reader of Wikipedia or of a newspaper would say that they do."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinometer.data import split_sentences


@pytest.mark.parametrize(
    "marked",
    [
        "One. | Two! | Three? | Four… | Five",
        '"Is it so?" | "It is." | (He left.) | [It rained.] | The end.',
        "“Is it so?” | ‘It is.’ | «Oui.» | Good.",
        "He said: “Go! | Now.” | She went.",
        "What?! | Really... | Yes.",
        "It cost 3.5 million. | 20 people came in 1990. | 31 left.",
        "By J. Smith and J. R. R. Tolkien. | Both wrote.",
        "Mr. Jones met Dr. Lee, Prof. Ng and St. John Rivers. | They spoke.",
        "The U.S. Army left the U.S. | The rest stayed at 5 p.m. Monday.",
        "They eat fruit, e.g. Apples, i.e. Pomes, vs. Nuts etc. | They drink water.",
        "See No. 5, pp. 3 and vol. 2 of Jan. 5. | No. | Nothing else.",
        "It was built by Smith Inc. and Sons Ltd. of London. | It stands.",
        "Smith et al. Report that. | Sammy Davis Jr. Sang. | Acme Co. | The rest.",
        "After World War I. | Peace came. | She is older than I. | Why?",
        "I. Newton wrote it.",
        "1. The first. | 12. Twelfth. | Then 7. | Then 1984. | Then more.",
        "1984. | A year.",
        "The plant (syn. Acacia) grew (b. 1950). | It bloomed.",
        "He waited ... and left. | He came... | Then he ... left",
        "Yahoo! was founded. | What? he asked.",
        "Visit example.com. | It is free. | Version 2.0.1 came.",
        "Ångström came. | Élan vital! | Žižek left. | Ωmega. | 東京です。 No space.",
        "Spaced as in WikiText . | Next one ! | Last",
        "At\u00a0No.\u00a05 it stood.\u00a0| Then not.",
        ". | Only a stop before it",
    ],
)
def test_where_sentences_end(marked):
    expected = [each.strip() for each in marked.split("|")]
    assert split_sentences(marked.replace("| ", "")) == expected


def test_line_breaks_always_end_a_sentence():
    assert split_sentences("A heading\n\nof Mr.\r\nSmith and\u2028others. Two. \n ") == [
        "A heading",
        "of Mr.",
        "Smith and",
        "others.",
        "Two.",
    ]
    assert split_sentences("") == split_sentences(" \n\t\n") == []


@given(st.text(alphabet="aA. \n!?…\"'”()1Mré\u00a0", max_size=60))
def test_nothing_is_lost_and_nothing_added(text):
    found = split_sentences(text)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(each == each.strip() and each and "\n" not in each for each in found)


@pytest.mark.parametrize("text", ["." * 200_000, "J. " * 70_000 + "A", '."' * 100_000, "A" * 200_000 + ". B"])
def test_odd_texts_take_no_longer(text):
    started = time.process_time()
    split_sentences(text)
    assert time.process_time() - started < 2


def test_speed():
    text = "The old man, who came from Iran (then Persia) in c. 1950, was 3.5 miles away. He left! " * 40_000
    started = time.process_time()
    assert len(split_sentences(text)) == 80_000
    assert len(text) / (time.process_time() - started) > 2e6  # some 20 MB a second where nothing else runs
