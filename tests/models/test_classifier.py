"""Classifiers: probabilities equal a plain forward pass, and no label's meaning is guessed."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from clinometer.errors import ModelError, RequestError
from clinometer.models.load import load_model
from clinometer.models.local.classifier import classes_of
from clinometer.models.protocols import CanClassify
from clinometer.types import Classify, Embed, ModelSpec
from tests.models.tiny import WINDOW

TEXTS = (
    "It was a great film!",
    "bad",
    "He said that she is a teacher; she said that he is an engineer.",
    "Why are people so kind?",
    "",
    "The story was good, the actors were bad, and the music was fine.",
    "A review.",
    "We were walking while it rained and rained.",
)
LABELS = {
    "bert": ("Negative", "Neutral", "Positive"),
    "roberta": ("POS", "NEG"),
    "gpt2": ("negative", "positive"),
}


@pytest.fixture(scope="module")
def classifier_folder(tiny_folder, tmp_path_factory):
    """Give a function: family, labels, further settings -> folder of a tiny classifier with random weights."""

    def folder(family, labels, **settings):
        made = tmp_path_factory.mktemp(family)
        AutoTokenizer.from_pretrained(tiny_folder(family)).save_pretrained(made)
        config = AutoConfig.from_pretrained(tiny_folder(family))
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: at for at, label in enumerate(labels)}
        for name, value in settings.items():
            setattr(config, name, value)
        torch.manual_seed(0)
        network = AutoModelForSequenceClassification.from_config(config)
        with torch.no_grad():
            for weight in network.parameters():
                weight.add_(torch.randn_like(weight) * 0.3)
        network.save_pretrained(made)
        return made

    return folder


@pytest.fixture(scope="module", params=LABELS)
def case(request, classifier_folder):
    folder = classifier_folder(request.param, LABELS[request.param])
    return folder, [label[:3].lower() for label in LABELS[request.param]]


def values(answer):
    return [answer.negative, answer.neutral, answer.positive]


@torch.no_grad()
def plain(folder, text):
    """Return the probabilities of one text, by nothing but transformers."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    inputs = tokenizer(text, truncation=True, max_length=WINDOW, return_tensors="pt")
    return network(**inputs).logits[0].softmax(dim=0).tolist()


def test_probabilities_equal_a_plain_forward_pass(case):
    folder, labels = case
    texts = [text for text in TEXTS if text or "gpt2" not in folder.name]  # GPT-2 reads nothing in an empty text
    model = load_model(str(folder), device="cpu")
    assert isinstance(model, CanClassify)
    for text, answer in zip(texts, model.classify([Classify(text=text) for text in texts]), strict=True):
        found = dict(zip(labels, plain(folder, text), strict=True))
        wanted = [found.get(name, math.nan) for name in ("neg", "neu", "pos")]
        assert values(answer) == pytest.approx(wanted, abs=1e-5, nan_ok=True)


def test_batch_and_order_do_not_matter(case):
    folder, _ = case
    model = load_model(str(folder), device="cpu")
    batch = [Classify(text=text) for text in TEXTS if text]
    one_by_one = [values(model.classify([one])[0]) for one in batch]
    assert len({round(row[0], 6) for row in one_by_one}) > 3
    for answer, expected in zip(model.classify(batch), one_by_one, strict=True):
        assert values(answer) == pytest.approx(expected, abs=1e-5, nan_ok=True)
    for answer, expected in zip(model.classify(batch[::-1]), one_by_one[::-1], strict=True):
        assert values(answer) == pytest.approx(expected, abs=1e-5, nan_ok=True)


def test_a_long_text_is_cut_at_its_end(classifier_folder):
    folder = classifier_folder("bert", LABELS["bert"])
    model = load_model(str(folder), device="cpu")
    text = "It was great. " * 40
    assert model.cost([Classify(text=text), Classify(text="bad")]) == [WINDOW, 3]
    answer = model.classify([Classify(text=text)])[0]
    assert values(answer) == pytest.approx(plain(folder, text), abs=1e-5)


def test_special_tokens_in_a_text_stay_text(classifier_folder):
    model = load_model(str(classifier_folder("bert", LABELS["bert"])), device="cpu")
    separator = model._tokens.tokenizer.sep_token_id
    assert model._encode([Classify(text="good [SEP] bad")])["input_ids"][0].count(separator) == 1


def test_the_label_map_sums_and_is_stated(classifier_folder):
    folder = classifier_folder("bert", [f"{n} stars" for n in range(1, 6)])
    labels = {"1 stars": "negative", "2 stars": "negative", "3 stars": "neutral", "4 stars": "positive"}
    spec = ModelSpec(name=str(folder), label_map={**labels, "5 stars": "positive"})
    model = load_model(spec, device="cpu")
    p = plain(folder, TEXTS[0])
    wanted = [p[0] + p[1], p[2], p[3] + p[4]]
    assert values(model.classify([Classify(text=TEXTS[0])])[0]) == pytest.approx(wanted, abs=1e-5)
    assert model.info.settings["label_map"] == (
        "1 stars=negative, 2 stars=negative, 3 stars=neutral, 4 stars=positive, 5 stars=positive"
    )


def test_names_that_leave_no_doubt():
    assert classes_of(["NEG", "NEU", "POS"], {}, model="m") == ["negative", "neutral", "positive"]
    assert classes_of(["POSITIVE", "NEGATIVE"], {}, model="m") == ["positive", "negative"]


@pytest.mark.parametrize(
    ("labels", "label_map", "message"),
    [
        (["LABEL_0", "LABEL_1"], {}, r"LABEL_0, LABEL_1, .* --label-map 'm:LABEL_0=negative,LABEL_1=positive'"),
        (["negative", "other", "positive"], {}, "negative, other, positive, and what they mean is not known"),
        (["positive", "neutral"], {}, "not known"),
        (["joy"], {}, "not known"),
        (["LABEL_0", "LABEL_1"], {"LABEL_O": "negative"}, "names 'LABEL_O'; did you mean 'LABEL_[01]'"),
        (["a", "b"], {"a": "negativ", "b": "positive"}, "maps 'a' to 'negativ'; did you mean 'negative'"),
        (["a", "b"], {"a": "negative"}, "leaves out b; map every label"),
        (["a", "b"], {"a": "negative", "b": "negative"}, "maps every label to one class"),
    ],
)
def test_a_meaning_is_never_guessed(labels, label_map, message):
    with pytest.raises(ModelError, match=message):
        classes_of(labels, label_map, model="m")


def test_labels_that_do_not_exclude_each_other(classifier_folder):
    folder = classifier_folder("bert", LABELS["bert"], problem_type="multi_label_classification")
    with pytest.raises(ModelError, match="judges each label on its own"):
        load_model(str(folder), device="cpu")


def test_another_request(classifier_folder):
    model = load_model(str(classifier_folder("bert", LABELS["bert"])), device="cpu")
    with pytest.raises(RequestError, match="not Embed"):
        model.cost([Embed(text="bad")])
