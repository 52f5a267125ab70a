"""A finding that is opened in a spreadsheet is text and numbers, never a formula."""

from __future__ import annotations

import csv

import polars as pl
import pytest

from tests.attacks.findings_of_strangers import run_with

FORMULAS = ('=HYPERLINK("http://x")', "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", "'=1")


@pytest.mark.parametrize("label", FORMULAS)
def test_a_label_is_not_a_live_cell(tmp_path, label):
    run = run_with(tmp_path / "run", label=label)
    with (run.path / "findings" / "theirs" / "lean.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["word"] for row in rows] == [f"'{label}", "pilot"]
    # numbers stay numbers, also negative ones
    assert [(row["estimate"], row["low"], row["n"], row["place"]) for row in rows] == [
        ("-0.5", "-0.75", "4", "0"),
        ("-0.5", "-0.75", "4", "1"),
    ]


def test_programs_read_the_label_as_it_is(tmp_path):
    run = run_with(tmp_path / "run", label="=1+1")
    (found,) = run.read_findings()
    assert found.tables[0].rows[0].labels["word"] == "=1+1"
    frame = pl.read_parquet(run.path / "findings" / "theirs" / "lean.parquet")
    assert frame["word"].to_list() == ["=1+1", "pilot"]


@pytest.mark.parametrize("label", ["3 to 5 words", "'tis", "true", "a=b", "nurse"])
def test_what_no_spreadsheet_runs_is_not_touched(tmp_path, label):
    run = run_with(tmp_path / "run", label=label)
    frame = pl.read_csv(run.path / "findings" / "theirs" / "lean.csv", infer_schema=False)
    assert frame["word"][0] == label


def test_the_name_of_a_column_is_not_a_live_cell(tmp_path):
    from clinometer.store import RunFolder
    from clinometer.types import Finding, Findings, FindingTable

    run = run_with(tmp_path / "run")
    row = Finding(labels={"=1+1": "nurse"}, estimate=0.5, n=1)
    run.write_findings(
        Findings(
            probe="theirs",
            tables=(FindingTable(name="lean", title="Lean", caption="", rows=(row,)),),
            figures=(), notices=(), headlines=(),
        )
    )  # fmt: skip
    header = (run.path / "findings" / "theirs" / "lean.csv").read_text().splitlines()[0]
    assert header.startswith('"\'=1+1"')
    (found,) = RunFolder.open(run.path).read_findings()
    assert found.tables[0].rows[0].labels == row.labels
