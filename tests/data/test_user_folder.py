"""The user's data folder: checked, copied whole or not at all, and found out when it is damaged."""

from __future__ import annotations

import json
import os
import time

import pytest

from clinometer.data import EMOTIONS
from clinometer.data.user_folder import (
    DATASETS,
    add_file,
    added_file,
    get_dataset,
    read_record,
    remove_added,
    user_folder,
)
from clinometer.errors import DataError
from clinometer.probes import PROBES

ROWS = (
    "input\ttarget_category\ttarget_group\tcompletion\tsearch_engine\n"
    "why are poets so\tprofession\tpoets\tsad\tgoogle\nwhy are bakers so\tprofession\tbakers\tjolly\tyahoo\n"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "made" / "data"
    monkeypatch.setenv("CLINOMETER_DATA", str(folder))
    return folder


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def test_where_the_folder_is(monkeypatch, tmp_path):
    monkeypatch.setenv("CLINOMETER_DATA", str(tmp_path / "chosen"))
    assert user_folder() == tmp_path / "chosen"
    monkeypatch.delenv("CLINOMETER_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert user_folder() == tmp_path / "xdg" / "clinometer"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_folder() == tmp_path / ".local" / "share" / "clinometer"


def test_what_is_added_is_found(folder, file):
    assert added_file("stereotypes") is None
    record = add_file("stereotypes", file)
    assert record.found == "2 stereotypes about 2 groups in 1 category"
    assert record.bytes == len(ROWS)
    assert record.origin == str(file)
    added = added_file("stereotypes")
    assert added == folder / "stereotypes" / "data"
    assert added.read_text(encoding="utf-8") == ROWS
    assert read_record("stereotypes") == record
    assert os.listdir(folder) == ["stereotypes"]


def test_a_newer_file_replaces_the_older(folder, file):
    first = add_file("stereotypes", file)
    file.write_text(ROWS + "why are poets so\tprofession\tpoets\trich\tgoogle\n", encoding="utf-8")
    second = add_file("stereotypes", file)
    assert second.sha256 != first.sha256
    assert read_record("stereotypes") == second
    assert added_file("stereotypes").read_bytes() == file.read_bytes()
    assert os.listdir(folder) == ["stereotypes"]


def test_what_is_refused_changes_nothing(folder, file, tmp_path):
    bad = tmp_path / "bad.tsv"
    bad.write_text(ROWS + "why are poets so\tprofession\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        add_file("stereotypes", bad)
    # the complaint names the user's file, not our copy
    assert str(caught.value).startswith(f"'{bad}', line 4: 2 values")
    assert sorted(os.listdir(tmp_path)) == ["bad.tsv", "mine.tsv"]  # not even the data folder was made

    record = add_file("stereotypes", file)
    with pytest.raises(DataError):
        add_file("stereotypes", bad)
    assert read_record("stereotypes") == record
    assert added_file("stereotypes").read_text(encoding="utf-8") == ROWS
    assert os.listdir(folder) == ["stereotypes"]


@pytest.mark.parametrize(
    ("name", "path", "complaint"),
    [
        ("stereotypes", "none.tsv", "no file 'none.tsv'"),
        ("stereotypes", ".", "is a folder"),
        ("stereotype", "mine.tsv", "no data set 'stereotype'; did you mean 'stereotypes'?"),
        ("../stereotypes", "mine.tsv", "no data set"),
    ],
)
def test_what_cannot_be_added(folder, file, tmp_path, monkeypatch, name, path, complaint):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as caught:
        add_file(name, type(file)(path))
    assert complaint in str(caught.value)
    assert os.listdir(tmp_path) == ["mine.tsv"]


def test_a_kill_between_two_renames_leaves_the_old_one(folder, file, monkeypatch):
    record = add_file("stereotypes", file)
    file.write_text(ROWS + "why are poets so\tprofession\tpoets\trich\tgoogle\n", encoding="utf-8")
    replace, calls = os.replace, []

    def fails_at_the_second(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fails_at_the_second)
    with pytest.raises(DataError, match="No space left on device"):
        add_file("stereotypes", file)
    assert len(calls) == 3  # aside, failed, back
    assert read_record("stereotypes") == record
    assert added_file("stereotypes").read_text(encoding="utf-8") == ROWS
    assert os.listdir(folder) == ["stereotypes"]


def test_a_damaged_file_is_found_when_it_is_used(folder, file):
    add_file("stereotypes", file)
    damaged = folder / "stereotypes" / "data"
    damaged.write_text(ROWS.replace("sad", "mad"), encoding="utf-8")
    with pytest.raises(DataError, match="is not the file that was added"):
        added_file("stereotypes")


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"name": "stereotypes"}', '{"nmae": 1}'])
def test_a_damaged_record_is_found_when_it_is_used(folder, file, content):
    add_file("stereotypes", file)
    record = folder / "stereotypes" / "record.json"
    record.unlink()
    if content is not None:
        record.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match="clinometer data add stereotypes PATH"):
        added_file("stereotypes")
    # and adding it again mends it
    add_file("stereotypes", file)
    assert added_file("stereotypes") is not None
    assert json.loads(record.read_text(encoding="utf-8"))["name"] == "stereotypes"


def test_removing(folder, file):
    record = add_file("stereotypes", file)
    assert remove_added("stereotypes") == record
    assert added_file("stereotypes") is None
    assert os.listdir(folder) == []
    with pytest.raises(DataError, match="is not added"):
        remove_added("stereotypes")


def test_removing_what_is_damaged(folder, file):
    add_file("stereotypes", file)
    (folder / "stereotypes" / "record.json").write_text("{", encoding="utf-8")
    assert remove_added("stereotypes") is None
    assert os.listdir(folder) == []


def test_removing_never_leaves_the_folder(folder, file):
    add_file("stereotypes", file)
    for name in ("../data", ".", "", "stereotypes/.."):
        with pytest.raises(DataError, match="no data set"):
            remove_added(name)
    assert added_file("stereotypes") is not None


def test_a_data_folder_that_cannot_be_written(tmp_path, file, monkeypatch):
    monkeypatch.setenv("CLINOMETER_DATA", str(file / "inside"))  # a file where a folder must be
    with pytest.raises(DataError, match="set CLINOMETER_DATA"):
        add_file("stereotypes", file)
    assert os.listdir(tmp_path) == ["mine.tsv"]


def test_what_a_killed_process_left_is_swept(folder, file):
    old, young = folder / ".unfinished-old", folder / ".unfinished-young"
    for leftover in (old, young):
        leftover.mkdir(parents=True)
        (leftover / "data").write_text("half", encoding="utf-8")
    two_days_ago = time.time() - 48 * 3600
    os.utime(old, (two_days_ago, two_days_ago))
    add_file("stereotypes", file)
    assert sorted(os.listdir(folder)) == [".unfinished-young", "stereotypes"]


def test_the_data_sets_we_know():
    pinned = get_dataset("stereotypes")
    assert len(pinned.sha256) == 64
    assert pinned.url.startswith("https://raw.githubusercontent.com/RochelleChoenni/stereotypes_in_lms/")
    assert all(name == dataset.name and dataset.terms and dataset.page for name, dataset in DATASETS.items())
    # a download that cannot be checked is not offered
    assert all(bool(dataset.url) == bool(dataset.sha256) for dataset in DATASETS.values())


def test_every_data_set_that_an_audit_looks_for_can_be_added():
    wanted = {name for probe in PROBES.values() for name in probe.user_data.values()}
    assert wanted <= set(DATASETS)


def test_nrc_and_mpqa_are_checked_by_their_readers(folder, tmp_path):
    path = tmp_path / "lexicon.txt"
    path.write_text(
        "".join(f"mean\t{e}\t{int(e == 'anger')}\nvocal\t{e}\t0\n" for e in EMOTIONS), encoding="utf-8"
    )
    assert add_file("nrc", path).found == "2 words, 1 of them with at least one emotion"
    with pytest.raises(DataError, match="expected key=value"):
        add_file("mpqa", path)
    clue = "type=weaksubj len=1 word1=inner pos1=adj stemmed1=n priorpolarity=neutral\n"
    path.write_text(clue, encoding="utf-8")
    assert add_file("mpqa", path).found == "1 neutral word"
    assert sorted(os.listdir(folder)) == ["mpqa", "nrc"]
