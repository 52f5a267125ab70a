"""Words read off logits that are worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from clinometer.models.local.readout import linear_projection, read_words, table_projection
from clinometer.types import Fill


class Letters:
    """A vocabulary of single letters; "z" is special."""

    size = 6
    special = frozenset({5})
    letters = "abcdez"

    def ids_of(self, words):
        return [self.letters.index(word) if word in "abcde" else None for word in words]

    def names_of(self, ids):
        return [self.letters[token] for token in ids]


def read(queries, logits):
    return read_words(
        queries,
        table_projection(torch.tensor(logits)),
        Letters(),
        size=len(logits[0]),
        device=torch.device("cpu"),
    )


LOGITS = [math.log(weight) for weight in (1.0, 2.0, 2.0, 1.0, 2.0, 8.0)]  # a … e and the special token: sum 16


def test_given_words():
    # p(a) = 1/16, p(b) = 2/16; "B" is no token
    answer = read([Fill(text="", words=("b", "B", "a"))], [LOGITS])[0]
    assert answer.words == ("b", "B", "a")
    assert answer.logprobs == pytest.approx((math.log(2 / 16), math.nan, math.log(1 / 16)), nan_ok=True)


def test_given_words_among_themselves():
    # 1 : 2, so 1/3 and 2/3; asked twice, a word still weighs once
    answer = read([Fill(text="", words=("a", "b", "?", "b"), normalise="words")], [LOGITS])[0]
    third = (math.log(1 / 3), math.log(2 / 3), math.nan, math.log(2 / 3))
    assert answer.logprobs == pytest.approx(third, nan_ok=True)


def test_no_word_is_known():
    answer = read([Fill(text="", words=("?", "!"), normalise="words")], [LOGITS])[0]
    assert all(math.isnan(logprob) for logprob in answer.logprobs)


def test_top_words_are_in_order_of_probability_then_of_token():
    # b, c and e are equal (2/16), a and d too (1/16); the special token is the most probable and left out
    for k, words in enumerate(["b", "bc", "bce", "bcea", "bcead", "bcead"], start=1):
        answer = read([Fill(text="", top_k=k)], [LOGITS])[0]
        assert "".join(answer.words) == words
        assert answer.logprobs == pytest.approx([math.log({"a": 1, "d": 1}.get(word, 2) / 16) for word in words])


def test_rows_without_a_token_are_left_out_but_weigh():
    # a matrix padded by one row of weight 16: p(a) = 1/32
    answer = read([Fill(text="", top_k=9)], [[*LOGITS, math.log(16)]])[0]
    assert answer.words == ("b", "c", "e", "a", "d")
    assert answer.logprobs[3] == pytest.approx(math.log(1 / 32))


def test_the_sum_over_the_vocabulary_is_taken_in_float32():
    # 1,000 equal logits in bfloat16: ln(1/1000) = −6.9078, which bfloat16 would round to −6.9062
    logits = torch.zeros(1, 1000, dtype=torch.bfloat16)
    answer = read_words(
        [Fill(text="", words=("a",))],
        table_projection(logits),
        Letters(),
        size=1000,
        device=torch.device("cpu"),
    )[0]
    assert answer.logprobs == pytest.approx([-math.log(1000)], abs=1e-5)


def test_many_rows_are_read_in_parts(monkeypatch):
    monkeypatch.setattr("clinometer.models.local.readout._MAX_LOGITS", 12)  # two rows at a time
    rows = [[logit * scale for logit in LOGITS] for scale in (0.0, 0.5, 1.0, 1.5, 2.0)]
    queries = [Fill(text="", words=("a", "b")) if row % 2 else Fill(text="", top_k=2) for row in range(5)]
    together = read(queries, rows)
    assert together == [read([query], [row])[0] for query, row in zip(queries, rows, strict=True)]


def test_only_the_rows_that_are_needed_are_multiplied():
    """The rows of other words may be anything, even NaN."""
    weight = torch.full((6, 2), math.nan)
    weight[0], weight[1] = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    bias = torch.tensor([0.5, 0.0, math.nan, math.nan, math.nan, math.nan])
    hidden = torch.tensor([[2.0, 1.0]])  # logits: a = 2 + 0.5, b = 1
    answer = read_words(
        [Fill(text="", words=("a", "b"), normalise="words")],
        linear_projection(hidden, weight, bias),
        Letters(),
        size=6,
        device=torch.device("cpu"),
    )[0]
    assert answer.logprobs == pytest.approx((-math.log1p(math.exp(-1.5)), -math.log1p(math.exp(1.5))))
