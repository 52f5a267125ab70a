"""Comparing runs: who is paired with whom, what is shared, and what comes out of it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import clinometer
from clinometer.errors import ClinometerError, InputError
from clinometer.store import RunFolder
from clinometer.types import Finding, FindingTable
from tests.compared import stigma_findings, stigma_run

APART = "stigmatized and other conditions (negative attitude)"


@pytest.fixture
def runs(tmp_path):
    quiet = stigma_run(tmp_path / "quiet", "m", seed=1)
    loud = stigma_run(tmp_path / "loud", "m", seed=2, lean=0.1)
    return quiet, loud


def states(compared):
    return {each.measure: each.state for each in compared.verdicts}


def test_two_runs_of_one_model_are_paired_and_told_apart(runs):
    compared = clinometer.compare(*runs)
    assert compared.pairs == (("m [quiet]", "m [loud]"),)
    assert states(compared)[APART] == "worse"
    assert compared.headlines[0].startswith("m [loud] tells stigmatized from other conditions more")


def test_base_says_which_is_before(runs):
    quiet, loud = runs
    assert states(clinometer.compare(quiet, loud, base=str(loud)))[APART] == "better"
    assert states(clinometer.compare(quiet, loud, base="loud"))[APART] == "better"
    with pytest.raises(InputError, match="neither one of the runs nor a model"):
        clinometer.compare(quiet, loud, base="lound")


def test_one_model_each_is_paired_whatever_its_name(tmp_path, runs):
    other = stigma_run(tmp_path / "other", "n", seed=3, lean=0.1)
    assert clinometer.compare(runs[0], other).pairs == (("m", "n"),)
    assert clinometer.compare(f"{runs[0]}::m", other).pairs == (("m", "n"),)
    with pytest.raises(InputError, match="no model 'x' in"):
        clinometer.compare(f"{runs[0]}::x", other)


def test_a_run_alone_needs_two_models(runs):
    with pytest.raises(InputError, match="only one model to compare"):
        clinometer.compare(runs[0])
    with pytest.raises(InputError, match="nothing to compare"):
        clinometer.compare()


def test_an_option_that_changes_what_is_measured_stops_the_comparison(tmp_path, runs):
    other = stigma_run(tmp_path / "other", "m", seed=3, lean=0.1, options="top_k = 20")
    compared = clinometer.compare(runs[0], other)
    assert set(states(compared).values()) == {"cannot tell"}
    assert compared.verdicts[0].reason == "they were asked with another top_k"
    assert "stigma: option top_k differs, 50 and 20." in compared.notes


def test_an_option_that_only_chooses_what_is_asked_does_not(tmp_path, runs):
    other = stigma_run(tmp_path / "other", "m", seed=3, lean=0.1, options="draws = 200")
    compared = clinometer.compare(runs[0], other)
    assert states(compared)[APART] == "worse"
    assert "stigma: option draws differs, 1999 and 200." in compared.notes


def test_runs_of_two_versions_of_an_audit_are_not_compared(tmp_path, runs):
    other = stigma_run(tmp_path / "other", "m", seed=3, lean=0.1)
    folder = RunFolder.open(other)
    made = RunFolder.create(
        tmp_path / "older", spec=folder.spec, provenance={"questions": {"stigma": 0}}, models=folder.models
    )
    made.write_findings(folder.read_findings()[0])
    compared = clinometer.compare(runs[0], made.path)
    assert compared.verdicts[0].reason == "they were asked by two versions of this audit"


def test_what_is_shared_is_counted(tmp_path, runs):
    fewer = stigma_run(tmp_path / "fewer", "m", seed=3, lean=0.1)
    table = RunFolder.open(fewer).read_findings()[0].tables[0]
    rows = [row for row in table.rows if int(row.labels["condition"].split()[1]) % 2]
    found = stigma_findings("m", [])
    kept = FindingTable(name=table.name, title="t", caption="c", rows=tuple(rows))
    RunFolder.open(fewer).write_findings(replace(found, tables=(kept,)))
    compared = clinometer.compare(runs[0], fewer)
    row = compared["shared"].to_polars().row(0, named=True)
    assert (row["units_before"], row["units_after"], row["estimate"]) == (60, 30, 30)
    assert compared.verdicts[0].n == 30


def test_a_gate_is_told(tmp_path, runs):
    gated = stigma_run(tmp_path / "gated", "m", gate="it takes 0.15")
    compared = clinometer.compare(runs[0], gated)
    assert set(states(compared).values()) == {"cannot tell"}
    assert compared.verdicts[0].reason == "m: it takes 0.15"


def test_it_reads_like_a_run(runs):
    compared = clinometer.compare(*runs)
    assert list(compared) == ["changes", "units", "ranks", "shared", "similarity", "standings"]
    assert repr(compared) == "<comparison m [quiet] → m [loud]: 1 × worse, 1 × no change found>"
    assert "<table>" in compared._repr_html_()
    changes = compared["changes"].to_polars()
    assert changes["state"].to_list() == ["worse", "no change found"]
    assert compared.plot() is not None
    units = compared["units"].to_polars()
    assert units.height == 120
    assert units["estimate"].abs()[0] == units["estimate"].head(60).abs().max()
    with pytest.raises(KeyError, match="did you mean 'units'"):
        compared["unit"]


def test_a_bundle_is_a_source_like_its_folder(tmp_path, runs, monkeypatch):
    opened = []
    monkeypatch.setattr(
        "clinometer.workflows.compare.open_any", lambda place: opened.append(place) or RunFolder.open(runs[0])
    )
    clinometer.compare("b.zip", runs[1])
    assert opened[0].name == "b.zip"


def test_many_models_are_placed_with_letters(tmp_path):
    places = [stigma_run(tmp_path / f"r{i}", f"m{i}", seed=i, lean=0.2 * (i > 3)) for i in range(6)]
    compared = clinometer.compare(*places)
    assert compared.pairs == ()
    rows = compared["standings"].to_polars().filter(measure=APART)
    letters = dict(rows.select("model", "group").iter_rows())
    assert {letters[f"m{i}"] for i in range(4)} == {"a"}
    assert {letters["m4"], letters["m5"]} == {"b"}
    assert not any(map(math.isnan, rows["low"]))
    with_base = clinometer.compare(*places, base="m0")
    assert len(with_base.pairs) == 5


def test_of_many_every_model_is_compared_with_the_one_that_is_named(tmp_path):
    run = RunFolder.open(stigma_run(tmp_path / "first", "m0"))
    spec = run.spec.replace('models = [{name = "m0"}]', 'models = [{name = "m0"}, {name = "m1"}]')
    infos = [run.models[0], replace(run.models[0], name="m1")]
    two = RunFolder.create(tmp_path / "two", spec=spec, provenance=run.provenance, models=infos)
    two.write_findings(run.read_findings()[0])
    places = [two.path, *(stigma_run(tmp_path / f"r{i}", f"m{i}", seed=i) for i in (0, 2, 3))]
    compared = clinometer.compare(*places, base="m1")
    assert compared.pairs == tuple(("m1", after) for after in ("m0 [two]", "m0 [r0]", "m2", "m3"))


def test_an_audit_of_somebody_else_is_shown_without_numbers(runs):
    class Silent:
        name, title = "silent", "Silent"

    compared = clinometer.compare(*runs, probes=[Silent()])
    assert "stigma" in compared.audits
    assert "silent" not in compared.audits


def test_finding_tables_hold_what_the_page_shows(runs, tmp_path):
    compared = clinometer.compare(*runs)
    page = compared.write_page(tmp_path / "new" / "page.html")
    assert page.read_text(encoding="utf-8").count("condition 1<") + 1 > 0
    assert isinstance(compared["units"].rows[0], Finding)


def test_of_many_those_that_are_no_runs_are_left_out(tmp_path, runs):
    (tmp_path / "empty").mkdir()
    compared = clinometer.compare(*runs, tmp_path / "empty")
    assert compared.pairs == (("m [quiet]", "m [loud]"),)
    assert any(note.startswith("Left out: ") and "empty" in note for note in compared.notes)
    with pytest.raises(ClinometerError):
        clinometer.compare(runs[0], tmp_path / "empty")


def test_what_is_before_is_never_left_out_silently(tmp_path, runs):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"the first is before, and cannot be opened: .*empty is not a run"):
        clinometer.compare(tmp_path / "empty", *runs)
    compared = clinometer.compare(tmp_path / "empty", *runs, base="loud")
    assert compared.pairs == (("m [loud]", "m [quiet]"),)
    assert len(compared.left_out) == 1


def test_runs_of_one_name_are_told_apart_without_whole_paths(tmp_path):
    places = [stigma_run(tmp_path / where / "run", "m", seed=i) for i, where in enumerate(("x", "y"))]
    assert clinometer.compare(*places).models == ("m [x/run]", "m [y/run]")
    assert clinometer.compare(places[0], places[0]).models == ("m [run, 1]", "m [run, 2]")


def test_an_audit_that_only_one_run_has_could_not_be_told(tmp_path, runs):
    other = stigma_run(tmp_path / "other", "m")
    found = stigma_findings("m", [0.3] * 60)
    asked = tuple(replace(each, audit="counterexamples") for each in found.verdicts)
    RunFolder.open(other).write_findings(replace(found, probe="counterexamples", verdicts=asked))
    (other / "findings" / "stigma").rename(tmp_path / "gone")
    compared = clinometer.compare(runs[0], other)
    untold = {each.audit: each for each in compared.verdicts}
    assert {each.state for each in untold.values()} == {"cannot tell"}
    assert untold["stigma"].reason == "m [quiet] was asked, m [other] was not"
    assert untold["counterexamples"].reason == "m [other] was asked, m [quiet] was not"
    assert untold["stigma"].measure == "every measure"
    assert compared["changes"].to_polars().height == 2
