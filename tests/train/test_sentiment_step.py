"""The second step: the vectors it learns from, its file, and what becomes of a second call."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clinometer.data import read_attribute
from clinometer.errors import DataError, InputError, ModelError, StoreError
from clinometer.train import LabellingSettings, MitigationSettings, fit_projection, mitigate, read_material
from clinometer.train.base import load_base
from clinometer.train.processes import Quiet
from clinometer.train.regularisers import layers_of
from clinometer.train.sentiment import sentence_vectors
from tests.train.mitigation_samples import TEMPLATE, VALUES, material_of, write_planted
from tests.train.samples import Listener

LABELLING = LabellingSettings(scorer="builtin:opinion-words", sentences=600)


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    return material_of(*write_planted(tmp_path_factory.mktemp("planted"), texts=600))


@pytest.fixture(scope="module")
def made(material, tiny_folder, tmp_path_factory):
    """A projection of an untrained model, and what was told of it."""
    file, listener = tmp_path_factory.mktemp("projection") / "p.safetensors", Listener()
    model = str(tiny_folder("llama"))
    fitted = fit_projection(model, material, out=file, settings=LABELLING, device="cpu", progress=listener)
    return fitted, file, listener


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_the_vector_of_a_sentence_is_that_of_its_last_token(family, tiny_folder, monkeypatch):
    """Against one unpadded call a text; more texts than one batch takes, and one longer than the window."""
    base = load_base(str(tiny_folder(family)), device="cpu", dtype="float32", kinds=("causal",))
    texts = [f"The nurse was at the hospital{' and so on' * (number % 7)}." for number in range(30)]
    texts.append("The weather was bad. " * 40)
    monkeypatch.setattr("clinometer.train.sentiment._TOKENS", {"cpu": 150})
    found = sentence_vectors(base, texts, Quiet())
    assert found.shape == (31, 32)
    for text, vector in zip(texts, found, strict=True):
        ids = base.tokenizer(text)["input_ids"][: base.info.window]
        caught = []
        hooks = [
            layer.register_forward_hook(lambda _layer, _given, result, to=caught: to.append(result))
            for layer in layers_of(base.model)[-2:]
        ]
        with torch.no_grad():
            base.model(input_ids=torch.tensor([ids]))
        for hook in hooks:
            hook.remove()
        before, last = (each[0] if isinstance(each, tuple) else each for each in caught)
        np.testing.assert_allclose(vector, ((before + last) / 2)[0, -1], rtol=1e-4, atol=1e-5)
    assert base.tokenizer(texts[-1])["input_ids"][base.info.window :]  # that one is longer indeed


def test_what_is_told_of_it(made, material, tiny_folder):
    fitted, _, listener = made
    figures = fitted.figures
    assert figures["scorer"] == "builtin:opinion-words"
    assert figures["asked"] == len(material.any_sentences(at_most=600, seed=0)) == 580
    assert figures["low"] <= figures["accuracy"] <= figures["high"]
    accuracy = f"sentiment projection: {figures['accuracy']:.1%} right on {figures['n']:,} held-out sentences"
    assert accuracy in listener.notes
    assert any("is sure about" in note and "of 580 sentences" in note for note in listener.notes)
    base = load_base(str(tiny_folder("llama")), device="cpu", dtype="float32", kinds=("causal",))
    assert fitted.base == base.info.weights
    hidden = fitted.on(torch.device("cpu"))(torch.randn(3, 32))
    assert hidden.shape == (3, 128)
    assert not hidden.requires_grad  # it is fixed


def test_it_is_made_once(made, material, tiny_folder):
    fitted, file, _ = made
    kept, listener, model = file.read_bytes(), Listener(), str(tiny_folder("llama"))
    again = fit_projection(model, material, out=file, settings=LABELLING, device="cpu", progress=listener)
    assert listener.notes == []
    assert (again.digest, again.base, again.figures) == (fitted.digest, fitted.base, dict(fitted.figures))
    states = torch.randn(5, 32)
    cpu = torch.device("cpu")
    assert torch.equal(again.on(cpu)(states), fitted.on(cpu)(states))
    other = LabellingSettings(scorer="builtin:opinion-words", sentences=600, threshold=0.5)
    with pytest.raises(InputError, match=r"the projection was made with threshold 0\.7, now 0\.5"):
        fit_projection(model, material, out=file, settings=other, device="cpu")
    with pytest.raises(InputError, match="the projection was made with base"):
        fit_projection(str(tiny_folder("gpt2")), material, out=file, settings=LABELLING, device="cpu")
    assert file.read_bytes() == kept


def test_the_same_twice(made, material, tiny_folder, tmp_path):
    file = tmp_path / "again.safetensors"
    fit_projection(str(tiny_folder("llama")), material, out=file, settings=LABELLING, device="cpu")
    assert file.read_bytes() == made[1].read_bytes()


def test_a_damaged_file(material, tiny_folder, tmp_path):
    file = tmp_path / "p.safetensors"
    file.write_bytes(b"no tensors")
    with pytest.raises(StoreError, match=r"p\.safetensors"):
        fit_projection(str(tiny_folder("llama")), material, out=file, settings=LABELLING, device="cpu")


def test_it_belongs_to_one_model_and_one_method(made, material, tiny_folder, tmp_path):
    fitted = made[0]
    options = {"out": tmp_path / "out", "projection": fitted, "device": "cpu"}
    sentiment = MitigationSettings(method="sentiment", steps=2, batch=4)
    with pytest.raises(InputError, match="made of another model; make one of this model"):
        mitigate(str(tiny_folder("gpt2")), material, settings=sentiment, **options)
    for method, strength in (("embedding", 1.0), ("control", 0.0)):
        settings = MitigationSettings(method=method, strength=strength, steps=2, batch=4)
        with pytest.raises(InputError, match=f"the method {method} takes no projection; leave it out"):
            mitigate(str(tiny_folder("llama")), material, settings=settings, **options)


def test_too_few_clear_sentences(tiny_folder, tmp_path):
    corpus, attribute = write_planted(tmp_path, texts=150)
    with pytest.raises(DataError, match="expected at least 100 of each: give a larger corpus, a lower threshold"):
        fit_projection(
            str(tiny_folder("llama")),
            material_of(corpus, attribute),
            out=tmp_path / "p.safetensors",
            settings=LABELLING,
            device="cpu",
        )
    assert not (tmp_path / "p.safetensors").exists()


def test_models_that_cannot_do_it(material, tiny_folder, tmp_path):
    out = tmp_path / "p.safetensors"
    with pytest.raises(ModelError, match="is a masked model; only causal models"):
        fit_projection(str(tiny_folder("bert")), material, out=out, settings=LABELLING, device="cpu")
    unable = LabellingSettings(scorer=str(tiny_folder("gpt2")), sentences=600)
    with pytest.raises(
        ModelError, match="cannot judge sentiment; expected a classifier such as builtin:sentiment"
    ):
        fit_projection(str(tiny_folder("llama")), material, out=out, settings=unable, device="cpu")
    assert not out.exists()


def test_sentences_of_any_content_are_labelled(tmp_path):
    """Also such that mention no value: the projection is about sentiment, not about the attribute."""
    attribute = write_planted(tmp_path)[1]
    corpus = tmp_path / "mixed.txt"
    long = [f"The weather was fine on day {number}, and nothing else was said." for number in range(30)]
    about = [f"The nurse was at the hospital with the actors of film {number}." for number in range(3)]
    templates = [f"{TEMPLATE.format(value=value)} and the weather that day." for value in VALUES]
    corpus.write_text("\n\n".join([*long, *long[:5], "Short.", *about, *templates]))
    material = read_material(corpus, read_attribute(attribute), held_out=10)
    found = material.any_sentences(at_most=1000, seed=0)
    training = {document.text for document in material.split.training.documents}
    assert training & set(templates)  # which the evaluation fills: they are not read
    assert set(found) == {text for text in training if len(text) >= 40} - set(templates)
    assert len(found) == len(set(found)) >= 23  # ten of the 33 and the short one are held out; there are no copies
    assert found != sorted(found)
    some = material.any_sentences(at_most=10, seed=0)
    assert len(some) == 10
    assert some == found[:10]
    assert some != material.any_sentences(at_most=10, seed=1)
