"""vLLM: with a fake of its interface, and with vLLM itself where it is installed."""

from __future__ import annotations

import importlib.util
import math
import os
from types import SimpleNamespace

import pytest

from clinometer.errors import ModelError, RequestError
from clinometer.models.load import check_model, load_model
from clinometer.models.providers.vllm import VllmModel
from clinometer.types import Ask, LogLikelihood, ModelSpec, NextWord, Sample

INSTALLED = importlib.util.find_spec("vllm") is not None


class Parameters(SimpleNamespace):
    """Takes what vllm.SamplingParams takes."""


class Engine:
    """Answers as vllm.LLM does: a list of outputs in the order of the prompts."""

    def __init__(self):
        self.asked = []

    def generate(self, prompts, parameters, *, use_tqdm):
        assert not use_tqdm
        assert len(prompts) == len(parameters)
        self.asked += list(zip(prompts, parameters, strict=True))
        return [self._output(prompt, each) for prompt, each in zip(prompts, parameters, strict=True)]

    def _output(self, prompt, given):
        tokens = list(range(len(prompt.split())))
        first = {7: _logprob(" he", 0.5), 8: _logprob("▁she", 0.25), 9: _logprob("he", 0.1)}
        outputs = [
            SimpleNamespace(text=f" draw {number}", finish_reason="length", logprobs=[first])
            for number in range(getattr(given, "n", 1))
        ]
        scored = [None, *({token: _logprob("x", math.exp(-token))} for token in tokens[1:])]
        return SimpleNamespace(outputs=outputs, prompt_token_ids=tokens, prompt_logprobs=scored)


def _logprob(text, probability):
    return SimpleNamespace(decoded_token=text, logprob=math.log(probability), rank=1)


@pytest.fixture
def model():
    return VllmModel(ModelSpec(name="vllm:org/big"), Engine(), Parameters, version="0.15.0")


def test_words_are_read_off_the_most_probable_tokens(model):
    (answer,) = model.next_word([NextWord(text="She said that ", context="A nurse.", words=("she", "he", "it"))])
    assert [math.exp(each) for each in answer.logprobs[:2]] == pytest.approx([0.25, 0.5])
    assert math.isnan(answer.logprobs[2])
    assert answer.told == pytest.approx(0.85)
    assert model._engine.asked[0][0] == "A nurse. She said that"
    assert model._engine.asked[0][1].logprobs == 1000


def test_samples_have_seeds_of_their_own(model):
    requests = [
        Sample(prefix="a", n=2),
        Sample(prefix="a", n=2, first=2),
        Sample(prefix="b", n=1, top_k=5, top_p=0.9),
    ]
    answers = model.sample(requests)
    assert [len(answer.texts) for answer in answers] == [2, 2, 1]
    given = [each for _, each in model._engine.asked]
    assert len({each.seed for each in given}) == 3
    assert [(each.top_k, each.top_p) for each in given] == [(-1, 1.0), (-1, 1.0), (5, 0.9)]
    assert answers[0].endings == ("length", "length")


def test_a_text_is_scored_without_its_first_token(model):
    (answer,) = model.log_likelihood([LogLikelihood(text="one two three")])
    assert (answer.logprob, answer.tokens) == (pytest.approx(-3.0), 2)  # −1 and −2


def test_what_it_cannot_be_asked_is_refused(model):
    with pytest.raises(RequestError, match="vLLM answers next_word, sample, log_likelihood, not Ask"):
        model.cost([Ask(messages=())])


@pytest.mark.skipif(INSTALLED, reason="vLLM is installed")
def test_without_vllm_the_command_to_install_it_is_said():
    with pytest.raises(ModelError, match=r"clinometer\[vllm\].*openai:NAME with --base-url"):
        check_model(ModelSpec(name="vllm:org/big"))


@pytest.mark.skipif(
    not INSTALLED or "CLINOMETER_TEST_VLLM" not in os.environ,
    reason="needs vLLM, a GPU and CLINOMETER_TEST_VLLM=<a small causal model>: not run here",
)
def test_with_vllm_the_contract_holds():
    model = load_model(f"vllm:{os.environ['CLINOMETER_TEST_VLLM']}")
    queries = [
        NextWord(text="The capital of France is", words=("Paris", "London")),
        NextWord(text="One two", top_k=3),
    ]
    one_by_one = [model.next_word([query])[0] for query in queries]
    together = model.next_word(queries)
    for alone, beside in zip(one_by_one, together, strict=True):
        assert beside.words == alone.words
        assert beside.logprobs == pytest.approx(alone.logprobs, abs=0.05)
    assert together[0].logprobs[0] > together[0].logprobs[1]
    first, second = (model.sample([Sample(prefix="Once", n=3, max_new_tokens=5)])[0] for _ in range(2))
    assert first.texts == second.texts
    texts = ("The sky is blue.", "Sky the blue is.")
    likely, unlikely = model.log_likelihood([LogLikelihood(text=text) for text in texts])
    assert likely.logprob / likely.tokens > unlikely.logprob / unlikely.tokens
