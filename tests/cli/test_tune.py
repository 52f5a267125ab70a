"""`clinometer tune --prompt`: checkpoints, and one audit of before and after."""

from __future__ import annotations

import csv

import pytest
from transformers.utils import logging

from clinometer.store import RunFolder
from tests.models.tiny import tiny
from tests.train.samples import reviews

WORDS = "word,label\ngood,positive\nfine,positive\nbad,negative\nangry,negative\nfilm,neutral\nbook,neutral\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    logging.disable_progress_bar()
    return tiny("bert", tmp_path_factory.mktemp("models") / "tiny-bert")


@pytest.fixture
def tune(clinometer, model, tmp_path):
    """Run the command with what makes it small."""
    (tmp_path / "words.csv").write_text(WORDS)
    with (tmp_path / "made-up.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows([review.text, review.label] for review in reviews())
    small = ["--reviews", "made-up.csv", "--shots", 3, "--steps", 6, "--device", "cpu", "--out", "out"]
    options = [
        "--profile", "quick",
        "--set", "sentiment_words.words_file=words.csv", "sentiment_words.reviews_per_class=10",
        "sentiment_words.draws=100", "sentiment_words.shift_words=none",
    ]  # fmt: skip
    return lambda *arguments: clinometer("tune", model, *small, *options, *arguments)


def test_before_and_after_in_one_report(tune, tmp_path):
    result = tune("--prompt", "--seeds", "13", "21", "--learning-rate", 0.001)
    assert result.code == 0, result
    out = tmp_path / "out"
    names = ["tiny-bert-prompt-13", "tiny-bert-prompt-21"]
    assert sorted(path.name for path in out.iterdir()) == ["audit", *names, "tune.lock"]
    run = RunFolder.open(out / "audit")
    assert [info.name for info in run.models] == ["tiny-bert", *names]
    assert [info.tuning.get("seed") for info in run.models] == [None, "13", "21"]
    assert {info.tuning["data"] for info in run.models[1:]} == {"made-up"}
    assert 'templates = [\n    "It was [MASK].",\n]' in run.spec  # what was trained is what is asked
    assert "right before" in result.out
    assert result.out.count("of 30 held-out reviews") == 4  # two seeds, with and without demonstrations

    weights = {name: (out / name / "model.safetensors").stat().st_mtime_ns for name in names}
    again = tune("--prompt", "--seeds", "13,21", "--learning-rate", 0.001)
    assert again.code == 0, again
    assert weights == {name: (out / name / "model.safetensors").stat().st_mtime_ns for name in names}
    assert "training" not in again.err

    other = tune("--prompt", "--seeds", "13", "21", "--learning-rate", 0.002)
    assert (other.code, "learning_rate 0.001, now 0.002" in other.err) == (2, True)
    profile = tune("--prompt", "--seeds", "1", "--seed", "13", "--learning-rate", 0.001)
    assert (profile.code, "was begun with models" in profile.err) == (2, True)
    (tmp_path / "words.csv").write_text(WORDS + "music,neutral\n")
    words = tune("--prompt", "--seeds", "13", "21", "--learning-rate", 0.001)
    assert words.code == 2, words
    assert "was begun with sentiment_words.words_file with checksum" in words.err
    (tmp_path / "words.csv").write_text(WORDS)
    draws = tune("--prompt", "--seeds", "13", "21", "--learning-rate", 0.001, "--set", "sentiment_words.draws=200")
    assert (draws.code, "begun with sentiment_words.draws 100, now 200;" in draws.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "say how to tune: --prompt"),
        (["--prompt", "--seeds", "13", "x"], "--seeds x: expected whole numbers"),
        (["--prompt", "--seeds", ","], "--seeds nothing: expected whole numbers"),
        (["--prompt", "--seeds", "42"], "42 trainings of each kind are many; name their seeds"),
        (["--prompt", "--seeds", "0"], "at least one training is needed"),
        (["--prompt", "--labels", "great"], "--labels 'great' is not valid"),
        (["--prompt", "--labels", "marvellous/terrible"], "label word 'marvellous' is not one token"),
        (["--prompt", "--template", "It was."], "template '{review} It was.' is not valid"),
        (["--prompt", "--set", "sentiment_words.draws=1"], "draws"),
    ],
)
def test_wrong_input(tune, arguments, complaint, tmp_path):
    result = tune(*arguments)
    assert result.code == 2, result
    assert complaint in result.err
    assert not (tmp_path / "out").exists()


def test_too_few_reviews(clinometer, model, tune, tmp_path):
    result = clinometer("tune", model, "--prompt", "--reviews", "made-up.csv", "--out", "out", "--no-audit")
    assert result.code == 2, result
    assert "found 30 negative, 30 positive reviews with distinct texts; 16 shots need 33 of each" in result.err
    assert not (tmp_path / "out").exists()
