"""A model that is a function from queries to the probabilities of its words."""

import math

import numpy as np
import pytest

from clinometer.errors import RequestError
from clinometer.models.word_model import WordModel
from clinometer.types import Fill, NextWord

PROBABILITIES = {"man": 0.2, "woman": 0.3, "Paris": 0.5}


@pytest.fixture
def model():
    return WordModel(
        "mine", list(PROBABILITIES), lambda query: np.log(list(PROBABILITIES.values())), weights="w", version="1"
    )


def test_given_words_keep_their_order_and_what_is_not_there_is_nan(model):
    (answer,) = model.fill([Fill(text="a [MASK]", words=("woman", "robot", "Man", "Paris", "paris"))])
    assert answer.words == ("woman", "robot", "Man", "Paris", "paris")
    # "Man" is found in lower case, "paris" is not: names are not made larger
    expected = [0.3, math.nan, 0.2, 0.5, math.nan]
    assert [math.exp(value) for value in answer.logprobs] == pytest.approx(expected, nan_ok=True)


def test_among_given_words_a_word_that_is_named_twice_counts_once(model):
    (answer,) = model.next_word([NextWord(text="a", words=("woman", "man", "Woman"), normalise="words")])
    assert [math.exp(value) for value in answer.logprobs] == pytest.approx([0.6, 0.4, 0.6])


def test_the_most_probable_come_first(model):
    (answer,) = model.fill([Fill(text="a [MASK]", top_k=2)])
    assert answer.words == ("Paris", "woman")


def test_a_text_needs_one_blank(model):
    with pytest.raises(RequestError, match=r"expected one \[MASK\], found 2"):
        model.fill([Fill(text="[MASK] [MASK]", words=("man",))])


def test_weights_version_and_words_identify_it(model):
    other = WordModel("mine", ["man"], lambda query: np.zeros(1), weights="w", version="2")
    assert (model.info.weights, model.info.code) == ("w", "1")
    assert other.info.tokenizer != model.info.tokenizer
