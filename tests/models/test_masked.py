"""What is the masked adapter's own, beyond the contract."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace

import pytest

from clinometer.errors import ModelError, RequestError
from clinometer.models.load import load_model
from clinometer.models.local import masked
from clinometer.questions import WordAnswers, in_windows
from clinometer.types import Block, Classify, Fill, ModelSpec
from tests.models.tiny import MASKED
from tests.models.watching import WatchedProducts

QUERIES = [
    Fill(text="The [MASK] works as a nurse.", words=("man", "woman")),
    Fill(text="It was [MASK].", words=("man", "woman"), normalise="words"),
    Fill(text="Why are people so [MASK]?", top_k=5),
]


@pytest.mark.parametrize("family", MASKED)
def test_vocabulary_is_projected_at_the_mask_only(family, tiny_model):
    """Three queries, two of which need the whole vocabulary, one only the rows of its two words."""
    model = tiny_model(family)
    size = model._model.get_output_embeddings().weight.shape[0]
    with WatchedProducts() as watched:
        model.fill(QUERIES)
    assert (1, 2) in watched.shapes
    assert [shape for shape in watched.shapes if shape[1] == size] == [(2, size)]


@pytest.mark.parametrize("family", MASKED)
def test_an_unknown_family_is_asked_by_its_plain_forward_pass(family, tiny_folder, tiny_model, monkeypatch):
    fast = tiny_model(family).fill(QUERIES)
    monkeypatch.setattr(masked, "_HEADS", {})
    plain = load_model(str(tiny_folder(family)), device="cpu").fill(QUERIES)
    for one, other in zip(fast, plain, strict=True):
        assert one.words == other.words
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


def test_half_precision_is_near_full_precision(tiny_folder, tiny_model):
    model = load_model(ModelSpec(name=str(tiny_folder("bert")), dtype="bfloat16"), device="cpu")
    assert model.info.dtype == "bfloat16"
    query = Fill(text="It was [MASK].", words=("man", "woman", "great"))
    half, full = (one.fill([query])[0].logprobs for one in (model, tiny_model("bert")))
    assert half == pytest.approx(full, abs=0.3)
    assert half != pytest.approx(full, abs=1e-5)


def test_a_head_that_is_not_in_the_files_is_an_error(tiny_folder, tmp_path):
    """Random numbers would answer instead."""
    folder = shutil.copytree(tiny_folder("bert", "BertModel"), tmp_path / "headless")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertForMaskedLM"]}))
    with pytest.raises(ModelError, match=r"lack \d+ parts that BertForMaskedLM needs \(cls\.predictions"):
        load_model(str(folder), device="cpu")


def test_no_mask_token(tiny_folder, tmp_path):
    folder = shutil.copytree(tiny_folder("bert"), tmp_path / "maskless")
    for file in tiny_folder("gpt2").glob("*token*"):
        shutil.copy(file, folder)
    (folder / "vocab.txt").unlink(missing_ok=True)
    with pytest.raises(ModelError, match="has no mask token"):
        load_model(str(folder), device="cpu")


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_columns_are_answered_to_the_bit_as_the_same_list(family, tiny_model):
    """Words that are not one token included; texts of several lengths in one batch."""
    model = tiny_model(family)
    words = ("man", "woman", "notonetokenatall", "man")
    block = Block(
        kind=Fill,
        columns={"text": ("It was [MASK].", "The nurse said that it was [MASK] then.")},
        shared={"words": words, "normalise": "words", "context": "The film was long."},
    )
    (window,) = in_windows([block, replace(block, shared={**block.shared, "context": "Why?"})], 10)
    columns = model.launch(window.requests)()
    assert isinstance(columns, WordAnswers)
    listed = model.fill(list(window.requests))
    assert [answer.words for answer in columns] == [words] * 4
    for one, other in zip(columns, listed, strict=True):
        assert [math.isnan(value) for value in one.logprobs] == [False, False, True, False]
        assert repr(one) == repr(other)
    assert model.cost(window.requests) == model.cost(list(window.requests))


def test_columns_are_checked_as_a_list_is(tiny_model):
    wrong = Block(kind=Fill, columns={"text": ("a [MASK]", "b [MASK]")})  # neither words nor top_k
    (window,) = in_windows([wrong], 10)
    with pytest.raises(RequestError, match="give either words or top_k"):
        tiny_model("bert").cost(window.requests)
    (window,) = in_windows([replace(wrong, columns={"text": ("a [MASK]", "b [MASK]"), "top_k": (1, 0)})], 10)
    with pytest.raises(RequestError, match="give either words or top_k"):  # the second
        tiny_model("bert").cost(window.requests)
    (window,) = in_windows([replace(wrong, columns={"text": ("a [MASK]", "b"), "top_k": (1, 1)})], 10)
    with pytest.raises(RequestError, match="exactly one"):
        tiny_model("bert").cost(window.requests)
    (window,) = in_windows([Block(kind=Classify, columns={"text": ("a", "b")})], 10)
    with pytest.raises(RequestError, match="answers Fill requests, not Classify"):
        tiny_model("bert").cost(window.requests)


@pytest.mark.parametrize(
    "shared",
    [{"words": ("man", "woman")}, {"top_k": 3}, {"words": ("man", "woman"), "normalise": "words"}],
    ids=["over the vocabulary", "top", "over the words"],
)
def test_what_is_asked_in_columns_is_what_is_answered(shared, tiny_model):
    model = tiny_model("bert")
    texts = ("It was [MASK].", "The nurse said that it was [MASK] then.")
    (window,) = in_windows([Block(kind=Fill, columns={"text": texts}, shared=shared)], 10)
    listed = model.fill([Fill(text=text, **shared) for text in texts])
    assert [repr(answer) for answer in model.launch(window.requests)()] == [repr(answer) for answer in listed]
    total = sum(math.exp(value) for value in listed[0].logprobs)
    assert (total == pytest.approx(1, abs=1e-5)) == ("normalise" in shared)


def test_columns_that_ask_for_several_things_are_answered_each(tiny_model):
    model = tiny_model("bert")
    words = (("man", "woman"), ("woman", "great", "man"))
    texts = ("It was [MASK].", "The [MASK] works.")
    mixed = Block(kind=Fill, columns={"text": texts, "words": words, "normalise": ("words", "vocabulary")})
    (window,) = in_windows([mixed], 10)
    found = model.launch(window.requests)()
    assert [repr(answer) for answer in found] == [repr(answer) for answer in model.fill(list(window.requests))]
    assert [answer.words for answer in found] == list(words)
