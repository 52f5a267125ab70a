"""The run object: what a reader of a notebook sees and takes out of it."""

from __future__ import annotations

import builtins
import datetime
import html
import math
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import altair as alt
import polars as pl
import pytest

import clinometer
from clinometer.errors import InputError
from clinometer.models.fake import FakeModel
from clinometer.report.chart_style import PAPER
from clinometer.report.charts import chart
from clinometer.results import Run
from clinometer.store import RunFolder
from clinometer.store.findings import findings_digest
from clinometer.types import AuditSpec, ModelSpec, Notice, WordAnswer
from clinometer.workflows.specs import new_run_folder
from tests.report.payloads import PAYLOADS
from tests.report.samples import findings, model_info

NUMBERS = ["estimate", "low", "high", "p", "q", "n"]


def run_of(folder, found, models=("builtin:causal",)):
    """Return a run on disk with the findings given, and no records."""
    made = RunFolder.create(folder, spec="", provenance={}, models=[model_info(name) for name in models])
    for each in found:
        made.write_findings(each)
    return clinometer.open_run(folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Made-up findings with a figure of every mark."""
    return run_of(tmp_path_factory.mktemp("runs") / "sample", [findings()])


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A run that really asked somebody: two stages, so that records have to be chosen."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "jobs.csv").write_text("occupation,percent_female\nnurse,90\nteacher,75\nengineer,15\nmason,3\n")
    options = {"occupations_file": str(folder / "jobs.csv"), "backgrounds": 1, "draws": 100}
    return clinometer.audit(
        FakeModel(answer=stereotyped, version="1", name="mine"),
        probes="counterexamples",
        options={"counterexamples": options},
        folder=folder / "run",
    )


def stereotyped(request):
    """Expect nurses and teachers to be women, so that there is something to draw."""
    woman = 0.6 if "nurse" in request.text or "teacher" in request.text else 0.2
    return WordAnswer(words=("woman", "man"), logprobs=(math.log(woman), math.log(0.8 - woman)))


def test_a_run_prints_in_one_line(run):
    (name,) = run
    assert repr(run) == f"<run {run.path}: {name}; builtin:causal>"


def test_a_run_of_many_models_prints_short(tmp_path):
    names = [f"organisation/some-model-{number}-with-a-long-name" for number in range(40)]
    many = run_of(tmp_path / "many", [findings()], models=names)
    assert len(repr(many)) - len(str(tmp_path)) < 200
    assert "model-1-with-a-long-name and 38 more>" in repr(many)
    assert "and 20 more" in many._repr_html_()
    assert len(repr(many.findings)) < 2000


def test_a_real_run_prints_short(asked):
    assert len(repr(asked)) < 300
    assert len(repr(asked.findings)) < 2000
    assert asked["counterexamples"].findings is asked.findings[0]


def test_a_run_shows_its_headlines_and_its_report(asked):
    page = asked._repr_html_()
    assert "mine" in page
    assert asked.headlines["counterexamples"]
    for line in asked.headlines["counterexamples"]:
        assert f"<li>{html.escape(line)}</li>" in page
    assert f"Report: {asked.report_path}" in page
    assert asked.report_path.is_file()


def test_before_its_report_is_written_a_run_says_so(run):
    assert "Report: not written yet" in run._repr_html_()


def test_warnings_are_counted_with_the_run_and_shown_with_the_audit(tmp_path):
    warned = replace(
        findings(), notices=(Notice(level="info", text="all fine"), Notice(level="warning", text="few"))
    )
    run = run_of(tmp_path / "run", [warned])
    (audit,) = run.values()
    assert audit.warnings == ("few",)
    assert f"<b>{audit.name}</b> (1 warning)" in run._repr_html_()
    assert "Warning: few" in audit._repr_html_()
    assert "all fine" not in audit._repr_html_()


class Elements(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = Counter()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found[tag, *attrs] += 1


def shown(folder, text):
    """Return what a run, an audit and a table show, with the text wherever a model or a user could put it."""
    sample = findings()
    row = replace(sample.tables[0].rows[0], labels={"model": text, "kind": text, "k": 3})
    said = replace(
        sample,
        tables=(replace(sample.tables[0], title=text, caption=text, rows=(row,)),),
        figures=(),
        headlines=(text,),
        notices=(Notice(level="warning", text=text),),
    )
    run = run_of(folder, [said], models=[text])
    (audit,) = run.values()
    return [each._repr_html_() for each in (run, audit, audit["change"])]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_markup_in_findings_stays_text(tmp_path, payload):
    harmless = shown(tmp_path / "harmless", "harmless")
    for page, plain in zip(shown(tmp_path / "hostile", payload), harmless, strict=True):
        assert html.escape(payload) in page
        assert Elements(page).found == Elements(plain).found


def test_an_audit_lists_its_tables(run):
    (audit,) = run.values()
    assert list(audit) == [table.name for table in findings().tables]
    for table in audit.values():
        assert f"{table.name} " in repr(audit)
        assert table.title in repr(audit)
        assert f"<td>{table.name}</td><td>{len(table):,}</td>" in audit._repr_html_()


def test_names_are_completed_and_a_wrong_one_is_told_the_nearest(run):
    (name,) = run
    assert run._ipython_key_completions_() == [name]
    assert run[name]._ipython_key_completions_() == list(run[name])
    with pytest.raises(KeyError, match=f"did you mean '{name}'"):
        run[name + "x"]
    with pytest.raises(KeyError, match="did you mean 'change'"):
        run[name]["chance"]
    assert "stigma" not in run
    assert run.get("stigma") is None


def test_a_run_without_findings_says_how_to_get_them(tmp_path):
    stopped = run_of(tmp_path / "run", [])
    assert "no findings yet" in repr(stopped)
    assert dict(stopped) == {}
    with pytest.raises(KeyError, match=r"no findings yet; complete the run with clinometer\.resume"):
        stopped["stigma"]


def test_a_table_as_a_frame(run):
    (audit,) = run.values()
    for table, told in zip(audit.values(), findings().tables, strict=True):
        frame = table.to_polars()
        labels = list(told.rows[0].labels)
        assert frame.columns == [*labels, *NUMBERS]
        assert frame["estimate"].equals(pl.Series("estimate", [row.estimate for row in told.rows]))
        assert frame.select(labels).rows(named=True) == [dict(row.labels) for row in told.rows]
        assert len(table) == len(frame)
        assert table.title in table._repr_html_()


def test_pandas_gets_the_same(run):
    pytest.importorskip("pandas")
    (audit,) = run.values()
    for table in audit.values():
        frame, same = table.to_polars(), table.to_pandas()
        assert list(same.columns) == frame.columns
        for name in frame.columns:
            assert pl.Series(name, same[name].tolist(), dtype=frame[name].dtype).equals(frame[name])


def test_without_pandas_the_error_says_what_to_do(run, monkeypatch):
    real = builtins.__import__

    def without_pandas(name, *rest):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    (audit,) = run.values()
    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(InputError, match=r"pip install pandas.*to_polars"):
        audit["change"].to_pandas()


def as_rows(records):
    """The rows of a chart without the order columns, which depend on what else is in the table."""
    kept = ({name: value for name, value in row.items() if not name.startswith("o")} for row in records)
    return Counter(tuple(sorted(row.items())) for row in kept)


@pytest.mark.parametrize("which", ["run", "asked"])
def test_every_figure_is_the_chart_of_the_report(which, request):
    drawn = 0
    for audit in request.getfixturevalue(which).values():
        for figure in audit.findings.figures:
            table = audit[figure.table]
            plotted = table.plot(figure.name)
            assert isinstance(plotted, alt.TopLevelMixin)
            specification = plotted.to_dict()  # Altair validates it here
            (told,) = (each for each in audit.findings.tables if each.name == figure.table)
            page = chart(figure, told, colours=PAPER, width=600)
            # the page shows what its menus choose before the reader does
            first = {f"c{menu.label}": menu.options[menu.opens] for menu in page.menus}
            shown = [row for row in page.data.records() if all(str(row[c]) == value for c, value in first.items())]
            assert shown
            assert as_rows(specification["datasets"]["rows"]) == as_rows(shown)
            assert specification["description"] == figure.title
            drawn += 1
    assert drawn >= 5


def test_choosing_what_is_drawn(run):
    (audit,) = run.values()
    (figure,) = (each for each in audit.findings.figures if "k" in each.menus)
    table = audit[figure.table]
    place = list(table.rows[0].labels).index("k")
    for k in (3, 5, 10):
        rows = table.plot(figure.name, k=k).to_dict()["datasets"]["rows"]
        assert {row[f"c{place}"] for row in rows} == {str(k)}
    with pytest.raises(InputError, match=r"no k = 4; it has 3, 5, 10"):
        table.plot(figure.name, k=4)
    with pytest.raises(InputError, match="no choice of 'kk'"):
        table.plot(figure.name, kk=5)
    with pytest.raises(InputError, match="no figure 'chart' of table"):
        table.plot("chart")


def test_a_table_without_a_figure_says_so(asked):
    (bare, *_) = (table for table in asked["counterexamples"].values() if not table.figures)
    with pytest.raises(InputError, match=f"no figure of the report draws the table '{bare.name}'; use to_polars"):
        bare.plot()


def test_the_first_figure_is_drawn_when_none_is_named(run):
    (audit,) = run.values()
    table = audit["change"]
    assert table.figures
    assert table.plot().to_dict() == table.plot(table.figures[0]).to_dict()


def test_raw_answers(asked):
    answers = asked.records("counterexamples", stage="prompts", model="mine")
    assert {"index", "tag_occupation", "ask_text", "got_words", "got_logprobs"} <= set(answers.columns)
    assert set(answers["tag_occupation"]) == {"nurse", "teacher", "engineer", "mason"}
    some = asked.records("counterexamples", stage="prompts", columns=["tag_occupation", "got_words"])
    assert some.equals(answers.select("tag_occupation", "got_words"))


@pytest.mark.parametrize(
    ("which", "told"),
    [
        ({}, r"2 of the records of counterexamples fit; .*stage='prompts', model='mine'\) or \(stage='words'"),
        ({"stage": "prompt"}, r"none of the records .* choose one: \(stage='prompts', model='mine'\)"),
        ({"model": "yours"}, r"none of the records .* model='mine'"),
    ],
)
def test_records_that_are_not_one_stage(asked, which, told):
    with pytest.raises(InputError, match=told):
        asked.records("counterexamples", **which)


def test_records_of_an_audit_that_was_not_run(asked):
    with pytest.raises(InputError, match="no records of 'counterexample'; did you mean 'counterexamples'"):
        asked.records("counterexample")


def test_opening_verifying_and_reporting_by_path(asked):
    again = clinometer.open_run(str(asked.path))
    assert isinstance(again, Run)
    assert again == asked
    assert len({again, asked}) == 1
    assert findings_digest(again.findings) == findings_digest(asked.findings)  # NaN is not equal to itself
    assert clinometer.verify(again).problems == ()
    asked.report_path.unlink()
    assert clinometer.write_report(str(asked.path)) == asked.report_path
    assert asked.report_path.is_file()


def test_two_audits_within_a_second_go_to_two_folders(tmp_path, monkeypatch):
    class Stopped(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datetime, "datetime", Stopped)
    spec = AuditSpec(probes=("stigma",), models=(ModelSpec(name="org/name"),), profile="quick")
    folders = []
    for _ in range(3):
        folders.append(new_run_folder(spec))
        folders[-1].mkdir(parents=True)
    assert [folder.name.removeprefix("20260102-030405-name-quick") for folder in folders] == ["", "-2", "-3"]


def test_what_is_not_a_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not a run folder"):
        clinometer.open_run(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        clinometer.open_run(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"is not a bundle .* give the folder of a run"):
        clinometer.open_run(tmp_path / "file")
