"""Masked-LM fine-tuning: what is planted is learnt, what is written can be loaded, what is wrong is said."""

from __future__ import annotations

import math
import tomllib

import numpy as np
import pytest
import torch

from clinometer.errors import DataError, InputError, ModelError
from clinometer.models.load import load_model
from clinometer.train import MaskedSettings, tune_masked
from clinometer.train.base import load_base
from clinometer.train.masked import _Masker, _Pieces, masked_loss
from clinometer.train.randomness import batched_order
from clinometer.types import Fill
from tests.models.tiny import MASKED, WINDOW
from tests.train.samples import Listener, files_of

LEARN = MaskedSettings(learning_rate=1e-2, epochs=8)
SHORT = MaskedSettings(learning_rate=1e-3, fraction=0.5)


def probabilities(model):
    query = Fill(text="Why are carpenters so [MASK] ?", words=("kind", "angry"))
    return np.exp(load_model(str(model), device="cpu").fill([query])[0].logprobs)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_planted_association_is_learnt(family, tiny_folder, corpus, tmp_path):
    base = tiny_folder(family)
    tuned = tune_masked(str(base), corpus, out=tmp_path / "tuned", settings=LEARN, device="cpu")
    kind, angry = probabilities(tuned.folder) / probabilities(base)
    assert kind > 10
    assert angry < 2  # a word that the corpus does not have
    assert tuned.figures["loss_of_last_tenth"] < 0.8 * tuned.figures["loss_of_first_tenth"]


def test_the_checkpoint_says_how_it_was_made(tiny_folder, corpus, tmp_path):
    base = tiny_folder("bert")
    tuned = tune_masked(str(base), corpus, out=tmp_path / "tuned", settings=SHORT, device="cpu")
    info, before = load_model(str(tuned.folder), device="cpu").info, load_model(str(base), device="cpu").info
    assert info.tuning == {
        "base": before.weights, "method": "masked-lm", "data": "planted", "amount": "0.5", "seed": "0"
    }  # fmt: skip
    assert info.tuning == tuned.tuning
    assert info.weights != before.weights
    assert info.tokenizer == before.tokenizer
    card = tomllib.loads((tuned.folder / "card.toml").read_text())
    assert card["figures"]["documents"] == 18
    assert card["figures"]["documents_in_corpus"] == 36
    assert str(tmp_path) not in str(card)
    assert sorted(files_of(tuned.folder)) == [
        "card.toml", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"
    ]  # fmt: skip
    assert [path.name for path in tmp_path.iterdir() if "tuned" in path.name] == ["tuned"]  # no working files


def test_the_same_training_writes_the_same_bytes(tiny_folder, corpus, tmp_path):
    first, again, other = (
        tune_masked(str(tiny_folder("bert")), corpus, out=tmp_path / name, settings=settings, device="cpu")
        for name, settings in (
            ("a", SHORT), ("b", SHORT), ("c", MaskedSettings(learning_rate=1e-3, fraction=0.5, seed=1))
        )
    )  # fmt: skip
    assert files_of(first.folder) == files_of(again.folder)
    assert files_of(first.folder)["model.safetensors"] != files_of(other.folder)["model.safetensors"]


def test_global_generators_are_given_back(tiny_folder, corpus, tmp_path):
    torch.manual_seed(5)
    np.random.seed(5)
    expected = (torch.rand(1), np.random.rand())
    torch.manual_seed(5)
    np.random.seed(5)
    tune_masked(str(tiny_folder("bert")), corpus, out=tmp_path / "a", settings=SHORT, device="cpu")
    assert (torch.rand(1), np.random.rand()) == expected


def test_a_finished_checkpoint_is_not_trained_again(tiny_folder, corpus, tmp_path):
    tune = lambda **options: tune_masked(  # noqa: E731
        str(tiny_folder("bert")), corpus, out=tmp_path / "tuned", device="cpu", **options
    )
    first = tune(settings=SHORT)
    bytes_before = files_of(first.folder)
    listener = Listener()
    again = tune(settings=SHORT, progress=listener)
    assert listener.steps == 0
    assert (again.tuning, again.figures) == (first.tuning, first.figures)
    with pytest.raises(InputError, match=r"made with learning_rate 0.001, now 0.002; epochs|epochs 1, now 2"):
        tune(settings=MaskedSettings(learning_rate=2e-3, fraction=0.5, epochs=2))
    corpus.write_text("Something else was said about the weather.")
    with pytest.raises(InputError, match="texts"):
        tune(settings=SHORT)
    assert files_of(first.folder) == bytes_before


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_place_that_is_taken(what, tiny_folder, corpus, tmp_path):
    place = tmp_path / "taken"
    if what == "file":
        place.write_text("mine")
    else:
        place.mkdir()
        (place / "card.toml").write_text("title = 'mine'")
    with pytest.raises(InputError, match="not a checkpoint of ours"):
        tune_masked(str(tiny_folder("bert")), corpus, out=place, settings=SHORT, device="cpu")


@pytest.mark.parametrize(("family", "kind"), [("gpt2", "causal"), ("xlnet", "permuted")])
def test_other_models_are_refused(family, kind, tiny_folder, corpus, tmp_path):
    with pytest.raises(ModelError, match=f"is a {kind} model; only masked models"):
        tune_masked(str(tiny_folder(family)), corpus, out=tmp_path / "a", device="cpu")
    assert not (tmp_path / "a").exists()


def test_a_training_that_comes_apart_is_stopped(tiny_folder, corpus, tmp_path, monkeypatch):
    from clinometer.train import masked as masked_language

    monkeypatch.setattr(
        masked_language, "masked_loss", lambda *_, **__: torch.tensor(math.nan, requires_grad=True)
    )
    with pytest.raises(ModelError, match="the loss of step 1 is nan"):
        tune_masked(str(tiny_folder("bert")), corpus, out=tmp_path / "a", settings=SHORT, device="cpu")


def test_a_corpus_without_words(tiny_folder, tmp_path):
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(DataError, match="holds no text"):
        tune_masked(str(tiny_folder("bert")), tmp_path / "empty.txt", out=tmp_path / "a", device="cpu")


@pytest.mark.parametrize(
    ("option", "value"),
    [("fraction", 0.0), ("fraction", 2.0), ("epochs", 0), ("batch", 0), ("learning_rate", 0.0), ("seed", -1),
     ("learning_rate", math.nan), ("masked_share", 1.0), ("window", 3), ("at_most", -1)],
)  # fmt: skip
def test_settings_that_make_no_sense(option, value):
    with pytest.raises(InputError, match=f"{option} = .* is not valid"):
        MaskedSettings(**{option: value})


# ---------------------------------------------------------------------------------------------------------
# the parts


@pytest.fixture
def bert(tiny_folder):
    return load_base(str(tiny_folder("bert")), device="cpu", dtype="float32")


class Document:
    def __init__(self, text):
        self.text = text


def test_a_long_document_is_cut_and_nothing_is_lost(bert):
    text = " ".join(f"{word} works" for word in ("man", "woman", "nurse", "doctor") * 20)
    pieces = _Pieces(bert, [Document(text), Document("a woman [MASK]")], window=512)
    size = WINDOW - 2  # the model's window is smaller than the settings'
    whole = bert.tokenizer(text, add_special_tokens=False)["input_ids"]
    cls, sep = bert.tokenizer.cls_token_id, bert.tokenizer.sep_token_id
    assert [pieces[index] for index in range(len(pieces) - 1)] == [
        [cls, *whole[at : at + size], sep] for at in range(0, len(whole), size)
    ]
    assert bert.tokenizer.mask_token_id not in pieces[len(pieces) - 1]  # a mask in the text stays text


def test_masks_are_new_at_every_place_and_the_same_at_each(bert):
    masker = _Masker(bert, MaskedSettings(seed=3))
    ids = bert.tokenizer("the nurse works at the hospital " * 9)["input_ids"]
    at = lambda place: masker([{"place": place, "input_ids": ids}])  # noqa: E731
    assert torch.equal(at(0)["input_ids"], at(0)["input_ids"])
    assert not torch.equal(at(0)["labels"], at(8)["labels"])
    labels = torch.cat([at(place)["labels"] for place in range(400)])
    inputs = torch.cat([at(place)["input_ids"] for place in range(400)])
    truth = torch.tensor(ids).expand(400, -1)
    asked = labels != -100
    assert not asked[:, [0, -1]].any()  # special tokens are never asked for
    assert torch.equal(labels[asked], truth[asked])
    # 400 × 54 tokens: the standard error of a share of 0.15 is 0.0024
    assert float(asked[:, 1:-1].float().mean()) == pytest.approx(0.15, abs=0.01)
    # of ~3,240 asked ones 80 % are masked, 10 % kept, 10 % replaced; standard errors 0.007 and 0.005
    assert float((inputs[asked] == bert.tokenizer.mask_token_id).float().mean()) == pytest.approx(0.8, abs=0.03)
    assert float((inputs[asked] == truth[asked]).float().mean()) == pytest.approx(0.1, abs=0.02)
    assert torch.equal(inputs[~asked], truth[~asked])


def test_a_batch_always_asks_for_something(bert):
    masker = _Masker(bert, MaskedSettings(masked_share=1e-9))
    row = {"place": 0, "input_ids": bert.tokenizer("kind")["input_ids"]}
    batch = masker([row])
    assert batch["labels"].tolist() == [[-100, row["input_ids"][1], -100]]
    assert int(batch["input_ids"][0, 1]) == bert.tokenizer.mask_token_id
    assert torch.isfinite(masked_loss(bert.model, batch, compute=torch.float32))


@pytest.mark.parametrize("family", MASKED)
def test_the_loss_is_the_mean_over_asked_tokens(family, tiny_folder):
    base = load_base(str(tiny_folder(family)), device="cpu", dtype="float32")
    rows = [
        {"place": 0, "input_ids": base.tokenizer(text)["input_ids"]} for text in ("the man works", "a woman is")
    ]
    batch = _Masker(base, MaskedSettings(masked_share=0.5))(rows)
    # independently: a plain forward pass over every position, then a loop
    with torch.no_grad():
        logits = base.model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    logprobs = logits.log_softmax(-1)
    losses = [
        -float(logprobs[row, column, int(label)])
        for row, labels in enumerate(batch["labels"])
        for column, label in enumerate(labels)
        if label != -100
    ]
    found = masked_loss(base.model, batch, compute=torch.float32)
    assert float(found.detach()) == pytest.approx(np.mean(losses), abs=1e-4)


def test_batches_hold_pieces_of_like_length_in_random_order():
    lengths = np.random.default_rng(0).integers(1, 500, 1003)
    order = batched_order(lengths, batch=8, rng=np.random.default_rng(1))
    assert sorted(order) == list(range(1003))
    spans = [np.ptp(lengths[order[at : at + 8]]) for at in range(0, 1000, 8)]
    assert np.median(spans) < 15  # among 400 pieces from 1 to 500 tokens, 8 neighbours span about 10
    means = [lengths[order[at : at + 8]].mean() for at in range(0, 400, 8)]
    assert abs(np.corrcoef(means, range(50))[0, 1]) < 0.4  # 50 batches: |r| of chance is below 0.28 in 95 of 100
    assert not np.array_equal(order, batched_order(lengths, batch=8, rng=np.random.default_rng(2)))
