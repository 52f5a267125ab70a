"""The core of Clinometer without the extra `local`: what it can still do, and what it says about the rest."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOCAL = ("torch", "transformers", "tokenizers", "safetensors", "sentencepiece", "huggingface_hub")
POSIX = ("fcntl", "resource", "pwd", "grp", "termios")

# what other packages import for themselves on this system; ours come after it
THEIRS = "import psutil; from transformers import AutoModelForMaskedLM, BertForMaskedLM, XLNetLMHeadModel"

# runs before a program: the packages cannot be imported, as if they were not installed
BLOCKED = """
import sys

for name in {names}:
    sys.modules.pop(name, None)

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Blocker())
from clinometer.errors import ModelError
from clinometer.models.load import capabilities_of, check_model, load_model
from clinometer.types import Classify, ModelSpec

def refusal(ask, name):
    try:
        ask(ModelSpec(name=name))
    except ModelError as error:
        return str(error)
"""


def run(program, names=LOCAL, before=""):
    """Return what a program prints in a fresh interpreter that cannot import the packages."""
    done = subprocess.run(
        [sys.executable, "-c", before + BLOCKED.replace("{names}", repr(set(names))) + program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_everything_but_the_adapters_can_be_imported():
    run(
        "import clinometer.models.builtin, clinometer.models.callable_scorer, clinometer.models.fake\n"
        "import clinometer.models.files, clinometer.models.protocols\n"
        "import clinometer.models.providers.local, clinometer.models.providers.protocol\n"
    )


def test_opinion_words_still_answer():
    program = """
check_model(ModelSpec(name="builtin:opinion-words"))
print(capabilities_of(ModelSpec(name="builtin:opinion-words")))
print(load_model("builtin:opinion-words").classify([Classify(text="good, bad and a good film")])[0].positive)
"""
    assert run(program).split("\n") == ["('classify',)", str(2 / 3)]


@pytest.mark.parametrize("ask", ["check_model", "load_model"])
@pytest.mark.parametrize(
    "name", ["builtin:masked", "builtin:causal", "builtin:sentiment", "someone/model", "FOLDER"]
)
def test_a_local_model_says_what_to_install(name, ask, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    name = str(tmp_path) if name == "FOLDER" else name
    said = run(f"print(refusal({ask}, {name!r}))")
    assert said == (
        f"{name!r} runs on this machine, for which torch, transformers, tokenizers, safetensors, huggingface_hub"
        ' are needed and not installed: pip install "clinometer[local]"'
    )


def test_only_what_is_missing_is_named():
    said = run("print(refusal(load_model, 'builtin:masked'))", names=["safetensors"])
    assert "for which safetensors is needed and not installed" in said


def test_a_name_that_leads_nowhere_is_not_blamed_on_torch():
    assert "no such folder" in run("print(refusal(load_model, './nowhere'))")


def test_a_model_is_loaded_and_asked_without_posix_modules():
    program = """
from clinometer.types import Fill
model = load_model("builtin:masked", device="cpu")
print(model.fill([Fill(text="She is a [MASK].", words=("nurse",))])[0].logprobs[0] < 0)
"""
    assert run(program, names=POSIX, before=THEIRS) == "True"
