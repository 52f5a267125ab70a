"""Reading, verifying and reporting need neither torch nor a POSIX system."""

import math
import subprocess
import sys

import pytest

import clinometer
from clinometer.models.fake import FakeModel
from clinometer.types import WordAnswer

POSIX = ("fcntl", "grp", "pwd", "resource", "termios", "pty", "tty", "syslog")
LOCAL = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "sentencepiece",
    "huggingface_hub",
    "accelerate",
    "peft",
)

BLOCKED = """
import importlib.machinery, sys

def hidden(find):
    return lambda name, *rest: None if name.partition(".")[0] in {names!r} else find(name, *rest)

for finder in (importlib.machinery.PathFinder, importlib.machinery.BuiltinImporter):
    finder.find_spec = hidden(finder.find_spec)
for name in {names!r}:
    sys.modules.pop(name, None)  # what Python itself imported at its start
try:
    import {first}
except ImportError:
    print("hidden")

import clinometer
from clinometer.cli.main import app
run = clinometer.open_run({run!r})
assert run["counterexamples"]["lean"].to_polars().height > 0
assert clinometer.verify(run).problems == ()
assert clinometer.write_report(run).is_file()
with run.folder.lock():
    pass
print("fine")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    def even(request):
        return WordAnswer(words=("woman", "man"), logprobs=(math.log(0.3), math.log(0.3)))

    options = {"counterexamples": {"backgrounds": 1, "draws": 100}}
    folder = tmp_path_factory.mktemp("runs") / "run"
    fake = FakeModel(answer=even, version="1", name="fake")
    return clinometer.audit(fake, probes="counterexamples", options=options, folder=folder)


@pytest.mark.parametrize("names", [POSIX, LOCAL], ids=["without POSIX", "without torch"])
def test_a_run_is_opened_verified_and_reported(run, names):
    run.path.joinpath("run.lock").unlink(
        missing_ok=True
    )  # where no system call locks files, the file itself is the lock
    script = BLOCKED.format(names=names, first=names[0], run=str(run.path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "hidden\nfine\n"
