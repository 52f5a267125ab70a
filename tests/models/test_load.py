"""Finding a model by name, refusing what is not safe, and picking the adapter."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest
import torch
import transformers

from clinometer.errors import ModelError
from clinometer.models.code import code_checksum, modules_of
from clinometer.models.files import config_checksum, tokenizer_checksum, weights_checksum
from clinometer.models.load import kind_of, load_model
from clinometer.models.local import loading
from clinometer.models.local.loading import pick_device, torch_dtype
from clinometer.models.providers.local import ADAPTERS, ModelSource, resolve
from clinometer.types import ModelSpec


@pytest.fixture
def copy(tiny_folder, tmp_path):
    """Return a function that gives a copy of a family's folder, with fields of config.json changed."""

    def make(family="bert", head="", **fields):
        folder = shutil.copytree(tiny_folder(family, head), tmp_path / "model")
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | fields))
        return folder

    return make


def refused(name, **options):
    with pytest.raises(ModelError) as error:
        load_model(ModelSpec(name=str(name), **options), device="cpu")
    return str(error.value)


def test_a_folder(tiny_folder):
    source = resolve(ModelSpec(name=str(tiny_folder("bert"))))
    assert source.folder == tiny_folder("bert")
    assert source.config.model_type == "bert"
    model = load_model(source.name, device="cpu")
    assert model.info.name == source.name
    assert model.info.family == "bert"
    assert model.info.dtype == "float32"
    assert model.info.window == 64
    assert model.info.weights == weights_checksum(source.folder)
    assert model.info.settings == {"config": config_checksum(source.folder)}


@pytest.mark.parametrize("name", ["google-bert/no-such-model", "no-such-model"])
def test_a_hub_id_without_network(name):
    message = refused(name)
    assert repr(name) in message
    assert "HF_HUB_OFFLINE is set" in message
    assert "give its folder" in message


def test_a_hub_id_in_the_cache(tiny_folder, tmp_path, monkeypatch):
    """What was downloaded before is found with no network."""
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(tiny_folder("bert"), repository / "snapshots" / "abc")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert load_model("someone/tiny", device="cpu").info.family == "bert"


@pytest.mark.parametrize("name", ["./nowhere", "/no/such/folder", "a b", "../nowhere", ""])
def test_no_such_folder(name):
    message = refused(name)
    assert "no such folder" in message or "no config.json" in message
    assert repr(name) in message


def test_misspelt_builtin():
    assert "did you mean 'builtin:causal'" in refused("builtin:casual")


def test_a_file(tiny_folder):
    assert "is a file; give the folder" in refused(tiny_folder("bert") / "config.json")


def test_a_folder_without_a_model(tmp_path):
    assert "there is no config.json" in refused(tmp_path)


@pytest.mark.parametrize("file", ["pytorch_model.bin", "model.pt", "model.ckpt"])
def test_pickled_weights_are_refused(copy, file):
    folder = copy()
    (folder / "model.safetensors").rename(folder / file)
    message = refused(folder)
    assert f"only pickled weights ({file})" in message
    assert "save_pretrained(" in message


def test_the_conversion_that_is_offered_works(copy, tmp_path, monkeypatch):
    folder = copy()
    monkeypatch.chdir(tmp_path)
    torch.save(transformers.BertForMaskedLM.from_pretrained(folder).state_dict(), folder / "pytorch_model.bin")
    before = load_model(str(folder), device="cpu").info.parameters
    (folder / "model.safetensors").unlink()
    (snippet,) = re.findall(r'python -c "(.*)"', refused(folder))
    exec(snippet, {})
    assert load_model("converted", device="cpu").info.parameters == before


def test_no_weights(copy):
    folder = copy()
    (folder / "model.safetensors").unlink()
    assert "found none" in refused(folder)


def test_no_tokenizer(copy):
    folder = copy()
    (folder / "tokenizer.json").unlink()
    assert "no tokenizer in" in refused(folder)


def test_damaged_tokenizer(copy):
    folder = copy()
    (folder / "tokenizer.json").write_text("{}")
    assert "no tokenizer can be loaded from" in refused(folder)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("tokenizer.json", ""),
        ("tokenizer.json", "[]"),
        ("tokenizer.json", '{"version": "1.0", "model": null}'),
        ("tokenizer.json", '{"version": 5, "model": {"type": "WordPiece", "vocab": {}}}'),
        ("tokenizer_config.json", "[]"),
        ("tokenizer_config.json", '{"tokenizer_class": 5}'),
        ("tokenizer_config.json", '{"model_max_length": "many"}'),
    ],
)
def test_every_kind_of_damaged_tokenizer_gets_one_sentence(copy, file, text):
    folder = copy()
    (folder / file).write_text(text)
    message = refused(folder)
    assert f"no tokenizer can be loaded from {str(folder)!r}" in message
    assert "\n" not in message


def test_a_folder_in_place_of_the_tokenizer(copy):
    """Without its vocabulary transformers would make up a tokenizer that knows no word."""
    folder = copy()
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").mkdir()
    assert "no tokenizer in" in refused(folder)


@pytest.mark.parametrize("kept", [0, 50, 5000])
def test_weights_that_are_cut_short(copy, kept):
    folder = copy()
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:kept])
    message = refused(folder)
    assert f"the weights of {str(folder)!r} cannot be read: model.safetensors" in message
    assert "download the model again" in message


def shard(folder, *, named):
    """Name the weights as the first part of several, and say so in an index."""
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps(named))


def test_a_part_of_the_weights_is_missing(copy):
    folder = copy()
    shard(folder, named={"metadata": {}, "weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})
    assert "model-2.safetensors is missing" in refused(folder)


@pytest.mark.parametrize("named", [{"metadata": {}}, {"weight_map": 5}, 5])
def test_an_index_that_names_no_parts(copy, named):
    folder = copy()
    shard(folder, named=named)
    assert "index.json' does not say in which files the weights are" in refused(folder)


def test_weights_under_another_name(copy):
    folder = copy()
    (folder / "model.safetensors").rename(folder / "best.safetensors")
    assert "found best.safetensors; expected model.safetensors" in refused(folder)


def test_a_weight_file_that_the_configuration_names(copy):
    """transformers would load it instead of the file that is checked and hashed here, pickled or not."""
    assert "names its own weight file, 'other.bin'" in refused(copy(transformers_weights="other.bin"))


def test_a_configuration_that_does_not_fit_the_weights_names_those_that_differ(copy):
    folder = copy(vocab_size=50)
    message = refused(folder)
    assert f"config.json of {str(folder)!r} does not fit the weights, 2 of which have another shape" in message
    # the tiny model has 205 words and vectors of 32 numbers
    assert (
        "bert.embeddings.word_embeddings.weight: 205×32, not 50×32; cls.predictions.bias: 205, not 50" in message
    )


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"hidden_size": "abc"}, "Field 'hidden_size' expected int, got str"),
        ({"id2label": 5}, "transformers refuses"),
        ({"hidden_size": 33}, "(The hidden size (33) is not a multiple"),
        ({"hidden_act": "gelo"}, "(KeyError: 'gelo')"),
        ({"num_attention_heads": 0}, "no model can be made of config.json"),
        ({"model_type": "gpt2"}, "no model can be made of config.json"),
        ({"model_type": []}, "model_type [], which this transformers does not know"),
    ],
)
def test_a_configuration_with_a_wrong_value_gets_one_sentence(copy, fields, found):
    folder = copy(**fields)
    message = refused(folder)
    assert found in message
    assert repr(str(folder)) in message
    assert "\n" not in message
    assert len(message) < 500


def test_a_configuration_that_cannot_be_read(copy):
    folder = copy()
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()
    assert "cannot be read: it is a folder" in refused(folder)


def test_a_folder_that_cannot_be_read(copy, monkeypatch):
    folder = copy()

    def deny(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.exists", deny)
    assert "cannot be read: Permission denied" in refused(folder)


OWN_CODE = {"auto_map": {"AutoConfig": "own.Config", "AutoModelForMaskedLM": "own.Model"}}


def test_a_model_that_brings_its_own_code(copy, monkeypatch):
    folder = copy(model_type="homemade", **OWN_CODE)
    (folder / "own.py").write_text("raise SystemExit('this code was run')\n")
    message = refused(folder)
    assert "brings its own Python code" in message
    assert "trust_remote_code" in message


def test_own_code_is_run_only_where_it_is_allowed(copy, tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = copy(model_type="homemade", **OWN_CODE)
    (folder / "own.py").write_text("raise SystemExit('this code was run')\n")
    with pytest.raises(SystemExit, match="this code was run"):
        load_model(ModelSpec(name=str(folder), trust_remote_code=True), device="cpu")


def test_own_code_of_a_known_family_is_not_run(copy):
    """Many published BERTs name code of their own; transformers has the family, so that code is not needed."""
    folder = copy(**OWN_CODE)
    (folder / "own.py").write_text("raise SystemExit('this code was run')\n")
    assert load_model(str(folder), device="cpu").info.family == "bert"


def test_unknown_model_type(copy):
    assert "model_type 'homemade', which this transformers does not know" in refused(copy(model_type="homemade"))


@pytest.mark.parametrize("text", ["{", "[1, 2]", "\x00\xff"])
def test_damaged_config(copy, text):
    folder = copy()
    (folder / "config.json").write_text(text, encoding="latin-1")
    assert "config.json of" in refused(folder)


@pytest.mark.parametrize(
    ("model_type", "architecture", "kind"),
    [
        ("bert", "BertForMaskedLM", "masked"),
        ("bert", "BertForPreTraining", "masked"),
        ("bart", "BartModel", "masked"),
        ("bart", "BartForConditionalGeneration", "masked"),
        ("xlnet", "XLNetLMHeadModel", "permuted"),
        ("gpt2", "GPT2LMHeadModel", "causal"),
        ("llama", "LlamaForCausalLM", "causal"),
        ("roberta", "RobertaForSequenceClassification", "classifier"),
        ("bart", "BartForSequenceClassification", "classifier"),
        ("bert", "BertModel", "encoder"),
    ],
)
def test_the_architecture_picks_the_adapter(model_type, architecture, kind, tmp_path):
    config = transformers.AutoConfig.for_model(model_type, architectures=[architecture])
    assert kind_of(ModelSource(name="model", folder=tmp_path, config=config)) == kind


def test_sentence_encoders_are_encoders_whatever_they_started_from(tmp_path):
    (tmp_path / "modules.json").write_text("[]")
    config = transformers.MPNetConfig(architectures=["MPNetForMaskedLM"])
    assert kind_of(ModelSource(name="model", folder=tmp_path, config=config)) == "encoder"


@pytest.mark.parametrize("text", ["{", "5", '[{"path": "1_Pooling"}]'])
def test_damaged_modules_of_a_sentence_encoder(copy, text):
    folder = copy()
    (folder / "modules.json").write_text(text)
    assert f"how {str(folder)!r} is to be pooled cannot be read" in refused(folder)


def test_an_architecture_that_answers_nothing_we_ask(copy):
    assert "names the architecture 'BertForTokenClassification'" in refused(
        copy(architectures=["BertForTokenClassification"])
    )


def test_the_electra_discriminator(copy):
    assert "take the generator" in refused(copy("electra", architectures=["ElectraForPreTraining"]))


def test_no_architecture(copy):
    for none in (None, []):
        config = transformers.BertConfig(architectures=none)
        with pytest.raises(ModelError, match=r"'m' names no architecture; expected .*…ForMaskedLM"):
            kind_of(ModelSource(name="m", folder=Path("nowhere"), config=config))


@pytest.mark.parametrize("wrong", [5, [5], "BertForMaskedLM", {"a": 1}])
def test_architectures_that_are_not_a_list_of_names(copy, wrong):
    assert f"has {wrong!r} as architectures, which is not a list of names" in refused(copy(architectures=wrong))


def test_bare_bart_has_all_that_a_masked_model_needs(tiny_model):
    """The published BART files name the bare model: its head is tied to the embeddings."""
    assert tiny_model("bart", "BartModel").info.kind == "masked"


@pytest.mark.parametrize(("family", "head"), [("bert", "BertForPreTraining"), ("albert", "AlbertForPreTraining")])
def test_pretraining_files_hold_the_masked_head(family, head, tiny_model):
    assert tiny_model(family, head).info.kind == "masked"


def test_weights_checksum_is_that_of_the_files_one_after_another(tmp_path):
    (tmp_path / "b.safetensors").write_bytes(b"second")
    (tmp_path / "a.safetensors").write_bytes(b"first")
    (tmp_path / "config.json").write_bytes(b"{}")
    assert weights_checksum(tmp_path) == hashlib.sha256(b"firstsecond").hexdigest()


def test_weights_checksum_is_that_of_the_files_that_are_loaded(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"whole")
    alone = weights_checksum(tmp_path)
    (tmp_path / "checkpoint-100").mkdir()
    (tmp_path / "checkpoint-100" / "model.safetensors").write_bytes(b"earlier")
    (tmp_path / "model.fp16.safetensors").write_bytes(b"short")
    assert weights_checksum(tmp_path) == alone == hashlib.sha256(b"whole").hexdigest()


def test_weights_checksum_of_parts_is_that_of_those_in_the_index(tmp_path):
    for part in "123":
        (tmp_path / f"part-{part}.safetensors").write_bytes(part.encode())
    named = {"weight_map": {"a": "part-2.safetensors", "b": "part-1.safetensors", "c": "part-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(named))
    assert weights_checksum(tmp_path) == hashlib.sha256(b"12").hexdigest()


def test_tokenizer_checksum_sees_every_tokenizer_file(tiny_folder, tmp_path):
    for family in ("bert", "bertweet", "xlm-roberta"):
        folder = shutil.copytree(tiny_folder(family), tmp_path / family)
        seen = {tokenizer_checksum(folder)}
        files = [path for path in folder.iterdir() if path.name not in ("config.json", "model.safetensors")]
        for file in files:
            file.write_bytes(file.read_bytes() + b" ")
            seen.add(tokenizer_checksum(folder))
        assert len(seen) == len(files) + 1
        (folder / "config.json").write_text("{}")
        assert tokenizer_checksum(folder) in seen


ROOM = Path(loading.__file__).parent
ADAPTER_MODULES = {module for module, _ in ADAPTERS.values()} | {"sentiment"}


def test_every_file_that_answers_is_part_of_an_adapter():
    """Another adapter, tokenization, sampler or kernel may answer otherwise; who opened the model may not."""
    names = {
        ".".join(path.relative_to(ROOM).with_suffix("").parts)
        for path in ROOM.rglob("*.py")
        if path.name != "__init__.py"
    }
    assert {"masked", "text", "fast.kernels", "fast.draw", "loading"} <= names
    assert set().union(*map(modules_of, ADAPTER_MODULES)) == names
    assert modules_of("masked") >= {"masked", "text", "readout", "loading", "fast.layers"}
    assert modules_of("causal") >= {"causal", "fast.kernels", "fast.draw", "fast.sampling"}


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A copy of the room, to change."""
    folder = tmp_path / "local"
    shutil.copytree(ROOM, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("clinometer.models.code._FOLDER", folder)

    def checksums():
        code_checksum.cache_clear()
        return {adapter: code_checksum(adapter) for adapter in sorted(ADAPTER_MODULES)}

    yield folder, checksums
    code_checksum.cache_clear()


def test_the_code_of_a_model_is_what_answers(source):
    folder, checksums = source
    before = checksums()
    path = folder / "causal.py"  # where chat models are
    path.write_text(path.read_text() + "\n_NEW = 1\n")
    after = checksums()
    assert {adapter for adapter in before if before[adapter] != after[adapter]} == {"causal"}
    path = folder / "text.py"  # all adapters tokenize
    path.write_text(path.read_text() + "\n_NEW = 1\n")
    assert all(before[adapter] != now for adapter, now in checksums().items())


def test_a_comment_answers_nothing(source):
    folder, checksums = source
    before = checksums()
    for path in folder.rglob("*.py"):
        text = path.read_text()
        path.write_text("# a comment\n" + text.replace('"""', '"""Besides: ', 1) + "\n\n# another\n")
    assert checksums() == before


def test_dtypes():
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert torch_dtype("auto", cpu) == torch.float32
    assert torch_dtype("auto", gpu) == torch.bfloat16
    assert torch_dtype("float16", cpu) == torch.float16
    with pytest.raises(ModelError, match="no number format 'float8'; did you mean 'float32'"):
        torch_dtype("float8", cpu)


def test_devices():
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device("auto").type in ("cpu", "cuda")
    with pytest.raises(ModelError, match="no device 'cpuu' on this machine; did you mean 'cpu'"):
        pick_device("cpuu")
    with pytest.raises(ModelError, match="no device 'cuda:99'"):
        pick_device("cuda:99")
