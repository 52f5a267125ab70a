"""Two doors, one workflow: the library and the command line ask for the same, and are refused alike."""

from __future__ import annotations

import csv
import re
import sys

import pytest

import clinometer
from clinometer.cli.main import main
from clinometer.errors import InputError
from clinometer.results import Run
from clinometer.train import CorpusSettings, LabellingSettings, MaskedSettings, MitigationSettings, PromptSettings
from clinometer.types import ModelSpec
from clinometer.workflows import CheckpointAudit, Execution, mitigate, shift, tune
from tests.cli.test_tune import WORDS
from tests.models.tiny import tiny
from tests.train.mitigation_samples import write_planted
from tests.train.samples import reviews


class Asked(BaseException):
    """A door has made its request."""


@pytest.fixture
def requests(monkeypatch):
    """Requests, in the order in which doors make them; nothing is done."""
    made = []

    def take(request, *, progress=None):
        made.append(request)
        raise Asked

    monkeypatch.setattr(mitigate, "run_mitigation", take)
    monkeypatch.setattr(tune, "run_tuning", take)
    monkeypatch.setattr(shift, "run_shift", take)
    return made


@pytest.fixture
def command(monkeypatch):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["clinometer", *map(str, arguments)])
        main()

    return run


def test_both_doors_ask_for_the_same_mitigation(requests, command):
    with pytest.raises(Asked):
        command(
            "mitigate", "m", "--corpus", "a.txt", "b.txt", "--attribute", "name",
            "--method", "embedding", "sentiment", "--strength", "0", "10",
            "--unit", "window", "--ordinary", 0.5, "--hidden", 0.9,
            "--steps", 7, "--batch", 6, "--accumulate", 2, "--learning-rate", 1e-3,
            "--window", 64, "--lora", 4, "--dtype", "bfloat16", "--held-out", 20, "--max-articles", 300,
            "--labels-from", "builtin:opinion-words", "--labelled", 50, "--threshold", 0.5, "--seed", 3,
            "--seeds", 3, 8,
            "--out", "o", "--profile", "quick", "--set", "counterfactual.samples=4", "--device", "cpu",
            "--scorer", "builtin:sentiment", "s", "--label-map", "s:A=negative,B=positive", "--encoder", "e",
        )  # fmt: skip
    scorers = ["builtin:sentiment", ModelSpec(name="s", label_map={"A": "negative", "B": "positive"})]
    with pytest.raises(Asked):
        clinometer.mitigate(
            "m",
            corpus=["a.txt", "b.txt"],
            attribute="name",
            methods=["embedding", "sentiment"],
            strengths=[0, 10],
            settings=MitigationSettings(
                unit="window",
                ordinary=0.5,
                hidden=0.9,
                steps=7,
                batch=6,
                accumulate=2,
                learning_rate=1e-3,
                window=64,
                lora=4,
                dtype="bfloat16",
                seed=3,
            ),
            seeds=[3, 8],
            corpus_settings=CorpusSettings(
                held_out=20,
                at_most=300,
                labelling=LabellingSettings(scorer="builtin:opinion-words", sentences=50, threshold=0.5, seed=3),
            ),
            out="o",
            audit=CheckpointAudit(
                profile="quick",
                options={"counterfactual": {"samples": 4}},
                roles={"scorer": tuple(scorers), "encoder": ("e",)},
            ),
            execution=Execution(device="cpu"),
        )
    with pytest.raises(Asked):
        command("mitigate", "m", "--corpus", "a.txt", "--attribute-file", "job.toml")
    with pytest.raises(Asked):
        clinometer.mitigate("m", corpus="a.txt", attribute="job.toml")
    by_command, by_call, own_by_command, own_by_call = requests
    assert by_command == by_call
    assert own_by_command == own_by_call


def test_both_doors_ask_for_the_same_tuning(requests, command):
    with pytest.raises(Asked):
        command("tune", "m", "--prompt", "--seeds", "13,21", "--reviews", "r.csv", "--steps", 1000, "--shots", 8)
    with pytest.raises(Asked):
        clinometer.tune("m", seeds=[13, 21], reviews="r.csv", settings=PromptSettings(shots=8))
    with pytest.raises(Asked):
        command("tune", "m", "--prompt")
    with pytest.raises(Asked):
        clinometer.tune("m")
    assert requests[0] == requests[1]
    assert requests[2] == requests[3] != requests[0]


def test_both_doors_ask_for_the_same_shift(requests, command):
    with pytest.raises(Asked):
        command("shift", "m", "--corpus", "a.txt", "b.txt", "--fraction", "0.5", "1", "--epochs", 2, "--out", "o",
                "--seeds", 2)  # fmt: skip
    with pytest.raises(Asked):
        clinometer.shift(
            "m", corpus=["a.txt", "b.txt"], fractions=[0.5, 1], settings=MaskedSettings(epochs=2), out="o", seeds=2
        )
    with pytest.raises(Asked):
        command("shift", "m", "--corpus", "a.txt")
    with pytest.raises(Asked):
        clinometer.shift("m", corpus="a.txt")
    assert requests[0] == requests[1]
    assert requests[2] == requests[3] != requests[0]


@pytest.mark.parametrize("door", ["command", "library"])
def test_a_masked_model_with_sentiment_is_refused_at_once(door, command, monkeypatch, tmp_path, capsys):
    model = tiny("bert", tmp_path / "models" / "tiny-bert")
    corpus, attribute = write_planted(tmp_path, texts=60)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def never(*_, **__):
        raise AssertionError("nothing may be read or loaded for this")

    monkeypatch.setattr(mitigate, "read_material", never)
    monkeypatch.setattr("clinometer.workflows.checkpoints.inspect_model", never)
    monkeypatch.setattr("clinometer.train.base.load_filler", never)
    told = "the method sentiment is for causal models, and .*tiny-bert' is a masked one; give --method embedding"
    if door == "command":
        arguments = ["--corpus", corpus, "--attribute-file", attribute, "--method", "embedding", "sentiment"]
        capsys.readouterr()
        with pytest.raises(SystemExit, match="2"):
            command("mitigate", model, *arguments)
        message = capsys.readouterr().err
        assert message.count("\n") == 1
    else:
        with pytest.raises(InputError) as refused:
            clinometer.mitigate(str(model), corpus=corpus, attribute=attribute, methods=["embedding", "sentiment"])
        message = str(refused.value)
    assert re.search(told, message)
    assert not list(work.iterdir())


def test_a_model_can_be_shifted_and_tuned_from_python(tmp_path):
    model = str(tiny("bert", tmp_path / "tiny-bert"))
    corpus = tmp_path / "news.txt"
    corpus.write_text("\n".join(f"Why are carpenters so kind? They are kind {number}." for number in range(40)))
    (tmp_path / "groups.csv").write_text(
        "group,category\ncarpenters,profession\nteachers,profession\nengineers,profession\nfriends,age\n"
    )
    options = {"stereotypes": {"groups_file": str(tmp_path / "groups.csv"), "top_k": 15, "draws": 100}}
    run = clinometer.shift(
        model,
        corpus=corpus,
        fractions=[1],
        out=tmp_path / "shifted",
        audit=CheckpointAudit(profile="quick", options=options),
        execution=Execution(device="cpu"),
    )
    assert isinstance(run, Run)
    assert [info.name for info in run.models] == ["tiny-bert", "tiny-bert-news-1"]
    assert run.report_path.is_file()

    with (tmp_path / "made-up.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "label"], *([review.text, review.label] for review in reviews())])
    (tmp_path / "words.csv").write_text(WORDS)
    asked = {
        "words_file": str(tmp_path / "words.csv"),
        "reviews_per_class": 10,
        "draws": 100,
        "shift_words": "none",
    }
    run = clinometer.tune(
        model,
        reviews=tmp_path / "made-up.csv",
        seeds=[13],
        settings=PromptSettings(shots=3, steps=4, score_every=2),
        out=tmp_path / "tuned",
        audit=CheckpointAudit(profile="quick", options={"sentiment_words": asked}),
        execution=Execution(device="cpu"),
    )
    assert [info.tuning.get("seed") for info in run.models] == [None, "13"]
    assert run.report_path.is_file()


def test_a_refusal_leaves_other_peoples_files(tmp_path):
    """Only what this command made is taken away again."""
    model = str(tiny("bert", tmp_path / "tiny-bert"))
    (tmp_path / "broken.jsonl").write_text('{"text": "A text."}\nnot JSON\n')
    for out, made in ((tmp_path / "new" / "out", ()), (tmp_path / "empty", (tmp_path / "empty",))):
        for folder in made:
            folder.mkdir()
        with pytest.raises(InputError, match="not JSON"):
            clinometer.shift(model, corpus=tmp_path / "broken.jsonl", out=out, execution=Execution(device="cpu"))
        assert (out.exists(), (tmp_path / "new").exists()) == (bool(made), False)
        assert not out.exists() or not list(out.iterdir())
