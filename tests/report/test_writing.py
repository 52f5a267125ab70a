"""From a run folder to its report and its figures."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from clinometer.errors import InputError, RecordsError, StoreError
from clinometer.report import ProbeText, read_page, save_figures, write_report
from clinometer.store import Row, RunFolder, StageKey, findings_digest
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
        findings_digest(run.read_findings()),
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


def with_evidence_filter(run, **tags):
    found = small_findings()
    run.write_findings(replace(found, figures=(replace(found.figures[0], evidence_filter=tags),)))


def test_evidence_shows_and_counts_only_the_prompts_with_the_tags(run):
    with_evidence_filter(run, kind="base")
    evidence = read_page(run, probes=TEXTS).evidence["small"]["words"]
    assert {exchange.tags["kind"] for exchange in evidence.shown} == {"base"}
    # every second of 300 and of 10; 30 of the first model and all five of the second are shown
    assert (len(evidence.shown), evidence.total) == (35, 155)
    assert "35 of 155 shown" in write_report(run, probes=TEXTS).read_text("utf-8")

    with_evidence_filter(run, kind="base", number=4)
    evidence = read_page(run, probes=TEXTS).evidence["small"]["words"]
    assert [exchange.text for exchange in evidence.shown] == ["The [MASK] works as number 4."] * 2
    assert evidence.total == 2


def test_an_evidence_filter_that_names_no_tag_is_explained(run):
    with_evidence_filter(run, knid="base")
    with pytest.raises(
        RecordsError, match=r"figure 'words' .*'knid', which is not a tag of stage 'ask': did you mean 'kind'"
    ):
        read_page(run, probes=TEXTS)
    with_evidence_filter(run, number="four")
    with pytest.raises(RecordsError, match=r"tag 'number' is 'four', but that tag holds numbers"):
        read_page(run, probes=TEXTS)


def test_a_tag_that_only_one_model_has(run):
    with run.writer(StageKey(probe="small", model="one", stage="ask")) as writer:
        asked = Item(request=Fill(text="The [MASK] is new.", top_k=2), tags={"kind": "base", "extra": "yes"})
        writer.append([Row(index=300, key=bytes(16), item=asked, answer=rows(1, kinds=("base",))[0].answer)])
    with_evidence_filter(run, extra="yes")
    evidence = read_page(run, probes=TEXTS).evidence["small"]["words"]
    assert [(exchange.model, exchange.text) for exchange in evidence.shown] == [("one", "The [MASK] is new.")]
    assert evidence.total == 1


def test_only_the_prompts_that_are_shown_are_read_whole(run, monkeypatch):
    """A stage can hold millions of records with long answers; of those that are not shown only tags are read."""
    whole = []
    table = RunFolder.table

    def watched(self, key, *, columns=None, indices=None):
        read = table(self, key, columns=columns, indices=indices)
        if any(not name.startswith(("index", "tag_")) for name in read.columns):
            whole.append((key.model, read.height))
        return read

    monkeypatch.setattr(RunFolder, "table", watched)
    read_page(run, probes=TEXTS)
    assert whole == [("one", 30), ("org/two", 10)]


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


def test_figures_are_not_saved_where_that_cannot_be(run, tmp_path):
    (tmp_path / "file").write_text("mine")
    for target, why in ((tmp_path / "file", "it is a file"), (tmp_path / "file" / "below", "Not a directory")):
        with pytest.raises(InputError, match=f"saved to {target}: {why}; give a folder that can be written"):
            save_figures(run, target)
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "figures" / "small-words.png").mkdir(parents=True)
    with pytest.raises(InputError, match=r"small-words\.png: Is a directory; give a folder"):
        save_figures(run, tmp_path / "figures")


def test_the_sources_of_a_probe_are_shown_below_its_paper(run):
    texts = {"small": replace(TEXTS["small"], data="Words by <i>Someone</i>, 2020.")}
    html = write_report(run, probes=texts).read_text("utf-8")
    below = html.split("Nobody, 2030.")[1]
    assert '<p class="sources"><bdi>Words by &lt;i&gt;Someone&lt;/i&gt;, 2020.</bdi></p>' in below
    assert 'class="sources"' not in write_report(run, probes=TEXTS).read_text("utf-8")
