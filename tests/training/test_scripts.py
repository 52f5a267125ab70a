"""The training scripts run from end to end on tiny models."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.training.conftest import TRAINING


def run(script, *arguments, cwd):
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, str(TRAINING / script), *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_masked_model_can_be_trained(tmp_path):
    assert '"top1"' in run("masked_model.py", "--smoke", cwd=tmp_path)


def test_the_sentiment_adapter_can_be_trained(tmp_path, encoder_folder, reviews_file):
    out = tmp_path / "adapter"
    options = ("--smoke", "--encoder", encoder_folder, "--reviews", reviews_file, "--out", out)
    assert '"accuracy"' in run("sentiment_model.py", *options, cwd=tmp_path)
    assert {path.name for path in out.iterdir()} >= {"adapter.safetensors", "config.json"}


def test_a_text_s_bucket_never_changes():
    import corpora

    # printf anarchism | sha256sum, read as a number, modulo 100; another rule would hold out what was trained on
    assert corpora.bucket("  Anarchism ") == 61
