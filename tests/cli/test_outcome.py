"""Verdicts as files and as an exit code, for continuous integration."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from clinometer.store import RunFolder
from tests.report.samples import model_info, small_findings
from tests.report.test_summary import LEAN, NONE, UNKNOWN

SPEC = 'version = 1\nprobes = ["small"]\nmodels = [{name = "one"}]\n'


@pytest.fixture
def run_with(tmp_path):
    """Make a run on disk whose findings have the verdicts given."""

    def make(*verdicts):
        made = RunFolder.create(tmp_path / "run", spec=SPEC, provenance={}, models=[model_info("one")])
        named = tuple(replace(verdict, audit="small") for verdict in verdicts)
        made.write_findings(replace(small_findings(), verdicts=named))
        return made.path

    return make


@pytest.mark.parametrize(("verdict", "code"), [(LEAN, 3), (UNKNOWN, 4), (NONE, 0)])
def test_fail_on_lean(clinometer, run_with, verdict, code):
    run = run_with(verdict)
    assert clinometer("report", run).code == 0
    assert clinometer("report", run, "--fail-on", "lean").code == code
    assert clinometer("report", run, "--fail-on", "lean", "--allow-cannot-tell").code == (3 if code == 3 else 0)


def test_files_are_written_also_when_the_code_is_not_0(clinometer, run_with, tmp_path):
    done = clinometer("report", run_with(LEAN), "--fail-on", "lean", "--json", "v.json", "--markdown", "v.md")
    assert done.code == 3
    assert json.loads((tmp_path / "v.json").read_text())["verdicts"][0]["state"] == "lean"
    assert (tmp_path / "v.md").read_text().startswith("### Clinometer: 1 × lean")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--fail-on", "leen"), "--fail-on 'leen' is not known; write --fail-on lean"),
        (("--json", "no/such/folder.json"), "its folder does not exist"),
        (("--markdown", "."), "it is a folder"),
        (("--allow-cannot-tell",), "--allow-cannot-tell is about the exit code of --fail-on or --limits"),
    ],
)
def test_a_mistake_is_told_before_the_work(clinometer, options, why):
    done = clinometer("audit", "builtin:masked", "--out", "run", *options)
    assert done.code == 2
    assert why in done.err
    assert done.err.count("\n") == 1
