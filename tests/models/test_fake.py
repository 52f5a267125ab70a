"""A Python function in the place of a model."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clinometer.errors import ModelError, RequestError
from clinometer.models.fake import FakeModel
from clinometer.models.protocols import METHODS
from clinometer.types import (
    Ask,
    Classify,
    ClassifyAnswer,
    Embed,
    EmbedAnswer,
    Fill,
    LogLikelihood,
    LogLikelihoodAnswer,
    Message,
    NextWord,
    Sample,
    TextAnswer,
    WordAnswer,
)

PAIRS = [
    (Fill(text="[MASK]", words=("a",)), WordAnswer(words=("a",), logprobs=(-1.0,))),
    (NextWord(text="so", words=("a",)), WordAnswer(words=("a",), logprobs=(-2.0,))),
    (Sample(prefix="so", n=1), TextAnswer(texts=("on",))),
    (LogLikelihood(text="so"), LogLikelihoodAnswer(logprob=-3.0, tokens=2)),
    (Classify(text="so"), ClassifyAnswer(negative=0.2, neutral=0.3, positive=0.5)),
    (Embed(text="so"), EmbedAnswer(vector=(1.0, 0.0))),
    (Ask(messages=(Message(role="user", content="so?"),)), TextAnswer(texts=("yes",))),
]


@pytest.mark.parametrize(("request_", "answer"), PAIRS)
def test_answers_every_kind_of_request(request_, answer):
    capability = METHODS[type(request_)]
    model = FakeModel(answer={request_: answer}.get, capabilities=(capability,), kind="causal")
    assert model.info.capabilities == (capability,)
    assert model.info.kind == "causal"
    assert getattr(model, capability)([request_, request_]) == [answer, answer]
    assert all(cost >= 1 for cost in model.cost([request_]))


def test_answers_only_what_it_offers():
    model = FakeModel(answer=lambda request: TextAnswer(texts=()), name="mine", capabilities=("fill", "sample"))
    with pytest.raises(RequestError, match="'mine' does not answer Classify; it offers fill, sample"):
        model.cost([Classify(text="so")])
    with pytest.raises(RequestError, match="does not answer Classify"):
        model.classify([Classify(text="so")])


def test_wrong_answer():
    model = FakeModel(answer=lambda request: 0.5, name="mine")
    with pytest.raises(ModelError, match="'mine' answered Fill with float; it must return WordAnswer"):
        model.fill([Fill(text="[MASK]", words=("a",))])


def test_misspelt_capability():
    with pytest.raises(ModelError, match="no capability 'fil'; did you mean 'fill'"):
        FakeModel(answer=print, capabilities=("fil",))


def test_identity_is_name_and_version():
    one, same, other = (FakeModel(answer=print, version=version).info.weights for version in ("1", "1", "2"))
    assert one == same != other


def test_needs_no_torch():
    code = "import sys, clinometer.models.fake; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
