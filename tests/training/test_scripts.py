"""The training scripts run from end to end on tiny models."""

from __future__ import annotations

import runpy
import sys

import pytest

from tests.training.conftest import TRAINING


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Run a script in this process: importing torch once more takes longer than what the script does."""

    def run_script(script, *arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        try:
            runpy.run_path(str(TRAINING / script), run_name="__main__")
        except SystemExit as ended:
            if ended.code:
                raise
        return capsys.readouterr().out

    return run_script


def test_the_masked_model_can_be_trained(run):
    assert '"top1"' in run("masked_model.py", "--smoke")


@pytest.mark.filterwarnings("ignore:overflow encountered in exp")  # few reviews are told apart all too surely
def test_the_sentiment_adapter_can_be_trained(run, tmp_path, encoder_folder, reviews_file):
    out = tmp_path / "adapter"
    options = ("--smoke", "--encoder", encoder_folder, "--reviews", reviews_file, "--out", out)
    assert '"accuracy"' in run("sentiment_model.py", *options)
    assert {path.name for path in out.iterdir()} >= {"adapter.safetensors", "config.json"}


def test_a_text_s_bucket_never_changes():
    import corpora

    # printf anarchism | sha256sum, read as a number, modulo 100; another rule would hold out what was trained on
    assert corpora.bucket("  Anarchism ") == 61
