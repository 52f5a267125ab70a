"""Sentence encoders: vectors equal a plain forward pass, pooled as the model's folder says."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from clinometer.errors import ModelError, RequestError
from clinometer.models.load import load_model
from clinometer.models.local.encoder import EncoderModel
from clinometer.models.protocols import CanEmbed
from clinometer.models.providers.local import resolve
from clinometer.types import Classify, Embed, ModelSpec
from tests.models.installed import need
from tests.models.tiny import WINDOW

TEXTS = (
    "It was a great film!",
    "bad",
    "He said that she is a teacher; she said that he is an engineer.",
    "Why are people so kind?",
    "The story was good, the actors were bad, and the music was fine.",
    "A review.",
    "We were walking while it rained and rained.",
    "",
)
POOLINGS = {
    "none": None,  # a bare encoder
    "mean": {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True},
    "cls": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
    "lasttoken": {"pooling_mode": "lasttoken"},
}


def write_modules(folder, pooling, *further):
    kinds = ["Transformer", "Pooling", *further]
    modules = [
        {"idx": at, "name": str(at), "path": f"{at}_{kind}" if at else "", "type": f"sentence_transformers.{kind}"}
        for at, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **pooling}))


@pytest.fixture
def folder(tiny_folder, tmp_path):
    return shutil.copytree(tiny_folder("bert", "BertModel"), tmp_path / "encoder")


@pytest.fixture(params=POOLINGS)
def pooling(request, folder):
    if POOLINGS[request.param]:
        write_modules(folder, POOLINGS[request.param], "Normalize")
    return request.param


@torch.no_grad()
def plain(folder, text, pooling, limit=WINDOW):
    """Return the vector of one text, by nothing but transformers."""
    inputs = AutoTokenizer.from_pretrained(folder)(text, truncation=True, max_length=limit, return_tensors="pt")
    hidden = AutoModel.from_pretrained(folder).eval()(**inputs).last_hidden_state[0]
    vector = {"cls": hidden[0], "lasttoken": hidden[-1]}.get(pooling, hidden.mean(dim=0))
    return (vector / vector.norm()).tolist()


def test_vectors_equal_a_plain_forward_pass(folder, pooling):
    model = load_model(str(folder), device="cpu")
    assert isinstance(model, CanEmbed)
    assert model.info.kind == "encoder"
    for text, answer in zip(TEXTS, model.embed([Embed(text=text) for text in TEXTS]), strict=True):
        assert np.linalg.norm(answer.vector) == pytest.approx(1, abs=1e-6)
        assert answer.vector == pytest.approx(plain(folder, text, pooling), abs=1e-5)


def test_batch_and_order_do_not_matter(folder, pooling):
    model = load_model(str(folder), device="cpu")
    batch = [Embed(text=text) for text in TEXTS]
    one_by_one = np.array([model.embed([one])[0].vector for one in batch])
    assert np.abs(one_by_one[0] - one_by_one[1]).max() > 0.01
    assert np.array([a.vector for a in model.embed(batch)]) == pytest.approx(one_by_one, abs=1e-5)
    assert np.array([a.vector for a in model.embed(batch[::-1])]) == pytest.approx(one_by_one[::-1], abs=1e-5)


def test_the_window_and_the_letter_case_of_the_folder(folder):
    write_modules(folder, POOLINGS["mean"])
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 10, "do_lower_case": true}')
    model = load_model(str(folder), device="cpu")
    assert model.info.window == 10
    assert model.info.settings["pooling"] == "mean"
    assert model.cost([Embed(text="great " * 40), Embed(text="bad")]) == [10, 3]
    assert model.embed([Embed(text="great " * 40)])[0].vector == pytest.approx(
        plain(folder, "great " * 40, "mean", 10), abs=1e-5
    )
    assert model._recipe.lower


@pytest.mark.parametrize(
    ("pooling", "further", "message"),
    [
        ({"pooling_mode_max_tokens": True}, (), "pools its tokens by max_tokens; expected one of mean, cls"),
        ({"pooling_mode_max_tokens": True, "pooling_mode_mean_tokens": True}, (), "by max_tokens and mean"),
        ({}, (), "by nothing"),
        ({"pooling_mode": "mean"}, ("Dense",), "a layer 'Dense' after its encoder"),
    ],
)
def test_what_is_not_supported_is_refused(folder, pooling, further, message):
    write_modules(folder, pooling, *further)
    with pytest.raises(ModelError, match=message):
        load_model(str(folder), device="cpu")


def test_a_missing_pooler_is_no_fault(tiny_folder):
    spec = ModelSpec(name=str(tiny_folder("bert")))  # a masked model: no pooler in its weights
    model = EncoderModel.load(resolve(spec), spec, torch.device("cpu"))
    assert model.embed([Embed(text=TEXTS[0])])[0].vector == pytest.approx(
        plain(tiny_folder("bert"), TEXTS[0], "mean"), abs=1e-5
    )


def test_another_request(folder):
    with pytest.raises(RequestError, match="not Classify"):
        load_model(str(folder), device="cpu").cost([Classify(text="bad")])


def test_minilm_knows_what_is_alike():
    need("builtin:encoder")
    model = load_model("builtin:encoder", device="cpu")
    assert model.info.window == 256
    texts = (
        "A man is playing the guitar on a stage.",
        "Someone performs music with a guitar.",
        "The central bank raised interest rates again.",
        "Borrowing money became more expensive.",
    )
    vectors = np.array([answer.vector for answer in model.embed([Embed(text=text) for text in texts])])
    assert vectors.shape == (4, 384)
    likeness = vectors @ vectors.T
    assert likeness[0, 1] > 0.5
    assert likeness[2, 3] > likeness[[0, 0, 1, 1], [2, 3, 2, 3]].max() + 0.2
