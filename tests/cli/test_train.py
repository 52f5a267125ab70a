"""`clinometer train`: from a corpus to a checkpoint that says how well it predicts."""

from __future__ import annotations

import re

import pytest
from transformers.utils import logging

from tests.models.tiny import tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    logging.disable_progress_bar()
    return tiny("gpt2", tmp_path_factory.mktemp("models") / "tiny-gpt")


@pytest.fixture
def train(clinometer, model, tmp_path):
    """Run the command with what makes it small."""
    for name in ("news", "more"):
        lines = [f"The carpenter is kind, and {name} text {number} says so." for number in range(20)]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    small = ["--device", "cpu", "--batch", 4, "--window", 32, "--held-out", 10, "--learning-rate", 0.01]
    return lambda *arguments: clinometer("train", model, *small, *arguments)


def test_as_the_manual_writes_it(train, clinometer, tmp_path):
    result = train("--corpus", "news.txt", "more.txt", "--epochs", 2)
    assert result.code == 0, result
    folder = tmp_path / "tuned" / "tiny-gpt-news-more"
    lines = result.out.splitlines()
    assert lines[0] == "tuned/tiny-gpt-news-more"
    assert "30 of 40 texts with" in lines[1]
    number = r"([\d.,]+) \[([\d.,]+), ([\d.,]+)\]"
    told = re.fullmatch(
        f"  perplexity of 10 held-out texts: {number} before, {number} after, or {number} times as high", lines[2]
    )
    assert told, lines[2]
    before, _, _, after, _, _, ratio, low, high = (float(part.replace(",", "")) for part in told.groups())
    assert ratio == pytest.approx(after / before, rel=0.02)
    assert low < ratio < high < 1
    assert lines[3] == "next: clinometer audit tuned/tiny-gpt-news-more"
    assert "clinometer mitigate tuned/tiny-gpt-news-more --attribute" in lines[4]
    assert "training tiny-gpt-news-more" in result.err

    # once more: nothing is trained, the same is said
    weights = (folder / "model.safetensors").stat().st_mtime_ns
    again = train("--corpus", "news.txt", "more.txt", "--epochs", 2)
    assert (again.code, again.out) == (0, result.out)
    assert (folder / "model.safetensors").stat().st_mtime_ns == weights
    other = train("--corpus", "news.txt", "more.txt", "--epochs", 3)
    assert other.code == 2
    assert "epochs 2, now 3" in other.err


def test_from_scratch_has_a_place_of_its_own(train, tmp_path):
    result = train("--corpus", "news.txt", "--from-scratch", "--steps", 2, "--quiet")
    assert result.code == 0, result
    assert (tmp_path / "tuned" / "tiny-gpt-news-from-scratch" / "model.safetensors").is_file()
    assert (" 2 steps" in result.out, result.err) == (True, "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--corpus", "none.txt"], "no corpus 'none.txt'"),
        (["--corpus", "news.txt", "--fraction", "2"], "--fraction 2.0 is not valid"),
        (["--corpus", "news.txt", "--held-out", "20"], "20 different documents; expected at least 21"),
        (["--corpus", "news.txt", "--accumulate", "3"], "--accumulate 3 is not valid"),
        (["--corpus", "table.csv"], "ends in '.csv'"),
        (["--corpus", "binary.txt"], "zero byte"),
        (["--corpus", "news.txt", "--out", "news.txt"], "not a checkpoint of ours"),
    ],
)
def test_wrong_input(train, tmp_path, arguments, complaint):
    (tmp_path / "table.csv").write_text("a,b")
    (tmp_path / "binary.txt").write_bytes(b"a\0b")
    result = train(*arguments)
    assert result.code == 2, result
    assert complaint in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "tuned").exists()


def test_a_masked_model_is_sent_to_its_own_command(clinometer, tmp_path):
    tiny("bert", tmp_path / "bert")
    (tmp_path / "news.txt").write_text("A text.")
    result = clinometer("train", tmp_path / "bert", "--corpus", "news.txt")
    assert result.code == 2
    assert "is a masked model; train a causal one here" in result.err
    assert "clinometer shift" in result.err
