"""What endpoints send, in their several shapes, and what is made of it."""

from __future__ import annotations

import math

import pytest

from clinometer.models.endpoint.faults import Malformed
from clinometer.models.endpoint.reading import (
    has_prompt_scores,
    read_choices,
    read_reply,
    read_score,
    who_answered,
)
from clinometer.models.endpoint.words import next_word
from clinometer.models.protocols import Call
from clinometer.types import NextWord


def chat(content, **more):
    message = {"role": "assistant", "content": content, **more.pop("message", {})}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop", **more}]}


@pytest.mark.parametrize(
    ("body", "text", "ending", "reasoning"),
    [
        (chat("Yes."), "Yes.", "stop", ""),
        (chat("Yes, bec", finish_reason="length"), "Yes, bec", "length", ""),
        (chat(None), "", "empty", ""),
        (chat("", finish_reason="content_filter"), "", "content filter", ""),
        (chat(None, message={"refusal": "I won't."}), "I won't.", "refusal", ""),
        (chat([{"type": "text", "text": "Ye"}, {"type": "text", "text": "s"}]), "Yes", "stop", ""),
        (chat("Yes", message={"reasoning_content": "Hm."}), "Yes", "stop", "Hm."),
        (chat("<think>Hm.</think>\n\nYes"), "Yes", "stop", "Hm."),
        (chat("<think>Hm, I", finish_reason="length"), "", "length", "Hm, I"),
        ({"choices": [{"text": " a dog", "finish_reason": "stop"}]}, " a dog", "stop", ""),
        (chat("a\ud800b"), "a\ufffdb", "stop", ""),
    ],
)
def test_a_text_is_read_with_how_it_ended(body, text, ending, reasoning):
    (choice,) = read_choices(body, expected=1)
    assert (choice.text, choice.ending, choice.reasoning) == (text, ending, reasoning)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": "yes"},
        {"choices": [1]},
        {"choices": [{"index": 0}]},
        {"choices": [*chat("a")["choices"], *chat("b")["choices"]]},  # one too many, and both are number 0
        chat({"a": 1}),
    ],
)
def test_what_is_not_an_answer_is_malformed(body):
    with pytest.raises(Malformed):
        read_choices(body, expected=1)


def test_answers_come_in_the_order_of_their_numbers_and_each_once():
    first, second = chat("a")["choices"][0], {**chat("b")["choices"][0], "index": 1}
    assert [choice.text for choice in read_choices({"choices": [second, first]}, expected=2)] == ["a", "b"]
    with pytest.raises(Malformed, match="numbered"):
        read_choices({"choices": [first, first]}, expected=2)
    with pytest.raises(Malformed, match="2 answers where 3"):
        read_choices({"choices": [first, second]}, expected=3)


NEWER = {"content": [{"token": " he", "logprob": -1.0, "top_logprobs": [
    {"token": " he", "logprob": math.log(0.5)}, {"token": "▁she", "logprob": math.log(0.25)},
    {"token": "he", "logprob": math.log(0.125)}]}]}  # fmt: skip
OLDER = {"tokens": [" he"], "token_logprobs": [-1.0], "top_logprobs": [
    {" he": math.log(0.5), " she": math.log(0.25), "he": math.log(0.125)}]}  # fmt: skip


@pytest.mark.parametrize("logprobs", [NEWER, OLDER])
def test_words_are_read_off_both_shapes_with_the_mass_that_they_cover(logprobs):
    body = {"choices": [{"text": " he", "logprobs": logprobs, "finish_reason": "length"}]}
    call = Call(path="/completions", body={"prompt": "x"}, reads="words", words=("he", "she", "it"))
    reply = read_reply(call, body, {})
    answer = next_word(NextWord(text="x", words=("she", "it", "he")), [reply.content])
    # 0.5 + 0.25 + 0.125; "he" without a space is a piece of a word, and "it" was not told
    assert answer.told == pytest.approx(0.875)
    assert answer.logprobs[0] == pytest.approx(math.log(0.25))
    assert math.isnan(answer.logprobs[1])
    assert answer.logprobs[2] == pytest.approx(math.log(0.5))
    assert answer.draws == 0


def test_words_without_log_probabilities_are_counted():
    contents = [{"texts": [" She is", "he.", " she", ""]}]
    answer = next_word(NextWord(text="x", words=("she", "he", "it")), contents)
    # four draws: "She" is another word than "she", and one draw gave none
    assert answer.logprobs[:2] == (math.log(1 / 4), math.log(1 / 4))
    assert math.isnan(answer.logprobs[2])
    assert (answer.draws, answer.covered) == (4, 0.5)


def test_given_words_are_normalised_among_those_that_were_told():
    content = {"top": [[" he", math.log(0.3)], [" she", math.log(0.1)]], "told": 0.4}
    query = NextWord(text="x", words=("he", "she", "it"), normalise="words")
    answer = next_word(query, [content])
    assert [math.exp(each) for each in answer.logprobs[:2]] == pytest.approx([0.75, 0.25])
    top = next_word(NextWord(text="x", top_k=1), [content])
    assert top.words == ("he",)


def test_a_prompt_is_scored_up_to_its_end():
    logprobs = {"tokens": ["The", " cat", " sat"], "token_logprobs": [None, -2.0, -3.0], "text_offset": [0, 3, 7]}
    body = {"choices": [{"text": "The cat sat", "logprobs": logprobs}]}
    assert read_score(body, "The cat", span=(3, 7)) == {"logprob": -2.0, "tokens": 1, "word": -2.0}
    assert not has_prompt_scores(body, "The cat")  # one scored token could be the answer's
    assert has_prompt_scores(body, "The cat sat")
    with pytest.raises(Malformed):
        read_score({"choices": [{"text": " sat", "logprobs": logprobs}]}, "The cat")  # echo was ignored


def test_absurd_counts_are_not_believed():
    usage = {"prompt_tokens": -5, "completion_tokens": "many"}
    assert who_answered({"usage": usage, "model": 3}, {})[1] == {"tokens_in": 0, "tokens_out": 0}
    assert who_answered({"usage": [1]}, {"server": "x"})[0]["headers"] == "server: x"
