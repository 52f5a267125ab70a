"""A GGUF file as a model: llama.cpp in this process."""

from __future__ import annotations

import math

import pytest

from clinometer.errors import ModelError
from clinometer.models.load import capabilities_of, check_model, load_model
from clinometer.types import ModelSpec, NextWord, Sample
from tests.llama_server import gguf_file, needs_llama


def with_llama(test):
    for mark in needs_llama:
        test = mark(test)
    return test


def test_what_is_not_a_gguf_file_is_refused(tmp_path):
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        check_model(ModelSpec(name=str(tmp_path / "absent.gguf")))
    (tmp_path / "wrong.gguf").write_bytes(b"PK\3\4 not it")
    with pytest.raises(ModelError, match="is not a GGUF file"):
        check_model(ModelSpec(name=str(tmp_path / "wrong.gguf")))


def test_a_file_that_llama_cannot_load_is_refused(tmp_path):
    pytest.importorskip("xllamacpp", reason="not installed: xllamacpp; see `make setup`")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ModelError, match=r"llama.cpp cannot load .*cut.gguf"):
        load_model(str(tmp_path / "cut.gguf"))
    with pytest.raises(ModelError, match="no chat template"):
        capabilities_of(ModelSpec(name=str(tmp_path / "cut.gguf"), kind="chat"))


@pytest.fixture(scope="module")
def causal():
    return load_model(ModelSpec(name=str(gguf_file()), kind="causal"), device="cpu")


@with_llama
def test_it_is_asked_as_a_chat_unless_told_otherwise(causal):
    name = str(gguf_file())
    assert capabilities_of(ModelSpec(name=name)) == ("ask", "answer_word")
    assert capabilities_of(ModelSpec(name=name, kind="causal")) == ("next_word", "sample")
    assert causal.info.capabilities == ("next_word", "sample")
    assert len(causal.info.weights) == 64
    assert causal.info.told["model"] == gguf_file().name


@with_llama
def test_next_words_are_those_of_the_same_weights_run_here(causal):
    query = NextWord(text="The capital of France is", words=("Paris", "London"))
    (there,) = causal.next_word([query])
    (here,) = load_model(ModelSpec(name="builtin:causal", kind="causal"), device="cpu").next_word([query])
    assert there.logprobs[0] == pytest.approx(here.logprobs[0], abs=0.3)
    assert math.exp(there.logprobs[0]) > 0.5


@with_llama
def test_it_continues(causal):
    (answer,) = causal.sample([Sample(prefix="Once upon a", n=2, max_new_tokens=3)])
    assert len(answer.texts) == 2
    assert set(answer.endings) <= {"stop", "length"}
