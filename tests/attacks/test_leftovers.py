"""What a kill left half-written is cleared by the next command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.attacks.findings_of_strangers import run_with

_KILLED = """
import os, sys
from clinometer.store import atomic
os.replace = lambda *_: os.kill(os.getpid(), 9)
from clinometer.cli.main import main
sys.argv = ["clinometer", "report", sys.argv[1]]
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.parametrize("command", ["report", "verify", "resume"])
def test_an_unfinished_page_is_cleared(clinometer, tmp_path, command):
    folder = run_with(tmp_path / "run").path
    killed = subprocess.run([sys.executable, "-c", _KILLED, folder], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert list(folder.glob(".tmp-*"))
    clinometer(command, folder)  # verify and resume complain about the audit, which nobody has
    assert not list(folder.rglob(".tmp-*"))


def test_what_another_process_is_writing_is_left_alone(clinometer, tmp_path):
    run = run_with(tmp_path / "run")
    unfinished = run.path / f".tmp-{'0' * 16}"
    unfinished.write_bytes(b"half")
    with run.lock():
        clinometer("verify", run.path)
    assert unfinished.exists()


def test_verify_of_a_whole_run_writes_nothing(clinometer, tmp_path):
    folder = run_with(tmp_path / "run").path
    (folder / "run.lock").unlink()
    before = sorted(path.name for path in folder.rglob("*"))
    clinometer("verify", folder)
    assert sorted(path.name for path in folder.rglob("*")) == before
