"""Methods without a fairness loss: what is read of swapped text and of counterexamples, and that it teaches."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from clinometer.data import load_attribute, load_statements, read_attribute
from clinometer.errors import InputError
from clinometer.train import MitigationSettings, mitigate, read_material
from clinometer.train import pairs as pairs_module
from clinometer.train.base import load_base
from clinometer.train.checked import CheckedPairs
from clinometer.train.loop import IGNORED
from clinometer.train.pairs import collate
from tests.train.mitigation_samples import ATTRIBUTE, documents_with_ordinary_text, without_dropout
from tests.train.samples import Listener, Stop, files_of

SWAPPED = MitigationSettings(method="swapped", strength=0.0, steps=6, batch=4, learning_rate=1e-3, seed=7)
COUNTER = replace(SWAPPED, method="counterexamples")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(pairs_module, "_BLOCK", 64)


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    (folder / "documents.txt").write_text(documents_with_ordinary_text())
    (folder / "job.toml").write_text(ATTRIBUTE)
    return read_material(folder / "documents.txt", read_attribute(folder / "job.toml"), held_out=10)


@pytest.fixture(scope="module")
def about_occupations(tmp_path_factory):
    file = tmp_path_factory.mktemp("occupations") / "documents.txt"
    lines = [f"The teacher said that the weather was bad on day number {day}." for day in range(40)]
    lines += [f"The people said that the weather was bad on day number {day}." for day in range(40)]
    file.write_text("\n".join(lines))
    return read_material(file, load_attribute("occupation"), held_out=10)


@pytest.fixture(scope="module")
def base_of(tiny_folder):
    return lambda family: load_base(
        str(tiny_folder(family)), device="cpu", dtype="float32", kinds=("causal", "masked")
    )


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_causal_model_reads_both_texts_whole(family, material, base_of):
    base = base_of(family)
    pairs = CheckedPairs(material).of(base, SWAPPED).pairs
    for place in range(20):
        pair = pairs.row_at(place)["pair"]
        text, other = pairs.texts_at(place)
        start = base.tokenizer(text)["input_ids"]
        assert pair.ids == start
        assert pair.other == base.tokenizer(other)["input_ids"]
        assert other.endswith(text[-10:])  # and not only up to the value
        assert pair.other_labels == [IGNORED, *pair.other[1:]]
        assert pair.labels == [IGNORED, *pair.ids[1:]]


def test_a_masked_model_is_asked_for_the_same_words_in_both(material, base_of):
    base = base_of("bert")
    pairs = CheckedPairs(material).of(base, replace(SWAPPED, masked_share=0.4)).pairs
    for place in range(40):
        pair = pairs.row_at(place)["pair"]
        asked, other_asked = (
            [label for label in labels if label != IGNORED] for labels in (pair.labels, pair.other_labels)
        )
        assert asked
        assert len(pair.other_labels) == len(pair.other)
        assert other_asked == asked  # no word but the value differs here, and that one is never asked for
        assert all(pair.other_labels[at] == IGNORED for at in pair.other_at)


def test_both_texts_have_half_the_weight_and_ordinary_text_its_own(material, base_of):
    base = base_of("bert")
    pairs = CheckedPairs(material).of(base, replace(SWAPPED, ordinary=0.5)).pairs
    batch = collate([pairs.row_at(place) for place in range(4)], pad_id=base.pad_id)
    assert len(batch["input_ids"]) == len(batch["labels"]) == 6
    assert sorted(batch["weights"].tolist()) == [0.5, 0.5, 0.5, 0.5, 1.0, 1.0]
    for text in range(4):  # the counterfactual of a text comes in the order of the texts
        assert (float(batch["weights"][text]) == 0.5) == bool(pairs.unit_at(text).values)


def test_a_masked_model_is_asked_for_the_gendered_words_of_a_counterexample_and_no_others(
    about_occupations, base_of
):
    base = base_of("bert")
    pairs = CheckedPairs(about_occupations).of(base, replace(COUNTER, ordinary=0.25)).pairs
    known = {each.text: each for each in load_statements()}
    statements = 0
    for place in range(120):
        unit, pair = pairs.unit_at(place), pairs.row_at(place)["pair"]
        asked = [at for at, label in enumerate(pair.labels) if label != IGNORED]
        assert asked
        if unit.text not in known:
            continue
        statements += 1
        assert pair.other == []
        hidden = {pair.ids[at] for at in asked}
        assert hidden == {base.tokenizer.mask_token_id}  # also its other gendered words: one would tell the rest
        words = [unit.text[start:end].lower() for start, end in known[unit.text].gendered]
        told = base.tokenizer.decode([pair.labels[at] for at in asked]).replace(" ", "")
        assert told == "".join(words)
    assert statements == 90


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_counterexamples_teach_the_rarer_gender(family, about_occupations, tiny_folder, tmp_path, monkeypatch):
    """In other words than those that were trained on; of two occupations, because the model is tiny."""
    some = [each for each in load_statements() if "carpenter" in each.text or "nurse" in each.text]
    assert len(some) == 24
    monkeypatch.setattr("clinometer.train.units.load_statements", lambda: some)
    settings = replace(COUNTER, steps=100, batch=16, learning_rate=5e-3)
    model = without_dropout(tiny_folder(family), tmp_path / family)
    made = mitigate(str(model), about_occupations, out=tmp_path / "out", settings=settings, device="cpu")
    before, after = (leans_to_women(folder) for folder in (model, made.folder))
    assert after["carpenter"] - after["nurse"] > before["carpenter"] - before["nurse"] + 0.1
    assert (made.figures["statements"], made.figures["statements_read"]) == (24, 1600)
    assert "fairness_of_last_tenth" not in made.figures
    assert made.figures["language_of_last_tenth"] < made.figures["language_of_first_tenth"]


@torch.no_grad()
def leans_to_women(folder):
    """p(she) − p(he) where the pronoun of an occupation is wanted."""
    base = load_base(str(folder), device="cpu", dtype="float32", kinds=("causal", "masked"))
    found = {}
    for job in ("carpenter", "nurse"):
        masked = base.kind == "masked"
        text = f"The {job} said that" + (f" {base.tokenizer.mask_token} was kind." if masked else "")
        ids = base.tokenizer(text, return_tensors="pt")["input_ids"]
        at = ids[0].tolist().index(base.tokenizer.mask_token_id) if masked else -1
        p = base.model(input_ids=ids).logits[0, at].softmax(-1)
        she, he = (
            base.tokenizer(f"that {word}", add_special_tokens=False)["input_ids"][-1] for word in ("she", "he")
        )
        found[job] = float(p[she] - p[he])
    return found


def test_counterexamples_are_about_occupations(material, tiny_folder, tmp_path):
    with pytest.raises(
        InputError, match=r"are about occupations, and the attribute is 'job'; give --attribute occ"
    ):
        mitigate(str(tiny_folder("bert")), material, out=tmp_path / "out", settings=COUNTER, device="cpu")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("lora", [0, 4])
def test_counterexamples_resume_to_the_same_bytes_unless_they_have_changed(
    lora, about_occupations, tiny_folder, tmp_path, monkeypatch
):
    settings = replace(COUNTER, lora=lora, ordinary=0.5)
    options = {"settings": settings, "device": "cpu", "save_seconds": 0.0}
    model = str(tiny_folder("bert"))
    peaceful = mitigate(model, about_occupations, out=tmp_path / "peaceful", **options)
    with pytest.raises(Stop):
        mitigate(model, about_occupations, out=tmp_path / "out", **options, progress=Listener(stop_after=3))
    with monkeypatch.context() as changed:
        changed.setattr("clinometer.train.mitigation.load_statements", lambda: load_statements()[1:])
        with pytest.raises(InputError, match=r"training was begun with statements .*, now"):
            mitigate(model, about_occupations, out=tmp_path / "out", **options)
    mitigate(model, about_occupations, out=tmp_path / "out", **options)
    assert files_of(tmp_path / "out") == files_of(peaceful.folder)
