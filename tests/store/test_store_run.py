"""Creating, opening and locking a run folder."""

import dataclasses
import json
import os
import signal

import pytest
from store_samples import KEY, append, leftovers, new_run, start_child

from clinometer.errors import InputError, RunLockedError, StoreError
from clinometer.store import FORMAT, RunFolder, RunModels
from clinometer.types import ModelInfo


def test_what_is_given_is_kept(run):
    opened = RunFolder.open(str(run.path))
    assert opened.spec == 'version = 1\nprobes = ["naïve"]\r\n'
    assert opened.provenance == run.provenance
    assert opened.provenance["seed"] == 3
    assert opened.provenance["run_id"] == opened.run_id
    assert opened.provenance["created"].endswith("+00:00")
    assert opened.models == run.models
    assert opened.models[0].capabilities == ("fill",)
    assert opened.report_path == run.path / "report.html"
    assert {path.name for path in run.path.iterdir()} == {
        "spec.toml",
        "provenance.json",
        "models.json",
        "run.lock",
    }


def test_every_run_has_its_own_id(tmp_path):
    assert new_run(tmp_path / "a").run_id != new_run(tmp_path / "b").run_id


def test_a_run_may_start_in_a_new_or_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    assert new_run(tmp_path / "empty").path.is_dir()
    assert new_run(tmp_path / "several" / "levels").path.is_dir()


@pytest.mark.parametrize("content", ["spec.toml", "run.locked", "records", ".hidden", "provenance.json"])
def test_a_folder_with_anything_in_it_is_left_alone(tmp_path, content):
    (tmp_path / content).write_text("mine")
    with pytest.raises(InputError, match=r"is not empty \(it has|already holds a run; continue it with"):
        new_run(tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_a_run_is_not_created_twice(run):
    append(run, 0, 5)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=r"already holds a run; continue it with `clinometer resume"):
        new_run(run.path)
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


def test_a_file_or_a_dangling_link_is_not_a_place_for_a_run(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link"):
        with pytest.raises(InputError, match="is not a folder"):
            new_run(tmp_path / name)
    assert (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("survived", [[], ["spec.toml"], ["spec.toml", "models.json", ".tmp-00"]])
def test_an_interrupted_creation_can_be_repeated(run, survived):
    for path in run.path.iterdir():
        if path.name not in {"run.lock", *survived}:
            path.unlink()
    (run.path / ".tmp-11").write_text("")
    with pytest.raises(InputError, match=r"is not a run folder: it has no .*provenance.json"):
        RunFolder.open(run.path)
    assert new_run(run.path).run_id != run.run_id
    assert leftovers(run) == []


@pytest.mark.parametrize("missing", ["spec.toml", "provenance.json", "models.json"])
def test_opening_names_what_is_missing(run, missing):
    (run.path / missing).unlink()
    with pytest.raises(InputError, match=f"is not a run folder: it has no {missing}; give the folder of a run"):
        RunFolder.open(run.path)


def test_opening_what_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is not a folder"):
        RunFolder.open(tmp_path / "file")
    with pytest.raises(InputError, match="gone does not exist"):
        RunFolder.open(tmp_path / "gone")
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("provenance.json", b""),
        ("provenance.json", b'{"seed": 3'),
        ("provenance.json", b"[]"),
        ("provenance.json", b'{"run_id": 3}'),
        ("provenance.json", b"\xff\xfe"),
        ("provenance.json", b"[" * 100_000),
        ("models.json", b"null"),
        ("models.json", b'{"audited": [{"name": "x"}], "beside": []}'),
        ("models.json", b'{"audited": ["x"], "beside": []}'),
        ("models.json", b'{"audited": [{"capabilities": [], "unheard": 1}], "beside": []}'),
        ("models.json", b'{"audited": []}'),
        ("spec.toml", b"\xff"),
    ],
)
def test_a_broken_document_is_named(run, name, content):
    (run.path / name).write_bytes(content)
    with pytest.raises(StoreError, match=f"{name} is damaged"):
        RunFolder.open(run.path)


def test_a_folder_that_cannot_be_written_is_an_error_of_ours(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"no run can be begun in .*: (Not a directory|File exists)"):
        new_run(tmp_path / "file" / "run")


HOLD = """
import sys
from clinometer.store import RunFolder
with RunFolder.open(sys.argv[1]).lock():
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_second_process_is_refused_with_the_pid_of_the_first(run):
    with start_child(HOLD, str(run.path)) as child:
        try:
            assert child.stdout.readline() == "held\n"
            with pytest.raises(RunLockedError, match=rf"{run.path} is in use by process {child.pid};"), run.lock():
                pass
            # readers are welcome
            assert RunFolder.open(run.path).check() == ()
        finally:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
    assert (run.path / "run.lock").read_text().strip() == str(child.pid)  # stale, and it does not block
    with run.lock():
        assert (run.path / "run.lock").read_text().strip() == str(os.getpid())


def test_a_lock_is_given_back(run):
    for _ in range(2):
        with run.lock():
            append(run, 0, 1)
    with pytest.raises(ZeroDivisionError), run.lock():
        raise ZeroDivisionError
    with run.lock(), pytest.raises(RunLockedError, match=f"process {os.getpid()}"), run.lock():
        pass


def test_two_creators_of_one_folder(run):
    """The second finds the lock held before there is a provenance."""
    (run.path / "provenance.json").unlink()
    with run.lock(), pytest.raises(RunLockedError):
        new_run(run.path)
    assert not (run.path / "provenance.json").exists()


def test_the_stages_of_a_run(run):
    append(run, 0, 1)
    assert RunFolder.open(run.path).stages() == (KEY,)


def test_a_run_says_its_format(run):
    document = json.loads((run.path / "provenance.json").read_text())
    assert document["format"] == FORMAT == 3
    assert RunFolder.open(run.path).format == 3


@pytest.mark.parametrize(
    ("found", "error", "words"),
    [
        (4, InputError, "format 4, made by a newer"),
        (0, StoreError, "format is 0"),
        ("2", StoreError, "format is '2'"),
        (True, StoreError, "format is True"),
    ],
)
def test_another_format_is_refused_by_name(run, found, error, words):
    file = run.path / "provenance.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": found}))
    with pytest.raises(error, match=words):
        RunFolder.open(run.path)


def test_a_run_of_format_1_is_read(run):
    file = run.path / "provenance.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps({name: value for name, value in document.items() if name != "format"}))
    models = json.loads((run.path / "models.json").read_text())
    (run.path / "models.json").write_text(json.dumps({"audited": models["audited"], "beside": models["audited"]}))
    old = RunFolder.open(run.path)
    assert (old.format, old.key_version, old.roles) == (1, 1, {})
    assert old.assistants == old.models


def test_roles_are_recorded(tmp_path):
    info = ModelInfo(
        name="m", kind="masked", family="f", capabilities=(), weights="w", tokenizer="t", dtype="d", code="c"
    )
    other = dataclasses.replace(info, name="n")
    models = RunModels(audited=(info,), assistants=(other,), roles={"scorer": ("n", "m")})
    run = RunFolder.create(tmp_path / "run", spec="", provenance={}, models=models)
    assert RunFolder.open(run.path).roles == {"scorer": ("n", "m")}
    assert [info.name for info in RunFolder.open(run.path).assistants] == ["n"]
