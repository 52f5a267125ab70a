"""The second step: the vectors it learns from, its file, and what becomes of a second call."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch

from clinometer.data import read_attribute
from clinometer.engine.progress import Silent
from clinometer.errors import DataError, InputError, ModelError, StoreError
from clinometer.models.fake import FakeModel
from clinometer.models.load import load_model
from clinometer.train import LabellingSettings, MitigationSettings, fit_projection, mitigate, read_material
from clinometer.train import sentiment as labelling
from clinometer.train.base import load_base
from clinometer.train.regularisers import layers_of
from clinometer.train.sentiment import Labelled, label_sentences, sentence_vectors, sentiment_score, split_labelled
from clinometer.types import ClassifyAnswer
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
    found = sentence_vectors(base, texts, Silent())
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


WORDS = {"good": 0.95, "fair": 0.84, "mixed": 0.5, "poor": 0.16, "bad": 0.05}


class Batches(Silent):
    """Hears how large the batches are."""

    def __init__(self):
        self.total, self.sizes, self.ended = 0, [], False

    def begin(self, label, *, total, done, unit="step"):
        self.total = total

    def advance(self, count):
        self.sizes.append(count)

    def end(self):
        self.ended = True


def scorer(answer=None):
    """Positive by the sentence's first word; a binary classifier, so neutral is NaN."""

    def by_word(request):
        positive = WORDS[request.text.split()[0]]
        return ClassifyAnswer(negative=1 - positive, neutral=math.nan, positive=positive)

    return FakeModel(answer=answer or by_word, name="judge", kind="classifier", capabilities=("classify",))


def test_only_scores_further_from_zero_than_the_threshold_count():
    # scores 2p − 1: 0.9, 0.68, 0, −0.68, −0.9
    sentences = [f"{word} day" for word in WORDS]
    found = label_sentences(sentences, scorer())
    assert (found.texts, found.labels) == (("good day", "bad day"), (1, 0))
    assert (found.asked, found.positive, found.negative) == (5, 1, 1)
    assert (found.scorer, found.threshold) == ("judge", 0.7)
    lower = label_sentences(sentences, scorer(), threshold=0.6)
    assert (lower.texts, lower.labels) == (("good day", "fair day", "poor day", "bad day"), (1, 1, 0, 0))


def test_neutral_mass_lowers_the_score():
    # (0.8 − 0.1)/1 = 0.7 is not more than 0.7; the masses need not sum to 1: (0.4 − 0.04)/0.5 = 0.72
    assert sentiment_score(ClassifyAnswer(negative=0.1, neutral=0.1, positive=0.8)) == pytest.approx(0.7)
    assert sentiment_score(ClassifyAnswer(negative=0.04, neutral=0.06, positive=0.4)) == pytest.approx(0.72)
    assert math.isnan(sentiment_score(ClassifyAnswer(negative=math.nan, neutral=math.nan, positive=math.nan)))


def test_an_answer_that_is_no_number_is_left_out_and_counted():
    def answer(request):
        return ClassifyAnswer(negative=math.nan, neutral=math.nan, positive=math.nan)

    found = label_sentences(["good day"], scorer(answer))
    assert (found.asked, found.texts) == (1, ())


def test_order_is_kept_whatever_the_batches(monkeypatch):
    sentences = [f"{word} {'day ' * (number % 7)}{number}" for number in range(40) for word in WORDS]
    reference = label_sentences(sentences, scorer())
    expected = [text for text in sentences if text.startswith(("good", "bad"))]
    assert list(reference.texts) == expected
    assert list(reference.labels) == [int(text.startswith("good")) for text in expected]
    monkeypatch.setattr(labelling, "_WINDOW", 17)
    heard = Batches()
    assert label_sentences(sentences, scorer(), budget=30, progress=heard) == reference
    assert heard.total == sum(heard.sizes) == 200
    assert heard.ended


def test_batches_are_longest_first_and_within_the_budget():
    costs = [3, 8, 3, 4, 20]
    # 20 alone although over the budget; 8 alone; 4 + 3 (2 × 4 ≤ 9); 3
    assert list(labelling._batches(costs, budget=9)) == [[4], [1], [3, 0], [2]]


def test_a_repeated_sentence_is_asked_once():
    found = label_sentences(["good day", "bad day", "good  Day", "good day"], scorer())
    assert found.texts == ("good day", "bad day")
    assert found.asked == 2


def test_the_opinion_word_scorer_labels_sentences():
    sentences = [
        "A wonderful, happy day.",
        "The table is by the door.",
        "A terrible and sad war.",
        "Good and bad.",
    ]
    found = label_sentences(sentences, load_model("builtin:opinion-words"))
    assert found.texts == ("A wonderful, happy day.", "A terrible and sad war.")
    assert found.labels == (1, 0)
    assert found.asked - len(found.texts) == 2


def test_what_cannot_classify_is_refused():
    with pytest.raises(ModelError, match="'fake' cannot judge sentiment; expected a classifier"):
        label_sentences(["a"], FakeModel(answer=lambda request: None))
    with pytest.raises(InputError, match=r"threshold = 1\.0 is not valid"):
        label_sentences(["a"], scorer(), threshold=1.0)


def labelled(positive, negative):
    texts = [f"good {number}" for number in range(positive)] + [f"bad {number}" for number in range(negative)]
    return Labelled(
        texts=tuple(texts), labels=(1,) * positive + (0,) * negative, asked=1000, scorer="judge", threshold=0.7
    )


def test_parts_are_balanced_and_share_no_text():
    split = split_labelled(labelled(300, 900), seed=0)
    # 300 of each class; a tenth is 30 of each
    sizes = {"training": 240, "validation": 30, "test": 30}
    for name, each in sizes.items():
        part = getattr(split, name)
        assert Counter(part.labels) == {0: each, 1: each}
        assert [int(text.startswith("good")) for text in part.texts] == list(part.labels)
    texts = [text for name in sizes for text in getattr(split, name).texts]
    assert len(set(texts)) == len(texts) == 600


def test_small_parts_have_the_least_number():
    split = split_labelled(labelled(100, 120), seed=0)
    assert [len(part.texts) for part in (split.validation, split.test, split.training)] == [50, 50, 100]


def test_the_seed_decides_the_split():
    one, again, other = (split_labelled(labelled(200, 400), seed=seed) for seed in (0, 0, 1))
    assert one == again
    assert set(one.test.texts) != set(other.test.texts)
    kept = {text for part in (one.training, one.validation, one.test) for text in part.texts}
    # drawn from the whole of the larger class, not its beginning
    assert any(int(text.split()[1]) >= 300 for text in kept if text.startswith("bad"))


def test_too_few_of_a_class_is_an_error_that_says_what_to_do():
    with pytest.raises(DataError, match="judge calls 99 of 1,000 sentences positive and 0 negative") as caught:
        split_labelled(labelled(99, 0), seed=0)
    for part in ("0.7", "at least 100 of each", "larger corpus", "lower threshold", "another scorer"):
        assert part in str(caught.value)
