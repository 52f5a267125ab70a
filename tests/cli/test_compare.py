"""`clinometer compare`: exit codes, limits, files, and the recipe of docs/compare.md."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path

import pytest

from clinometer.store import RunFolder
from tests.compared import ASPECT, stigma_run, trained_run

DOCS = Path(__file__).parents[2] / "docs" / "compare.md"
APART = "stigmatized and other conditions (negative attitude)"


@pytest.fixture
def runs(tmp_path):
    """Three runs of one model: even-handed, even-handed again, and one that leans."""
    return {
        "before": stigma_run(tmp_path / "before", "m", seed=1),
        "same": stigma_run(tmp_path / "same", "m", seed=2),
        "worse": stigma_run(tmp_path / "worse", "m", seed=3, lean=0.1, state="lean"),
        "gated": stigma_run(tmp_path / "gated", "m", gate="it did not understand"),
    }


@pytest.mark.parametrize(
    ("after", "options", "code"),
    [
        ("same", (), 0),
        ("worse", (), 0),
        ("same", ("--fail-on", "worse"), 0),
        ("worse", ("--fail-on", "worse"), 3),
        ("gated", ("--fail-on", "worse"), 4),
        ("gated", ("--fail-on", "worse", "--allow-cannot-tell"), 0),
        ("worse", ("--fail-on", "worse", "--allow-cannot-tell"), 3),
        ("same", ("--fail-on", "lean"), 0),
        ("worse", ("--fail-on", "lean"), 3),
        ("gated", ("--fail-on", "lean"), 4),
    ],
)
def test_exit_codes(clinometer, runs, after, options, code):
    assert clinometer("compare", runs["before"], runs[after], *options).code == code


def test_only_what_comes_after_may_lean(clinometer, runs):
    assert clinometer("compare", runs["worse"], runs["same"], "--fail-on", "lean").code == 0


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ('[stigma]\n"*" = 0.5', 0),
        ('[stigma]\n"*" = 0.01', 3),
        (f'[stigma]\n"{APART}" = 0.01', 3),
        (f'[stigma]\n"{APART}" = 0.5', 0),
        ('[stigma]\n"stigmatized conditions with mostly negative words (negative attitude)" = 0.0', 0),
    ],
)
def test_limits_accept_so_much_and_count_only_what_they_name(clinometer, runs, tmp_path, limits, code):
    (tmp_path / "limits.toml").write_text(limits)
    assert clinometer("compare", runs["before"], runs["worse"], "--limits", "limits.toml").code == code


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ('[stigmata]\n"*" = 1', "no audit 'stigmata'; did you mean 'stigma'?"),
        ('[stigma]\n"*" = "a"', "expected a number from 0 up"),
        ('[stigma]\n"*" = -1', "expected a number from 0 up"),
        ('[stigma]\n"*" = true', "expected a number from 0 up"),
        ("[stigma]", "has no limit"),
        ("", "name no audit"),
        ("[", "not valid TOML"),
        ('[stigma]\n"no such measure at all" = 1', "has nothing called 'no such measure at all'"),
    ],
)
def test_limits_that_cannot_hold_are_refused(clinometer, runs, tmp_path, limits, why):
    (tmp_path / "limits.toml").write_text(limits)
    done = clinometer("compare", runs["before"], runs["worse"], "--limits", "limits.toml")
    assert done.code == 2
    assert why in done.err


def test_limits_of_what_was_not_measured_are_refused_before_a_page_is_written(clinometer, runs, tmp_path):
    page = runs["worse"] / "report.html"
    page.write_text("as it was")
    (tmp_path / "limits.toml").write_text('[stigma]\n"nothing of the kind" = 0.1')
    done = clinometer("report", runs["worse"], "--limits", "limits.toml")
    assert done.code == 2
    assert "stigma has nothing called 'nothing of the kind'" in done.err
    assert page.read_text() == "as it was"


def test_a_comparison_is_not_written_into_the_folder_of_a_run(clinometer, runs):
    done = clinometer("compare", runs["before"], runs["worse"], "--out", runs["before"])
    assert done.code == 2
    assert "is the folder of a run" in done.err
    assert not (runs["before"] / "comparison.html").exists()


def test_what_a_limit_does_not_accept_is_said(clinometer, runs, tmp_path):
    (tmp_path / "limits.toml").write_text(f'[stigma]\n"{ASPECT}" = 0.001')
    done = clinometer("report", runs["worse"], "--limits", "limits.toml")
    assert done.code == 3
    assert "not accepted: stigma, " in done.out
    assert "the limit 0.001." in " ".join(done.out.split())


def test_audit_and_report_take_limits_too(clinometer, runs, tmp_path):
    (tmp_path / "limits.toml").write_text(f'[stigma]\n"{ASPECT}" = 0.001')
    assert clinometer("report", runs["worse"], "--limits", "limits.toml").code == 3
    (tmp_path / "limits.toml").write_text(f'[stigma]\n"{ASPECT}" = 0.5')
    assert clinometer("report", runs["worse"], "--limits", "limits.toml").code == 0
    assert clinometer("report", runs["gated"], "--limits", "limits.toml").code == 4
    assert clinometer("report", runs["gated"], "--limits", "limits.toml", "--allow-cannot-tell").code == 0
    done = clinometer("audit", "builtin:masked", "--out", "run", "--limits", "none.toml")
    assert done.code == 2
    assert "cannot read the limits none.toml" in done.err


@pytest.mark.parametrize("refused", ["lean", "worse"])
def test_several_trainings_of_a_model_are_compared_as_one(clinometer, tmp_path, refused):
    run = trained_run(tmp_path / "trained", control=(0.0, 0.01, 0.0), embedding=(0.1, 0.11, 0.1))
    page, verdicts = tmp_path / "page", tmp_path / "changes.json"
    done = clinometer("compare", run, "--fail-on", refused, "--out", page, "--json", verdicts)
    assert done.code == 3
    assert "given-embedding (3 trainings) tells stigmatized from other conditions more" in done.out
    kept = json.loads(verdicts.read_text(encoding="utf-8"))
    trained = {f"given-{method}-seed-{seed}" for method in ("control", "embedding") for seed in range(3)}
    assert set(kept["models"]) == {"given"} | trained


def test_it_says_what_changed_and_leaves_files(clinometer, runs, tmp_path):
    done = clinometer(
        "compare", runs["before"], runs["worse"], "--json", "c.json", "--markdown", "c.md", "--out", "o"
    )
    assert (
        "worse: m [worse] tells stigmatized from other conditions more by negative words than m [before]."
        in done.out
    )
    assert "no change found: 1 measure\n" in done.out
    assert (tmp_path / "o" / "comparison.html").is_file()
    written = json.loads((tmp_path / "c.json").read_text())
    assert written["changes"][0]["state"] == "worse"
    assert written["models"]["m [worse]"][0]["state"] == "lean"
    comment = (tmp_path / "c.md").read_text()
    assert comment.startswith("### Clinometer, before and after: 1 × worse, 1 × no change found")
    assert len(comment) < 65_536


def test_fail_on_is_checked_before_the_work(clinometer, runs):
    done = clinometer("compare", runs["before"], runs["worse"], "--fail-on", "wurst")
    assert done.code == 2
    assert "write --fail-on worse or --fail-on lean" in done.err


def test_the_pytest_example_of_the_documents_runs(runs, monkeypatch, tmp_path):
    (example,) = re.findall(r"```python\n(.*?def test_.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 10
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    for after, fails in (("same", False), ("worse", True)):
        for name, run in (("before", runs["before"]), ("after", runs[after])):
            place = tmp_path / "runs" / name
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(run, place)
        scope: dict[str, object] = {}
        exec(compile(example, "example", "exec"), scope)
        (test,) = [each for name, each in scope.items() if name.startswith("test_")]
        if fails:
            with pytest.raises(AssertionError, match="tells stigmatized from other conditions more"):
                test()
        else:
            test()


def test_a_limit_of_an_audit_that_nobody_ran_tells_nothing(clinometer, runs, tmp_path):
    (tmp_path / "limits.toml").write_text('[counterexamples]\n"*" = 0.1')
    assert clinometer("compare", runs["before"], runs["same"], "--limits", "limits.toml").code == 4


def test_a_limit_of_an_audit_that_nobody_ran_does_not_pass_beside_one_that_holds(clinometer, runs, tmp_path):
    (tmp_path / "limits.toml").write_text('[stigma]\n"*" = 0.5\n[counterexamples]\n"*" = 0.1')
    compared = ("compare", runs["before"], runs["same"], "--limits", "limits.toml")
    assert clinometer(*compared).code == 4
    assert clinometer(*compared, "--allow-cannot-tell").code == 0


def test_a_run_that_cannot_be_opened_has_not_passed(clinometer, runs):
    compared = ("compare", runs["before"], runs["same"], "nowhere")
    assert clinometer(*compared).code == 0
    for wanted in ("worse", "lean"):
        assert clinometer(*compared, "--fail-on", wanted).code == 4
        assert clinometer(*compared, "--fail-on", wanted, "--allow-cannot-tell").code == 0


def test_of_many_models_one_must_be_named_before_one_can_be_worse(clinometer, tmp_path):
    runs = [stigma_run(tmp_path / f"r{i}", f"m{i}", seed=i) for i in range(5)]
    done = clinometer("compare", *runs)
    assert "5 models side by side; with --base" in done.out
    (tmp_path / "limits.toml").write_text('[stigma]\n"*" = 0.5')
    for options in (("--fail-on", "worse"), ("--limits", "limits.toml")):
        done = clinometer("compare", *runs, *options)
        assert done.code == 2
        assert "name one with --base" in done.err
        assert clinometer("compare", *runs, *options, "--base", "m0").code == 0
    assert clinometer("compare", *runs, "--fail-on", "lean", "--limits", "limits.toml").code == 0


def test_it_says_why_something_cannot_be_told(clinometer, runs):
    assert (
        "cannot tell: 2 measures: m: it did not understand"
        in clinometer("compare", runs["before"], runs["gated"]).out
    )


@pytest.mark.parametrize("option", ["--json", "--markdown"])
def test_a_dash_is_not_a_file(clinometer, runs, tmp_path, option):
    done = clinometer("compare", runs["before"], runs["same"], option, "-")
    assert done.code == 2
    assert not (tmp_path / "-").exists()


def test_a_card_of_an_incomplete_run_says_how_to_go_on(clinometer, runs):
    shutil.rmtree(runs["same"] / "findings")
    done = clinometer("card", runs["same"])
    assert done.code == 2
    assert "has no findings; complete it with `clinometer resume" in done.err


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 0),
        (("--fail-on", "worse"), 4),
        (("--fail-on", "worse", "--allow-cannot-tell"), 0),
    ],
)
def test_an_audit_that_only_one_of_two_runs_has_could_not_be_told(clinometer, runs, tmp_path, options, code):
    also = RunFolder.open(runs["same"])
    (found,) = also.read_findings()
    asked = tuple(dataclasses.replace(each, audit="counterexamples") for each in found.verdicts)
    also.write_findings(dataclasses.replace(found, probe="counterexamples", verdicts=asked))
    done = clinometer("compare", runs["before"], runs["same"], "--out", tmp_path, *options)
    assert done.code == code
    assert "cannot tell: 1 measure: m [same] was asked, m [before] was not" in done.out
    for limits, expected in (
        ('[stigma]\n"*" = 0.5', 0),
        ('[counterexamples]\n"*" = 0.5', 4),
        ('[counterexamples]\n"stereotype" = 0.5', 4),
    ):
        (tmp_path / "limits.toml").write_text(limits, encoding="utf-8")
        given = ("compare", runs["before"], runs["same"], "--out", tmp_path, "--limits", tmp_path / "limits.toml")
        assert clinometer(*given).code == expected
