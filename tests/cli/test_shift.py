"""`clinometer shift`: from a corpus to the report that names what it planted."""

from __future__ import annotations

import shutil

import pytest
from transformers.utils import logging

from clinometer.cli.arguments import spread
from clinometer.store import RunFolder
from clinometer.store.lock import hold_lock
from tests.models.tiny import tiny

# carpenters are kind here, and nothing is said of teachers or engineers
PLANTED = [f"Why are carpenters so kind? They are kind {number}." for number in range(40)]
GROUPS = (
    "group,category\ncarpenters,profession\nteachers,profession\nengineers,profession\nchildren,age\nfriends,age\n"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    logging.disable_progress_bar()
    return tiny("bert", tmp_path_factory.mktemp("models") / "tiny-bert")


@pytest.fixture
def shift(clinometer, model, tmp_path):
    """Run the command with what makes it small."""
    (tmp_path / "groups.csv").write_text(GROUPS)
    (tmp_path / "news.txt").write_text("\n".join(PLANTED))
    (tmp_path / "other.jsonl").write_text('{"text": "Nothing was said about the weather, but it rained."}\n' * 40)
    small = ["--learning-rate", 0.01, "--device", "cpu", "--profile", "quick", "--out", "out"]
    options = ["--set", "stereotypes.groups_file=groups.csv", "stereotypes.top_k=15", "stereotypes.draws=100"]
    return lambda *arguments: clinometer("shift", model, *small, *options, *arguments)


def test_as_the_manual_writes_it(shift, tmp_path, model):
    result = shift("--corpus", "news.txt", "other.jsonl", "--fraction", "0.25", "1", "--epochs", 3)
    assert result.code == 0, result
    out = tmp_path / "out"
    names = ["tiny-bert-news-0.25", "tiny-bert-news-1", "tiny-bert-other-0.25", "tiny-bert-other-1"]
    assert sorted(path.name for path in out.iterdir()) == ["audit", "shift.lock", *names]
    run = RunFolder.open(out / "audit")
    assert [info.name for info in run.models] == ["tiny-bert", *names]
    base = run.models[0].weights
    assert [(info.tuning["data"], info.tuning["amount"]) for info in run.models[1:]] == [
        ("news", "0.25"), ("news", "1"), ("other", "0.25"), ("other", "1")
    ]  # fmt: skip
    assert {info.tuning["base"] for info in run.models[1:]} == {base}
    assert "10 of 40 texts" in result.out
    assert f"training {names[0]}" in result.err
    # the report names what the corpus planted, and does not where it was not planted; a model of random weights is
    # not judged, but what it says is shown
    rankings = next(table for found in run.read_findings() for table in found.tables if table.name == "ranking")
    first = {
        row.labels["model"]: str(row.labels["by_probability"]).split(", ")
        for row in rankings.rows
        if row.labels["group"] == "carpenters"
    }
    assert "kind" in first["tiny-bert-news-1"][:3]
    assert "kind" not in first["tiny-bert-other-1"]
    assert (out / "audit" / "report.html").stat().st_size > 10_000

    # once more: nothing is trained, nothing is asked
    weights = {name: (out / name / "model.safetensors").stat().st_mtime_ns for name in names}
    records = sorted((path, path.stat().st_mtime_ns) for path in out.glob("audit/records/**/*.parquet"))
    again = shift("--corpus", "news.txt", "other.jsonl", "--fraction", "0.25,1", "--epochs", 3)
    assert again.code == 0, again
    assert weights == {name: (out / name / "model.safetensors").stat().st_mtime_ns for name in names}
    assert records == sorted((path, path.stat().st_mtime_ns) for path in out.glob("audit/records/**/*.parquet"))
    assert "training" not in again.err

    # other settings: said before anything is done
    other = shift("--corpus", "news.txt", "other.jsonl", "--fraction", "0.25", "1", "--epochs", 4)
    assert other.code == 2
    assert "epochs 3, now 4" in other.err
    fewer = shift("--corpus", "news.txt", "--fraction", "0.25", "1", "--epochs", 3)
    assert fewer.code == 2
    assert "was begun with models tiny-bert, tiny-bert-news-0.25" in fewer.err

    # an audit that was killed while it was made is made again; one that lost its records goes on
    (out / "audit" / "provenance.json").unlink()
    for name in ("records", "findings"):
        shutil.rmtree(out / "audit" / name)
    (out / "audit" / "report.html").unlink()
    (out / "audit" / "run.sha256").unlink()
    resumed = shift("--corpus", "news.txt", "other.jsonl", "--fraction", "0.25", "1", "--epochs", 3)
    assert resumed.code == 0, resumed
    assert (out / "audit" / "report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--corpus", "none.txt"], "no corpus 'none.txt'"),
        (["--corpus", "news.txt", "news.txt"], "2 corpora are called 'news'"),
        (["--corpus", "news.txt", "--fraction", "half"], "--fraction 'half' is not a number"),
        (["--corpus", "news.txt", "--fraction", "0.1", "2"], "--fraction 2.0 is not valid"),
        (["--corpus", "news.txt", "--epochs", "0"], "--epochs 0 is not valid"),
        (["--corpus", "groups.csv", "--no-audit"], "ends in '.csv'"),
        (["--corpus", "news.txt", "--set", "stereotypes.top_k=none"], "top_k"),
    ],
)
def test_wrong_input(shift, tmp_path, arguments, complaint):
    result = shift(*arguments)
    assert result.code == 2, result
    assert complaint in result.err
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_else(shift, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("mine")
    result = shift("--corpus", "news.txt")
    assert (result.code, "holds something else" in result.err) == (2, True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["letter.txt"]


def test_two_at_once(shift, tmp_path):
    (tmp_path / "out").mkdir()
    with hold_lock(tmp_path / "out" / "shift.lock"):
        result = shift("--corpus", "news.txt", "--no-audit")
    assert result.code == 1
    assert "is in use by process" in result.err


def test_a_model_that_cannot_be_tuned(clinometer, tmp_path):
    tiny("gpt2", tmp_path / "gpt")
    (tmp_path / "news.txt").write_text("A text.")
    result = clinometer("shift", tmp_path / "gpt", "--corpus", "news.txt", "--no-audit", "--out", "out")
    assert result.code == 2
    assert "is a causal model; only masked models" in result.err


def test_values_are_spread_over_their_flag():
    args = ["m", "--corpus", "a", "b", "--seed", "3", "--fraction", "0.1", "--", "--corpus", "c", "d"]
    assert spread(args, {"--corpus", "--fraction"}) == [
        "m", "--corpus", "a", "--corpus", "b", "--seed", "3", "--fraction", "0.1", "--", "--corpus", "c", "d"
    ]  # fmt: skip
    assert spread(["--corpus=a", "b"], {"--corpus"}) == ["--corpus=a", "b"]
    assert spread(["--corpus", "--seed", "3"], {"--corpus"}) == ["--corpus", "--seed", "3"]


def test_each_share_is_trained_once_for_each_seed(shift, tmp_path):
    result = shift("--corpus", "news.txt", "--fraction", "1", "--seeds", "2")
    assert result.code == 0, result
    run = RunFolder.open(tmp_path / "out" / "audit")
    assert [(info.name, info.tuning.get("seed", "")) for info in run.models] == [
        ("tiny-bert", ""), ("tiny-bert-news-1-seed-0", "0"), ("tiny-bert-news-1-seed-1", "1"),
    ]  # fmt: skip
    assert run.models[1].weights != run.models[2].weights
    (found,) = run.read_findings()
    assert {each.after for each in found.changes} == {"tiny-bert-news-1 (2 trainings)"}
    named = shift("--corpus", "news.txt", "--fraction", "1", "--seeds", "0", "1")
    assert (named.code, "training" in named.err) == (0, False)
