"""A bundle made by a stranger: nothing leaves its folder, fills the disk or stands for another file."""

from __future__ import annotations

import os
import stat
import struct
import tempfile
import zipfile
from pathlib import Path

import pytest

import clinometer
from clinometer.errors import ClinometerError, InputError
from clinometer.store import bundle
from tests.attacks.samples import tiny_run


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    run = tiny_run(tmp_path_factory.mktemp("runs") / "mine").path
    with zipfile.ZipFile(clinometer.bundle(run)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def unpacked(tmp_path, monkeypatch):
    """Where bundles are unpacked to: a folder of this test, to see what is left there."""
    place = tmp_path / "unpacked"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def member(name, *, mode=stat.S_IFREG | 0o644, packed=zipfile.ZIP_STORED):
    info = zipfile.ZipInfo("x")
    info.filename = name  # the constructor would mend it
    info.external_attr = mode << 16
    info.compress_type = packed
    return info


def archive_of(path, files, extra=()):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(member(name), data)
        for info, data in extra:
            archive.writestr(info, data)
    return path


def refused(path, unpacked, match):
    with pytest.raises(InputError, match=match) as caught:
        clinometer.open_run(path)
    assert not list(unpacked.iterdir())  # nothing was written
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


OUTSIDE = (
    "../evil.txt",
    "findings/../../evil.txt",
    "{here}/evil.txt",
    "inputs/..",
    "inputs/.",
    "..\\evil.txt",
    "inputs\\..\\..\\evil.txt",
    "C:\\evil.txt",
    "C:evil.txt",
    "inputs/C:evil",
    "inputs/a:stream",
    "//server/share/evil",
    "inputs//evil",
    "inputs/a/b",
    "inputs/nul",
    "inputs/con.txt",
    "inputs/evil.",
    "inputs/evil ",
    "inputs/a\nb",
    "inputs/\x1b[2J",
    "inputs/a\x00b",
    "records/tiny/fake/ask/run.sh",
    "places.json",
    "run.lock",
    "sitecustomize.py",
    "findings/tiny/",
    ".tmp-0123456789abcdef",
)


@pytest.mark.parametrize("name", OUTSIDE, ids=repr)
def test_a_name_without_a_place_in_a_run(honest, tmp_path, unpacked, name):
    path = archive_of(tmp_path / "evil.zip", honest, [(member(name.format(here=tmp_path)), b"evil")])
    refused(path, unpacked, "has no place in a run")
    assert not list(tmp_path.rglob("evil.txt"))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFDIR])
def test_a_member_that_is_not_a_plain_file(honest, tmp_path, unpacked, kind):
    link = (member("inputs/words.txt", mode=kind | 0o777), b"/etc/passwd")
    refused(archive_of(tmp_path / "evil.zip", honest, [link]), unpacked, "a link|not a plain file")


def test_a_name_that_is_there_twice(honest, tmp_path, unpacked):
    with pytest.warns(UserWarning, match="Duplicate"):
        path = archive_of(tmp_path / "evil.zip", honest, [(member("report.html"), b"another")])
    refused(path, unpacked, "there twice")


@pytest.mark.parametrize(
    "name", ["findings/Tiny/lean.csv", "findings/tiny/LEAN.csv", "inputs/STRASSE.txt", "inputs/e\u0301.txt"]
)
def test_a_name_that_some_system_takes_for_another(honest, tmp_path, unpacked, name):
    others = {"inputs/straße.txt": b"", "inputs/é.txt": b""}
    path = archive_of(tmp_path / "evil.zip", honest | others, [(member(name), b"another")])
    refused(path, unpacked, "upper and lower case")


def test_a_few_bytes_that_unpack_to_many(honest, tmp_path, unpacked):
    bomb = (member("inputs/words.txt", packed=zipfile.ZIP_DEFLATED), bytes(40_000_000))
    path = archive_of(tmp_path / "evil.zip", honest, [bomb])
    assert path.stat().st_size < 2_000_000
    refused(path, unpacked, "is packed")


def test_files_that_share_their_bytes(honest, tmp_path, unpacked):
    """The list of an archive may name one stretch of bytes many times, under as many names."""
    big = bytes(2_000_000)
    path = archive_of(tmp_path / "evil.zip", honest, [(member("inputs/0000"), big)])
    data = path.read_bytes()
    end = data.rindex(b"PK\5\6")
    start = struct.unpack("<L", data[end + 16 : end + 20])[0]
    directory = data[start:end]
    entry = directory[directory.rindex(b"PK\1\2") :]
    more = b"".join(entry.replace(b"inputs/0000", f"inputs/{i:04}".encode()) for i in range(1, 500))
    count = len(honest) + 500
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory) + len(more), start, 0)
    path.write_bytes(data[:end] + more + tail)
    refused(path, unpacked, "more than the bundle itself|Overlapped")


def test_a_file_with_holes(tmp_path, unpacked):
    """A terabyte of nothing takes no room on the stranger's disk."""
    path = tmp_path / "evil.zip"
    with path.open("wb") as file:
        file.truncate(1_000_000_000_000)
    refused(path, unpacked, "not a bundle")


def test_one_file_that_is_too_large(honest, tmp_path, unpacked, monkeypatch):
    monkeypatch.setattr(bundle, "TEXT", 1_000)
    refused(archive_of(tmp_path / "evil.zip", honest), unpacked, "more than 1,000")


def test_too_many_files(honest, tmp_path, unpacked, monkeypatch):
    monkeypatch.setattr(bundle, "MEMBERS", 3)
    refused(archive_of(tmp_path / "evil.zip", honest), unpacked, "more than 3")


def test_a_bundle_that_is_too_large(honest, tmp_path, unpacked, monkeypatch):
    monkeypatch.setattr(bundle, "LARGEST", 1_000)
    refused(archive_of(tmp_path / "evil.zip", honest), unpacked, "more than 1,000")


@pytest.mark.parametrize("of_many", [False, True])
def test_a_list_of_files_that_is_too_long_to_be_read(honest, tmp_path, unpacked, monkeypatch, of_many):
    """An archive of many files says at another place how long its list is."""
    path = archive_of(tmp_path / "evil.zip", honest)
    if of_many:
        data = path.read_bytes()
        end = data.rindex(b"PK\5\6")
        _, _, _, here, count, size, start, _ = struct.unpack("<4s4H2LH", data[end:])
        record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, here, count, size, start)
        locator = struct.pack("<4sLQL", b"PK\6\7", 0, end, 1)
        usual = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, here, count, 0, start, 0)
        path.write_bytes(data[:end] + record + locator + usual)
        assert clinometer.open_run(path).headlines
    monkeypatch.setattr(bundle, "DOCUMENT", 500)
    refused(path, unpacked, "its list of files has more than 500")


def test_no_room_on_this_disk(honest, tmp_path, unpacked, monkeypatch):
    path = archive_of(tmp_path / "evil.zip", honest)
    monkeypatch.setattr(bundle.shutil, "disk_usage", lambda _: _Usage())
    refused(path, unpacked, "10 are free")


class _Usage:
    free = 10


def test_an_encrypted_member(honest, tmp_path, unpacked):
    path = archive_of(tmp_path / "evil.zip", honest)
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\1\2") + 8] |= 1
    path.write_bytes(data)
    refused(path, unpacked, "encrypted")


def test_a_comment_and_an_empty_archive(honest, tmp_path, unpacked):
    path = archive_of(tmp_path / "evil.zip", honest)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"hello"
    refused(path, unpacked, "comment")
    refused(archive_of(tmp_path / "empty.zip", {}), unpacked, "empty")


def test_a_flipped_byte(honest, tmp_path, unpacked):
    path = archive_of(tmp_path / "evil.zip", honest)
    data = bytearray(path.read_bytes())
    data[data.index(honest["report.html"]) + 100] ^= 1
    path.write_bytes(data)
    with pytest.raises(ClinometerError, match=r"report\.html is damaged"):
        clinometer.open_run(path)
    assert not list(unpacked.iterdir())


@pytest.mark.parametrize("cut", [1, 30, 500, 5_000, -30])
def test_a_cut_file(honest, tmp_path, unpacked, cut):
    path = archive_of(tmp_path / "evil.zip", honest)
    path.write_bytes(path.read_bytes()[:-cut] if cut > 0 else path.read_bytes()[-cut:])
    with pytest.raises(ClinometerError):
        clinometer.open_run(path)
    assert not list(unpacked.iterdir())


def test_a_pipe_and_a_device(tmp_path, unpacked):
    pipe = tmp_path / "evil.zip"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(InputError):
            clinometer.open_run(path)


def test_a_bundle_without_a_run(tmp_path, unpacked):
    path = archive_of(tmp_path / "evil.zip", {"report.html": b"<p>"})
    refused(path, unpacked, r"evil\.zip is not a run folder")
