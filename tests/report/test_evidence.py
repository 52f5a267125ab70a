"""Prompts behind a figure: an even choice, and every kind of answer as text."""

from __future__ import annotations

import math
from collections import Counter

import polars as pl

from clinometer.report.evidence import CANDIDATES, exchanges, matching, spread


def test_spread_takes_every_tag_value_equally_often():
    # three kinds in blocks of very different size, four templates
    kinds = ["a"] * 900 + ["b"] * 80 + ["c"] * 20
    rows = pl.DataFrame(
        {"index": range(1000), "tag_kind": kinds, "tag_template": [i % 4 for i in range(1000)], "ask_text": "x"}
    )
    chosen = spread(rows, 12)
    assert Counter(chosen["tag_kind"]) == {"a": 4, "b": 4, "c": 4}
    assert Counter(chosen["tag_template"]) == {0: 3, 1: 3, 2: 3, 3: 3}
    assert chosen["index"].is_sorted()
    assert chosen.equals(spread(rows, 12))


def test_spread_of_few_rows_of_none_and_of_very_many():
    rows = pl.DataFrame({"index": [0, 1], "tag_kind": ["a", "a"]})
    assert len(spread(rows, 60)) == 2
    assert len(spread(rows.clear(), 60)) == 0
    assert len(spread(rows.select("index"), 1)) == 1
    many = pl.DataFrame({"index": range(20 * CANDIDATES), "tag_kind": ["a", "b"] * 10 * CANDIDATES})
    assert Counter(spread(many, 60)["tag_kind"]) == {"a": 30, "b": 30}


def test_filters_that_are_tags_choose_rows():
    rows = pl.DataFrame({"index": [0, 1, 2], "tag_kind": ["a", "b", "b"], "tag_k": [3, 3, 5]})
    assert matching(rows, {"kind": "b", "k": 5, "model": "not a tag"})["index"].to_list() == [2]
    assert len(matching(rows, {"kind": 3})) == 3  # a number cannot be the value of a text tag


def said(**columns: object) -> tuple[str, ...]:
    (only,) = exchanges(pl.DataFrame({name: [value] for name, value in columns.items()}), model="m")
    return only.answers


def test_words_come_most_probable_first_and_lost_ones_are_counted():
    # exp(-1) = 0.368, exp(-2) = 0.135
    logprobs = [-2.0, math.nan, -1.0]
    answers = said(ask_text="The [MASK].", got_words=["he", "stewardess", "she"], got_logprobs=logprobs)
    assert answers == ("she 0.368", "he 0.135", "1 not in the vocabulary")


def test_only_the_top_words_are_shown():
    words = [f"w{i}" for i in range(200)]
    answers = said(ask_text="x", got_words=words, got_logprobs=[-10.0 - i for i in range(200)])
    assert len(answers) == 8
    assert answers[0] == "w0 <0.001"


def test_other_answers():
    assert said(ask_prefix="The", got_texts=["a", "b", "c", "d", "e"]) == ("a", "b", "c", "… and 2 more")
    assert said(ask_text="x", got_logprob=-12.5, got_tokens=4) == ("log-probability -12.50 over 4 tokens",)
    assert said(ask_text="x", got_negative=0.25, got_neutral=math.nan, got_positive=0.75) == (
        "negative 0.250",
        "neutral –",
        "positive 0.750",
    )
    assert said(ask_text="x", got_vector=[0.0, 1.0]) == ("a vector of 2 numbers",)


def test_questions_with_context_and_conversations():
    rows = pl.DataFrame(
        {
            "tag_kind": ["a", None],
            "tag_share": [0.5, 2.0],
            "ask_context": ["Before.", ""],
            "ask_join": ["separator", "separator"],
            "ask_text": ["The [MASK].", "y" * 5000],
        }
    )
    first, second = exchanges(rows, model="m")
    assert (first.context, first.separator, first.text) == ("Before.", "[SEP]", "The [MASK].")
    assert first.tags == {"kind": "a", "share": "0.5"}
    assert second.separator == ""
    assert second.tags == {"kind": "", "share": "2"}
    assert second.text.endswith("… (5,000 characters in all)")
    assert len(second.text) < 1300

    chat = pl.DataFrame({"ask_messages": [[{"role": "user", "content": "Hi?"}]], "got_texts": [["No."]]})
    (asked,) = exchanges(chat, model="m")
    assert (asked.text, asked.answers) == ("user: Hi?", ("No.",))
