"""What decides a finding is covered: tags, inputs, spec and models, each changed behind the back of a run."""

from __future__ import annotations

import json
import re

import polars as pl
import pytest

import clinometer
from clinometer.engine import Silent
from clinometer.errors import ClinometerError, RecordsError, StoreError
from clinometer.models.fake import FakeModel
from clinometer.store import RunFolder
from clinometer.workflows import Execution
from tests.attacks.forging import forge
from tests.attacks.samples import Tiny, answer, edit_json, everything, parts, resume, tiny_run, told, verify


class Counting(Silent):
    """Counts what is asked, and keeps the notes."""

    def __init__(self):
        self.asked, self.notes = 0, []

    def advance(self, count):
        self.asked += count

    def note(self, text):
        self.notes.append(text)


@pytest.fixture
def run(tmp_path):
    return tiny_run(tmp_path / "run").path


@pytest.fixture
def two_parts(tmp_path, monkeypatch):
    """A run whose records are in two parts, so that one can be lost."""
    writer = RunFolder.writer
    monkeypatch.setattr(RunFolder, "writer", lambda self, key, by: writer(self, key, by=by, max_rows=2))
    path = tmp_path / "run"
    clinometer.audit(
        FakeModel(answer=answer, version="1", name="fake"),
        probes=[Tiny()],
        folder=path,
        execution=Execution(batch_tokens=20),
    )
    assert len(parts(path)) == 2
    return path


# -- tags


def test_old_and_new_tags_are_not_mixed(two_parts):
    """The attack: the audit labels its questions otherwise by now, and one part of the records is lost."""
    flipped = Tiny(flipped=True)
    parts(two_parts)[1].unlink()
    progress = Counting()
    resumed = resume(two_parts, probe=flipped, progress=progress)
    fresh = tiny_run(two_parts.parent / "fresh", probe=flipped)
    assert resumed.headlines == fresh.headlines
    assert progress.asked == 2  # what was lost; the rest was labelled anew
    assert any("2 answers have other tags now" in note for note in progress.notes)
    assert verify(two_parts, probe=flipped).problems == ()


def test_other_tags_are_named(run):
    (problem, advice) = verify(run, probe=Tiny(flipped=True)).problems
    assert problem == "tiny: fake, ask: 4 of 4 answers have other tags than this audit gives them"
    assert "clinometer resume" in advice


def test_answers_that_get_other_tags_are_the_same_answers(run):
    before = RunFolder.open(run)
    (key,) = before.stages()
    old = before.table(key)
    progress = Counting()
    resume(run, probe=Tiny(flipped=True), progress=progress)
    new = RunFolder.open(run).table(key)
    assert progress.asked == 0
    assert new.drop("tags", "tag_side").equals(old.drop("tags", "tag_side"))
    assert new["tag_side"].to_list() == ["right", "left", "right", "left"]


def test_records_beyond_what_is_asked_are_not_read(run, tmp_path):
    """Two more questions in the records than in the audit: findings would count them."""
    words = tmp_path / "words.txt"
    words.write_text("nurse pilot clerk miner")
    whole = tiny_run(tmp_path / "whole", words_file=str(words)).path
    (kept,) = (whole / "inputs").iterdir()
    kept.write_text("nurse pilot")
    forge(whole)
    assert any("2 more answers than the 2 questions" in problem for problem in verify(whole).problems)
    with pytest.raises(RecordsError, match="4 answers are recorded, but 2 questions are asked"):
        resume(whole)


# -- documents


def change_text(path, before, after):
    text = path.read_text()
    assert text.count(before) >= 1
    path.write_text(text.replace(before, after, 1))


CHANGES = {
    "seed": ("spec.toml", "seed = 0", "seed = 1"),
    "dtype": ("spec.toml", 'dtype = "auto"', 'dtype = "float16"'),
    "scale": ("spec.toml", "scale = 1.0", "scale = -1.0"),
    "family": ("models.json", '"family": "fake"', '"family": "bert"'),
    "parameters": ("models.json", '"parameters": 0', '"parameters": 7'),
    "kind": ("models.json", '"kind": "masked"', '"kind": "causal"'),
    "processors": ("provenance.json", '"processors": ', '"processors": 1'),
    "python": ("provenance.json", '"python": "3', '"python": "4'),
    "created": ("provenance.json", '"created": "20', '"created": "19'),
    "input": ("inputs/1-words.txt", "miner", "baker"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("complete", [True, False])
def test_a_changed_document_is_named_and_not_adopted(tmp_path, change, complete):
    words = tmp_path / "words.txt"
    words.write_text("nurse pilot clerk miner")
    run = tiny_run(tmp_path / "run", words_file=str(words), scale=1.0).path
    if not complete:
        parts(run)[0].unlink()
        (run / "run.sha256").unlink()
    name, before, after = CHANGES[change]
    change_text(run / name, before, after)
    problems = verify(run).problems
    assert any(str(run / name) in problem for problem in problems), problems
    before = everything(run)
    for command in (resume, lambda path: clinometer.write_report(path, probes=[Tiny()])):
        with pytest.raises(StoreError, match=re.escape(name)):
            command(run)
    assert everything(run) == before  # nothing was asked or concluded from it


@pytest.mark.parametrize("found", ["1", "2", "7", '"3"'])
def test_another_format_is_no_way_around_the_checksums(run, found):
    """One flipped bit makes a 3 a 2, and runs of format 2 have no checksums."""
    change_text(run / "provenance.json", '"format": 3', f'"format": {found}')
    with pytest.raises(ClinometerError, match=r"provenance\.json"):
        resume(run)
    assert "provenance.json" in told(run)


def test_a_document_that_is_no_longer_known_is_named(run):
    """Taking a checksum away is no way to change a file."""
    document = json.loads((run / "provenance.json").read_text())
    del document["sha256"]["spec.toml"]
    (run / "provenance.json").write_text(json.dumps(document))
    problems = verify(run).problems
    assert any("provenance.json is not as it was written" in problem for problem in problems)
    assert any("spec.toml is not the one" in problem for problem in problems)


# -- what a reader may believe


def test_findings_of_an_audit_that_the_spec_does_not_name(run):
    """A forged headline, with all checksums right: neither page nor verification takes it."""
    source, target = run / "findings" / "tiny", run / "findings" / "stigma"
    target.mkdir()
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    edit_json(target / "index.json", probe="stigma", headlines=["No lean was found."])
    assert any(
        "findings/stigma/index.json is not a file of this run" in problem for problem in verify(run).problems
    )
    forge(run)
    problem, *_ = verify(run).problems
    assert "findings of 'stigma', an audit that the spec does not name" in problem
    with pytest.raises(StoreError, match="findings of 'stigma'"):
        clinometer.write_report(run, probes=[Tiny()])
    resume(run)  # concludes again, and seals what it concluded
    assert "No lean was found." not in (run / "report.html").read_text()
    assert any("findings/stigma" in problem for problem in verify(run).problems)


def test_findings_under_another_name_than_their_folder(run):
    edit_json(run / "findings" / "tiny" / "index.json", probe="stigma")
    forge(run)
    assert verify(run).problems


def test_a_forged_headline(run):
    edit_json(run / "findings" / "tiny" / "index.json", headlines=["No lean was found."])
    forge(run)
    (problem,) = verify(run).problems
    assert "headlines: not the words of release" in problem


def test_a_forged_page(run):
    page = run / "report.html"
    page.write_text(page.read_text().replace("The lean is", "There is no lean, not"))
    (problem,) = verify(run).problems
    assert "report.html is not the page that follows from this run" in problem
    page.unlink()
    (problem,) = verify(run).problems
    assert "report.html is missing" in problem
    clinometer.write_report(run, probes=[Tiny()])
    assert verify(run).problems == ()


def test_a_csv_whose_checksum_was_removed(run):
    (run / "findings" / "tiny" / "lean.csv").write_text("model,estimate\nfake,0\n")
    index = run / "findings" / "tiny" / "index.json"
    document = json.loads(index.read_text())
    del document["sha256"]["lean.csv"]
    index.write_text(json.dumps(document))
    assert any("lean.csv" in problem for problem in verify(run).problems)
    forge(run)
    (problem,) = verify(run).problems
    assert "index.json is damaged (there is no checksum, or no table, for lean.csv)" in problem


def test_a_csv_that_says_something_else(run):
    (run / "findings" / "tiny" / "lean.csv").write_text("model,estimate\nfake,0\n")
    forge(run)
    (problem,) = verify(run).problems
    assert "lean.csv does not say what the table says" in problem


SAME = {"comment": "{}# checked\n", "twice": "{0}{0}", "blank": "{}\n"}


@pytest.mark.parametrize("form", SAME)
def test_a_seal_that_says_the_same_otherwise(run, form):
    """The digest is that of the list to the byte, so the list has one form."""
    seal = run / "run.sha256"
    seal.write_text(SAME[form].format(seal.read_text()))
    assert any("run.sha256 is not as it was written" in problem for problem in verify(run).problems)


def test_records_that_nobody_asked_for(run):
    (part,) = parts(run)
    other = part.parent.with_name("extra")
    other.mkdir()
    (other / part.name).write_bytes(part.read_bytes())
    assert any("it belongs to another stage" in problem for problem in verify(run).problems)


def test_a_lock_that_nobody_holds_is_empty(run):
    """So that nothing in it can be changed unseen."""
    assert (run / "run.lock").read_bytes() == b""
    (run / "run.lock").write_text("rm -rf ~\n")
    (problem,) = verify(run).problems
    assert "run.lock holds something else" in problem


def test_a_file_beside_the_run_is_noted(run):
    (run / "notes.txt").write_text("mine")
    found = verify(run)
    assert found.problems == ()
    (note,) = found.notes
    assert "notes.txt is not part of the run" in note


# -- the digest


def test_one_digest_is_printed_by_all(run, capsys, monkeypatch):
    import hashlib

    from clinometer.cli.progress import print_run

    digest = hashlib.sha256((run / "run.sha256").read_bytes()).hexdigest()
    opened = clinometer.open_run(run)
    print_run(opened)
    assert capsys.readouterr().out.splitlines()[-1] == f"digest  {digest}"
    assert verify(run).digest == opened.digest == digest
    assert digest in (run / "report.html").read_text()


def test_other_programs_can_check_the_list(run):
    import shutil
    import subprocess

    if not shutil.which("sha256sum"):
        pytest.skip("sha256sum is not installed")
    done = subprocess.run(["sha256sum", "-c", "run.sha256"], cwd=run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    listed = {line.split(":")[0] for line in done.stdout.splitlines()}
    files = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    assert files - listed == {"report.html", "run.lock", "run.sha256"}


def test_a_run_that_is_not_complete_has_no_digest(run, monkeypatch):
    def interrupted(self, plans, records):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Tiny, "findings", interrupted)
        with pytest.raises(KeyboardInterrupt):
            resume(run)
    assert clinometer.open_run(run).digest == ""
    assert any("run.sha256 is missing" in problem for problem in verify(run).problems)
    resume(run)
    assert verify(run).problems == ()


def test_tags_are_in_the_records(run):
    table = RunFolder.open(run).table(RunFolder.open(run).stages()[0])
    assert table["tags"].dtype == pl.Binary
    assert table["tags"].n_unique() == 4
