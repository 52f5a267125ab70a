"""A run as one file: whole, the same every time, and a run like any other wherever it is opened."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import zipfile

import pytest
from tests.attacks.samples import Tiny, tiny_run

import clinometer
from clinometer.errors import InputError, StoreError
from clinometer.store import RunFolder, open_any, write_bundle


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return tiny_run(tmp_path_factory.mktemp("runs") / "mine").path


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "mine")


def test_a_bundle_holds_the_whole_run_and_nothing_else(run):
    (run / "places.json").write_text('{"folder:bert": "/home/ann/bert"}')
    (run / "notes.txt").write_text("my own")
    path = clinometer.bundle(run)
    assert path == run.with_name("mine.zip")
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        assert all(archive.read(name) == (run / name).read_bytes() for name in names)
    kept = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    assert names == kept - {"places.json", "notes.txt", "run.lock"}
    assert {"spec.toml", "run.sha256", "report.html", "findings/tiny/lean.csv"} <= names


def test_bundling_twice_gives_equal_bytes(run, tmp_path):
    one = clinometer.bundle(run).read_bytes()
    assert clinometer.bundle(run).read_bytes() == one  # the same file again is not an error
    for path in run.rglob("*"):
        path.touch()  # the bytes do not tell when files were written …
    moved = shutil.move(run, tmp_path / "elsewhere")  # … or where the run is
    assert clinometer.bundle(moved, out=tmp_path / "other.zip").read_bytes() == one


def test_a_bundle_is_read_and_verified_like_its_run(run):
    path = clinometer.bundle(run)
    digest, headlines = RunFolder.open(run).digest, clinometer.open_run(run).headlines
    shutil.rmtree(run)
    opened = clinometer.open_run(path)
    assert opened.headlines == headlines
    assert opened.digest == digest
    assert len(opened.records("tiny")) == 4
    verified = clinometer.verify(path, probes=[Tiny()])
    assert (verified.problems, verified.notes) == ((), ())
    assert verified.digest == digest


def test_what_is_wrong_is_named_by_the_bundle(run):
    (run / "findings" / "tiny" / "lean.csv").write_text("estimate\n1\n")
    path = run.with_name("forged.zip")
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()):
            if name != "run.lock":
                archive.write(run / name, name)
    (problem,) = clinometer.verify(path, probes=[Tiny()]).problems
    assert f"{path}/findings/tiny/lean.csv" in problem


def test_the_page_of_a_bundle_is_written_beside_it(run, tmp_path):
    path = clinometer.bundle(run)
    page = clinometer.write_report(path, probes=[Tiny()])
    assert page == tmp_path / "mine.report.html"
    assert page.read_bytes() == (run / "report.html").read_bytes()


def test_the_files_of_a_bundle_are_removed_with_the_last_reference(run):
    opened = clinometer.open_run(clinometer.bundle(run))
    place = opened.path
    assert place.name == "mine"
    assert place.is_dir()
    del opened
    gc.collect()
    assert not place.parent.exists()


def test_a_bundle_is_not_resumed(run):
    path = clinometer.bundle(run)
    for opened in (path, clinometer.open_run(path)):
        with pytest.raises(InputError, match=r"mine\.zip is a bundle.*unzip it"):
            clinometer.resume(opened)


def test_an_unfinished_run_is_not_bundled(run):
    (run / "run.sha256").unlink()
    with pytest.raises(InputError, match="not complete"):
        clinometer.bundle(run)
    assert not run.with_name("mine.zip").exists()


def test_a_damaged_run_is_not_bundled(run):
    index = run / "findings" / "tiny" / "index.json"
    index.write_text(index.read_text() + " ")
    with pytest.raises(StoreError, match=r"index\.json is not as it was written"):
        clinometer.bundle(run)
    assert [path.name for path in run.parent.iterdir()] == ["mine"]  # nothing half-written is left


def test_a_file_of_somebody_else_is_not_replaced(run, tmp_path):
    taken = tmp_path / "taken.zip"
    taken.write_text("precious")
    with pytest.raises(InputError, match="holds something else"):
        clinometer.bundle(run, out=taken)
    assert taken.read_text() == "precious"
    with pytest.raises(InputError, match="its folder does not exist"):
        clinometer.bundle(run, out=tmp_path / "no" / "mine.zip")


def test_a_run_without_its_page_says_how_to_write_it(run):
    (run / "report.html").unlink()
    with pytest.raises(StoreError, match="clinometer report"):
        write_bundle(open_any(run))


def test_a_bundle_is_opened_without_torch(run):
    path = clinometer.bundle(run)
    code = (
        "import sys; sys.modules.update(torch=None, transformers=None); import clinometer; "
        f"print(clinometer.open_run({str(path)!r}).headlines['tiny'][0])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "The lean is" in told.stdout
