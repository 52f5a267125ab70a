"""A run folder with links in it: nothing behind them is opened, written, renamed or deleted."""

from __future__ import annotations

import hashlib
import json
import os
import shutil

import pytest

import clinometer
from clinometer.errors import ClinometerError
from clinometer.store.lock import hold_lock
from tests.attacks.samples import Tiny, fake, parts, resume, tiny_run, verify


@pytest.fixture
def run(tmp_path):
    return tiny_run(tmp_path / "run").path


def victim(tmp_path, *names):
    folder = tmp_path / "victim"
    folder.mkdir()
    for name in names:
        (folder / name).write_text(f"precious {name}")
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def replace_by_link(path, target):
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to(target)


def test_the_lock_is_a_link(run, tmp_path):
    folder = victim(tmp_path, "bashrc")
    replace_by_link(run / "run.lock", folder / "bashrc")
    with pytest.raises(ClinometerError, match=r"run\.lock.*link"):
        resume(run)
    assert contents(folder) == {"bashrc": b"precious bashrc"}


def test_the_lock_of_a_new_run_is_a_link(tmp_path):
    """A folder that looks as if the making of a run had been interrupted there."""
    folder = victim(tmp_path, "bashrc")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.lock").symlink_to(folder / "bashrc")
    with pytest.raises(ClinometerError, match="link"):
        tiny_run(tmp_path / "run")
    assert contents(folder) == {"bashrc": b"precious bashrc"}


def test_the_lock_is_a_second_name_of_another_file(run, tmp_path):
    """An archive can hold hard links; one is as good as a symbolic link for what is written in place."""
    folder = victim(tmp_path, "bashrc")
    (run / "run.lock").unlink()
    os.link(folder / "bashrc", run / "run.lock")
    with pytest.raises(ClinometerError, match=r"run\.lock.*link"):
        resume(run)
    assert contents(folder) == {"bashrc": b"precious bashrc"}


def test_the_lock_of_a_training_is_a_link(tmp_path):
    folder = victim(tmp_path, "bashrc")
    (tmp_path / "tune.lock").symlink_to(folder / "bashrc")
    with pytest.raises(ClinometerError, match="link"), hold_lock(tmp_path / "tune.lock"):
        pass
    assert contents(folder) == {"bashrc": b"precious bashrc"}


def test_a_folder_of_findings_is_a_link(run, tmp_path):
    folder = victim(tmp_path, "results.csv", "data.parquet", ".tmp-0123456789abcdef")
    replace_by_link(run / "findings" / "tiny", folder)
    before = contents(folder)
    with pytest.raises(ClinometerError, match=r"findings/tiny.*link"):
        resume(run)
    assert contents(folder) == before


def test_all_findings_are_a_link(run, tmp_path):
    folder = victim(tmp_path)
    replace_by_link(run / "findings", folder)
    with pytest.raises(ClinometerError, match=r"findings.*link"):
        resume(run)
    assert contents(folder) == {}


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_folder_of_records_is_a_link(run, tmp_path, level):
    folder = victim(tmp_path, "mine.parquet", ".tmp-0123456789abcdef")
    place = [run / "records", *sorted((run / "records").rglob("*"))][level]
    assert place.is_dir()
    replace_by_link(place, folder)
    before = contents(folder)
    with pytest.raises(ClinometerError, match=r"records.*link"):
        resume(run)
    assert contents(folder) == before


def test_a_part_is_a_link(run, tmp_path):
    folder = victim(tmp_path)
    (part,) = parts(run)
    shutil.move(part, folder / part.name)
    part.symlink_to(folder / part.name)
    for command in (resume, verify):
        with pytest.raises(ClinometerError, match="link"):
            command(run)
    assert [path.name for path in folder.iterdir()] == [part.name]


@pytest.mark.parametrize("name", ["spec.toml", "models.json", "provenance.json", "inputs", "report.html"])
def test_a_document_is_a_link(run, tmp_path, name):
    folder = victim(tmp_path, "other")
    if (run / name).exists():
        shutil.copy(run / name, folder / "other")
        (run / name).unlink()
    before = contents(folder)
    (run / name).symlink_to(folder / "other")
    for command in (resume, verify, clinometer.write_report):
        with pytest.raises(ClinometerError, match=f"{name}.*link"):
            command(run)
    assert contents(folder) == before


def test_every_link_is_named(run, tmp_path):
    (run / "notes").symlink_to(tmp_path)
    (run / "findings" / "here").symlink_to(tmp_path)
    with pytest.raises(ClinometerError, match="findings/here, notes"):
        verify(run)


def test_a_pipe_is_not_waited_for(run):
    (run / "spec.toml").unlink()
    os.mkfifo(run / "spec.toml")
    with pytest.raises(ClinometerError, match=r"spec\.toml.*not a plain file"):
        verify(run)


def test_a_run_reached_by_a_link_is_a_run(run, tmp_path):
    """Who names a folder by a link of their own has chosen it."""
    (tmp_path / "latest").symlink_to(run)
    assert verify(tmp_path / "latest").problems == ()
    resume(tmp_path / "latest")


# -- what is removed


def test_files_that_we_did_not_write_stay(run):
    """Someone's spreadsheet beside our tables, and a name that only looks like one of our unfinished files."""
    kept = [run / "findings" / "tiny" / name for name in ("mine.csv", "mine.parquet", ".tmp-notes")]
    kept += [run / ".tmp-notes", parts(run)[0].parent / ".tmp-notes"]
    for path in kept:
        path.write_text("precious")
    resume(run)
    assert [path.read_text() for path in kept] == ["precious"] * len(kept)


def test_tables_of_an_earlier_conclusion_are_removed(run):
    """Ours, and known by their checksum: they would otherwise be taken for what the run concludes now."""
    index = run / "findings" / "tiny" / "index.json"
    document = json.loads(index.read_text())
    for name, text in {"before.csv": "ours", "edited.csv": "changed by hand"}.items():
        (index.parent / name).write_text(text)
        document["sha256"][name] = hashlib.sha256(b"ours").hexdigest()
    document["sha256"]["../../spec.toml"] = hashlib.sha256((run / "spec.toml").read_bytes()).hexdigest()
    index.write_text(json.dumps(document))
    resume(run)
    assert not (index.parent / "before.csv").exists()
    assert (index.parent / "edited.csv").read_text() == "changed by hand"
    assert (run / "spec.toml").exists()


def test_an_index_cannot_point_out_of_its_folder(run, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    index = run / "findings" / "tiny" / "index.json"
    document = json.loads(index.read_text())
    document["sha256"]["../../../secret.txt"] = hashlib.sha256(b"other").hexdigest()
    index.write_text(json.dumps(document))
    with pytest.raises(ClinometerError, match=r"index\.json is damaged"):
        clinometer.open_run(run).findings  # noqa: B018


def test_what_a_killed_creation_left_is_not_removed(tmp_path):
    folder = tmp_path / "run"
    (folder / "inputs").mkdir(parents=True)
    (folder / "run.lock").touch()
    (folder / "inputs" / "thesis.txt").write_text("precious")
    with pytest.raises(ClinometerError, match=r"inputs/thesis\.txt"):
        clinometer.audit(fake(), probes=[Tiny()], folder=folder)
    assert (folder / "inputs" / "thesis.txt").read_text() == "precious"
