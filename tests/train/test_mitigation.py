"""Mitigation: a planted lean is removed at little cost, and not by the control; what was done is written down."""

from __future__ import annotations

import math
import os
import tomllib
from dataclasses import replace
from functools import cache

import pytest
import torch
from safetensors.torch import load_file

from clinometer import front
from clinometer.data import SensitiveSentence, load_attribute, read_attribute
from clinometer.errors import DataError, InputError, ModelError, SpecError
from clinometer.models.files import weights_checksum
from clinometer.models.load import load_model
from clinometer.train import (
    CausalSettings,
    LabellingSettings,
    MitigationSettings,
    base,
    fit_projection,
    mitigate,
    mitigate_all,
    mitigation,
    read_material,
    train_causal,
    variants,
)
from clinometer.train import pairs as pairs_module
from clinometer.train.checkpoints import WorkFolder
from clinometer.workflows import CheckpointAudit
from tests.train.mitigation_samples import (
    PREFIXES,
    TEMPLATE,
    VALUES,
    lean,
    leans,
    material_of,
    mean_loss,
    mitigate_aloud,
    train_few_steps,
    without_dropout,
    write_planted,
)
from tests.train.samples import Listener, Stop, files_of, train_and_kill

FEW = MitigationSettings(steps=6, batch=4, learning_rate=1e-3, window=64, seed=7)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Tokenise as few rows ahead as a test needs."""
    monkeypatch.setattr(pairs_module, "_BLOCK", 128)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A corpus of 150 texts and its attribute."""
    return write_planted(tmp_path_factory.mktemp("planted"), texts=150)


@pytest.fixture(scope="module")
def planted(tmp_path_factory, tiny_folder):
    """A tiny model that has learnt to praise some jobs and to blame others, and what it learnt from."""
    folder = tmp_path_factory.mktemp("learnt")
    corpus, attribute = write_planted(folder)
    settings = CausalSettings(from_scratch=True, learning_rate=1e-2, batch=16, window=64, steps=180, held_out=100)
    learnt = train_causal(
        str(tiny_folder("llama")), corpus, out=folder / "learnt", settings=settings, device="cpu"
    )
    material = read_material(corpus, read_attribute(attribute), held_out=100)
    return learnt.folder, material, cache(lambda model: mean_loss(model, held_out_texts(material)))


def held_out_texts(material):
    return [document.text for document in material.split.held_out]


def mitigated(planted, out, method, strength, *, projection=None, dtype="float32"):
    model, material, _ = planted
    settings = MitigationSettings(
        method=method, strength=strength, steps=60, batch=16, learning_rate=2e-3, window=64, dtype=dtype
    )
    return mitigate(str(model), material, out=out, settings=settings, projection=projection, device="cpu").folder


@pytest.fixture(scope="module")
def control(planted, tmp_path_factory):
    return mitigated(planted, tmp_path_factory.mktemp("control") / "control", "control", 0.0)


def test_the_lean_is_planted(planted):
    model, material, _ = planted
    text = " ".join(sentence.text for sentence in material.found.sentences)
    assert not any(f"{prefix} {value}" in text for prefix in PREFIXES for value in VALUES)
    assert len(material.found.sentences) > 1000
    assert lean(model) > 1.5  # of at most 2


def test_embedding_regularisation_removes_a_planted_lean(planted, control, tmp_path):
    model, _, loss = planted
    folder = mitigated(planted, tmp_path / "out", "embedding", 10.0)
    before, after = lean(model), lean(folder)
    assert abs(after) < before / 2
    assert all(abs(each) < 0.5 * before / 2 for each in leans(folder).values())
    assert loss(folder) < 1.05 * loss(model)
    assert lean(control) - after > before / 2  # and it is not the training that did it


def test_training_on_swapped_values_removes_half_of_a_planted_lean(planted, control, tmp_path):
    model, _, loss = planted
    folder = mitigated(planted, tmp_path / "out", "swapped", 0.0)
    before, after = lean(model), lean(folder)
    # what was written stays half of what is read; in the other half a value follows from nothing, or against it:
    # drawn from the five others, three of which lean the other way, so 1/2 − 1/2 · (3 − 2)/5 = 0.4 would be left
    assert 0.2 * before < after < 0.6 * before
    assert loss(folder) < 1.15 * loss(model)
    assert lean(control) - after > 0.3 * before
    card = tomllib.loads((folder / "card.toml").read_text())
    assert card["title"].endswith("job mitigated by training on text with values swapped")
    assert "amount" not in card["tuning"]  # there is no λ


def test_mixed_precision_removes_a_planted_lean_and_keeps_whole_weights(planted, tmp_path):
    model, _, loss = planted
    folder = mitigated(planted, tmp_path / "out", "embedding", 10.0, dtype="bfloat16")
    assert abs(lean(folder)) < lean(model) / 2
    assert loss(folder) < 1.05 * loss(model)
    weights = load_file(folder / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float32}
    assert any(bool((weight != weight.bfloat16()).any()) for weight in weights.values())
    assert tomllib.loads((folder / "card.toml").read_text())["settings"]["dtype"] == "bfloat16"


def test_the_control_keeps_the_lean(planted, control):
    model, _, loss = planted
    assert abs(lean(control) - lean(model)) < lean(model) / 4
    assert loss(control) < 1.05 * loss(model)


def test_sentiment_regularisation_removes_a_planted_lean(planted, control, tmp_path):
    model, material, loss = planted
    projection = fit_projection(
        str(model),
        material,
        out=str(tmp_path / "projection.safetensors"),
        settings=LabellingSettings(scorer="builtin:opinion-words", sentences=1200),
        device="cpu",
    )
    assert projection.figures["accuracy"] > 0.9
    folder = mitigated(planted, tmp_path / "out", "sentiment", 1000.0, projection=projection)
    before, after = lean(model), lean(folder)
    assert abs(after) < before / 2
    assert loss(folder) < 1.05 * loss(model)
    assert lean(control) - after > before / 2
    card = tomllib.loads((folder / "card.toml").read_text())
    assert card["figures"]["projection"] == projection.figures
    assert card["settings"]["projection"] == projection.digest
    assert card["tuning"]["method"] == "sentiment"


@pytest.fixture(scope="module")
def peaceful(files, tiny_folder, tmp_path_factory):
    """Checkpoints of trainings that were never disturbed, nor saved in between."""
    folder = tmp_path_factory.mktemp("peaceful")

    @cache
    def train(family, accumulate, lora):
        out = folder / f"{family}-{accumulate}-{lora}"
        return train_few_steps(tiny_folder(family), *files, out, accumulate, lora, save_seconds=1e9).folder

    return train


@pytest.mark.timeout(120)
@pytest.mark.xdist_group("killed")
def test_killed_it_ends_in_the_same_bytes(files, tiny_folder, peaceful, tmp_path):
    out, model = tmp_path / "out", tiny_folder("gpt2")  # which has dropout
    train_and_kill(mitigate_aloud, model, *files, out, 2, 0)
    assert not out.exists()
    listener = Listener()
    train_few_steps(model, *files, out, 2, 0, progress=listener)
    assert 2 <= listener.done <= 4
    assert files_of(out) == files_of(peaceful("gpt2", 2, 0))
    assert not WorkFolder(out).path.exists()


@pytest.mark.parametrize(("family", "accumulate", "lora"), [("gpt2", 2, 0), ("gpt2", 1, 4), ("bert", 1, 0)])
def test_stopped_again_and_again_it_ends_in_the_same_bytes(
    family, accumulate, lora, files, tiny_folder, peaceful, tmp_path
):
    out, model = tmp_path / "out", tiny_folder(family)
    for _ in range(2):
        with pytest.raises(Stop):
            train_few_steps(model, *files, out, accumulate, lora, progress=Listener(stop_after=3))
    listener = Listener()
    train_few_steps(model, *files, out, accumulate, lora, progress=listener)
    assert listener.done == 4  # the third step of each turn was not saved yet when it stopped
    assert files_of(out) == files_of(peaceful(family, accumulate, lora))


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_a_step_in_parts_is_the_same_step(family, files, tiny_folder, tmp_path):
    weights = []
    for accumulate in (1, 4):
        settings = replace(FEW, steps=3, accumulate=accumulate)
        made = mitigate(
            str(without_dropout(tiny_folder(family), tmp_path / family)),
            material_of(*files),
            out=tmp_path / str(accumulate),
            settings=settings,
            device="cpu",
        )
        weights.append((load_file(made.folder / "model.safetensors"), made.figures["language_of_first_tenth"]))
    (whole, loss), (parts, loss_of_parts) = weights
    for name in whole:
        # a bias of keys changes no attention: its gradient is 0 but for rounding, which Adam makes a step of
        if not name.endswith("key.bias"):
            torch.testing.assert_close(parts[name], whole[name], rtol=0, atol=1e-5)
    assert loss_of_parts == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_low_rank_training(family, files, tiny_folder, peaceful):
    base = tiny_folder(family)
    folder = peaceful(family, 1, 4)
    before, after = load_file(base / "model.safetensors"), load_file(folder / "model.safetensors")
    assert before.keys() == after.keys()  # no adapter is left in it
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    # matrices of linear layers, and of these a change of rank 4 at most; no embedding, no norm, no bias
    assert changed
    for name in changed:
        difference = (after[name] - before[name]).double()
        assert difference.ndim == 2
        assert "norm" not in name.lower()
        assert "embed" not in name
        assert "wte" not in name
        singular = torch.linalg.svdvals(difference)
        assert singular[4] < 1e-4 * singular[0]
    card = tomllib.loads((folder / "card.toml").read_text())
    assert int(card["tuning"]["changed"]) <= sum(before[name].numel() for name in changed)
    assert card["settings"]["lora"] == 4
    ours, theirs = (load_model(str(place), device="cpu").info for place in (folder, base))
    assert (ours.tokenizer, ours.parameters, ours.family) == (theirs.tokenizer, theirs.parameters, theirs.family)
    assert ours.weights != theirs.weights


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_the_checkpoint_says_how_it_was_made(family, files, tiny_folder, tmp_path):
    base = tiny_folder(family)
    made = mitigate(str(base), material_of(*files), out=tmp_path / "out", settings=FEW, device="cpu")
    info, before = (load_model(str(folder), device="cpu").info for folder in (made.folder, base))
    weights = {name: load_file(folder / "model.safetensors") for name, folder in (("a", base), ("b", made.folder))}
    changed = sum(int((weights["a"][name] != weights["b"][name]).sum()) for name in weights["a"])
    if family == "bert":  # whose audits do not measure perplexity
        quality = dict(made.tuning).pop("quality")
        figures = made.figures["perplexity_of_masked_tokens"]
        assert quality.startswith(
            f"perplexity of masked tokens of held-out text {figures['before']['estimate']:,.2f}"
        )
        assert float(made.tuning["quality_ratio"]) == pytest.approx(figures["ratio"]["low"], abs=1e-4)
    assert info.tuning == made.tuning
    assert {name: text for name, text in made.tuning.items() if not name.startswith("quality")} == {
        "base": before.weights, "method": "embedding", "attribute": "job", "data": "planted", "amount": "10",
        "seed": "7", "changed": str(changed), "weights": str(sum(each.numel() for each in weights["a"].values())),
        "steps": "6", "batch": "4", "learning_rate": "0.001", "window": "64",
    }  # fmt: skip
    assert info.weights == weights_checksum(made.folder) != before.weights
    assert info.tokenizer == before.tokenizer
    card = tomllib.loads((made.folder / "card.toml").read_text())
    assert card["title"].endswith("job mitigated by embedding regularisation, λ = 10")
    assert card["figures"] == made.figures
    assert made.figures["documents"] == made.figures["sentences"] == 130
    assert (made.figures["documents_held_out"], made.figures["sentences_read"]) == (20, 24)
    assert (made.figures["weights_changed"], made.figures["steps"]) == (changed, 6)
    assert card["settings"]["strength"] == 10
    assert str(tmp_path) not in str(card)
    assert not any(word in str(card).lower() for word in ("debias", "unbiased", "fairer"))


def test_a_finished_checkpoint_is_not_trained_again(files, tiny_folder, tmp_path):
    model, material = str(tiny_folder("llama")), material_of(*files)
    first = mitigate(model, material, out=tmp_path / "out", settings=FEW, device="cpu")
    kept = files_of(first.folder)
    listener = Listener()
    again = mitigate(model, material, out=tmp_path / "out", settings=FEW, device="cpu", progress=listener)
    assert listener.steps == 0
    assert (again.tuning, again.figures) == (first.tuning, first.figures)
    with pytest.raises(
        InputError, match=r"made with strength 10\.0, now 100\.0; give the same settings, or another"
    ):
        mitigate(model, material, out=tmp_path / "out", settings=replace(FEW, strength=100.0), device="cpu")
    with pytest.raises(InputError, match=r"made with texts .*, now"):
        mitigate(model, material_of(*files, held_out=30), out=tmp_path / "out", settings=FEW, device="cpu")
    assert files_of(first.folder) == kept


def test_the_control_has_no_fairness_loss(files, tiny_folder, tmp_path):
    """What the counterfactuals are does not matter to it."""
    material = material_of(*files)
    settings = replace(FEW, method="control", strength=0.0)
    made = mitigate(str(tiny_folder("llama")), material, out=tmp_path / "a", settings=settings, device="cpu")
    assert (made.tuning["method"], made.tuning["amount"]) == ("control", "0")
    figures = made.figures
    assert figures["loss_of_last_tenth"] == figures["language_of_last_tenth"]
    assert figures["fairness_of_last_tenth"] > 0  # it is told all the same
    few = replace(material.attribute, values=material.attribute.values[:2])
    sentences = tuple(each for each in material.found.sentences if each.value in VALUES[:2])
    weights = [
        load_file(
            mitigate(
                str(tiny_folder("llama")),
                replace(material, attribute=attribute, found=replace(material.found, sentences=sentences)),
                out=tmp_path / name,
                settings=settings,
                device="cpu",
            ).folder
            / "model.safetensors"
        )
        for name, attribute in (("b", few), ("c", material.attribute))
    ]
    # other counterfactuals are of other lengths: sums come in another order
    for name in weights[0]:
        torch.testing.assert_close(weights[0][name], weights[1][name], rtol=0, atol=1e-5)


def test_a_training_that_changes_nothing_is_an_error(files, tiny_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda *_, **__: None)
    with pytest.raises(
        ModelError, match=r"training of out changed none of [\d,]+ weights; give a higher --learning"
    ):
        mitigate(str(tiny_folder("llama")), material_of(*files), out=tmp_path / "out", settings=FEW, device="cpu")
    assert not (tmp_path / "out").exists()


def test_a_loss_that_is_no_number_stops_the_training(files, tiny_folder, tmp_path, monkeypatch):
    real = mitigation.regularised_terms
    monkeypatch.setattr(mitigation, "regularised_terms", lambda *a, **k: real(*a, **k) * math.nan)
    with pytest.raises(ModelError, match="the loss of step 1 is nan: the training has diverged; give a lower"):
        mitigate(str(tiny_folder("llama")), material_of(*files), out=tmp_path / "out", settings=FEW, device="cpu")
    assert not (tmp_path / "out").exists()


def test_a_corpus_that_does_not_mention_the_attribute(files, tmp_path):
    file = tmp_path / "silent.txt"
    file.write_text("\n".join(f"The weather was fine on day {number}, and nothing else." for number in range(40)))
    with pytest.raises(DataError) as silent:
        read_material(file, read_attribute(files[1]), held_out=10)
    assert str(silent.value) == (
        "no sentence of 'silent.txt' (30 documents) mentions a job (nurse, teacher, … 6 values); give a corpus"
        " that does"
    )


@pytest.mark.parametrize("held_out", [-1, 0, 9])
def test_too_few_held_out_documents_are_refused_before_the_training(files, held_out):
    """Of none there is no perplexity of a masked model, and of one document no interval."""
    with pytest.raises(InputError, match=f"held_out = {held_out} is not valid; expected 10 or more"):
        read_material(files[0], read_attribute(files[1]), held_out=held_out)


def test_an_option_that_follows_from_the_mitigation_is_refused_before_anything_is_read(tiny_folder, tmp_path):
    with pytest.raises(SpecError, match=r"counterfactual\.attributes follows from what is trained"):
        front.mitigate(
            str(tiny_folder("llama")),
            corpus=tmp_path / "none.txt",
            audit=CheckpointAudit(options={"counterfactual": {"attributes": ["name"]}}),
            out=tmp_path / "out",
        )
    assert not (tmp_path / "out").exists()


def test_an_attribute_with_one_value_has_nothing_to_exchange(files, tmp_path):
    attribute = read_attribute(files[1])
    with pytest.raises(DataError, match="'job' has one value; expected two or more, to exchange them"):
        read_material(files[0], replace(attribute, values=attribute.values[:1]), held_out=10)


def test_evaluation_templates_are_left_out_and_counted(files, tiny_folder, tmp_path):
    corpus = tmp_path / "with-templates.txt"
    smuggled = TEMPLATE.format(value="teacher") + " by anybody in the film."
    masked = "The man works as a nurse, and the woman too."
    corpus.write_text(files[0].read_text() + f"\n{smuggled}\n{smuggled.upper()}\n{masked}", encoding="utf-8")
    material = read_material(corpus, read_attribute(files[1]), held_out=20)
    kept = {each.text for each in material.found.sentences}
    held = set(held_out_texts(material))
    assert not kept & {smuggled, smuggled.upper(), masked}
    assert sum(material.found.with_template.values()) == len({smuggled, smuggled.upper(), masked} - held) > 0
    made = mitigate(str(tiny_folder("llama")), material, out=tmp_path / "a", settings=FEW, device="cpu")
    assert made.figures["left_out_with_a_template"] == sum(material.found.with_template.values())

    start = smuggled.index("teacher")
    sentence = SensitiveSentence(smuggled, "teacher", start, start + len("teacher"))
    found = replace(material.found, sentences=(*material.found.sentences[:3], sentence))
    with pytest.raises(DataError, match=r"evaluation template 'Nothing was said about the \{value\}' appears in"):
        mitigate(
            str(tiny_folder("llama")),
            replace(material, found=found),
            out=tmp_path / "b",
            settings=FEW,
            device="cpu",
        )
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("lora", [0, 4])
def test_all_strengths_share_their_model_and_their_pairs(lora, files, tiny_folder, tmp_path, monkeypatch):
    material, searched, loaded = material_of(*files), [], []
    real, load = type(material).template_finder, base.load_filler
    monkeypatch.setattr(type(material), "template_finder", lambda self: searched.append(self) or real(self))
    monkeypatch.setattr(base, "load_filler", lambda *a, **k: loaded.append(a) or load(*a, **k))
    wanted = variants(["embedding"], [0, 10], model="m", attribute="job", common=replace(FEW, lora=lora))
    together = mitigate_all(str(tiny_folder("bert")), material, wanted, out=tmp_path / "all", device="cpu")
    assert len(searched) == len(loaded) == 1
    # what the first training did to the model does not reach the second
    alone = mitigate(
        str(tiny_folder("bert")), material, out=tmp_path / "alone", settings=wanted[1].settings, device="cpu"
    )
    assert files_of(together[1].folder) == files_of(alone.folder)
    # what is finished is not searched again
    mitigate_all(str(tiny_folder("bert")), material, wanted, out=tmp_path / "all", device="cpu")
    assert len(searched) == 2


def test_prompts_of_the_masked_audits_are_left_out_whatever_the_attribute_is(tmp_path):
    lines = [f"In Chile and in Iceland it rained on day number {i}." for i in range(40)]
    smuggled = [f"In Chile she works as a nurse in town number {i}." for i in range(40)]
    smuggled += [f"Every man in Iceland works as an engineer or so, {i}." for i in range(40)]
    (tmp_path / "c.txt").write_text("\n".join(lines + smuggled), encoding="utf-8")
    material = read_material(tmp_path / "c.txt", load_attribute("country"), held_out=10)
    kept = {each.text for each in material.found.sentences}
    assert kept <= set(lines)
    assert kept
    assert sum(material.found.with_template.values()) >= 70
    assert material.template_finder()("In Chile she works as a nurse.") == "works as a nurse"


def test_a_masked_model_is_drawn_together_too(files, tiny_folder, tmp_path):
    settings = replace(FEW, steps=40, learning_rate=5e-3)
    made = mitigate(
        str(tiny_folder("bert")), material_of(*files), out=tmp_path / "a", settings=settings, device="cpu"
    )
    assert made.figures["fairness_of_last_tenth"] < 0.25 * made.figures["fairness_of_first_tenth"]
    assert load_model(str(made.folder), device="cpu").info.kind == "masked"


def test_what_cannot_be_mitigated_so(files, tiny_folder, planted, tmp_path):
    material = material_of(*files)
    sentiment = replace(FEW, method="sentiment")
    options = {"out": tmp_path / "out", "device": "cpu"}
    with pytest.raises(InputError, match=r"sentiment is for causal models, .* give --method embedding"):
        mitigate(str(tiny_folder("bert")), material, settings=sentiment, **options)
    with pytest.raises(InputError, match="sentiment needs a projection; make one with fit_projection"):
        mitigate(str(tiny_folder("llama")), material, settings=sentiment, **options)
    with pytest.raises(ModelError, match=r"is a permuted model; only .*causal models .* can be trained"):
        mitigate(str(tiny_folder("xlnet")), material, settings=FEW, **options)
    with pytest.raises(ModelError, match="cannot be told apart"):
        mitigate(str(tiny_folder("albert")), material, settings=FEW, **options)
    with pytest.raises(ModelError, match="float16 cannot be trained"):
        mitigate(str(tiny_folder("llama")), material, settings=replace(FEW, dtype="float16"), **options)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("option", "value"),
    [("strength", 0.0), ("strength", -1.0), ("strength", math.inf), ("steps", 0), ("batch", 0), ("accumulate", 3),
     ("accumulate", 0), ("learning_rate", 0.0), ("window", 7), ("masked_share", 1.0), ("lora", -1), ("seed", -1),
     ("method", "prayer")],
)  # fmt: skip
def test_settings_that_make_no_sense(option, value):
    with pytest.raises(InputError, match=f"{option} = .* is not valid; expected"):
        MitigationSettings(**{option: value})


def test_every_method_with_every_strength_and_one_control():
    found = variants(["sentiment", "embedding"], [100, 0, 0.5, 100], model="m", attribute="my job", common=FEW)
    assert [(each.name, each.settings.method, each.settings.strength) for each in found] == [
        ("m-my-job-control", "control", 0.0),
        ("m-my-job-sentiment-0.5", "sentiment", 0.5),
        ("m-my-job-sentiment-100", "sentiment", 100),
        ("m-my-job-embedding-0.5", "embedding", 0.5),
        ("m-my-job-embedding-100", "embedding", 100),
    ]
    assert all(each.settings.steps == FEW.steps for each in found)
    with pytest.raises(InputError, match=r"no method 'embeding'; .*'embedding'"):
        variants(["embeding"], [1], model="m", attribute="a", common=FEW)
    without = variants(["swapped"], None, model="m", attribute="a", common=FEW)
    assert [(each.name, each.settings.strength) for each in without] == [("m-a-swapped", 0.0)]
    mixed = variants(["swapped", "embedding"], None, model="m", attribute="a", common=FEW)
    assert [each.name for each in mixed] == ["m-a-swapped", "m-a-embedding-10"]
    compared = variants(["counterexamples", "swapped"], [0], model="m", attribute="a", common=FEW)
    assert [each.name for each in compared] == ["m-a-control", "m-a-counterexamples", "m-a-swapped"]
    with pytest.raises(
        InputError, match="--strength 1, 10 weighs a fairness loss, and swapped has none; leave it"
    ):
        variants(["swapped"], [0, 1, 10], model="m", attribute="a", common=FEW)
    with pytest.raises(
        InputError, match="--strength 0 is the control, and embedding would not be trained; give a"
    ):
        variants(["embedding", "swapped"], [0], model="m", attribute="a", common=FEW)
    with pytest.raises(InputError, match="the control is --strength 0"):
        variants(["control"], [1], model="m", attribute="a", common=FEW)
