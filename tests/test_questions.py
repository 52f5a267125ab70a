"""Questions as columns are the questions that were asked, one by one, window by window."""

from __future__ import annotations

import itertools
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from clinometer.questions import ABSENT, Coded, Items, Requests, WordAnswers, in_windows, items_of, joined
from clinometer.types import Block, Classify, Fill, Item, WordAnswer

TEXTS = ("a [MASK]", "b [MASK]", "c [MASK]")


def block(number, texts=TEXTS):
    return Block(
        kind=Fill,
        columns={"text": texts},
        shared={"context": f"Review {number}.", "words": ("x", "y")},
        tags={"word": tuple(text[0] for text in texts)},
        shared_tags={"review": number},
    )


def single(number, **more):
    return Item(request=Fill(text=f"{number} [MASK]", top_k=1), tags={"review": number, **more})


@settings(max_examples=200, deadline=None)
@given(
    asked=st.lists(
        st.one_of(st.integers(0, 5).map(single), st.integers(0, 5).map(block), st.just(single(9, extra=1))),
        max_size=8,
    ),
    size=st.integers(1, 9),
)
def test_windows_hold_every_question_in_order(asked, size):
    windows = list(in_windows(asked, size))
    assert [item for window in windows for item in window] == list(items_of(asked))
    assert [len(window) for window in windows[:-1]] == [size] * (len(windows) - 1)
    assert [item for window in windows for item in window.requests] == [item.request for item in items_of(asked)]
    again = list(in_windows(windows, size + 1))  # windows are questions, too
    assert [item for window in again for item in window] == list(items_of(asked))


def test_blocks_that_share_a_column_share_its_values():
    (window,) = in_windows([block(0), block(1), block(2)], 100)
    assert window.requests.columns["text"].values is TEXTS
    assert len(window.requests.columns["context"].values) == 3
    assert len(window.requests.columns["words"].values) == 1  # one object


def test_a_list_that_changes_later_changes_nothing():
    """A probe may fill one list again and again."""

    def blocks():
        texts = []
        for number in range(3):
            texts[:] = [f"{number} [MASK]", f"{number}{number} [MASK]"]
            yield Block(kind=Classify, columns={"text": texts})

    (window,) = in_windows(blocks(), 100)
    assert [request.text[0] for request in window.requests] == ["0", "0", "1", "1", "2", "2"]


def test_no_question_is_made_before_its_window_is_wanted():
    made = []

    def questions():
        for number in itertools.count():
            made.append(number)
            yield single(number)

    windows = in_windows(questions(), 4)
    assert not made
    assert len(next(windows)) == 4
    assert made == [0, 1, 2, 3]


def test_a_window_ends_where_another_kind_of_request_begins():
    other = Item(request=Classify(text="x"), tags={})
    windows = list(in_windows([single(0), other, other, single(1)], 10))
    assert [window.requests.kind for window in windows] == [Fill, Classify, Fill]


def test_a_large_block_is_cut():
    large = block(0, texts=tuple(f"{number} [MASK]" for number in range(10)))
    windows = list(in_windows([large], 4))
    assert [len(window) for window in windows] == [4, 4, 2]
    assert len(windows[0].requests.columns["text"].values) == 4  # a window holds no more than its own


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"columns": {"text": ["a"]}, "tags": {"word": ["x", "y"]}}, "text has 1, word has 2"),
        ({"columns": {}}, "there is none"),
    ],
)
def test_columns_of_a_block_have_one_length(wrong, error):
    with pytest.raises(ValueError, match=error):
        list(in_windows([Block(kind=Classify, **wrong)], 5))


def test_a_field_that_a_request_does_not_have_is_refused():
    with pytest.raises(TypeError, match="contxt"):
        list(in_windows([Block(kind=Fill, columns={"text": TEXTS}, shared={"contxt": ""})], 5))


def test_requests_are_a_sequence():
    (window,) = in_windows([block(0), block(1)], 100)
    requests = window.requests
    assert requests[4] == Fill(text="b [MASK]", context="Review 1.", words=("x", "y"))
    assert requests[-1].text == "c [MASK]"
    assert list(requests[1:3]) == list(requests)[1:3]
    assert list(requests.take(np.array([5, 0]))) == [requests[5], requests[0]]
    assert repr(requests[:1]) == repr([requests[0]])
    assert Requests.of(requests) is requests


def test_another_process_gets_the_values_that_it_needs():
    (window,) = in_windows([block(0), block(1)], 100)
    some = window.requests.take([4])
    again = pickle.loads(pickle.dumps(some))
    assert list(again) == list(some)
    assert {name: len(column.values) for name, column in again.columns.items() if name != "words"} == {
        "text": 1, "context": 1, "join": 1, "top_k": 1, "normalise": 1,
    }  # fmt: skip


def test_a_tag_that_some_items_lack_is_absent_there():
    (window,) = in_windows([single(0), single(1, extra=5), block(2)], 10)
    assert [item.tags.get("extra") for item in window] == [None, 5, None, None, None]
    assert "extra" not in window[0].tags
    assert any(value is ABSENT for value in window.tags["extra"].values)


def test_word_answers_are_a_sequence():
    answers = WordAnswers(("x", "y"), np.array([[-1.0, -2.0], [-3.0, np.nan], [-5.0, -6.0]], np.float32))
    assert answers[0] == WordAnswer(words=("x", "y"), logprobs=(-1.0, -2.0))
    assert [answer.logprobs[0] for answer in answers] == [-1.0, -3.0, -5.0]
    assert answers.take([2, 0])[0] == answers[2]
    assert len(answers[1:]) == 2


def test_joined_columns_keep_values_that_are_one_object():
    values = ("p", "q")
    first, second = Coded(values, np.array([0, 1], np.int32)), Coded(values, np.array([1], np.int32))
    third = Coded.of(["r", "r", "s"])
    both = joined([first, third, second])
    assert both.each() == ["p", "q", "r", "r", "s", "q"]
    assert both.values == ("p", "q", "r", "s")
    assert joined([first, second]).values is values
    assert both.take([5, 4]).used().values == ("q", "s")
    assert both.take([5, 4]).used().each() == ["q", "s"]


def test_items_as_columns_are_those_items():
    items = [single(0, extra=1.5), single(1, extra=2.5), single(0, extra=1.5)]
    assert list(Items.of(items)) == items
