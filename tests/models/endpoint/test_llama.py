"""A real server on loopback: llama.cpp with the weights of `builtin:causal`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clinometer.models.load import load_model
from clinometer.types import AnswerWord, Ask, Message, ModelSpec, NextWord, Sample
from tests.llama_server import llama_server, needs_llama

pytestmark = needs_llama

# The server computes with the 4-bit weights as they are, and rounds activations to 8 bits; `builtin:causal`
# unpacks the same weights to float32. Over 20 prompts and 162 words the largest difference of a log-probability
# above −8 was 0.30, the root mean square 0.10.
TOLERANCE, TOLERANCE_RMS = 0.5, 0.15

PROMPTS = ("The nurse said that", "The doctor went home because", "My neighbour is a kind", "She works as a")


@pytest.fixture(scope="module")
def address():
    with llama_server() as url:
        yield url


@pytest.fixture(scope="module")
def causal(address):
    return load_model(ModelSpec(name="openai:smollm2", base_url=address, kind="causal"))


@pytest.fixture(scope="module")
def chat(address):
    return load_model(ModelSpec(name="openai:smollm2", base_url=address))


def test_what_it_offers_is_found_out(causal, chat):
    assert chat.info.capabilities == ("ask", "answer_word")
    assert causal.info.capabilities == ("next_word", "sample")  # it ignores `echo`: no prompt is scored
    assert (chat.offer.chat.top, causal.offer.plain.top) == (1000, 1000)
    assert (chat.offer.chat.many, causal.offer.plain.many) == (4, 4)  # as many as it has slots
    assert (chat.offer.chat.whole, causal.offer.plain.whole) == (49_152, 49_152)  # its vocabulary
    assert causal.offer.requests <= 20  # as docs/endpoints.md says
    assert causal.info.told["model"] == "smollm2"
    assert causal.info.told["ftype"] == "Q4_1"
    assert causal.info.told["headers"] == "server: llama.cpp"


def test_it_answers_and_continues_with_the_seed_it_is_given(causal, chat):
    question = Ask(messages=(Message(role="user", content="Name a colour."),), n=6, max_new_tokens=4)
    first, second = chat.ask([question])[0], chat.ask([question])[0]
    assert len(first.texts) == 6  # by calls of four and of two
    assert first.texts == second.texts
    assert len(set(first.texts)) > 1
    assert set(first.endings) <= {"stop", "length"}
    (answer,) = causal.sample([Sample(prefix="The nurse said that", n=3, max_new_tokens=4)])
    assert len(answer.texts) == 3
    assert all(text.startswith(" ") for text in answer.texts)


def test_next_words_agree_with_the_same_weights_run_here(causal):
    local = load_model("builtin:causal", device="cpu")
    words = ("he", "she", "they", "the", "it", "a", "was", "man", "woman", "nurse")
    queries = [NextWord(text=prompt, words=words) for prompt in PROMPTS]
    remote = causal.next_word(queries)
    differences = []
    for here, there in zip(local.next_word(queries), remote, strict=True):
        assert 0.75 < there.told <= 1  # what 1,000 of 49,152 tokens hold
        for one, other in zip(here.logprobs, there.logprobs, strict=True):
            if one > -8:
                assert not math.isnan(other)
                differences.append(one - other)
    assert len(differences) > 15
    assert np.abs(differences).max() < TOLERANCE
    assert np.sqrt(np.mean(np.square(differences))) < TOLERANCE_RMS


def test_the_first_word_of_an_answer_is_read_from_its_probabilities(chat):
    question = Message(role="user", content="Is the sky blue? Answer yes or no.")
    (answer,) = chat.answer_word([AnswerWord(messages=(question,), words=("yes", "no", "supercalifragilistic"))])
    assert answer.covered == pytest.approx(math.exp(answer.logprobs[0]) + math.exp(answer.logprobs[1]))
    assert 0.01 < answer.covered <= answer.told
    assert math.isnan(answer.logprobs[2])
    assert answer.told > 0.8
