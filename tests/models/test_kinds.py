"""How a model is to be asked: its chat template tells, and the spec may say otherwise."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from clinometer.errors import ModelError
from clinometer.models.load import CAPABILITIES, capabilities_of, check_model, load_model
from clinometer.models.providers.local import built_as, kind_of, resolve
from clinometer.types import Ask, LogLikelihood, Message, ModelSpec, NextWord

TEMPLATE = (
    "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


@pytest.fixture
def copy(tiny_folder, tmp_path):
    def make(family="gpt2"):
        return shutil.copytree(tiny_folder(family), tmp_path / family)

    return make


def in_a_file(folder):
    (folder / "chat_template.jinja").write_text(TEMPLATE)


def in_the_settings(folder):
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": TEMPLATE}))


@pytest.mark.parametrize("put", [in_a_file, in_the_settings])
def test_a_chat_template_makes_a_chat_model(copy, put):
    folder = copy()
    spec = ModelSpec(name=str(folder))
    assert load_model(spec, device="cpu").info.kind == "causal"
    put(folder)
    assert capabilities_of(spec) == CAPABILITIES["chat"]
    model = load_model(spec, device="cpu")
    assert model.info.kind == "chat"
    assert len(model.ask([Ask(messages=(Message(role="user", content="Why?"),), max_new_tokens=2)])[0].texts) == 1


def test_the_spec_says_how_a_model_is_asked(copy):
    folder = copy()
    in_a_file(folder)
    plain, causal = ModelSpec(name=str(folder)), ModelSpec(name=str(folder), kind="causal")
    model = load_model(causal, device="cpu")
    assert model.info.kind == "causal"
    assert model.info.capabilities == capabilities_of(causal) == CAPABILITIES["causal"]
    assert model.next_word([NextWord(text="The", top_k=1)])
    # the same weights, asked in another way: what identifies them is the same
    chat = load_model(plain, device="cpu").info
    assert (chat.weights, chat.settings) == (model.info.weights, model.info.settings)


def test_what_cannot_be_asked_in_a_way_is_refused_before_anything_is_loaded(copy, tiny_folder):
    with pytest.raises(ModelError, match="has no chat template"):
        check_model(ModelSpec(name=str(copy()), kind="chat"))
    with pytest.raises(ModelError, match="is a masked model and cannot be asked as a chat one"):
        check_model(ModelSpec(name=str(tiny_folder("bert")), kind="chat"))
    with pytest.raises(ModelError, match="is a masked model and cannot be asked as a causal one"):
        capabilities_of(ModelSpec(name="builtin:masked", kind="causal"))


def test_no_literal_name_is_known(copy):
    """The catalogue says how its models are asked, and a spec may say otherwise."""
    assert capabilities_of(ModelSpec(name="builtin:causal")) == CAPABILITIES["causal"]
    assert capabilities_of(ModelSpec(name="builtin:chat")) == CAPABILITIES["chat"]
    assert capabilities_of(ModelSpec(name="builtin:chat", kind="causal")) == CAPABILITIES["causal"]
    assert capabilities_of(ModelSpec(name="builtin:causal", kind="chat")) == CAPABILITIES["chat"]


def test_a_checkpoint_that_was_trained_here_continues_text(copy):
    folder = copy()
    in_a_file(folder)
    (folder / "card.toml").write_text('[tuning]\nmethod = "embedding"\n')
    assert kind_of(resolve(ModelSpec(name=str(folder)))) == "causal"
    assert kind_of(resolve(ModelSpec(name=str(folder))), "chat") == "chat"


def test_what_is_trained_is_what_was_built(copy):
    folder = copy()
    in_a_file(folder)
    assert built_as(resolve(ModelSpec(name=str(folder)))) == "causal"


# -- quantised checkpoints


@pytest.mark.parametrize("method", ["bitsandbytes", "gptq", "awq"])
def test_a_quantised_checkpoint_needs_its_library(copy, method, monkeypatch):
    monkeypatch.setattr(
        "clinometer.models.providers.local.absent_packages",
        lambda *names: [n for n in names if n in ("bitsandbytes", "gptqmodel")],
    )
    folder = copy()
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": {"quant_method": method}}))
    with pytest.raises(ModelError, match=r"is quantised with \w+, which is needed .*: pip install \w+ \(or give"):
        check_model(ModelSpec(name=str(folder)))


@pytest.mark.skipif(
    torch.cuda.is_available(), reason="beside a GPU transformers runs 8-bit floats by kernels for it"
)
def test_a_quantised_checkpoint_is_asked_like_any_other(copy, tmp_path):
    """8-bit floats in blocks, which transformers reads without another library."""
    plain = copy("llama")
    folder = shutil.copytree(plain, tmp_path / "quantised")
    weights, size = load_file(folder / "model.safetensors"), 16
    for name, weight in list(weights.items()):
        if name.endswith("_proj.weight"):
            rows, columns = weight.shape
            blocks = weight.reshape(rows // size, size, columns // size, size)
            scale = blocks.abs().amax(dim=(1, 3)) / 448
            weights[name] = (blocks / scale[:, None, :, None]).reshape(rows, columns).to(torch.float8_e4m3fn)
            weights[f"{name}_scale_inv"] = scale
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    settings = {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "weight_block_size": [size, size],
        "modules_to_not_convert": ["lm_head"],
    }
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": settings}))
    asked = [LogLikelihood(text="The nurse works at the hospital.")]
    whole, rounded = (load_model(str(each), device="cpu") for each in (plain, folder))
    assert rounded.info.kind == "causal"
    assert rounded.info.weights != whole.info.weights
    before, after = (model.log_likelihood(asked)[0].logprob for model in (whole, rounded))
    assert after == pytest.approx(before, rel=0.05)
    assert after != before
