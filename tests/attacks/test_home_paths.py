"""A run that is shared does not tell where its owner keeps things."""

from __future__ import annotations

import json
import shutil

import pytest

import clinometer as library
from clinometer.errors import ClinometerError, ModelError
from clinometer.store import PLACES, RunFolder
from clinometer.workflows import ResumeRequest, run_resume
from tests.attacks.samples import Tiny
from tests.models.tiny import tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home-of-ann") / "models" / "bert"
    folder.mkdir(parents=True)
    return tiny("bert", folder)


@pytest.fixture
def run(model, tmp_path):
    words = tmp_path / "private-folder" / "words.txt"
    words.parent.mkdir()
    words.write_text("nurse pilot")
    options = {"tiny": {"words_file": str(words)}}
    return library.audit(str(model), probes=[Tiny()], options=options, folder=tmp_path / "run").path


def test_no_file_of_the_run_names_a_folder_of_this_machine(run, model):
    for path in run.rglob("*"):
        if path.is_file() and path.name != PLACES:
            text = path.read_bytes()
            assert b"home-of-ann" not in text, path
            assert b"private-folder" not in text, path
            assert str(run).encode() not in text, path
    assert json.loads((run / PLACES).read_text()) == {"folder:bert": str(model)}
    assert 'name = "folder:bert"' in (run / "spec.toml").read_text()


def lose_records(run) -> None:
    for part in run.glob("records/*/*/*/*.parquet"):
        part.unlink()


def test_its_owner_resumes_as_before(run):
    lose_records(run)
    assert run_resume(ResumeRequest(run=RunFolder.open(run), probes=(Tiny(),))).headlines
    assert library.verify(run, probes=[Tiny()]).problems == ()


def test_somebody_else_verifies_it_and_says_where_the_model_is(run, model, tmp_path):
    (run / PLACES).unlink()
    assert library.verify(run, probes=[Tiny()]).problems == ()
    lose_records(run)
    with pytest.raises(ModelError, match="--model bert=FOLDER"):
        run_resume(ResumeRequest(run=RunFolder.open(run), probes=(Tiny(),)))
    moved = tmp_path / "elsewhere"
    shutil.copytree(model, moved)
    request = ResumeRequest(run=RunFolder.open(run), probes=(Tiny(),), places={"bert": str(moved)})
    assert run_resume(request).headlines
    assert library.verify(run, probes=[Tiny()]).problems == ()


def test_another_model_in_its_place_is_refused(run, tmp_path):
    lose_records(run)
    other = tmp_path / "other"
    other.mkdir()
    tiny("distilbert", other)
    request = ResumeRequest(run=RunFolder.open(run), probes=(Tiny(),), places={"bert": str(other)})
    with pytest.raises(ClinometerError, match="bert"):
        run_resume(request)


@pytest.mark.parametrize("text", ["[", "[1]", '{"folder:bert": 5}', "[" * 100_000])
def test_a_broken_list_of_places(run, text):
    (run / PLACES).write_text(text)
    lose_records(run)
    with pytest.raises(ClinometerError, match=PLACES):
        run_resume(ResumeRequest(run=RunFolder.open(run), probes=(Tiny(),)))


def test_the_command_takes_the_place_of_a_model(clinometer, run):
    said = clinometer("resume", run, "--model", "bert=/nowhere")
    assert said.code == 2
    assert "NAME=FOLDER" in said.err
