"""From a run folder to its report and its figures."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from clinometer.errors import StoreError
from clinometer.report import ProbeText, read_page, save_figures, write_report
from clinometer.store import Row, RunFolder, StageKey
from clinometer.types import Figure, Fill, Finding, Findings, FindingTable, Item, WordAnswer
from tests.report.samples import model_info, small_findings

TEXTS = {"small": ProbeText(title="Small audit", question="What?", paper="Nobody, 2030.")}


def rows(count: int, *, kinds: tuple[str, ...]) -> list[Row]:
    return [
        Row(
            index=i,
            key=hashlib.sha256(str(i).encode()).digest()[:16],
            item=Item(
                request=Fill(
                    text=f"The [MASK] works as number {i}.", context="A man works.", join="separator", top_k=2
                ),
                tags={"kind": kinds[i % len(kinds)], "number": i},
            ),
            answer=WordAnswer(words=("man", "woman"), logprobs=(-1.0, -2.0)),
        )
        for i in range(count)
    ]


@pytest.fixture
def run(tmp_path):
    models = [model_info("one"), model_info("org/two", kind="masked")]
    spec = 'version = 1\nprobes = ["small"]\nprofile = "quick"\nseed = 11\n'
    run = RunFolder.create(tmp_path / "run", spec=spec, provenance={"clinometer": "9.9"}, models=models)
    for model, count in (("one", 300), ("org/two", 10)):
        with run.writer(StageKey(probe="small", model=model, stage="ask")) as writer:
            writer.append(rows(count, kinds=("base", "other")))
    run.write_findings(small_findings())
    return run


def test_the_report_is_written_into_the_run_folder(run):
    path = write_report(run, probes=TEXTS)
    assert path == run.report_path
    html = path.read_text("utf-8")
    for expected in (
        "Small audit",
        "org/two",
        "seed = 11",
        run.run_id,
        run.findings_digest(),
        "findings/small/words.csv",
        "40 of 310 shown",
    ):
        assert expected in html
    assert (run.path / "findings/small/words.csv").is_file()


def test_the_page_reads_the_run(run):
    page = read_page(run, probes=TEXTS)
    assert (page.profile, page.seed) == ("quick", "11")
    assert page.created.endswith("UTC")
    assert [info.name for info in page.models] == ["one", "org/two"]
    evidence = page.evidence["small"]["words"]
    assert "menu" not in page.evidence["small"]  # that figure names no stage
    # 60 places for two models are 30 each, of which the second fills ten
    assert [exchange.model for exchange in evidence.shown].count("one") == 30
    assert [exchange.model for exchange in evidence.shown].count("org/two") == 10
    assert evidence.total == 310
    assert evidence.shown[0].answers == ("man 0.368", "woman 0.135")
    for place in evidence.where:
        assert (run.path / place).is_dir()


def test_evidence_follows_the_filters_of_the_figure(run):
    found = small_findings()
    only = replace(found.figures[0], filters={"model": "one"})
    run.write_findings(replace(found, figures=(only,)))
    evidence = read_page(run, probes=TEXTS).evidence["small"]["words"]
    assert {exchange.model for exchange in evidence.shown} == {"one"}
    assert evidence.total == 300


def test_a_probe_without_a_text_is_shown_by_its_name(run):
    assert ">small<" in write_report(run, probes={}).read_text("utf-8")


def test_a_second_report_replaces_the_first_and_leaves_nothing_else(run):
    write_report(run, probes=TEXTS)
    before = sorted(path.name for path in run.path.iterdir())
    write_report(run, probes=TEXTS)
    assert sorted(path.name for path in run.path.iterdir()) == before


def test_figures_are_saved_for_every_choice_of_a_menu(run, tmp_path):
    saved = save_figures(run, tmp_path / "figures")
    # the second figure keeps the set "a", which only model "one" has
    assert [path.name for path in saved] == [
        "small-words.png",
        "small-words.svg",
        "small-menu-model=one.png",
        "small-menu-model=one.svg",
    ]
    assert saved[0].read_bytes().startswith(b"\x89PNG")
    drawing = saved[1].read_text("utf-8")
    assert drawing.startswith("<svg")
    assert "var(--" not in drawing  # a paper has no style sheet
    assert [path.suffix for path in save_figures(run, tmp_path / "svg", formats=("svg",))] == [".svg", ".svg"]


def test_labels_that_are_cut_to_one_name_still_make_two_files(run, tmp_path):
    labels = ["../" + "x" * 300 + end for end in "12"]
    table = FindingTable(
        name="t",
        title="T",
        caption="",
        rows=tuple(Finding(labels={"word": "w", "menu": label}, estimate=1.0) for label in labels),
    )
    figure = Figure(
        name="f", title="", caption="", table="t", mark="bars", x="word", y="estimate", menus=("menu",)
    )
    run.write_findings(Findings(probe="small", tables=(table,), figures=(figure,)))
    saved = save_figures(run, tmp_path / "figures", formats=("svg",))
    assert len(set(saved)) == 2
    assert {path.parent for path in saved} == {tmp_path / "figures"}
    assert all(path.is_file() for path in saved)


def test_a_spec_that_is_not_toml_is_named(run):
    (run.path / "spec.toml").write_text("seed = = 1")
    with pytest.raises(StoreError, match=r"spec of .*run is not TOML"):
        write_report(RunFolder.open(run.path), probes=TEXTS)
