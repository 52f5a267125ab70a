"""A model without its weights: described as the loaded one is, and as strict about requests."""

from __future__ import annotations

import json

import pytest
import torch

from clinometer.errors import ModelError, RequestError
from clinometer.models.load import inspect_model, load_model, weight_bytes
from clinometer.models.providers import local
from clinometer.types import MASK, Classify, Embed, Fill, LogLikelihood, ModelSpec, NextWord, Sample
from tests.models.causal_models import ODD
from tests.models.installed import need
from tests.models.tiny import CAUSAL, MASKED, PERMUTED

TEXT = f"The nurse was {MASK} there."
PREFIX = "The nurse was"
HEADS = {
    "bert": ("BertForSequenceClassification", [Classify(text=PREFIX)]),
    "gpt2": ("GPT2ForSequenceClassification", [Classify(text=PREFIX)]),
    "mpnet": ("MPNetModel", [Embed(text=PREFIX)]),
}
LABELS = {"LABEL_0": "negative", "LABEL_1": "positive"}


def same(spec, requests):
    """Compare the model with and without weights, and return the latter."""
    whole, bare = load_model(spec, device="cpu"), inspect_model(spec, device="cpu")
    assert bare.info == whole.info
    assert bare.cost(requests) == whole.cost(requests)
    return bare


@pytest.mark.parametrize("family", MASKED + PERMUTED)
def test_fillers(family, tiny_folder):
    model = same(ModelSpec(name=str(tiny_folder(family))), [Fill(text=TEXT, words=("great",))])
    with pytest.raises(RequestError, match="exactly one"):
        model.cost([Fill(text=PREFIX, words=("great",))])


@pytest.mark.parametrize("family", [*CAUSAL, *ODD])
def test_causal_models(family, folder_of):
    sample = Sample(prefix=PREFIX, n=2, max_new_tokens=5)
    requests = [NextWord(text=PREFIX, words=("great",)), sample, LogLikelihood(text=PREFIX)]
    same(ModelSpec(name=str(folder_of(family))), requests)


@pytest.mark.parametrize("family", HEADS)
def test_other_heads(family, tiny_folder):
    head, requests = HEADS[family]
    labels = LABELS if "Classification" in head else {}
    same(ModelSpec(name=str(tiny_folder(family, head)), label_map=labels), requests)


@pytest.mark.parametrize("name", ["builtin:masked", "builtin:sentiment", "builtin:encoder"])
def test_built_in_models(name):
    need(name)
    if name == "builtin:sentiment":
        need("builtin:encoder")  # which it is an adapter over
    asked = {"builtin:masked": Fill(text=TEXT, words=("great",)), "builtin:sentiment": Classify(text=PREFIX)}
    same(ModelSpec(name=name), [asked.get(name, Embed(text=PREFIX))])
    assert weight_bytes(ModelSpec(name=name)) > 2**20


def test_the_dtype_is_the_one_of_the_device(tiny_folder, monkeypatch):
    need("builtin:encoder")
    name = str(tiny_folder("bert"))
    assert inspect_model(ModelSpec(name=name, dtype="bfloat16"), device="cpu").info.dtype == "bfloat16"
    # as on a GPU, which is not asked for anything
    monkeypatch.setattr("clinometer.models.local.loading.pick_device", lambda device: torch.device("cuda"))
    assert inspect_model(ModelSpec(name=name), device="auto").info.dtype == "bfloat16"
    assert inspect_model(ModelSpec(name=name, dtype="float32"), device="auto").info.dtype == "float32"
    assert inspect_model(ModelSpec(name="builtin:sentiment"), device="auto").info.dtype == "float32"


def test_no_weight_is_read(tiny_folder):
    model = inspect_model(ModelSpec(name=str(tiny_folder("bert"))), device="cpu")
    assert {weight.device.type for weight in model._model.parameters()} == {"meta"}
    with pytest.raises((NotImplementedError, RuntimeError)):
        model.fill([Fill(text=TEXT, words=("great",))])


def test_what_cannot_be_loaded_is_named_all_the_same(tiny_folder, tmp_path):
    folder = tiny_folder("bert")
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    config["architectures"] = ["BertForSequenceClassification"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    spec = ModelSpec(name=str(tmp_path), label_map=LABELS)
    with pytest.raises(ModelError, match=r"lack .* parts that BertForSequenceClassification needs"):
        inspect_model(spec, device="cpu")
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-100])
    with pytest.raises(ModelError, match="cut short"):
        inspect_model(spec, device="cpu")


@pytest.mark.parametrize("why", ["no accelerate", "own code"])
def test_where_weights_are_needed_they_are_loaded(why, tiny_folder, monkeypatch):
    spec = ModelSpec(name=str(tiny_folder("bert")), trust_remote_code=why == "own code")
    if why == "no accelerate":
        monkeypatch.setattr(local, "absent_packages", lambda *names: [n for n in names if n == "accelerate"])
    model = inspect_model(spec, device="cpu")
    assert {weight.device.type for weight in model._model.parameters()} == {"cpu"}
    assert isinstance(model.fill([Fill(text=TEXT, words=("great",))])[0].logprobs[0], float | torch.Tensor)
