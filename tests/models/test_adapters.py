"""LoRA adapters: merged into their base, and known by both."""

from __future__ import annotations

import json
import shutil
import warnings

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from clinometer.errors import ModelError
from clinometer.models.load import check_model, inspect_model, load_model
from clinometer.types import Fill, LogLikelihood, ModelSpec

TEXT = "The nurse works at the hospital."


def make_adapter(base, folder, *, auto=AutoModelForCausalLM, targets=("c_attn",), seed=0):
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = get_peft_model(auto.from_pretrained(base), LoraConfig(r=2, target_modules=list(targets)))
        for name, weight in adapted.named_parameters():
            if "lora_" in name:
                weight.data.normal_(0.0, 0.3)
        adapted.save_pretrained(folder)
    return folder


@pytest.fixture
def base(tiny_folder, tmp_path):
    return shutil.copytree(tiny_folder("gpt2"), tmp_path / "base")


@pytest.fixture
def adapter(base, tmp_path):
    return make_adapter(base, tmp_path / "adapter")


def refused(folder):
    with pytest.raises(ModelError) as error:
        load_model(str(folder), device="cpu")
    return str(error.value)


def test_an_adapter_answers_as_peft_does(base, adapter):
    tokenizer = AutoTokenizer.from_pretrained(base)
    network = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), adapter).eval()
    ids = tokenizer(TEXT, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logprobs = network(ids).logits[0].log_softmax(dim=1)
    wanted = float(logprobs[:-1].gather(1, ids[0, 1:, None]).sum())
    merged, plain = (load_model(str(folder), device="cpu") for folder in (adapter, base))
    assert merged.info.kind == "causal"
    assert merged.log_likelihood([LogLikelihood(text=TEXT)])[0].logprob == pytest.approx(wanted, abs=1e-4)
    assert abs(plain.log_likelihood([LogLikelihood(text=TEXT)])[0].logprob - wanted) > 0.1


def test_its_identity_covers_both_weights_and_its_settings(base, adapter, tmp_path):
    plain, merged = (load_model(str(folder), device="cpu").info for folder in (base, adapter))
    assert merged.weights != plain.weights
    assert merged.name == str(adapter)
    other = load_model(str(make_adapter(base, tmp_path / "other", seed=1)), device="cpu").info
    assert other.weights != merged.weights
    # a base that changed changes the model, and so do other settings of the adapter
    weights = load_file(base / "model.safetensors")
    save_file(
        {name: weight + 0.01 for name, weight in weights.items()}, base / "model.safetensors", {"format": "pt"}
    )
    assert load_model(str(adapter), device="cpu").info.weights not in (merged.weights, other.weights)
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"lora_alpha": 32}))
    assert load_model(str(adapter), device="cpu").info.settings != merged.settings


def test_it_can_be_looked_at_before_its_weights_are_loaded(adapter):
    spec = ModelSpec(name=str(adapter))
    looked, loaded = inspect_model(spec, device="cpu"), load_model(spec, device="cpu")
    assert looked.info == loaded.info
    asked = [LogLikelihood(text=TEXT)]
    assert looked.cost(asked) == loaded.cost(asked)


def test_an_adapter_over_a_masked_model(tiny_folder, tmp_path):
    folder = make_adapter(
        tiny_folder("bert"), tmp_path / "adapter", auto=AutoModelForMaskedLM, targets=("query", "value")
    )
    query = Fill(text="The [MASK] works.", words=("nurse", "doctor"))
    merged, plain = (load_model(str(each), device="cpu") for each in (folder, tiny_folder("bert")))
    assert merged.info.kind == "masked"
    assert merged.fill([query])[0].logprobs != pytest.approx(plain.fill([query])[0].logprobs, abs=1e-3)


def test_a_tokenizer_of_its_own_and_a_base_beside_it(base, adapter):
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"base_model_name_or_path": "../base"}))
    AutoTokenizer.from_pretrained(base).save_pretrained(adapter)
    (adapter / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    assert load_model(str(adapter), device="cpu").info.kind == "chat"
    assert load_model(ModelSpec(name=str(adapter), kind="causal"), device="cpu").info.kind == "causal"


def test_a_base_that_is_not_there(adapter, base):
    shutil.rmtree(base)
    message = refused(adapter)
    assert "is an adapter, and its base model cannot be opened: no model" in message
    assert str(base) in message


def test_pickled_adapters_are_refused(adapter):
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    assert "found only adapter_model.bin, which can run code when it is read" in refused(adapter)
    (adapter / "adapter_model.bin").unlink()
    assert "found none" in refused(adapter)


def test_other_kinds_of_adapters_are_refused(adapter):
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"peft_type": "IA3"}))
    assert "an adapter of type 'IA3'; only LoRA adapters" in refused(adapter)
    path.write_text("[]")
    assert "is not a table of settings" in refused(adapter)
    path.write_text("{")
    assert "cannot be read" in refused(adapter)


def test_a_part_that_is_missing_or_finds_no_place(adapter, base):
    file = adapter / "adapter_model.safetensors"
    weights = load_file(file)
    some = dict(list(weights.items())[1:])
    save_file(some, file)
    assert "does not fit its base model: 1 parts are missing" in refused(adapter)
    save_file({**weights, "base_model.model.nowhere.lora_A.weight": torch.zeros(2, 2)}, file)
    assert "and 1 find no place" in refused(adapter)


def test_an_adapter_over_an_adapter(adapter, base, tmp_path):
    again = shutil.copytree(adapter, tmp_path / "again")
    path = again / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"base_model_name_or_path": str(adapter)}))
    assert "an adapter over another adapter" in refused(again)


def test_peft_that_is_not_installed(adapter, monkeypatch):
    monkeypatch.setattr("clinometer.models.providers.adapters.absent_packages", lambda *names: list(names))
    with pytest.raises(ModelError, match=r'peft is needed and not installed: pip install "clinometer\[train\]"'):
        check_model(ModelSpec(name=str(adapter)))
